// A table that is one stop for the Tab key: arrow keys move among its cells (marked data-cell).

import type { RefObject } from "preact";
import { useLayoutEffect } from "preact/hooks";

export function useRoving(table: RefObject<HTMLTableElement | null>): (event: KeyboardEvent) => void {
  useLayoutEffect(() => {
    const cells = [...table.current!.querySelectorAll<HTMLElement>("[data-cell]")];
    if (!cells.some((cell) => cell.tabIndex === 0) && cells[0]) cells[0].tabIndex = 0;
  });

  return (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const rows = [...table.current!.rows].map((row) => [...row.querySelectorAll<HTMLElement>("[data-cell]")]);
    const from = event.target as HTMLElement;
    const row = rows.findIndex((cells) => cells.includes(from));
    if (row < 0) return;
    const column = rows[row]!.indexOf(from);
    const targets: Record<string, [number, number]> = {
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      Home: [row, 0],
      End: [row, rows[row]!.length - 1],
      PageUp: [Math.max(0, row - 10), column],
      PageDown: [Math.min(rows.length - 1, row + 10), column],
    };
    const target = targets[event.key];
    if (!target) return;
    event.preventDefault();
    const next = rows[target[0]]?.[target[1]];
    if (!next) return;
    table.current!.querySelectorAll<HTMLElement>('[data-cell][tabindex="0"]').forEach((cell) => (cell.tabIndex = -1));
    next.tabIndex = 0;
    next.focus();
  };
}
