// A headless Chromium for the tests: opens reports from files and notes what should not happen.

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium, type Browser, type BrowserContextOptions, type Locator, type Page } from "playwright-core";
import { fill } from "./encode";

const kFlags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync";

export const template = readFileSync(new URL("../../apps/web/dist/report.html", import.meta.url), "utf8");

export function launch(): Promise<Browser> {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  if (!existsSync(executablePath)) throw new Error(`no browser at ${executablePath}; install Debian's chromium or set CHROMIUM`);
  return chromium.launch({ executablePath, args: kFlags.split(" ") });
}

/** A folder whose name has blanks, for pages to open. */
export class Folder {
  private readonly path = mkdtempSync(join(tmpdir(), "headlight report "));

  write(name: string, html: string): string {
    const path = join(this.path, name);
    writeFileSync(path, html);
    return path;
  }

  report(name: string, data: unknown): string {
    return this.write(name, fill(template, data));
  }

  remove(): void {
    rmSync(this.path, { recursive: true });
  }
}

export interface Opened {
  page: Page;
  /** Console lines, uncaught errors, and requests other than for the file itself. */
  trouble: string[];
  close(): Promise<void>;
}

export async function open(browser: Browser, path: string, options: BrowserContextOptions = {}, before?: () => void): Promise<Opened> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const address = pathToFileURL(path).href;
  const trouble: string[] = [];
  page.on("console", (message) => trouble.push(`console ${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => trouble.push(`error: ${error.message}`));
  page.on("request", (request) => request.url() !== address && trouble.push(`request: ${request.url()}`));
  if (before) await page.addInitScript(before);
  await page.goto(address);
  await nextFrame(page);
  return { page, trouble, close: () => context.close() };
}

/** Until what follows a frame has been drawn: maps and charts fit themselves to the window once it is laid out. */
function nextFrame(page: Page): Promise<void> {
  return page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done()))));
}

/** Red, green, blue and alpha of a canvas at a share of its width and height. */
export function pixelOf(canvas: Locator, x: number, y: number): Promise<number[]> {
  return canvas.evaluate(
    (source: HTMLCanvasElement, [x, y]) => {
      const copy = document.createElement("canvas");
      [copy.width, copy.height] = [source.width, source.height];
      const context = copy.getContext("2d", { willReadFrequently: true })!;
      context.drawImage(source, 0, 0);
      return [...context.getImageData(x! * copy.width, y! * copy.height, 1, 1).data];
    },
    [x, y],
  );
}
