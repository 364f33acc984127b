// Numbers, colours, sizes and the cursor.

import { describe, expect, it } from "vitest";
import { luminance, palette, shadeOf } from "../../apps/web/src/colours";
import { afterKey, clicked, hovered, type Cursor } from "../../apps/web/src/cursor";
import { fitCell, inSight, marks, revealing, tickStep, zoomCells } from "../../apps/web/src/geometry";
import { Weights } from "../../apps/web/src/maps";
import { compact, count, fixed, plural, signed, spreadText, tiny, weightText } from "../../apps/web/src/numbers";

describe("numbers", () => {
  it("shows weights with three decimals, small ones with two digits", () => {
    expect([1, 0.8734, 0.001, 0.00021, 0.0000012, 3e-8, 0, NaN].map(weightText)).toEqual(
      ["1.000", "0.873", "0.001", "0.00021", "0.0000012", "3.0e-8", "0", "not a number"],
    );
  });

  it("signs changes with a minus and has no negative zero", () => {
    expect([2.6, -0.03, -0.001, 0, null].map((value) => signed(value))).toEqual(["+2.60", "−0.03", "+0.00", "+0.00", "–"]);
    expect(fixed(-0.5)).toBe("−0.50");
    expect([0.02, 1.5, null].map((value) => spreadText(value))).toEqual(["±.02", "±1.50", ""]);
  });

  it("counts", () => {
    expect([count(49152), compact(950), compact(49152), compact(3.1e6), compact(999_600), compact(1.43e12)]).toEqual(
      ["49,152", "950", "49.2 k", "3.10 M", "1.00 M", "1.43 T"],
    );
    expect([plural(1, "head"), plural(0, "head"), plural(1200, "head")]).toEqual(["1 head", "0 heads", "1,200 heads"]);
    expect([tiny(2e-7), tiny(2.4e-7), tiny(0), tiny(null)]).toEqual(["2e−7", "2.4e−7", "0", "not a number"]);
  });
});

describe("palette", () => {
  const rgb = (css: string) => css.match(/\d+/g)!.map(Number);

  it.each([false, true])("changes steadily in luminance, so that it reads in grey, dark %s", (dark) => {
    const light = palette(dark).css.map((css) => luminance(rgb(css)));
    for (let i = 1; i < light.length; ++i) {
      const rise = (light[i]! - light[i - 1]!) * (dark ? 1 : -1);
      expect(rise, `shade ${i}`).toBeGreaterThan(-1e-3);
    }
    expect(Math.abs(light[255]! - light[0]!)).toBeGreaterThan(0.7);
  });

  it.each([false, true])("puts ink on every shade that can be read, dark %s", (dark) => {
    const { css, ink } = palette(dark);
    css.forEach((shade, i) => {
      const [a, b] = [luminance(rgb(shade)), ink[i] === "#000" ? 0 : 1];
      expect((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), `shade ${i}`).toBeGreaterThan(4.5);
    });
  });

  it("keeps small weights visible", () => {
    expect([shadeOf(0), shadeOf(1), shadeOf(0.01), shadeOf(7), shadeOf(NaN)]).toEqual([0, 255, 26, 255, 0]);
  });
});

describe("geometry", () => {
  it("fits a map into its room with whole device pixels where it can", () => {
    expect([fitCell(33, 500, 1), fitCell(512, 540, 1), fitCell(512, 540, 2), fitCell(4, 600, 1)]).toEqual([15, 1, 1, 30]);
    expect(fitCell(2048, 512, 1)).toBe(0.25);
    expect(fitCell(0, 512, 1)).toBeGreaterThan(0);
  });

  it("zooms in steps that each show more", () => {
    expect(zoomCells(1)).toEqual([1, 8, 11, 16, 24]);
    expect(zoomCells(15)).toEqual([15, 24]);
    expect(zoomCells(30)).toEqual([30]);
  });

  it("marks an axis without crowding", () => {
    expect([tickStep(50), tickStep(11), tickStep(1)]).toEqual([1, 4, 64]);
    expect(marks(3, 20, 8)).toEqual([8, 16]);
    expect(inSight(100, 200, 16, 512)).toEqual([6, 19]);
    expect(inSight(0, 999, 16, 10)).toEqual([0, 10]);
  });

  it("scrolls no further than it takes", () => {
    expect([revealing(100, 200, 150, 16), revealing(100, 200, 40, 16), revealing(100, 200, 400, 16)]).toEqual([100, 40, 216]);
  });
});

describe("cursor", () => {
  const weights = new Weights(30, true, new Float32Array(30).fill(1), new Uint8Array(465).fill(1));
  const at = (query: number, key: number, locked = false): Cursor => ({ query, key, locked });

  it("moves with arrows and stays among the keys that its query sees", () => {
    expect(afterKey(at(9, 9), "ArrowRight", false, weights)).toEqual(at(9, 9));
    expect(afterKey(at(9, 9), "ArrowUp", false, weights)).toEqual(at(8, 8));
    expect(afterKey(at(9, 4), "ArrowDown", true, weights)).toEqual(at(19, 4));
    expect(afterKey(at(0, 0), "ArrowLeft", false, weights)).toEqual(at(0, 0));
    expect(afterKey(at(9, 4), "End", false, weights)).toEqual(at(9, 9));
    expect(afterKey(at(29, 4, true), "PageDown", false, weights)).toEqual(at(29, 4, true));
    expect(afterKey(at(9, 4), "x", false, weights)).toBeNull();
  });

  it("locks a row for the pointer, not for the arrows", () => {
    const locked = clicked(at(5, 2), 5, 2);
    expect(locked).toEqual(at(5, 2, true));
    expect(hovered(locked, 20, 1)).toEqual(at(5, 1, true));
    expect(hovered(at(5, 2), 20, 1)).toEqual(at(20, 1));
    expect(clicked(locked, 7, 1)).toEqual(at(7, 1, true));
    expect(clicked(locked, 5, 0)).toEqual(at(5, 0));
    expect(afterKey(locked, "Escape", false, weights)).toEqual(at(5, 2));
    expect(afterKey(at(5, 2), "Escape", false, weights)).toBeNull();
    expect(afterKey(locked, "ArrowDown", false, weights)).toEqual(at(6, 2, true));
  });
});
