// One map, large: tokens on both axes, a cursor for pointer and keys, zoom by scrolling inside it.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { afterKey, clicked, hovered, type Cursor } from "../cursor";
import type { Text } from "../data";
import { fitCell, inSight, kLabelCell, marks, revealing, tickStep, zoomCells } from "../geometry";
import type { Weights } from "../maps";
import { paintCells, paintPooled, type Scale } from "../paint";
import { currentPalette, onRepaint } from "../theme";
import { tokenText } from "../tokens";

const kLongestLabel = 12;
const kCharacter = 6.4; // width of a label's character
const kLargestSide = 680;

interface Props {
  label: string;
  text: Text;
  weights: Weights;
  cursor: Cursor;
  scale: Scale;
  onCursor: (cursor: Cursor) => void;
}

export function MapView({ label, text, weights, cursor, scale, onCursor }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const scroller = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [room, setRoom] = useState(480);
  const [zoom, setZoom] = useState(0);
  const [scrolled, setScrolled] = useState({ x: 0, y: 0 });

  const { size } = weights;
  const labels = useMemo(() => text.tokens.map((token) => tokenText(token, kLongestLabel)), [text]);
  const margin = useMemo(() => marginFor(labels), [labels]);
  const cells = zoomCells(fitCell(size, Math.min(kLargestSide, room - margin), devicePixelRatio));
  const step = Math.min(zoom, cells.length - 1);
  const cell = cells[step]!;
  const total = cell * size;
  const side = step === 0 ? total : Math.min(total, kLargestSide, room - margin);
  // after zooming out the last scroll event may be of the larger sheet
  const scroll = { x: Math.min(scrolled.x, total - side), y: Math.min(scrolled.y, total - side) };

  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => setRoom(Math.floor(entry!.contentRect.width)));
    observer.observe(frame.current!);
    return () => observer.disconnect();
  }, []);

  useLayoutEffect(() => {
    const paint = () => paintWindow(canvas.current!, weights, scale, { cell, side, ...scroll });
    paint();
    return onRepaint(paint);
  }, [weights, scale, cell, side, scroll.x, scroll.y]);

  const follow = ({ scrollLeft: x, scrollTop: y }: Element) => setScrolled((was) => (was.x === x && was.y === y ? was : { x, y }));

  const show = ({ query, key }: Cursor) => {
    const box = scroller.current!;
    box.scrollTop = revealing(box.scrollTop, side, query * cell, cell);
    box.scrollLeft = revealing(box.scrollLeft, side, key * cell, cell);
    follow(box); // the scroll event comes a frame later: until then axes and cells would stand where they were
  };

  useLayoutEffect(() => show(cursor), [cell, side]);

  const zoomTo = (target: number) => setZoom(Math.max(0, Math.min(target, cells.length - 1)));

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const zooms: Record<string, number> = { "+": step + 1, "=": step + 1, "-": step - 1, "0": 0 };
    const target = zooms[event.key];
    const next = target === undefined ? afterKey(cursor, event.key, event.shiftKey, weights) : null;
    if (target === undefined && next === null) return;
    event.preventDefault();
    if (target !== undefined) return zoomTo(target);
    onCursor(next!);
    show(next!);
  };

  const under = (event: MouseEvent): [query: number, key: number] | null => {
    const box = scroller.current!.getBoundingClientRect();
    const key = Math.floor((event.clientX - box.left + scroll.x) / cell);
    const query = Math.floor((event.clientY - box.top + scroll.y) / cell);
    return query >= 0 && key >= 0 && query < size && key < size ? [query, key] : null;
  };
  const onPointerMove = (event: PointerEvent) => {
    const place = event.pointerType === "touch" ? null : under(event);
    if (!place) return;
    const next = hovered(cursor, ...place);
    if (next.query !== cursor.query || next.key !== cursor.key) onCursor(next);
  };
  const onClick = (event: MouseEvent) => {
    const place = under(event);
    if (place) onCursor(clicked(cursor, ...place));
  };

  const axis = { labels, cell, side };
  return (
    <div class="map" ref={frame} style={{ "--margin": `${margin}px`, "--window": `${side}px`, "--cell": `${cell}px` }}>
      <Axis {...axis} along="keys" offset={scroll.x} current={cursor.key} />
      <Axis {...axis} along="queries" offset={scroll.y} current={cursor.query} />
      <div
        class="map-window"
        ref={scroller}
        tabIndex={0}
        role="application"
        aria-roledescription="attention map"
        aria-label={label}
        aria-describedby="map-keys"
        aria-keyshortcuts="ArrowUp ArrowDown ArrowLeft ArrowRight Enter Escape M + - [ ]"
        onKeyDown={onKeyDown}
        onPointerMove={onPointerMove}
        onClick={onClick}
        onScroll={(event) => follow(event.currentTarget)}
      >
        <div class="map-sheet" style={{ width: `${total}px`, height: `${total}px` }}>
          <canvas ref={canvas} />
          <div
            class={cursor.locked ? "cross row locked" : "cross row"}
            style={{ top: `${cursor.query * cell}px`, width: `${total}px`, height: `${Math.max(1, cell)}px` }}
          />
          <div
            class="cross column"
            style={{ left: `${cursor.key * cell}px`, width: `${Math.max(1, cell)}px`, height: `${total}px` }}
          />
        </div>
      </div>
      <div class="map-zoom" role="group" aria-label="Size of the map">
        <button type="button" onClick={() => zoomTo(step - 1)} disabled={step === 0} title="Smaller cells (key −)">
          −
        </button>
        <button type="button" onClick={() => zoomTo(step + 1)} disabled={step === cells.length - 1} title="Larger cells (key +)">
          +
        </button>
      </div>
    </div>
  );
}

