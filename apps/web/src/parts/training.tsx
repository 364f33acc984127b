// Loss and head formation on one time axis.

import { useMemo, useState } from "preact/hooks";
import type uPlot from "uplot";
import type { Report, Series, Training as TrainingData } from "../data";
import { count, fixed } from "../numbers";
import { headName, type HeadRef } from "../order";
import { cssColour } from "../theme";
import { Chart } from "./chart";
import { Defined } from "./defined";
import { roleColour, roleVariable } from "./roles";

const kGroup = "training";
const kLossColours = ["--loss-0", "--loss-1", "--loss-2", "--loss-3"];

export function Training({ report, selected }: { report: Report; selected: HeadRef }) {
  const training = report.training!;
  const kinds = report.heads.scores.filter(({ id }) => training.series.some((series) => series.kind === id));
  const [shown, setShown] = useState(() => firstKinds(kinds.map(({ id }) => id)));
  const [index, setIndex] = useState<number | null>(null);

  const losses = useMemo(() => training.series.filter((series) => series.group === "loss"), [training]);
  const scores = useMemo(
    () => training.series.filter((series) => series.group === "score" && shown.includes(series.kind ?? "")),
    [training, shown],
  );
  const lossLines = useMemo(() => losses.map((_, i) => line(kLossColours[i % kLossColours.length]!, 1.75)), [losses]);
  const scoreLines = useMemo(
    () => scores.map((series) => scoreLine(report, series, selected)),
    [scores, selected.block, selected.head],
  );
  const lossData = useMemo(() => aligned(training, losses), [training, losses]);
  const scoreData = useMemo(() => aligned(training, scores), [training, scores]);
  const background = useMemo(() => band(training.formation), [training]);
  const toggle = (kind: string) => setShown(shown.includes(kind) ? shown.filter((one) => one !== kind) : [...shown, kind]);
  const at = index ?? training.steps.length - 1;

  return (
    <section aria-labelledby="training-title">
      <h2 id="training-title">Loss and the forming of heads</h2>
      <p class="caption">
        Above, the loss as training goes on; below, on the same axis, how strongly each head shows a pattern: one line
        per head, coloured by pattern, the head opened below drawn thick. Heads form where the lines leave the floor.
        {training.formation && (
          <>
            {" "}
            <strong>The shaded band:</strong> {training.formation.text}.
          </>
        )}
      </p>
      <div class="keys" role="group" aria-label="Patterns shown in the lower plot">
        {kinds.map((kind) => (
          <button
            type="button"
            key={kind.id}
            class="chip"
            aria-pressed={shown.includes(kind.id)}
            title={kind.definition}
            style={{ "--role": roleColour(report.heads, kind.id) }}
            onClick={() => toggle(kind.id)}
          >
            {kind.label}
          </button>
        ))}
      </div>
      <Chart
        label="Loss over the steps of training"
        height={210}
        data={lossData}
        series={lossLines}
        xLabel=""
        yLabel={losses[0]?.unit ?? ""}
        group={kGroup}
        background={background}
        onIndex={setIndex}
      />
      <Chart
        label="Scores of the heads over the steps of training"
        height={220}
        data={scoreData}
        series={scoreLines}
        xLabel="step"
        yLabel="score"
        group={kGroup}
        background={background}
        onIndex={setIndex}
      />
      <p class="readout" aria-live="polite">
        <span class="where">{index === null ? "last step" : "step"} {count(training.steps[at] ?? 0)}</span>
        {losses.map((series, i) => (
          <span key={series.name} class="reading" style={{ "--role": `var(${kLossColours[i % kLossColours.length]})` }}>
            {series.name}{" "}
            <Defined how={series.definition ?? `${series.name}, ${series.unit}`}>{fixed(series.values[at] ?? null)}</Defined>
          </span>
        ))}
        {kinds
          .filter((kind) => shown.includes(kind.id))
          .map((kind) => (
            <Leader key={kind.id} report={report} kind={kind.id} at={at} />
          ))}
      </p>
    </section>
  );
}

/** The head that leads in one kind of score at a step. */
function Leader({ report, kind, at }: { report: Report; kind: string; at: number }) {
  let best: Series | null = null;
  for (const series of report.training!.series) {
    const value = series.kind === kind ? (series.values[at] ?? null) : null;
    if (value !== null && (best === null || value > best.values[at]!)) best = series;
  }
  const score = report.heads.scores.find(({ id }) => id === kind)!;
  if (!best) return null;
  const name = best.block === undefined || best.head === undefined ? best.name : headName(best as HeadRef);
  return (
    <span class="reading" style={{ "--role": roleColour(report.heads, kind) }}>
      {score.label}, highest {name}{" "}
      <Defined how={best.definition ?? score.definition}>{fixed(best.values[at]!)}</Defined>
    </span>
  );
}

function firstKinds(kinds: string[]): string[] {
  const telling = kinds.filter((kind) => kind === "previous" || kind === "induction");
  return telling.length > 0 ? telling : kinds.slice(0, 2);
}

function aligned(training: TrainingData, series: Series[]): uPlot.AlignedData {
  return [training.steps, ...series.map(({ values }) => values)];
}

function line(colour: string, width: number): uPlot.Series {
  return { stroke: () => cssColour(colour), width, points: { show: false }, spanGaps: true };
}

function scoreLine(report: Report, series: Series, selected: HeadRef): uPlot.Series {
  const opened = series.block === selected.block && series.head === selected.head;
  return { ...line(roleVariable(report.heads, series.kind ?? null), opened ? 2.75 : 1.25), alpha: opened ? 1 : 0.75 };
}

/** Marks the steps in which the heads formed. */
function band(formation: TrainingData["formation"]): ((u: uPlot) => void) | undefined {
  if (!formation) return undefined;
  return (u) => {
    const left = u.valToPos(formation.from, "x", true);
    const right = u.valToPos(formation.to, "x", true);
    u.ctx.fillStyle = cssColour("--band");
    u.ctx.fillRect(left, u.bbox.top, Math.max(2, right - left), u.bbox.height);
  };
}
