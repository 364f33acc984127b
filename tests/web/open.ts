// Opens a report as a reader would, and fails when the page shows an error: vite-node open.ts REPORT.html

import { resolve } from "node:path";
import { launch, open } from "./browser";

const path = process.argv[2];
if (!path) throw new Error("which report? open.ts REPORT.html");
const browser = await launch();
try {
  const { page, trouble } = await open(browser, resolve(path));
  const alert = page.locator("[role=alert]");
  if ((await alert.count()) > 0) trouble.push((await alert.innerText()).replace(/\s+/g, " "));
  else if ((await page.locator("h1").count()) === 0) trouble.push("the page stayed empty");
  for (const line of trouble) console.error(line);
  if (trouble.length === 0) console.log(`${path}: opens, ${await page.locator(".tile").count()} heads`);
  process.exitCode = trouble.length === 0 ? 0 : 1;
} finally {
  await browser.close();
}
