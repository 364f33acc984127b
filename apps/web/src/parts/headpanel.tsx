// One head opened: its figures, its map, the text as it reads it, what it writes.

import { useState } from "preact/hooks";
import { firstCursor, type Cursor } from "../cursor";
import type { HeadRow, Report, Text } from "../data";
import { weightsOf } from "../maps";
import { estimateText, fixed, signed } from "../numbers";
import { estimateOf, headName, sameHead } from "../order";
import type { Scale } from "../paint";
import { Defined } from "./defined";
import { MapView } from "./map";
import { Readout, Reads, Writes } from "./reading";
import { roleColour, roleLabel } from "./roles";
import { ScaleBar } from "./scalebar";
import { TokenName } from "./token";
import { TokenText } from "./tokentext";

interface Props {
  report: Report;
  row: HeadRow;
  text: Text | undefined;
  onText: (index: number) => void;
  onStep: (step: number) => void;
}

export function HeadPanel({ report, row, text, onText, onStep }: Props) {
  const map = text?.maps.find((one) => sameHead(one, row));
  return (
    <article class="opened" aria-label={`Head ${headName(row)}`} style={{ "--role": roleColour(report.heads, row.role) }}>
      <div class="opened-head">
        <h3>
          Head {headName(row)} <span class="role-name">{roleLabel(report.heads, row.role)}</span>
        </h3>
        <div class="steps">
          <button type="button" onClick={() => onStep(-1)} title="The head before, as listed (key [)" aria-label="Previous head">
            ← <kbd>[</kbd>
          </button>
          <button type="button" onClick={() => onStep(1)} title="The next head, as listed (key ])" aria-label="Next head">
            <kbd>]</kbd> →
          </button>
        </div>
      </div>
      <Summary report={report} row={row} />
      {report.texts.length > 1 && (
        <label class="text-choice">
          Text{" "}
          <select value={report.texts.indexOf(text!)} onChange={(event) => onText(Number(event.currentTarget.value))}>
            {report.texts.map((one, i) => (
              <option key={i} value={i}>
                {one.name}
              </option>
            ))}
          </select>
        </label>
      )}
      {text && map ? (
        <MapPanel key={report.texts.indexOf(text)} report={report} text={text} map={map} name={headName(row)} />
      ) : (
        <p class="empty">No attention map of this head was kept in the report.</p>
      )}
    </article>
  );
}

/** The head's reading in words, its scores and what its removal costs. */
function Summary({ report: { heads }, row }: { report: Report; row: HeadRow }) {
  return (
    <div class="summary">
      <p>
        Reads as <strong>{row.reads_as}</strong>.{" "}
        {row.disagrees && <strong class="disagree">≠ Its score says one thing and its ablation another. </strong>}
        {row.note}
      </p>
      <p class="figures">
        {heads.scores.map((score) => (
          <span key={score.id} class="figure">
            {score.label}{" "}
            <Defined how={`${score.label}: ${score.definition}. Spread: ${heads.spread}.`}>
              {estimateText(row.scores[score.id] ?? { mean: null, spread: null }, fixed)}
            </Defined>
          </span>
        ))}
        {heads.ablations.map((ablation) => (
          <span key={ablation.id} class="figure">
            {ablation.label}{" "}
            <Defined how={`${ablation.label}: ${ablation.definition}, ${ablation.unit}. Spread: ${heads.spread}.`}>
              {estimateText(estimateOf(row, { kind: "ablation", id: ablation.id }) ?? { mean: null, spread: null }, signed)}
            </Defined>
          </span>
        ))}
      </p>
      {row.top_writes && row.top_writes.length > 0 && (
        <p class="figures">
          <span>Raises most:</span>
          {row.top_writes.map(({ id, token, value }) => (
            <span key={id} class="figure">
              <TokenName token={token} />{" "}
              <Defined how={`${heads.writes ?? "The head's own direct logit for the token"}; id ${id}`}>{signed(value)}</Defined>
            </span>
          ))}
        </p>
      )}
    </div>
  );
}

interface MapPanelProps {
  report: Report;
  text: Text;
  map: Text["maps"][number];
  name: string;
}

/** The map and what hangs on its cursor; a cursor that was placed stays when the head changes. */
function MapPanel({ report, text, map, name }: MapPanelProps) {
  const weights = weightsOf(map, text);
  const [scale, setScale] = useState<Scale>("absolute");
  const [placed, setCursor] = useState<Cursor | null>(null);
  const here = { text, weights, cursor: placed ?? firstCursor(weights) };
  const label = `Attention of head ${name} on ${text.name}, ${weights.size} tokens`;
  return (
    <div class="map-panel">
      <div class="map-side">
        <Readout {...here} />
        <MapView label={label} {...here} scale={scale} onCursor={setCursor} />
        <ScaleBar scale={scale} onScale={setScale} />
        <p class="caption" id="map-keys">
          Each row is a token asking (query), each column a token it may look at (key). Point at a cell; <b>click</b> or{" "}
          <kbd>Enter</kbd> locks its row, <kbd>Esc</kbd> frees it, arrow keys move (with <kbd>Shift</kbd> by 10), <kbd>M</kbd>{" "}
          goes to the row’s largest weight, <kbd>+</kbd> <kbd>−</kbd> zoom.
        </p>
      </div>
      <div class="text-side">
        <h4>The text, tinted by row {here.cursor.query}</h4>
        <TokenText {...here} onCursor={setCursor} />
        <p class="caption">
          The outlined token is the one that asks; the deeper a token’s tint, the more of its attention it gets. Click a token
          to make it the row.
        </p>
        <div class="lists">
          <Reads {...here} />
          <Writes report={report} text={text} map={map} cursor={here.cursor} />
        </div>
      </div>
    </div>
  );
}