interface AxisProps {
  along: "keys" | "queries";
  labels: string[];
  cell: number;
  side: number;
  offset: number;
  current: number;
}

/** Tokens where cells are large enough for them, positions otherwise; the cursor's token always. */
function Axis({ along, labels, cell, side, offset, current }: AxisProps) {
  const [first, last] = inSight(offset, side, cell, labels.length);
  const everyToken = cell >= kLabelCell;
  const step = everyToken ? 1 : tickStep(cell);
  const near = everyToken ? 0 : 16 / cell;
  const shown = marks(first, last, step).filter((i) => i !== current && Math.abs(i - current) >= near);
  const place = (i: number) => ({ [along === "keys" ? "left" : "top"]: `${(i + 0.5) * cell - offset}px` });
  return (
    <div class={`axis ${along}`} aria-hidden="true">
      {shown.map((i) => (
        <span key={i} class="label" style={place(i)}>
          {everyToken && <span class="token">{labels[i]}</span>}
          <span class="position">{i}</span>
        </span>
      ))}
      {current >= first && current < last && (
        <span class="label current" style={place(current)}>
          <span class="token">{labels[current]}</span>
          <span class="position">{current}</span>
        </span>
      )}
    </div>
  );
}

/** Room for the longest label and its position. */
function marginFor(labels: string[]): number {
  const longest = labels.reduce((most, label) => Math.max(most, [...label].length), 1);
  return Math.ceil((longest + String(labels.length).length + 1) * kCharacter) + 10;
}

function paintWindow(
  canvas: HTMLCanvasElement,
  weights: Weights,
  scale: Scale,
  { cell, side, x, y }: { cell: number; side: number; x: number; y: number },
): void {
  const ratio = devicePixelRatio;
  const pixels = Math.max(1, Math.round(side * ratio));
  if (canvas.width !== pixels) canvas.width = canvas.height = pixels;
  canvas.style.width = canvas.style.height = `${side}px`;
  const context = canvas.getContext("2d")!;
  context.clearRect(0, 0, pixels, pixels);
  if (weights.size === 0) return;
  if (cell * ratio < 1) return paintPooled(context, weights, currentPalette(), scale, pixels);
  const [row, rowEnd] = inSight(y, side, cell, weights.size);
  const [column, columnEnd] = inSight(x, side, cell, weights.size);
  const part = { row, column, rows: rowEnd - row, columns: columnEnd - column, cell: cell * ratio };
  paintCells(context, weights, currentPalette(), scale, part, (column * cell - x) * ratio, (row * cell - y) * ratio);
}
