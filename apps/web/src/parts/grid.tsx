// All heads side by side: a small map each, labelled and coloured by what the head does.

import { useEffect, useMemo, useRef } from "preact/hooks";
import type { AttentionMap, HeadRow, Heads, Text } from "../data";
import { estimateText, fixed, signed } from "../numbers";
import { estimateOf, headName, manyHeads, sameHead, type HeadRef, type HeadView, type Measure } from "../order";
import { roleColour } from "./roles";
import { bringInside } from "./scroll";
import { Thumbnail } from "./thumbnail";

interface Props {
  heads: Heads;
  shown: HeadRow[];
  text: Text | undefined;
  view: HeadView;
  selected: HeadRef;
  onSelect: (head: HeadRef) => void;
}

export function Grid({ heads, shown, text, view, selected, onSelect }: Props) {
  const list = useRef<HTMLDivElement>(null);
  const maps = useMemo(() => new Map(text?.maps.map((map) => [headName(map), map])), [text]);
  const side = manyHeads(heads) ? 56 : 84;
  const reachable = shown.some((row) => sameHead(row, selected)) ? selected : shown[0];

  useEffect(() => {
    const tile = list.current?.querySelector<HTMLElement>('[aria-selected="true"]');
    if (tile) bringInside(list.current!, tile);
  }, [selected.block, selected.head]);

  const onKeyDown = (event: KeyboardEvent) => {
    const from = shown.findIndex((row) => sameHead(row, reachable!));
    const target = moved(event.key, from, shown.length, columnsOf(list.current!));
    if (target === null) return;
    event.preventDefault();
    onSelect(shown[target]!);
    list.current!.querySelectorAll<HTMLElement>('[role="option"]')[target]!.focus();
  };

  if (shown.length === 0) return <p class="empty">No head passes these filters.</p>;
  return (
    <div
      class="grid"
      role="listbox"
      aria-label="Heads"
      aria-orientation="horizontal"
      ref={list}
      style={{ "--side": `${side}px` }}
      onKeyDown={onKeyDown}
    >
      {shown.map((row) => (
        <Tile
          key={headName(row)}
          heads={heads}
          row={row}
          measure={view.measure}
          map={maps.get(headName(row))}
          text={text}
          side={side}
          reachable={sameHead(row, reachable!)}
          selected={sameHead(row, selected)}
          onSelect={onSelect}
        />
      ))}
    </div>
  );
}

interface TileProps {
  heads: Heads;
  row: HeadRow;
  measure: Measure;
  map: AttentionMap | undefined;
  text: Text | undefined;
  side: number;
  reachable: boolean;
  selected: boolean;
  onSelect: (head: HeadRef) => void;
}

/** Drawn anew only when something about it changes: there may be hundreds. */
function Tile({ heads, row, measure, map, text, side, reachable, selected, onSelect }: TileProps) {
  return useMemo(() => {
    const figure = figureOf(row, measure);
    return (
      <div
        class="tile"
        role="option"
        tabIndex={reachable ? 0 : -1}
        aria-selected={selected}
        aria-label={`Head ${headName(row)}, ${row.reads_as}, ${figure}${row.disagrees ? ", score and ablation disagree" : ""}`}
        title={tileTitle(heads, row, measure)}
        style={{ "--role": roleColour(heads, row.role) }}
        onClick={() => onSelect(row)}
      >
        <span class="tile-head">
          <b>{headName(row)}</b>
          <span class="tile-figure">{figure}</span>
        </span>
        <span class="tile-map">
          {map && text ? <Thumbnail map={map} text={text} side={side} /> : <span class="no-map">no map</span>}
        </span>
        <span class="tile-role">
          {row.disagrees && <span class="disagree">≠ </span>}
          {row.role ?? "–"}
        </span>
      </div>
    );
  }, [heads, row, measure, map, text, side, reachable, selected, onSelect]);
}

function figureOf(row: HeadRow, measure: Measure): string {
  const mean = estimateOf(row, measure)?.mean ?? null;
  return measure.kind === "score" ? fixed(mean) : signed(mean);
}

function tileTitle(heads: Heads, row: HeadRow, measure: Measure): string {
  const list = measure.kind === "score" ? heads.scores : heads.ablations;
  const column = list.find(({ id }) => id === measure.id);
  const estimate = estimateOf(row, measure) ?? { mean: null, spread: null };
  const figure = estimateText(estimate, measure.kind === "score" ? fixed : signed);
  return `Head ${headName(row)}: ${row.reads_as}\n${column?.label ?? measure.id} ${figure}: ${column?.definition ?? ""}`;
}

function columnsOf(list: HTMLElement): number {
  return getComputedStyle(list).gridTemplateColumns.split(" ").length;
}

/** Where a key leads from the place `from`; null for a key that does not move. */
function moved(key: string, from: number, count: number, columns: number): number | null {
  const targets: Record<string, number> = {
    ArrowLeft: from - 1,
    ArrowRight: from + 1,
    ArrowUp: from - columns,
    ArrowDown: from + columns,
    Home: 0,
    End: count - 1,
  };
  const target = targets[key];
  if (target === undefined) return null;
  return target < 0 || target >= count ? from : target;
}
