// Scores and ablations of all heads side by side.

import { useMemo, useRef } from "preact/hooks";
import type { AblationInfo, Estimate, HeadRow, Heads, ScoreInfo } from "../data";
import { fixed, signed, spreadText } from "../numbers";
import { headName, sameHead, sortedBy, type HeadRef, type HeadView, type Measure } from "../order";
import { roleColour } from "./roles";
import { useRoving } from "./roving";

const kMissing: Estimate = { mean: null, spread: null };

interface Props {
  heads: Heads;
  shown: HeadRow[];
  view: HeadView;
  selected: HeadRef;
  onView: (view: HeadView) => void;
  onSelect: (head: HeadRef) => void;
  /** Selects the head and goes to it. */
  onOpen: (head: HeadRef) => void;
}

export function HeadTable({ heads, shown, view, selected, onView, onSelect, onOpen }: Props) {
  const table = useRef<HTMLTableElement>(null);
  const onKeyDown = useRoving(table);
  const scale = useMemo(() => barScale(heads), [heads]);
  const heading = { view, onView };

  return (
    <div class="table-frame">
      <table class="heads" ref={table} role="grid" aria-label="Scores and ablations of the heads" onKeyDown={onKeyDown}>
        <thead>
          <tr>
            <Heading {...heading} column="position" label="head" how="Block and head, both counted from 0" />
            {heads.scores.map((score) => (
              <Heading
                key={score.id}
                {...heading}
                column={{ kind: "score", id: score.id }}
                label={score.label}
                how={score.definition}
              />
            ))}
            {heads.ablations.map((ablation) => (
              <Heading
                key={ablation.id}
                {...heading}
                column={{ kind: "ablation", id: ablation.id }}
                label={ablation.label}
                how={`${ablation.definition}, ${ablation.unit}`}
              />
            ))}
            <th scope="col">reads as</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((row) => (
            <Row
              key={headName(row)}
              heads={heads}
              row={row}
              scale={scale}
              selected={sameHead(row, selected)}
              onSelect={onSelect}
              onOpen={onOpen}
            />
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row" data-cell tabIndex={-1} title="The same scores of an untrained model of the same shapes">
              untrained
            </th>
            {heads.scores.map((score) => (
              <td key={score.id} class="number" data-cell tabIndex={-1} title={`Untrained: ${score.definition}`}>
                <Value estimate={score.baseline ?? kMissing} show={fixed} />
              </td>
            ))}
            <td colSpan={heads.ablations.length + 1} class="words">
              same shapes, random weights
            </td>
          </tr>
        </tfoot>
      </table>
    </div>
  );
}

interface RowProps {
  heads: Heads;
  row: HeadRow;
  scale: BarScale;
  selected: boolean;
  onSelect: (head: HeadRef) => void;
  onOpen: (head: HeadRef) => void;
}

/** Drawn anew only when something about it changes: there may be hundreds. */
function Row({ heads, row, scale, selected, onSelect, onOpen }: RowProps) {
  return useMemo(
    () => (
      <tr
        aria-selected={selected}
        style={{ "--role": roleColour(heads, row.role) }}
        onClick={() => onSelect(row)}
        onKeyDown={(event) => event.key === "Enter" && onSelect(row)}
      >
        <th scope="row">
          <button type="button" data-cell tabIndex={-1} title="Open this head above" onClick={() => onOpen(row)}>
            {headName(row)}
          </button>
        </th>
        {heads.scores.map((score) => (
          <Score key={score.id} score={score} row={row} spread={heads.spread} />
        ))}
        {heads.ablations.map((ablation) => (
          <Effect key={ablation.id} ablation={ablation} row={row} scale={scale} spread={heads.spread} />
        ))}
        <td class="words" data-cell tabIndex={-1} title={row.note ?? row.reads_as}>
          {row.disagrees && <span class="disagree">≠ disagree: </span>}
          {row.reads_as}
        </td>
      </tr>
    ),
    [heads, row, scale, selected, onSelect, onOpen],
  );
}

interface HeadingProps {
  column: Measure | "position";
  label: string;
  how: string;
  view: HeadView;
  onView: (view: HeadView) => void;
}

function Heading({ column, label, how, view, onView }: HeadingProps) {
  const active =
    column === "position"
      ? view.by === "position"
      : view.by === "value" && view.measure.kind === column.kind && view.measure.id === column.id;
  const sort = !active ? "none" : view.descending ? "descending" : "ascending";
  return (
    <th scope="col" aria-sort={sort}>
      <button type="button" data-cell tabIndex={-1} title={`${how}. Press to sort.`} onClick={() => onView(sortedBy(view, column))}>
        {label}
        <span class="sort-sign" aria-hidden="true">
          {!active ? "" : view.descending ? " ↓" : " ↑"}
        </span>
      </button>
    </th>
  );
}

function Score({ score, row, spread }: { score: ScoreInfo; row: HeadRow; spread: string }) {
  const estimate = row.scores[score.id] ?? kMissing;
  const share = Math.max(0, Math.min(1, estimate.mean ?? 0));
  return (
    <td
      class={row.role === score.id ? "number score main" : "number score"}
      data-cell
      tabIndex={-1}
      title={`${score.label} of head ${headName(row)}: ${score.definition}. Spread: ${spread}.`}
      style={{ "--share": share.toFixed(4) }}
    >
      <Value estimate={estimate} show={fixed} />
    </td>
  );
}

/** The change in loss as a number and as a bar with its spread; one scale for all ablations. */
function Effect({ ablation, row, scale, spread }: { ablation: AblationInfo; row: HeadRow; scale: BarScale; spread: string }) {
  const estimate = row.ablations[ablation.id] ?? kMissing;
  const { mean } = estimate;
  const width = estimate.spread ?? 0;
  return (
    <td
      class="number effect"
      data-cell
      tabIndex={-1}
      title={`${ablation.label} of head ${headName(row)}: ${ablation.definition}, ${ablation.unit}. Spread: ${spread}.`}
    >
      <Value estimate={estimate} show={signed} />
      <span class="bar" aria-hidden="true" style={{ "--zero": scale(0) }}>
        {mean !== null && (
          <>
            <span
              class={mean < 0 ? "bar-fill less" : "bar-fill"}
              style={{ left: scale(Math.min(0, mean)), right: `calc(100% - ${scale(Math.max(0, mean))})` }}
            />
            {width > 0 && (
              <span class="whisker" style={{ left: scale(mean - width), right: `calc(100% - ${scale(mean + width)})` }} />
            )}
          </>
        )}
      </span>
    </td>
  );
}

function Value({ estimate, show }: { estimate: Estimate; show: (value: number | null) => string }) {
  return (
    <span class="value">
      {show(estimate.mean)}
      <span class="spread">{spreadText(estimate.spread)}</span>
    </span>
  );
}

type BarScale = (value: number) => string;

/** Where a change lies on the bar, as a percentage; 0 and every whisker are on it. */
function barScale(heads: Heads): BarScale {
  const ends = heads.rows.flatMap((row) =>
    Object.values(row.ablations).flatMap(({ mean, spread }) =>
      mean === null ? [] : [mean - (spread ?? 0), mean + (spread ?? 0)],
    ),
  );
  const low = Math.min(0, ...ends);
  const high = Math.max(low + 1e-9, 0, ...ends);
  return (value) => `${((100 * (value - low)) / (high - low)).toFixed(2)}%`;
}
