// Rules on the page's own text.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const web = fileURLToPath(new URL("../../apps/web/", import.meta.url));
const sources = readdirSync(join(web, "src"), { recursive: true, encoding: "utf8" })
  .filter((name) => /\.(tsx?|css)$/.test(name))
  .map((name) => ({ name, text: readFileSync(join(web, "src", name), "utf8") }));
const page = readFileSync(join(web, "dist/report.html"), "utf8");

describe("sources", () => {
  it.each(sources)("$name makes no markup from text, runs no text, asks no network", ({ text }) => {
    expect(text).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|srcdoc/);
    expect(text).not.toMatch(/\beval\(|new Function|\bfetch\(|XMLHttpRequest|WebSocket|sendBeacon|import\(|https?:\/\//);
  });

  it.each(sources)("$name is short enough to read", ({ text }) => {
    expect(text.split("\n").length).toBeLessThan(400);
  });
});

describe("package-lock.json", () => {
  it("records no download addresses", () => {
    expect(readFileSync(join(web, "package-lock.json"), "utf8")).not.toContain('"resolved"');
  });
});

describe("dist/report.html", () => {
  it("is one file with one place for the data", () => {
    expect(page.split("__HEADLIGHT_DATA__")).toHaveLength(2);
    expect(page).toContain('<script type="application/json" id="headlight-data">__HEADLIGHT_DATA__</script>');
    expect(page).not.toMatch(/<(script|img|iframe)[^>]*\ssrc=|<link[^>]*href="(?!data:,")|@import|url\((?!["']?data:)/);
  });

  it("allows only its own script and style", () => {
    const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(page)![1]!;
    expect(policy).toContain("default-src 'none'");
    expect(policy).toMatch(/script-src 'sha256-[^']+'; style-src 'sha256-[^']+'; /);
    expect(policy).toContain("require-trusted-types-for 'script'");
    expect(policy).not.toMatch(/unsafe|https?:|\*/);
    expect(page.indexOf("Content-Security-Policy")).toBeLessThan(page.indexOf("<style"));
  });
});
