// Writes the sample reports into a folder, to look at: vite-node make.ts FOLDER

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fill } from "./encode";
import { kLong, kManyHeads, kSmall, sampleReport } from "./sample";

const folder = process.argv[2] ?? "samples";
const page = readFileSync(new URL("../../apps/web/dist/report.html", import.meta.url), "utf8");
mkdirSync(folder, { recursive: true });
for (const [name, shape] of Object.entries({ small: kSmall, long: kLong, many: kManyHeads })) {
  writeFileSync(join(folder, `${name}.html`), fill(page, sampleReport(shape)));
}
