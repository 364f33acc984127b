// What a page from a stranger's model must not do, and what any reader may need of it.

import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { tokenText } from "../../apps/web/src/tokens";
import { Folder, launch, open, pixelOf, type Opened } from "./browser";
import { kHostile, kLong, kSmall, sampleReport } from "./sample";

const folder = new Folder();
let browser: Browser;
let small: string;
let opened: Opened;

beforeAll(async () => {
  small = folder.report("small.html", sampleReport(kSmall));
  browser = await launch();
});
afterAll(async () => {
  await browser?.close();
  folder.remove();
});
afterEach(async () => {
  const trouble = opened?.trouble.filter((line) => !line.includes("refused on purpose")) ?? [];
  await opened?.close();
  expect(trouble).toEqual([]);
});

async function show(path = small, options?: BrowserContextOptions, before?: () => void): Promise<Page> {
  opened = await open(browser, path, options, before);
  return opened.page;
}

describe("hostile text", () => {
  it("in tokens is shown and not obeyed", async () => {
    const page = await show();
    await page.locator(".tile").first().click();
    await page.locator(".text-choice select").selectOption("2");
    const words = await page.locator(".word").allTextContents();
    expect(words).toEqual(kHostile.map((token) => tokenText(token)));
    await page.locator(".word").nth(3).hover();
    await page.locator(".map-window").focus();
    for (let i = 0; i < kHostile.length; ++i) await page.keyboard.press("ArrowUp");
    expect(await page.locator("#app script, #app img, #app svg, #app b b").count()).toBe(0);
    expect(await page.evaluate(() => "pwned" in window)).toBe(false);
    expect(await page.locator(".map-readout").innerText()).toContain("</script>");
  });

  it("in every other text of the report is shown and not obeyed", async () => {
    const attack = "</script><img src=x onerror='window.pwned=1'>\u202e";
    const poison = (value: unknown, key = ""): unknown => {
      const kept = ["format", "encoding", "data", "row_max", "id", "role", "kind", "group"];
      if (typeof value === "string") return kept.includes(key) ? value : value + attack;
      if (Array.isArray(value)) return value.map((item) => poison(item, key));
      if (typeof value !== "object" || value === null) return value;
      return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, poison(item, name)]));
    };
    const page = await show(folder.report("poisoned.html", poison(sampleReport(kSmall))));
    await page.locator("details").evaluateAll((all) => all.forEach((one) => ((one as HTMLDetailsElement).open = true)));
    expect(await page.locator("h1").innerText()).toContain("<img src=x");
    expect(await page.locator("#app img, #app script").count()).toBe(0);
    expect(await page.evaluate(() => "pwned" in window)).toBe(false);
  });

  it("could not run even if it became markup", async () => {
    const page = await show();
    const refused = await page.evaluate(() => {
      const script = document.createElement("script");
      const assign = (act: () => void) => {
        try {
          act();
          return "allowed";
        } catch (error) {
          return (error as Error).name;
        }
      };
      return [
        assign(() => (document.createElement("div").innerHTML = "<b>x</b>")),
        assign(() => (script.textContent = "window.pwned = 1")),
      ];
    });
    opened.trouble.length = 0;
    expect(refused).toEqual(["TypeError", "TypeError"]);
    expect(await page.evaluate(() => "pwned" in window)).toBe(false);
  });
});

