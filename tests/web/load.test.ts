import { describe, expect, it } from "vitest";
import type { Report } from "../../apps/web/src/data";
import { readReport } from "../../apps/web/src/load";
import { DataError } from "../../apps/web/src/shape";
import { validate } from "../../apps/web/src/validate";
import { kLong, kSmall, sampleReport } from "./sample";

/** A fresh copy of the small sample, as it comes out of JSON, changed by `edit`. */
function changed(edit: (report: Report) => void): unknown {
  const report = JSON.parse(JSON.stringify(sampleReport(kSmall))) as Report;
  edit(report);
  return report;
}

const problem = (edit: (report: Report) => void) => () => validate(changed(edit));

describe("readReport", () => {
  it("reads what a writer wrote", () => {
    const report = readReport(JSON.stringify(sampleReport(kSmall)));
    expect(report.texts.length).toBe(4);
    expect(report.heads.rows.length).toBe(8);
  });

  it("gives the same report every time", () => {
    expect(JSON.stringify(sampleReport(kLong))).toBe(JSON.stringify(sampleReport(kLong)));
  });

  it.each([
    [null, /holds no report/],
    ["  ", /holds no report/],
    ["__HEADLIGHT_DATA__", /without its data/],
    ['{"format": "headlight-report-1", "title": "cut', /damaged or cut short/],
    ['{"format": "headlight-report-2"}', /reads "headlight-report-1", the data has "headlight-report-2"/],
    ["{}", /has no format/],
  ])("says what is wrong with %j", (source, message) => {
    expect(() => readReport(source)).toThrow(DataError);
    expect(() => readReport(source)).toThrow(message);
  });
});

describe("validate", () => {
  it("names the field that is wrong", () => {
    expect(problem((r) => (r.run.threads = "two" as never))).toThrow('run.threads: whole number wanted, "two" found');
    expect(problem((r) => (r.texts[0]!.tokens[3] = 5 as never))).toThrow("texts[0].tokens[3]: text or list of bytes wanted, 5 found");
    expect(problem((r) => (r.heads.rows[1]!.scores.start!.mean = "x" as never))).toThrow(
      'heads.rows[1].scores["start"].mean: number or null wanted, "x" found',
    );
    expect(problem((r) => (r.texts[0]!.maps[0]!.encoding = "u16" as never))).toThrow(
      'texts[0].maps[0].encoding: "u8-square" wanted, "u16" found',
    );
  });

  it("wants what belongs together to fit", () => {
    expect(problem((r) => r.texts[0]!.ids.pop())).toThrow("texts[0].ids: 33 ids wanted, one per token, 32 found");
    expect(problem((r) => (r.texts[0]!.maps[2]!.data = "AAAA"))).toThrow("texts[0].maps[2].data: 561 bytes in base64 wanted, 3 found");
    expect(problem((r) => (r.texts[0]!.maps[2]!.row_max = "AAA"))).toThrow("132 bytes in base64 wanted, no base64 found");
    expect(problem((r) => (r.texts[0]!.maps[1]!.head = 0))).toThrow("texts[0].maps[1]: head 0.0 is there twice");
    expect(problem((r) => (r.heads.rows[0]!.block = 2))).toThrow("heads.rows[0]: the model has no head 2.0");
    expect(problem((r) => (r.heads.rows[0]!.role = "copying"))).toThrow('heads.rows[0].role: "copying" is not in heads.scores');
    expect(problem((r) => (r.training!.steps[4] = 75))).toThrow("training.steps[4]: more than 75 wanted, 75 found");
    expect(problem((r) => r.training!.series[1]!.values.pop())).toThrow("training.series[1].values: 61 values wanted, one per step, 60 found");
    expect(problem((r) => r.texts[0]!.maps[0]!.writes!.ids.pop())).toThrow("165 ids and values wanted, 164 and 165 found");
  });

  it("ignores fields it does not know, and does without the optional ones", () => {
    expect(() => validate(changed((r) => Object.assign(r, { later: 1 })))).not.toThrow();
    expect(() =>
      validate(
        changed((r) => {
          delete r.training;
          delete r.knockout;
          delete r.vocabulary;
          r.texts = [];
        }),
      ),
    ).not.toThrow();
  });

  it("refuses any required field that is missing or of another type, wherever it is", () => {
    const optional = /\.(normalisation|text|note|training|formation|top_writes|writes|definition|kind|block|head)$|^\.(training|knockout|vocabulary)$/;
    const walk = (value: object, path: string, root: unknown): number => {
      let tried = 0;
      for (const [key, held] of Object.entries(value)) {
        const at = `${path}.${key}`;
        if (typeof held === "object" && held !== null) tried += walk(held, at, root);
        const free = /\.(config|scores|ablations|vocabulary)$/.test(path) || /^\d+$/.test(key) || optional.test(at);
        if (free) continue;
        for (const bad of [undefined, Symbol.iterator]) {
          Object.assign(value, { [key]: bad });
          expect(() => validate(root), at).toThrow(DataError);
          ++tried;
        }
        Object.assign(value, { [key]: held });
      }
      return tried;
    };
    const root = changed((r) => {
      r.texts.length = 1;
      r.texts[0]!.maps.length = 1;
      r.training!.series.length = 1;
      r.heads.rows.length = 1;
    }) as object;
    expect(walk(root, "", root)).toBeGreaterThan(150);
    expect(() => validate(root)).not.toThrow();
  });
});
