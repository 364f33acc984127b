// Checks a report before it is shown: every field's type first, then what has to fit together.

import {
  FORMAT,
  type AblationInfo,
  type AttentionMap,
  type Check,
  type Cost,
  type CostPart,
  type Estimate,
  type HeadRow,
  type Heads,
  type Knockout,
  type ModelInfo,
  type Report,
  type RunInfo,
  type ScoreInfo,
  type Series,
  type Text,
  type Token,
  type Training,
} from "./data";
import { base64Length, packedLength } from "./maps";
import { DataError, either, figure, flag, list, number, object, oneOf, optional, record, text, whole } from "./shape";
import type { Reader } from "./shape";

const byte: Reader<number> = (value, at) => {
  if (whole(value, at) > 255) throw new DataError(`${at}: byte of 0 to 255 wanted, ${value} found`);
  return value as number;
};
const token: Reader<Token> = either(text, list(byte), "text or list of bytes");
const estimate = object<Estimate>({ mean: figure, spread: figure });
const orNull = <T>(reader: Reader<T>): Reader<T | null> => (value, at) => (value === null ? null : reader(value, at));
const setting: Reader<string | number | boolean | null> = orNull(
  either(either(text, number, ""), flag, "text, number, true, false or null"),
);

const run = object<RunInfo>({
  model: text,
  data: text,
  seed: either(whole, text, "whole number or text"),
  isa: text,
  threads: whole,
  command: text,
  normalisation: optional(text),
});

const check = object<Check>({
  name: text,
  value: figure,
  bound: figure,
  text: optional(text),
  passed: flag,
  definition: text,
});

const model = object<ModelInfo>({
  summary: text,
  blocks: whole,
  heads: whole,
  width: whole,
  context: whole,
  vocabulary: whole,
  config: record(setting),
});

const training = object<Training>({
  steps: list(whole),
  series: list(
    object<Series>({
      name: text,
      group: oneOf("loss", "score"),
      unit: text,
      definition: optional(text),
      kind: optional(text),
      block: optional(whole),
      head: optional(whole),
      values: list(figure),
    }),
  ),
  formation: optional(object<NonNullable<Training["formation"]>>({ from: number, to: number, text })),
});

const heads = object<Heads>({
  condition: text,
  spread: text,
  scores: list(object<ScoreInfo>({ id: text, label: text, definition: text, baseline: orNull(estimate) })),
  ablations: list(object<AblationInfo>({ id: text, label: text, definition: text, unit: text })),
  rows: list(
    object<HeadRow>({
      block: whole,
      head: whole,
      scores: record(estimate),
      ablations: record(estimate),
      role: orNull(text),
      reads_as: text,
      disagrees: flag,
      note: optional(text),
      top_writes: optional(list(object<{ id: number; token: Token; value: number }>({ id: whole, token, value: number }))),
    }),
  ),
  writes: optional(text),
});

const knockout = object<Knockout>({
  condition: text,
  order: text,
  spread: text,
  definition: text,
  unit: text,
  baseline_loss: figure,
  ordered: list(object<Knockout["ordered"][0]>({ count: whole, heads: list(text), change: figure })),
  random: list(object<Knockout["random"][0]>({ count: whole, mean: figure, spread: figure })),
});

const attentionMap = object<AttentionMap>({
  block: whole,
  head: whole,
  encoding: oneOf("u8-square"),
  row_max: text,
  data: text,
  writes: optional(object<NonNullable<AttentionMap["writes"]>>({ top: whole, ids: list(whole), values: list(number) })),
});

const textOnPage = object<Text>({
  name: text,
  tokens: list(token),
  ids: list(whole),
  start_token: flag,
  causal: flag,
  maps: list(attentionMap),
});

const cost = object<Cost>({
  parts: list(object<CostPart>({ name: text, parameters: number, flops_per_token: number, note: optional(text) })),
  total: object<Cost["total"]>({ parameters: number, flops_per_token: number }),
  training: optional(object<NonNullable<Cost["training"]>>({ tokens: number, flops: number, note: optional(text) })),
  assumptions: text,
});

const report = object<Report>({
  format: oneOf(FORMAT),
  title: text,
  created: text,
  version: text,
  run,
  checks: list(check),
  model,
  training: optional(training),
  heads,
  knockout: optional(knockout),
  texts: list(textOnPage),
  cost,
  vocabulary: optional(record(token)),
});

/** The value as a report; throws a DataError that names the first field that is wrong. */
export function validate(value: unknown): Report {
  const made = report(value, "");
  if (made.training) checkTraining(made.training);
  checkHeads(made);
  made.texts.forEach((one, i) => checkText(one, `texts[${i}]`, made.model));
  return made;
}

function demand(holds: boolean, message: string): void {
  if (!holds) throw new DataError(message);
}

function checkTraining({ steps, series }: Training): void {
  steps.forEach((step, i) =>
    demand(i === 0 || step > steps[i - 1]!, `training.steps[${i}]: more than ${steps[i - 1]} wanted, ${step} found`),
  );
  series.forEach(({ values }, i) =>
    demand(
      values.length === steps.length,
      `training.series[${i}].values: ${steps.length} values wanted, one per step, ${values.length} found`,
    ),
  );
}

function checkHeads({ heads: { scores, ablations, rows }, model: shape }: Report): void {
  const known = new Set(scores.map((score) => score.id));
  const removals = new Set(ablations.map((ablation) => ablation.id));
  const seen = new Set<string>();
  rows.forEach((row, i) => {
    const at = `heads.rows[${i}]`;
    checkPlace(row, at, shape, seen);
    for (const id of Object.keys(row.scores)) demand(known.has(id), `${at}.scores: "${id}" is not in heads.scores`);
    for (const id of Object.keys(row.ablations)) {
      demand(removals.has(id), `${at}.ablations: "${id}" is not in heads.ablations`);
    }
    demand(row.role === null || known.has(row.role), `${at}.role: "${row.role}" is not in heads.scores`);
  });
}

function checkText({ tokens, ids, causal, maps }: Text, at: string, shape: ModelInfo): void {
  const size = tokens.length;
  demand(ids.length === size, `${at}.ids: ${size} ids wanted, one per token, ${ids.length} found`);
  const seen = new Set<string>();
  maps.forEach((map, i) => {
    const here = `${at}.maps[${i}]`;
    checkPlace(map, here, shape, seen);
    checkBytes(map.data, packedLength(size, causal), `${here}.data`);
    checkBytes(map.row_max, 4 * size, `${here}.row_max`);
    const { top, ids: written, values } = map.writes ?? { top: 0, ids: [], values: [] };
    const wanted = map.writes ? top * size : 0;
    demand(
      written.length === wanted && values.length === wanted,
      `${here}.writes: ${wanted} ids and values wanted, ${written.length} and ${values.length} found`,
    );
  });
}

function checkPlace({ block, head }: { block: number; head: number }, at: string, shape: ModelInfo, seen: Set<string>): void {
  const name = `${block}.${head}`;
  demand(block < shape.blocks && head < shape.heads, `${at}: the model has no head ${name}`);
  demand(!seen.has(name), `${at}: head ${name} is there twice`);
  seen.add(name);
}

function checkBytes(data: string, wanted: number, at: string): void {
  const found = base64Length(data);
  demand(found === wanted, `${at}: ${wanted} bytes in base64 wanted, ${Number.isNaN(found) ? "no base64" : found} found`);
}
