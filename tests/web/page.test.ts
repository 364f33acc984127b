// The page in a browser, from a file.

import { statSync } from "node:fs";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { weightsOf } from "../../apps/web/src/maps";
import { weightText } from "../../apps/web/src/numbers";
import { Folder, launch, open, pixelOf, template, type Opened } from "./browser";
import { kLong, kManyHeads, kSmall, sampleReport } from "./sample";

const report = sampleReport(kSmall);
const folder = new Folder();
let browser: Browser;
let small: string;
let opened: Opened;

beforeAll(async () => {
  small = folder.report("small report.html", report);
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  folder.remove();
});
afterEach(async () => {
  const trouble = opened?.trouble ?? [];
  await opened?.close();
  expect(trouble).toEqual([]);
});

async function show(path = small, options?: BrowserContextOptions, before?: () => void): Promise<Page> {
  opened = await open(browser, path, options, before);
  return opened.page;
}

const text = (page: Page, selector: string) => page.locator(selector).first().innerText();
const readout = async (page: Page) => (await text(page, ".map-readout")).replace(/\s+/g, " ");
const tiles = (page: Page) => page.locator(".tile b").allInnerTexts();
const openedHead = (page: Page) => text(page, ".opened h3");

/** The middle of a cell of the large map; scrolls the page to it. */
async function cell(page: Page, query: number, key: number): Promise<{ x: number; y: number }> {
  const map = page.locator(".map-window");
  await map.evaluate((element) => element.scrollIntoView({ block: "center", behavior: "instant" }));
  const box = (await map.boundingBox())!;
  const side = Number(await page.locator(".map").evaluate((element) => getComputedStyle(element).getPropertyValue("--cell").replace("px", "")));
  return { x: box.x + (key + 0.5) * side, y: box.y + (query + 0.5) * side };
}

async function hover(page: Page, query: number, key: number): Promise<void> {
  const { x, y } = await cell(page, query, key);
  await page.mouse.move(x, y);
}

function weight(block: number, head: number, query: number, key: number): string {
  const map = report.texts[0]!.maps.find((one) => one.block === block && one.head === head)!;
  return weightText(weightsOf(map, report.texts[0]!).at(query, key));
}

describe("opening", () => {
  it.each([
    ["small", kSmall],
    ["long", kLong],
    ["many heads", kManyHeads],
  ])("shows a report from a file, asks for nothing else and complains of nothing: %s", async (name, shape) => {
    const path = folder.report(`${name}.html`, sampleReport(shape));
    const page = await show(path);
    expect(await text(page, "h1")).toBe(`Repeats, ${shape.blocks} blocks x ${shape.heads} heads`);
    expect(await page.locator(".tile").count()).toBe(shape.blocks * shape.heads);
    expect(await page.title()).toContain("Repeats");
    const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN);
    const size = statSync(path).size;
    console.log(`${name}: ${(size / 1e6).toFixed(2)} MB, first contentful paint after ${paint.toFixed(0)} ms`);
    expect(size).toBeLessThan(10e6);
  });

  it("says what was run in two lines, with its checks", async () => {
    const page = await show();
    const lines = await page.locator(".ran").allInnerTexts();
    expect(lines).toHaveLength(2);
    expect(lines.join(" ")).toMatch(/runs\/repeats.*repeats of random tokens.*token ids.*seed 7.*Headlight 0.1.0.*4 checks passed/s);
  });

  it("shows a failed check openly", async () => {
    const failed = sampleReport(kSmall);
    Object.assign(failed.checks[1]!, { passed: false, value: 0.02 });
    const page = await show(folder.report("failed.html", failed));
    expect(await text(page, ".verdict")).toBe("✗ 1 of 4 checks failed");
    expect(await page.locator(".checks .failed").innerText()).toContain("2e−2, allowed 1e−5");
    expect(await page.locator(".checks").isVisible()).toBe(true);
  });

  it.each([
    ["no data", template, /page of a report without its data/],
    ["cut", template.replace("__HEADLIGHT_DATA__", '{"format": "headlight-report-1", '), /damaged or cut short/],
    ["other", template.replace("__HEADLIGHT_DATA__", '{"format": "headlight-report-9"}'), /data has "headlight-report-9"/],
    ["wrong", template.replace("__HEADLIGHT_DATA__", '{"format": "headlight-report-1", "title": 5}'), /title: text wanted, 5 found/],
    ["missing", template.replace('id="headlight-data"', ""), /its data is missing/],
  ])("says why it cannot show a report: %s", async (name, html, message) => {
    const page = await show(folder.write(`${name}.html`, html));
    expect(await page.getByRole("alert").innerText()).toMatch(message);
  });

  it("does without what a report may leave out", async () => {
    const { training: _, knockout: __, vocabulary: ___, ...rest } = sampleReport(kSmall);
    const page = await show(folder.report("bare.html", { ...rest, texts: [] }));
    expect(await page.locator(".chart").count()).toBe(0);
    expect(await page.locator(".opened .empty").innerText()).toContain("No attention map");
    expect(await page.locator(".heads tbody tr").count()).toBe(8);
  });
});

