// The report's data: everything the page shows, written as JSON into
// <script type="application/json" id="headlight-data">. Field by field in SCHEMA.md.
//
// JSON has no NaN: a figure that could not be computed is null and is shown as "–".
// Losses and their changes are in nats (natural logarithm).

/** The one format this page reads. Any change that an older page would misread gets a new number. */
export const FORMAT = "headlight-report-1";

/** A figure that may be missing. */
export type Figure = number | null;

/**
 * A token's text. A string when its bytes are valid UTF-8 by themselves; otherwise its bytes (0 to 255),
 * as with byte-level tokenizers that cut a character in two. May hold anything: the page shows it as inert text.
 */
export type Token = string | number[];

/** A mean with its spread; what the spread is over is said once beside the table it belongs to. */
export interface Estimate {
  mean: Figure;
  spread: Figure;
}

export interface Report {
  format: typeof FORMAT;
  title: string;
  /** ISO 8601, as 2025-01-31T12:00:00Z */
  created: string;
  /** Headlight's version, as 0.1.0 */
  version: string;
  run: RunInfo;
  checks: Check[];
  model: ModelInfo;
  /** Absent when the model was not trained here or no log was kept. */
  training?: Training;
  heads: Heads;
  knockout?: Knockout;
  texts: Text[];
  cost: Cost;
  /** Texts of the token ids named by `writes` that occur in no text of the report: id as a decimal key. */
  vocabulary?: Record<string, Token>;
}

/** What was run, on what. */
export interface RunInfo {
  model: string;
  data: string;
  /** A string when it does not fit into 53 bits. */
  seed: number | string;
  /** Instruction set that ran, as avx2. */
  isa: string;
  threads: number;
  /** The command line that makes this report again. */
  command: string;
  /** How normalisation was treated where it matters, as "scale frozen at its actual value". */
  normalisation?: string;
}

/** An identity that proves the numbers: value is the largest deviation found, bound the largest allowed. */
export interface Check {
  name: string;
  value: Figure;
  bound: Figure;
  /** Said in place of the value, as "same bits". */
  text?: string;
  passed: boolean;
  definition: string;
}

export interface ModelInfo {
  /** One line, as "2 blocks x 4 heads, width 64, rotary, attention only". */
  summary: string;
  blocks: number;
  /** Query heads per block. */
  heads: number;
  /** Residual stream, D. */
  width: number;
  context: number;
  vocabulary: number;
  /** The rest of the configuration, in the order to show it. */
  config: Record<string, string | number | boolean | null>;
}

/** Loss and head formation over the steps of training. */
export interface Training {
  /** Strictly increasing; every series has one value for each. */
  steps: number[];
  series: Series[];
  /** The interval of steps in which the heads formed, drawn as a band. */
  formation?: { from: number; to: number; text: string };
}

export interface Series {
  name: string;
  /** Upper plot (loss) or lower plot (score of one head). */
  group: "loss" | "score";
  unit: string;
  /** How the value is defined; a score series may leave it to the score of the same `kind`. */
  definition?: string;
  /** For group "score": which score (an id of heads.scores) of which head. */
  kind?: string;
  block?: number;
  head?: number;
  values: Figure[];
}

/** What each head does and what its removal costs. */
export interface Heads {
  /** What the scores and ablations ran on, in one line. */
  condition: string;
  /** What every spread of this table is, as "standard deviation over 32 sequences". */
  spread: string;
  /** The columns, in the order to show them. */
  scores: ScoreInfo[];
  ablations: AblationInfo[];
  rows: HeadRow[];
  /** How `top_writes` and the maps' `writes` are defined. */
  writes?: string;
}

export interface ScoreInfo {
  /** As used in rows: previous, duplicate, induction, start, current, ... */
  id: string;
  label: string;
  definition: string;
  /** The same score of an untrained model of the same shapes. */
  baseline: Estimate | null;
}

export interface AblationInfo {
  /** As used in rows: zero, mean, resample, pattern-preserving. */
  id: string;
  label: string;
  definition: string;
  /** Of the change, as "nats per token". */
  unit: string;
}

export interface HeadRow {
  block: number;
  head: number;
  /** Score id -> value. */
  scores: Record<string, Estimate>;
  /** Ablation id -> change in loss; what was not run is left out. */
  ablations: Record<string, Estimate>;
  /** The id of the score that says what the head does, or null when none stands out. Gives the colour. */
  role: string | null;
  /** The reading in words, as "induction; alone it is covered by 1.0, 1.1". */
  reads_as: string;
  /** The score says one thing and the ablation another. */
  disagrees: boolean;
  note?: string;
  /** The tokens whose logits this head raises most over the run's data. */
  top_writes?: { id: number; token: Token; value: number }[];
}

/** Heads ablated together: in falling order of a score against random orders. */
export interface Knockout {
  condition: string;
  /** As "most inductive first". */
  order: string;
  /** As "standard deviation over 20 random orders". */
  spread: string;
  definition: string;
  unit: string;
  baseline_loss: Figure;
  /** `heads` are the heads ablated together, named "block.head"; change is in loss over baseline_loss. */
  ordered: { count: number; heads: string[]; change: Figure }[];
  random: { count: number; mean: Figure; spread: Figure }[];
}

/** A text with the attention maps of some or all heads on it. */
export interface Text {
  name: string;
  tokens: Token[];
  /** The exact ids that were run, one for each token. */
  ids: number[];
  /** The first token was prepended and is no part of the text. */
  start_token: boolean;
  /** Query i sees keys 0..i only; the maps then hold the lower triangle. */
  causal: boolean;
  maps: AttentionMap[];
}

/**
 * One head's attention weights, P(i, j) = row_max[i] * (byte / 255)^2.
 *
 * data: base64 of one byte per weight, row after row; row i holds keys 0..i in a causal text
 * (T * (T + 1) / 2 bytes), all T keys otherwise (T * T bytes). byte = round(255 * sqrt(P / row_max)).
 * row_max: base64 of T little-endian float32, each row's largest weight; 0 for a row that sees no key,
 * NaN for a row whose weights are not numbers.
 * The error is at most row_max / 255, and much less for small weights.
 */
export interface AttentionMap {
  block: number;
  head: number;
  encoding: "u8-square";
  row_max: string;
  data: string;
  /** Row by row, the `top` tokens whose logits the head raises most there: T * top ids and values. */
  writes?: { top: number; ids: number[]; values: number[] };
}

/** Parameters and arithmetic, part by part. */
export interface Cost {
  parts: CostPart[];
  total: { parameters: number; flops_per_token: number };
  training?: { tokens: number; flops: number; note?: string };
  /** What is counted and what is not, as "a multiply-add is 2 FLOPs; attention at length 96". */
  assumptions: string;
}

export interface CostPart {
  name: string;
  parameters: number;
  /** Forward, one token. */
  flops_per_token: number;
  note?: string;
}
