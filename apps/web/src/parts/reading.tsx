// What the cursor is on, in words, and where the row in view reads from.

import type { ComponentChildren } from "preact";
import type { Cursor } from "../cursor";
import type { AttentionMap, Report, Text, Token } from "../data";
import { topKeys, type Weights } from "../maps";
import { signed, weightText } from "../numbers";
import { Defined } from "./defined";
import { TokenName } from "./token";

const kReads = 8;

interface Props {
  text: Text;
  weights: Weights;
  cursor: Cursor;
}

/** One sentence: which query reads which key, with what weight. */
export function Readout({ text, weights, cursor: { query, key, locked } }: Props) {
  if (weights.size === 0) return <p class="readout">This text has no tokens.</p>;
  const visible = key < weights.rowLength(query);
  return (
    <p class="readout map-readout" aria-live="polite">
      <span class={locked ? "where locked" : "where"}>{locked ? "row locked" : "row"}</span> query{" "}
      <Position text={text} at={query} /> {visible ? "reads key" : "cannot see key"} <Position text={text} at={key} />
      {visible && (
        <>
          {" "}
          with weight{" "}
          <strong>
            <Defined how={definition(weights, query)}>{weightText(weights.at(query, key))}</Defined>
          </strong>
        </>
      )}
      {!visible && ": it comes later"}
    </p>
  );
}

function Position({ text, at }: { text: Text; at: number }) {
  return (
    <span class="place">
      <TokenName token={text.tokens[at]!} /> <span class="position">at {at}</span>
    </span>
  );
}

function definition(weights: Weights, query: number): string {
  const rounding = weightText(weights.rounding(query));
  return `P(query, key), the share of this row's attention; the weights of a row sum to 1. Kept as one byte: off by at most ${rounding} in this row.`;
}

/** The keys that the row attends to most, as bars. */
export function Reads({ text, weights, cursor }: Props) {
  if (weights.size === 0) return null;
  const row = weights.row(cursor.query);
  const top = topKeys(row, kReads);
  const rest = Math.max(0, 1 - top.reduce((sum, { weight }) => sum + weight, 0));
  return (
    <div class="list">
      <h4>
        Reads from <span class="position">row {cursor.query}</span>
      </h4>
      <ol>
        {top.map(({ key, weight }) => (
          <Bar key={key} token={text.tokens[key]!} note={`at ${key}`} share={weight}>
            <Defined how={definition(weights, cursor.query)}>{weightText(weight)}</Defined>
          </Bar>
        ))}
      </ol>
      {top.length === kReads && <p class="rest">all other keys together: {weightText(Math.round(rest * 1000) / 1000)}</p>}
      {top.length === 0 && <p class="rest">This row sees no key.</p>}
    </div>
  );
}

/** The tokens whose logits the head raises most at the row in view, where the report has them. */
export function Writes({ report, text, map, cursor }: { report: Report; text: Text; map: AttentionMap; cursor: Cursor }) {
  if (!map.writes || map.writes.top === 0) return null;
  const { top, ids, values } = map.writes;
  const start = cursor.query * top;
  const entries = ids.slice(start, start + top).map((id, i) => ({ id, value: values[start + i]! }));
  const how = report.heads.writes ?? "The head's own direct logit for the token";
  const most = Math.max(1e-9, ...entries.map(({ value }) => Math.abs(value)));
  return (
    <div class="list">
      <h4>
        Writes <span class="position">row {cursor.query}</span>
      </h4>
      <ol>
        {entries.map(({ id, value }) => (
          <Bar key={id} token={tokenOf(report, text, id)} note={`id ${id}`} share={Math.abs(value) / most}>
            <Defined how={how}>{signed(value)}</Defined>
          </Bar>
        ))}
      </ol>
    </div>
  );
}

interface BarProps {
  token: Token;
  note: string;
  share: number;
  children: ComponentChildren;
}

function Bar({ token, note, share, children }: BarProps) {
  return (
    <li style={{ "--share": share.toFixed(4) }}>
      <span class="bar-token">
        <TokenName token={token} /> <span class="position">{note}</span>
      </span>
      <span class="bar-value">{children}</span>
    </li>
  );
}

function tokenOf(report: Report, text: Text, id: number): Token {
  const place = text.ids.indexOf(id);
  return place >= 0 ? text.tokens[place]! : (report.vocabulary?.[String(id)] ?? `id ${id}`);
}