describe("light and dark", () => {
  const theme = (page: Page) => page.evaluate(() => document.documentElement.dataset.theme);
  const paper = (page: Page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const corner = async (page: Page) => (await pixelOf(page.locator(".scale canvas"), 0, 0))[0]!;

  it("follow the system, then the reader, who is remembered", async () => {
    const page = await show(small, { colorScheme: "dark" });
    expect(await theme(page)).toBe("dark");
    const [darkPaper, darkShade] = [await paper(page), await corner(page)];
    await page.getByRole("button", { name: "Light / dark" }).click();
    expect(await theme(page)).toBe("light");
    expect(await paper(page)).not.toBe(darkPaper);
    expect(await corner(page)).toBeGreaterThan(darkShade + 100);
    await page.reload();
    expect(await theme(page)).toBe("light");
  });

  it("work where storage is refused, or holds something else", async () => {
    const refuse = () => {
      Object.defineProperty(window, "localStorage", {
        get() {
          throw new Error("no storage here");
        },
      });
    };
    let page = await show(small, {}, refuse);
    await page.getByRole("button", { name: "Light / dark" }).click();
    expect(await theme(page)).toBe("dark");
    await opened.close();
    page = await show(small, {}, () => localStorage.setItem("headlight-theme", "</script>"));
    expect(await theme(page)).toBe("light");
  });
});

describe("any window", () => {
  it.each([
    ["small", kSmall],
    ["long", kLong],
  ])("from 380 to 2200 pixels wide, nothing sticks out: %s", async (_name, shape) => {
    const page = await show(folder.report("wide.html", sampleReport(shape)));
    for (const width of [380, 768, 1080, 1600, 2200]) {
      await page.setViewportSize({ width, height: 800 });
      // charts and maps are drawn anew after the window has changed: the page is judged once it has settled
      const beyond = () => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      await expect.poll(beyond, { message: `${width} wide` }).toBe(0);
      const clipped = () =>
        page.locator("h1, h2, h3, .chip, .caption, .ran, .opened, .chart").evaluateAll((all) =>
          all.filter((one) => one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0).map((one) => one.className + one.textContent),
        );
      await expect.poll(clipped, { message: `${width} wide` }).toEqual([]);
      expect((await page.locator(".map-window").boundingBox())!.width).toBeGreaterThan(200);
    }
  });

  it("moves nothing by itself where motion is not wanted", async () => {
    const page = await show(small, { reducedMotion: "reduce" });
    expect(await page.evaluate(() => getComputedStyle(document.documentElement).scrollBehavior)).toBe("auto");
    await opened.close();
    const moving = await show(small, { reducedMotion: "no-preference" });
    expect(await moving.evaluate(() => getComputedStyle(document.documentElement).scrollBehavior)).toBe("smooth");
  });

  it("prints light, with every map drawn and no controls, and comes back", async () => {
    const page = await show(folder.report("print.html", sampleReport(kLong)), { colorScheme: "dark" });
    await page.pdf();
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe("dark");
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    await page.emulateMedia({ media: "print" });
    expect(await page.evaluate(() => document.documentElement.dataset.theme)).toBe("light");
    expect(await page.locator("canvas.thumbnail[data-drawn]").count()).toBe(16);
    expect(await page.locator(".controls").isVisible()).toBe(false);
  });
});

describe("any reader", () => {
  it("finds a name on everything that can be operated", async () => {
    const page = await show();
    const nameless = await page.locator("button, select, input, summary, a, [tabindex], [role=application], [role=grid]").evaluateAll((all) =>
      all
        .filter((one) => {
          const labelled = one.getAttribute("aria-label") ?? one.getAttribute("title") ?? one.textContent;
          return !labelled?.trim() && !one.closest("label");
        })
        .map((one) => one.outerHTML.slice(0, 120)),
    );
    expect(nameless).toEqual([]);
  });

  it("gets the definition of each number by hover and by focus", async () => {
    const page = await show();
    const defined = page.locator(".defined");
    expect(await defined.count()).toBeGreaterThan(20);
    const bad = await defined.evaluateAll((all) => all.filter((one) => one.getAttribute("title")!.length < 8 || (one as HTMLElement).tabIndex !== 0).length);
    expect(bad).toBe(0);
    const cells = await page.locator("td.number").evaluateAll((all) => all.filter((one) => !one.getAttribute("title") || !one.hasAttribute("tabindex")).length);
    expect(cells).toBe(0);
  });

  it("reaches everything with Tab and sees where the focus is", async () => {
    const page = await show();
    await page.locator("details").evaluateAll((all) => all.forEach((one) => ((one as HTMLDetailsElement).open = true)));
    const stops = new Set<string>();
    for (let i = 0; i < 120; ++i) {
      await page.keyboard.press("Tab");
      const stop = await page.evaluate(() => {
        const element = document.activeElement!;
        const style = getComputedStyle(element);
        const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
        return `${element.tagName}.${element.className}${seen ? "" : " without outline"}`;
      });
      if (stop.startsWith("BODY")) break;
      stops.add(stop);
    }
    const all = [...stops].join("\n");
    expect(all).not.toContain("without outline");
    for (const part of ["A.skip", "BUTTON.quiet", "DIV.chart", "SELECT.", "INPUT.", "BUTTON.chip", "DIV.tile", "DIV.map-window", "DIV.running", "SPAN.defined", "SUMMARY."]) {
      expect(all).toContain(part);
    }
  });
});
