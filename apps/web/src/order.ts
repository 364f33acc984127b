// Which heads are shown, and in what order: one view that the grid and the table share.

import type { Estimate, HeadRow, Heads } from "./data";

export interface HeadRef {
  block: number;
  head: number;
}

export const headName = ({ block, head }: HeadRef) => `${block}.${head}`;
export const sameHead = (a: HeadRef, b: HeadRef) => a.block === b.block && a.head === b.head;

/** A column that heads can be ordered by. */
export interface Measure {
  kind: "score" | "ablation";
  id: string;
}

export interface HeadView {
  /** The figure shown on each tile, and what `by: "value"` and `minimum` refer to. */
  measure: Measure;
  by: "position" | "value";
  descending: boolean;
  /** Heads below it are left out; null shows all, those without the figure too. */
  minimum: number | null;
  /** Roles to show; empty shows all. "" stands for heads without a role. */
  roles: string[];
  onlyDisagreements: boolean;
}

/** From here on nobody reads all heads: the leading ones come first, and maps are smaller. */
export const manyHeads = (heads: Heads) => heads.rows.length > 40;

export function firstView(heads: Heads): HeadView {
  const preferred = heads.scores.find((score) => score.id === "induction") ?? heads.scores[0];
  return {
    measure: { kind: "score", id: preferred?.id ?? "" },
    by: manyHeads(heads) ? "value" : "position",
    descending: manyHeads(heads),
    minimum: null,
    roles: [],
    onlyDisagreements: false,
  };
}

export function estimateOf(row: HeadRow, measure: Measure): Estimate | undefined {
  return (measure.kind === "score" ? row.scores : row.ablations)[measure.id];
}

/** The rows that the view lets through, in its order. Missing figures come last, equal ones by position. */
export function arrange(rows: HeadRow[], view: HeadView): HeadRow[] {
  const value = (row: HeadRow) => estimateOf(row, view.measure)?.mean ?? null;
  const direction = view.descending ? -1 : 1;
  const position = (a: HeadRow, b: HeadRow) => a.block - b.block || a.head - b.head;
  return rows
    .filter((row) => passes(row, view, value(row)))
    .sort((a, b) => {
      if (view.by === "position") return direction * position(a, b);
      const [x, y] = [value(a), value(b)];
      if (x === null || y === null) return Number(x === null) - Number(y === null) || position(a, b);
      return direction * (x - y) || position(a, b);
    });
}

function passes(row: HeadRow, view: HeadView, value: number | null): boolean {
  if (view.onlyDisagreements && !row.disagrees) return false;
  if (view.roles.length > 0 && !view.roles.includes(row.role ?? "")) return false;
  return view.minimum === null || (value !== null && value >= view.minimum);
}

/** The view after the heading of a column was pressed: largest first, then smallest first. */
export function sortedBy(view: HeadView, column: Measure | "position"): HeadView {
  if (column === "position") {
    return { ...view, by: "position", descending: view.by === "position" ? !view.descending : false };
  }
  const again = view.by === "value" && view.measure.kind === column.kind && view.measure.id === column.id;
  const minimum = again ? view.minimum : null;
  return { ...view, measure: column, minimum, by: "value", descending: again ? !view.descending : true };
}

/** The head `step` places after the given one, round the ends; the first when the given one is not shown. */
export function neighbour(shown: HeadRow[], from: HeadRef, step: number): HeadRow | undefined {
  const index = shown.findIndex((row) => sameHead(row, from));
  if (index < 0) return shown[0];
  return shown[(index + step + shown.length) % shown.length];
}