describe("the large map", () => {
  it("says the weight under the pointer, with its tokens and positions", async () => {
    const page = await show();
    await hover(page, 20, 5);
    const { tokens } = report.texts[0]!;
    expect(await readout(page)).toBe(`row query ${tokens[20]} at 20 reads key ${tokens[5]} at 5 with weight ${weight(1, 2, 20, 5)}`);
    await hover(page, 5, 20);
    expect(await readout(page)).toContain("cannot see key");
  });

  it("locks a row by click and lets go by Escape", async () => {
    const page = await show();
    const { x, y } = await cell(page, 20, 5);
    await page.mouse.click(x, y);
    await hover(page, 28, 3);
    expect(await readout(page)).toContain("row locked query");
    expect(await readout(page)).toContain(`at 20 reads key ${report.texts[0]!.tokens[3]} at 3 with weight ${weight(1, 2, 20, 3)}`);
    await page.keyboard.press("Escape");
    await hover(page, 28, 4);
    expect(await readout(page)).toMatch(/^row query .* at 28 reads .* at 4 /);
  });

  it("is read from the keyboard alone", async () => {
    const page = await show();
    await page.locator(".map-window").focus();
    await page.keyboard.press("Home");
    for (const key of ["ArrowUp", "ArrowUp", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft"]) await page.keyboard.press(key);
    expect(await readout(page)).toContain(`at 30 reads key ${report.texts[0]!.tokens[2]} at 2 with weight ${weight(1, 2, 30, 2)}`);
    await page.keyboard.press("Enter");
    expect(await readout(page)).toContain("row locked");
    await page.keyboard.press("Shift+ArrowUp");
    expect(await readout(page)).toContain("at 20 reads");
    await page.keyboard.press("m");
    expect(await readout(page)).toContain("at 5 with weight 0.8");
  });

  it("changes the head by [ and ] from anywhere, and keeps the place", async () => {
    const page = await show();
    const { x, y } = await cell(page, 20, 5);
    await page.mouse.click(x, y);
    await page.keyboard.press("]");
    expect(await openedHead(page)).toContain("Head 1.3");
    expect(await readout(page)).toContain(`at 20 reads key ${report.texts[0]!.tokens[5]} at 5 with weight ${weight(1, 3, 20, 5)}`);
    await page.keyboard.press("]");
    expect(await openedHead(page)).toContain("Head 0.0");
    await page.keyboard.press("[");
    await page.getByRole("button", { name: "Previous head" }).click();
    expect(await openedHead(page)).toContain("Head 1.2");
  });

  it("zooms in a long text, shows its tokens, and follows the cursor", async () => {
    const page = await show(folder.report("zoomed.html", sampleReport(kLong)));
    const labels = page.locator(".axis.queries .label:not(.current) .token");
    expect(await labels.count()).toBe(0);
    await page.locator(".map-window").focus();
    for (let i = 0; i < 3; ++i) await page.keyboard.press("+");
    expect(await labels.count()).toBeGreaterThan(15);
    expect(await page.locator(".axis .label.current").count()).toBe(2);
    await page.keyboard.press("Home");
    for (let i = 0; i < 30; ++i) await page.keyboard.press("PageUp");
    expect(await page.locator(".axis.queries .label.current").innerText()).toContain("210");
    expect(await page.locator(".map-window").evaluate((element) => element.scrollLeft)).toBe(0);
    await page.keyboard.press("0");
    expect(await labels.count()).toBe(0);
  });

  it("moves axes and cells together when a key moves the window", async () => {
    const page = await show(folder.report("followed.html", sampleReport(kLong)));
    const current = await page.locator(".map-window").evaluate(async (window) => {
      const counts: number[] = [];
      for (const key of ["+", "+", "+", "Home", "End"]) {
        window.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        for (let i = 0; i < 20; ++i) await null; // what the key set off is drawn, and no frame has passed
        counts.push(document.querySelectorAll(".axis .label.current").length);
      }
      return counts;
    });
    expect(current).toEqual([2, 2, 2, 2, 2]);
  });

  it("draws what is stored: strong cells differ from weak ones, what is not visible stays clear", async () => {
    const page = await show();
    const pixel = (query: number, key: number) =>
      pixelOf(page.locator(".map-sheet canvas"), (key + 0.5) / 33, (query + 0.5) / 33);
    expect((await pixel(5, 20))[3]).toBe(0);
    const [strong, weak] = [await pixel(30, 15), await pixel(30, 1)];
    expect(strong[3]).toBe(255);
    expect(strong[0]! + strong[1]! + strong[2]!).toBeLessThan(weak[0]! + weak[1]! + weak[2]! - 300);
  });
});

describe("the text", () => {
  it("is tinted by the row in view, and a click takes a token as the row", async () => {
    const page = await show();
    const word = page.locator(".word");
    const tint = (i: number) => word.nth(i).evaluate((element) => (element as HTMLElement).style.backgroundColor);
    await word.nth(20).click();
    expect(await readout(page)).toContain("row locked query");
    expect(await text(page, ".text-side h4")).toContain("row 20");
    expect(await tint(5)).not.toBe("");
    expect(await tint(25)).toBe("");
    const before = await tint(5);
    await page.locator(".running").focus();
    await page.keyboard.press("ArrowRight");
    expect(await text(page, ".text-side h4")).toContain("row 21");
    expect(await tint(5)).not.toBe(before);
  });

  it("can be selected", async () => {
    const page = await show();
    await page.locator(".text-choice select").selectOption("1");
    await page.locator(".running").evaluate((element) => getSelection()!.selectAllChildren(element));
    expect(await page.evaluate(() => String(getSelection()))).toContain("The·keys·to·the·cabinet");
    await page.locator(".word").nth(3).dispatchEvent("click");
    expect(await page.evaluate(() => String(getSelection()))).toContain("cabinet");
  });

  it("lists where the row reads from, strongest first, and what the head writes", async () => {
    const page = await show();
    const values = (await page.locator(".list").first().locator(".bar-value").allInnerTexts()).map(Number);
    expect(values).toEqual([...values].sort((a, b) => b - a));
    expect(await page.locator(".list").nth(1).innerText()).toContain("z<63>");
  });
});

describe("the grid and the table", () => {
  it("walks the heads by arrow keys, one stop of the Tab key", async () => {
    const page = await show();
    expect(await page.locator('.tile[tabindex="0"]').count()).toBe(1);
    await page.locator(".tile").first().click();
    await page.keyboard.press("ArrowRight");
    expect(await openedHead(page)).toContain("Head 0.1");
    await page.keyboard.press("End");
    expect(await openedHead(page)).toContain("Head 1.3");
    expect(await page.evaluate(() => document.activeElement?.getAttribute("aria-selected"))).toBe("true");
    expect(await page.locator('.tile[tabindex="0"]').count()).toBe(1);
  });

  it("draws maps once they come into sight", async () => {
    const page = await show(folder.report("lazy.html", sampleReport(kManyHeads)));
    const drawn = () => page.locator("canvas[data-drawn]").count();
    await page.locator(".grid").evaluate((element) => element.scrollIntoView({ behavior: "instant" }));
    await expect.poll(drawn).toBeGreaterThan(10);
    expect(await drawn()).toBeLessThan(200);
    await page.locator(".grid").evaluate((element) => (element.scrollTop = 1e6));
    await expect.poll(() => page.locator(".tile:last-child canvas[data-drawn]").count()).toBe(1);
  });

  it("begins with the leading heads where there are many", async () => {
    const page = await show(folder.report("leading.html", sampleReport(kManyHeads)));
    const figures = (await page.locator(".tile-figure").allInnerTexts()).map(Number);
    expect(figures).toHaveLength(270);
    expect(figures).toEqual([...figures].sort((a, b) => b - a));
    expect((await openedHead(page)).split(" ")[1]).toBe((await tiles(page))[0]);
    await page.getByRole("combobox", { name: "Order" }).selectOption("position up");
    expect((await tiles(page)).slice(0, 3)).toEqual(["0.0", "0.1", "0.2"]);
  });

  it("sorts by the chosen figure", async () => {
    const page = await show();
    await page.getByRole("combobox", { name: "Order" }).selectOption("value down");
    const figures = (await page.locator(".tile-figure").allInnerTexts()).map(Number);
    expect(figures).toEqual([...figures].sort((a, b) => b - a));
    await page.getByRole("combobox", { name: "Figure" }).selectOption("ablation:zero");
    expect((await tiles(page))[0]).toBe("0.0");
    expect(await text(page, ".tile-figure")).toMatch(/^\+/);
  });

  it("filters by role, disagreement and threshold", async () => {
    const page = await show();
    const group = page.getByRole("group", { name: "Show only heads" });
    await group.getByRole("button", { name: "induction" }).click();
    expect(await tiles(page)).toEqual(["1.0", "1.1", "1.2"]);
    expect(await text(page, ".shown")).toBe("3 of 8 heads shown");
    await group.getByRole("button", { name: "disagree" }).click();
    expect(await tiles(page)).toEqual(["1.0"]);
    expect(await page.locator(".heads tbody tr").count()).toBe(1);
    await page.getByRole("slider").focus();
    await page.keyboard.press("End");
    expect(await page.locator(".explore .empty").innerText()).toContain("No head passes");
    await page.keyboard.press("Home");
    expect(await tiles(page)).toEqual(["1.0"]);
  });

  it("sorts the table by its headings, and the grid follows", async () => {
    const page = await show();
    const heading = page.getByRole("columnheader", { name: "zeroed" });
    await heading.getByRole("button").click();
    expect(await heading.getAttribute("aria-sort")).toBe("descending");
    const order = await page.locator(".heads tbody th").allInnerTexts();
    expect(order[0]).toBe("0.0");
    expect(await tiles(page)).toEqual(order);
    await heading.getByRole("button").click();
    expect(await heading.getAttribute("aria-sort")).toBe("ascending");
    expect(await tiles(page)).toEqual([...order].reverse());
  });

  it("puts ablations beside scores, marks disagreement, and has the untrained model below", async () => {
    const page = await show();
    const row = page.locator(".heads tbody tr").nth(4);
    expect(await row.innerText()).toContain("≠ disagree: induction; alone it is covered by 1.1, 1.2");
    expect(await page.locator(".heads tbody .whisker").count()).toBeGreaterThan(8);
    expect(await page.locator(".heads tfoot").innerText()).toMatch(/untrained\s+0.05\s*±.00/);
  });

  it("is walked by arrow keys, says how each number is defined, and opens a head", async () => {
    const page = await show();
    expect(await page.locator('.heads [tabindex="0"]').count()).toBe(1);
    await page.locator('.heads [tabindex="0"]').focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    const bubble = await page.getByRole("tooltip").innerText();
    expect(bubble).toBe("duplicate token of head 0.0: mean over the second half of P(i, i−N). Spread: standard deviation over 32 sequences.");
    await page.keyboard.press("Escape");
    expect(await page.getByRole("tooltip").count()).toBe(0);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    expect(await openedHead(page)).toContain("Head 0.1");
    await page.keyboard.press("Home");
    await page.keyboard.press("Enter");
    expect(await page.evaluate(() => document.activeElement?.className)).toBe("map-window");
  });
});

describe("the charts", () => {
  it("are read from the keyboard, both plots of training together", async () => {
    const page = await show();
    const chart = page.locator(".chart");
    const line = async () => (await page.locator("section .readout").first().innerText()).replace(/\s+/g, " ");
    expect(await line()).toContain("last step 1,500");
    await chart.nth(0).focus();
    await page.keyboard.press("Home");
    for (let i = 0; i < 4; ++i) await page.keyboard.press("ArrowRight");
    await expect.poll(line).toContain("step 100 first copy 4.14");
    const cursors = await page.locator(".u-cursor-x").evaluateAll((all) => all.slice(0, 2).map((one) => (one as HTMLElement).style.transform));
    expect(cursors[0]).toBe(cursors[1]);
    await page.getByRole("group", { name: "Patterns" }).getByRole("button", { name: "start" }).click();
    await expect.poll(line).toContain("start, highest");
  });

  it("set the knock-out of the leading heads against random ones", async () => {
    const page = await show();
    await page.locator(".chart").nth(2).focus();
    await page.keyboard.press("Home");
    await page.keyboard.press("ArrowRight");
    await expect.poll(async () => (await page.locator(".readout").last().innerText()).replace(/\s+/g, " ")).toMatch(
      /^2 heads most inductive first \+1\.\d\d \(1\.\d, 1\.\d\) random order [+−]0\.\d\d ±\.\d\d$/,
    );
  });
});
