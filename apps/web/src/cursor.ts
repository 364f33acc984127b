// The place on a map that is being looked at, and how keys move it.

import type { Weights } from "./maps";

export interface Cursor {
  query: number;
  key: number;
  /** The pointer then moves along the row and leaves it fixed. */
  locked: boolean;
}

const kPage = 10;

/** Where to start: the last row, at the key it attends to most. */
export function firstCursor(weights: Weights): Cursor {
  const query = Math.max(0, weights.size - 1);
  return { query, key: weights.size > 0 ? weights.strongest(query) : 0, locked: false };
}

/** The cursor after a key of the keyboard, or null when the key means nothing here. */
export function afterKey(cursor: Cursor, pressed: string, shift: boolean, weights: Weights): Cursor | null {
  const stride = shift ? kPage : 1;
  const { query, key } = cursor;
  switch (pressed) {
    case "ArrowLeft":
      return inside({ ...cursor, key: key - stride }, weights);
    case "ArrowRight":
      return inside({ ...cursor, key: key + stride }, weights);
    case "ArrowUp":
      return inside({ ...cursor, query: query - stride }, weights);
    case "ArrowDown":
      return inside({ ...cursor, query: query + stride }, weights);
    case "PageUp":
      return inside({ ...cursor, query: query - kPage }, weights);
    case "PageDown":
      return inside({ ...cursor, query: query + kPage }, weights);
    case "Home":
      return { ...cursor, key: 0 };
    case "End":
      return { ...cursor, key: weights.rowLength(query) - 1 };
    case "m":
      return { ...cursor, key: weights.strongest(query) };
    case "Enter":
    case " ":
      return { ...cursor, locked: !cursor.locked };
    case "Escape":
      return cursor.locked ? { ...cursor, locked: false } : null;
    default:
      return null;
  }
}

/** The cursor under a pointer: a locked row stays. */
export function hovered(cursor: Cursor, query: number, key: number): Cursor {
  return { ...cursor, query: cursor.locked ? cursor.query : query, key };
}

/** A click locks the row it is in, or lets go of it when that row was locked. */
export function clicked(cursor: Cursor, query: number, key: number): Cursor {
  return { query, key, locked: !(cursor.locked && cursor.query === query) };
}

/** Keeps a cursor on the map, and among the keys that its query can see. */
export function inside(cursor: Cursor, weights: Weights): Cursor {
  const query = clamp(cursor.query, weights.size);
  return { ...cursor, query, key: clamp(cursor.key, weights.rowLength(query)) };
}

function clamp(index: number, size: number): number {
  return Math.max(0, Math.min(index, size - 1));
}
