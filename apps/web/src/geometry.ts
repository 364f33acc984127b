// Sizes of the large map: cells, zoom steps, marks on its axes. CSS pixels unless said otherwise.

/** Cells from here on are large enough for a token beside each. */
export const kLabelCell = 11;
const kZoomCells = [8, 11, 16, 24];
const kLargestFit = 30;
const kTickDistance = 44;

/** The cell with which a whole map fits into `room`; whole device pixels where that is possible. */
export function fitCell(size: number, room: number, pixelRatio: number): number {
  if (size === 0) return kLargestFit;
  const device = Math.min((room / size) * pixelRatio, kLargestFit * pixelRatio);
  return (device >= 1 ? Math.floor(device) : device) / pixelRatio;
}

/** The cells to zoom through, the whole map first. */
export function zoomCells(fit: number): number[] {
  return [fit, ...kZoomCells.filter((cell) => cell >= 1.4 * fit)];
}

/** The distance, in positions, between marks that do not crowd each other: a power of two. */
export function tickStep(cell: number): number {
  let step = 1;
  while (step * cell < kTickDistance) step *= 2;
  return step;
}

/** The positions that have a mark or a label among [first, last). */
export function marks(first: number, last: number, step: number): number[] {
  const found: number[] = [];
  for (let i = Math.ceil(first / step) * step; i < last; i += step) found.push(i);
  return found;
}

/** Positions at least partly in a window of `room` pixels that is scrolled by `offset`: [first, last). */
export function inSight(offset: number, room: number, cell: number, size: number): [first: number, last: number] {
  return [Math.max(0, Math.floor(offset / cell)), Math.min(size, Math.ceil((offset + room) / cell))];
}

/** The scroll offset, as near to `offset` as can be, that has [start, start + length) in a window of `room`. */
export function revealing(offset: number, room: number, start: number, length: number): number {
  return Math.max(start + length - room, Math.min(offset, start));
}
