// Heads ablated together: in falling order of a score against random orders.

import { useMemo, useState } from "preact/hooks";
import type uPlot from "uplot";
import type { Knockout as KnockoutData } from "../data";
import { fixed, plural, signed, spreadText } from "../numbers";
import { cssColour } from "../theme";
import { Chart } from "./chart";
import { Defined } from "./defined";

const kMostNames = 12;

export function Knockout({ knockout }: { knockout: KnockoutData }) {
  const counts = useMemo(() => countsOf(knockout), [knockout]);
  const data = useMemo(() => columns(knockout, counts), [knockout, counts]);
  const [index, setIndex] = useState<number | null>(null);
  const at = counts[index ?? counts.length - 1];
  const ordered = knockout.ordered.find(({ count }) => count === at);
  const random = knockout.random.find(({ count }) => count === at);
  const how = `${knockout.definition}, ${knockout.unit}`;

  return (
    <section aria-labelledby="knockout-title">
      <h2 id="knockout-title">Heads taken away together</h2>
      <p class="caption">
        Heads stand in for each other, so taking one away may change little. Here more and more are taken away at once:{" "}
        {knockout.order} against as many in random order. Where the first curve climbs above the second, the score has
        found the heads that matter. {sentence(knockout.condition)} Loss with every head in place:{" "}
        <Defined how={knockout.condition}>{fixed(knockout.baseline_loss)}</Defined>.
      </p>
      <Chart
        label="Change in loss by the number of heads taken away"
        height={240}
        data={data}
        series={kSeries}
        bands={kBands}
        xLabel="heads taken away"
        yLabel={knockout.unit}
        wholeSteps
        onIndex={setIndex}
      />
      <p class="readout" aria-live="polite">
        <span class="where">{plural(at ?? 0, "head")}</span>
        {ordered && (
          <span class="reading" style={{ "--role": "var(--line-1)" }}>
            {knockout.order} <Defined how={how}>{signed(ordered.change)}</Defined>{" "}
            <span class="names">({names(ordered.heads)})</span>
          </span>
        )}
        {random && (
          <span class="reading" style={{ "--role": "var(--line-0)" }}>
            random order{" "}
            <Defined how={`${how}. Spread: ${knockout.spread}.`}>
              {signed(random.mean)} {spreadText(random.spread)}
            </Defined>
          </span>
        )}
      </p>
    </section>
  );
}

const kSeries: uPlot.Series[] = [
  { stroke: () => cssColour("--line-1"), width: 2.25, points: { show: true, size: 6 }, spanGaps: true },
  { stroke: () => cssColour("--line-0"), width: 1.5, dash: [5, 4], points: { show: false }, spanGaps: true },
  { stroke: "transparent", points: { show: false }, spanGaps: true },
  { stroke: "transparent", points: { show: false }, spanGaps: true },
];
const kBands: uPlot.Band[] = [{ series: [3, 4], fill: () => cssColour("--band-random") }];

function countsOf({ ordered, random }: KnockoutData): number[] {
  return [...new Set([...ordered, ...random].map(({ count }) => count))].sort((a, b) => a - b);
}

/** Ordered change, random mean, and the upper and lower edge of the random band. */
function columns({ ordered, random }: KnockoutData, counts: number[]): uPlot.AlignedData {
  const change = new Map(ordered.map((point) => [point.count, point.change]));
  const mean = new Map(random.map((point) => [point.count, point.mean]));
  const edge = (sign: number) =>
    new Map(random.map(({ count, mean, spread }) => [count, mean === null ? null : mean + sign * (spread ?? 0)]));
  return [counts, ...[change, mean, edge(1), edge(-1)].map((column) => counts.map((count) => column.get(count) ?? null))];
}

function names(heads: string[]): string {
  if (heads.length <= kMostNames) return heads.join(", ");
  return `${heads.slice(0, kMostNames).join(", ")} and ${heads.length - kMostNames} more`;
}

const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1) + (text.endsWith(".") ? "" : ".");
