// Attention maps on canvases.

import { kShades, type Palette } from "./colours";
import type { Weights } from "./maps";

/** absolute: a shade means the same weight everywhere. row: each row's largest weight has the last shade. */
export type Scale = "absolute" | "row";

/** The part of a map to draw: cells from (row, column), `cell` device pixels each. */
export interface Window {
  row: number;
  column: number;
  rows: number;
  columns: number;
  cell: number;
}

/** What a stored byte of row i is multiplied by to give its shade. */
function gain(weights: Weights, i: number, scale: Scale): number {
  const most = weights.rowMax[i]!;
  return Number.isNaN(most) ? NaN : scale === "row" ? 1 : Math.sqrt(Math.min(1, most));
}

/** Draws cells of at least one pixel at (x, y) of the canvas; what is not visible to a query stays clear. */
export function paintCells(
  context: CanvasRenderingContext2D,
  weights: Weights,
  { pixels, invalidPixel }: Palette,
  scale: Scale,
  { row, column, rows, columns, cell }: Window,
  x: number,
  y: number,
): void {
  const image = new ImageData(columns, rows);
  const out = new Uint32Array(image.data.buffer);
  for (let r = 0; r < rows; ++r) {
    const factor = gain(weights, row + r, scale);
    const start = weights.rowStart(row + r);
    const end = Math.min(columns, weights.rowLength(row + r) - column);
    for (let c = 0; c < end; ++c) {
      const shade = Math.round(weights.bytes[start + column + c]! * factor);
      out[r * columns + c] = Number.isNaN(shade) ? invalidPixel : pixels[shade]!;
    }
  }
  const small = scratch(columns, rows);
  small.getContext("2d")!.putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(small, 0, 0, columns, rows, x, y, columns * cell, rows * cell);
}

/** Draws the whole map on `side` x `side` pixels, fewer than it has cells: each shows the largest of its cells. */
export function paintPooled(
  context: CanvasRenderingContext2D,
  weights: Weights,
  { pixels, invalidPixel }: Palette,
  scale: Scale,
  side: number,
): void {
  const image = new ImageData(side, side);
  const out = new Uint32Array(image.data.buffer);
  const shades = new Int16Array(side);
  let line = -1;
  const flush = () => {
    for (let c = 0; c < side && line >= 0; ++c) {
      const shade = shades[c]!;
      out[line * side + c] = shade < 0 ? 0 : shade >= kShades ? invalidPixel : pixels[shade]!;
    }
  };
  for (let i = 0; i < weights.size; ++i) {
    const target = Math.floor((i * side) / weights.size);
    if (target !== line) {
      flush();
      shades.fill(-1);
      line = target;
    }
    const factor = gain(weights, i, scale);
    const start = weights.rowStart(i);
    for (let j = 0; j < weights.rowLength(i); ++j) {
      const c = Math.floor((j * side) / weights.size);
      const shade = Number.isNaN(factor) ? kShades : Math.round(weights.bytes[start + j]! * factor);
      if (shade > shades[c]!) shades[c] = shade;
    }
  }
  flush();
  context.putImageData(image, 0, 0);
}

/** A whole map on a square canvas of `side` device pixels. */
export function paintThumbnail(canvas: HTMLCanvasElement, weights: Weights, colours: Palette, side: number): void {
  const cell = Math.floor(side / weights.size);
  const whole = cell >= 1 ? cell * weights.size : Math.min(side, weights.size);
  canvas.width = canvas.height = whole;
  const context = canvas.getContext("2d")!;
  if (cell >= 1) {
    const all = { row: 0, column: 0, rows: weights.size, columns: weights.size, cell };
    paintCells(context, weights, colours, "absolute", all, 0, 0);
  } else {
    paintPooled(context, weights, colours, "absolute", whole);
  }
}

let shared: HTMLCanvasElement | null = null;

/** One canvas for all the small images on their way to being enlarged. */
function scratch(width: number, height: number): HTMLCanvasElement {
  shared ??= document.createElement("canvas");
  shared.width = width;
  shared.height = height;
  return shared;
}
