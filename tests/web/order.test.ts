import { describe, expect, it } from "vitest";
import type { HeadRow } from "../../apps/web/src/data";
import { arrange, firstView, headName, neighbour, sortedBy, type HeadView } from "../../apps/web/src/order";
import { kManyHeads, kSmall, sampleReport } from "./sample";

const view: HeadView = {
  measure: { kind: "score", id: "induction" },
  by: "value",
  descending: true,
  minimum: null,
  roles: [],
  onlyDisagreements: false,
};

function row(name: string, induction: number | null, rest: Partial<HeadRow> = {}): HeadRow {
  const [block, head] = name.split(".").map(Number);
  const scores = { induction: { mean: induction, spread: null } };
  return { block: block!, head: head!, scores, ablations: {}, role: null, reads_as: "", disagrees: false, ...rest };
}

const names = (rows: HeadRow[]) => rows.map(headName).join(" ");

describe("arrange", () => {
  const rows = [row("10.0", 0.5), row("2.1", null), row("2.0", 0.9), row("0.3", 0.5), row("1.0", 0)];

  it("sorts by value, equal ones by position, missing ones last either way", () => {
    expect(names(arrange(rows, view))).toBe("2.0 0.3 10.0 1.0 2.1");
    expect(names(arrange(rows, { ...view, descending: false }))).toBe("1.0 0.3 10.0 2.0 2.1");
  });

  it("sorts by position as numbers", () => {
    expect(names(arrange(rows, { ...view, by: "position", descending: false }))).toBe("0.3 1.0 2.0 2.1 10.0");
    expect(names(arrange(rows, { ...view, by: "position" }))).toBe("10.0 2.1 2.0 1.0 0.3");
  });

  it("leaves out what is below the threshold or has no figure", () => {
    expect(names(arrange(rows, { ...view, minimum: 0.5 }))).toBe("2.0 0.3 10.0");
  });

  it("filters by role and by disagreement", () => {
    const mixed = [row("0.0", 1, { role: "start" }), row("0.1", 2), row("0.2", 3, { role: "induction", disagrees: true })];
    expect(names(arrange(mixed, { ...view, roles: ["start", ""] }))).toBe("0.1 0.0");
    expect(names(arrange(mixed, { ...view, onlyDisagreements: true }))).toBe("0.2");
  });

  it("sorts by an ablation", () => {
    const effect = (mean: number) => ({ ablations: { zero: { mean, spread: null } } });
    const some = [row("0.0", 1, effect(-0.1)), row("0.1", 1, effect(2.6)), row("0.2", 1)];
    expect(names(arrange(some, { ...view, measure: { kind: "ablation", id: "zero" } }))).toBe("0.1 0.0 0.2");
  });

  it("does not touch the list it was given", () => {
    const before = names(rows);
    arrange(rows, view);
    expect(names(rows)).toBe(before);
  });
});

describe("firstView", () => {
  it("lists few heads as the model has them, of many the leading ones first", () => {
    expect(firstView(sampleReport(kSmall).heads)).toMatchObject({ by: "position", descending: false });
    const { heads } = sampleReport(kManyHeads);
    const figures = arrange(heads.rows, firstView(heads)).map((one) => one.scores.induction!.mean!);
    expect(figures).toHaveLength(270);
    expect(figures).toEqual([...figures].sort((a, b) => b - a));
  });
});

describe("sortedBy", () => {
  it("starts with the largest, turns round on the second press, and forgets another column's threshold", () => {
    const start = { ...firstView(sampleReport(kSmall).heads), minimum: 0.4 };
    const once = sortedBy(start, { kind: "ablation", id: "zero" });
    expect(once).toMatchObject({ by: "value", descending: true, minimum: null, measure: { kind: "ablation", id: "zero" } });
    const twice = sortedBy({ ...once, minimum: 1 }, { kind: "ablation", id: "zero" });
    expect(twice).toMatchObject({ descending: false, minimum: 1 });
    expect(sortedBy(twice, "position")).toMatchObject({ by: "position", descending: false });
    expect(sortedBy(sortedBy(twice, "position"), "position")).toMatchObject({ by: "position", descending: true });
  });
});

describe("neighbour", () => {
  const rows = [row("0.0", 1), row("0.1", 1), row("0.2", 1)];

  it("goes round the ends, and to the first when the head is filtered out", () => {
    expect(headName(neighbour(rows, { block: 0, head: 2 }, 1)!)).toBe("0.0");
    expect(headName(neighbour(rows, { block: 0, head: 0 }, -1)!)).toBe("0.2");
    expect(headName(neighbour(rows, { block: 7, head: 7 }, 1)!)).toBe("0.0");
    expect(neighbour([], { block: 0, head: 0 }, 1)).toBeUndefined();
  });
});
