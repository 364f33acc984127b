// Turns Vite's output into one HTML file: script and style inline, and a policy that lets only these two run.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Plugin, Rollup } from "vite";

const notices = readFileSync(new URL("THIRD-PARTY.txt", import.meta.url), "utf8");
const kPlaceholder = "__HEADLIGHT_DATA__";

export function singleFile(name: string): Plugin {
  return {
    name: "headlight-single-file",
    enforce: "post",
    generateBundle(_options, bundle) {
      const files = Object.values(bundle);
      const page = only(files.filter((file) => file.fileName.endsWith(".html"))) as Rollup.OutputAsset;
      const script = (only(files.filter((file) => file.type === "chunk")) as Rollup.OutputChunk).code.trim();
      const style = String((only(files.filter((file) => file.fileName.endsWith(".css"))) as Rollup.OutputAsset).source).trim();
      for (const file of files) delete bundle[file.fileName];
      this.emitFile({ type: "asset", fileName: name, source: inlined(String(page.source), script, style) });
    },
  };
}

function inlined(page: string, script: string, style: string): string {
  refuse(script, /<\/script|<!--|\r|\0/i, "the script");
  refuse(style, /<\/style|\r|\0/i, "the style");
  const html = page
    .replace(/<!doctype html>/i, (doctype) => `${doctype}\n<!--\n${notices}-->`)
    .replace(/\s*<script type="module"[^>]*><\/script>/, "")
    .replace(/\s*<link rel="stylesheet"[^>]*>/, "")
    .replace(/(<meta charset[^>]*>)/, (meta) => `${meta}\n    <meta http-equiv="Content-Security-Policy" content="${policy(script, style)}" />`)
    .replace("</head>", () => `  <style>${style}</style>\n  </head>`)
    .replace("</body>", () => `  <script>${script}</script>\n  </body>`);
  if (html.split(kPlaceholder).length !== 2) throw new Error(`${kPlaceholder} must be in the page exactly once`);
  return html;
}

/** Nothing from anywhere, no markup made from text, and only these two by their hashes. */
function policy(script: string, style: string): string {
  return [
    "default-src 'none'",
    `script-src '${hash(script)}'`,
    `style-src '${hash(style)}'`,
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
}

const hash = (text: string) => `sha256-${createHash("sha256").update(text).digest("base64")}`;

function refuse(text: string, pattern: RegExp, what: string): void {
  const found = pattern.exec(text);
  if (found) throw new Error(`${what} holds ${JSON.stringify(found[0])} at ${found.index}; it cannot be put inline`);
}

function only<T>(items: T[]): T {
  if (items.length !== 1) throw new Error(`one file wanted, ${items.length} found`);
  return items[0]!;
}
