// Reports to test the page with: made up, plausible, the same every time.

import type { Cost, Estimate, HeadRow, Heads, Knockout, Report, Text, Token, Training } from "../../apps/web/src/data";
import { encodeMap } from "./encode";
import { Random } from "./random";

export interface Shape {
  blocks: number;
  heads: number;
  /** Random tokens before the repeat; the repeats text has 1 + 2 * half tokens. */
  half: number;
  /** Adds running text, hostile tokens and a text without a causal mask. */
  moreTexts?: boolean;
}

export const kSmall: Shape = { blocks: 2, heads: 4, half: 16, moreTexts: true };
export const kLong: Shape = { blocks: 2, heads: 8, half: 255 };
export const kManyHeads: Shape = { blocks: 30, heads: 9, half: 64 };

/** Whatever these hold must be shown and never be obeyed. */
export const kHostile: Token[] = [
  "</script><script>window.pwned = 1</script>",
  "<img src=x onerror=\"window.pwned = 2\">",
  "<svg/onload=window.pwned=3>",
  "\u0000",
  "\u0007\u001b[31m",
  "\u202egnirts\u202c",
  "\u200b",
  " ",
  "\n",
  "\t",
  "\r\n",
  "",
  [226, 130],
  [0, 60, 255],
  "\ufeff",
  "a\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301",
  "\u0301",
  "שלום",
  "日本",
  "👩‍🚀",
  "${window.pwned = 4}",
  "__HEADLIGHT_DATA__",
  "<!--",
  "&lt;b&gt;",
  "x".repeat(300),
];

const kWords =
  "The keys to the cabinet are on the table .\nNobody knows who left them there , but the cabinet is open and the keys are on the table .";

const kScores = [
  ["previous", "previous token", "mean over rows i ≥ 1 of P(i, i−1)"],
  ["duplicate", "duplicate token", "mean over the second half of P(i, i−N)"],
  ["induction", "induction", "mean over the second half of P(i, i−N+1): attention to the token after the earlier copy"],
  ["start", "start", "mean over rows of P(i, 0)"],
  ["current", "current", "mean over rows of P(i, i)"],
] as const;

type Role = (typeof kScores)[number][0] | null;

export function sampleReport(shape: Shape): Report {
  const random = new Random(7);
  const places = Array.from({ length: shape.blocks * shape.heads }, (_, i) => ({
    block: Math.floor(i / shape.heads),
    head: i % shape.heads,
  }));
  const roles = places.map(({ block, head }) => roleOf(block, head, shape));
  const rows = places.map((place, i) => headRow(place, roles[i]!, random));
  const texts = [repeats(shape, roles, random)];
  if (shape.moreTexts) texts.push(running(shape, roles, random), hostile(shape, random), bidirectional(shape, random));
  return {
    format: "headlight-report-1",
    title: `Repeats, ${shape.blocks} blocks x ${shape.heads} heads`,
    created: "2025-03-02T11:20:30Z",
    version: "0.1.0",
    run: {
      model: "runs/repeats",
      data: "repeats of random tokens",
      seed: 7,
      isa: "avx2",
      threads: 2,
      command: "headlight report runs/repeats --seed 7 --out report.html",
      normalisation: "scale frozen at its actual value",
    },
    checks: [
      { name: "rows sum to 1", value: 2.4e-7, bound: 1e-5, passed: true, definition: "largest |sum of a row of P − 1|" },
      { name: "head writes sum to attn_out", value: 4e-7, bound: 1e-5, passed: true, definition: "largest |sum over heads of hook_result − hook_attn_out|, relative" },
      { name: "components sum to logits", value: 9e-7, bound: 1e-5, passed: true, definition: "largest |sum of direct logit attributions − logit|, relative" },
      { name: "sweep = naive loop", value: 0, bound: 0, text: "same bits", passed: true, definition: "number of results of the sweep that differ from one full run per intervention" },
    ],
    model: {
      summary: `${shape.blocks} blocks × ${shape.heads} heads, width 64, rotary, attention only`,
      blocks: shape.blocks,
      heads: shape.heads,
      width: 64,
      context: 1 + 2 * shape.half,
      vocabulary: 64,
      config: { positions: "rotary", norm: "pre, RMS", feed_forward: null, head_width: 16, tied_embedding: false, epsilon: 1e-5 },
    },
    training: training(places, roles, random),
    heads: heads(rows, shape),
    knockout: knockout(rows),
    texts,
    cost: cost(shape),
    vocabulary: { "63": "z<63>" },
  };
}

function roleOf(block: number, head: number, shape: Shape): Role {
  const early: Role[] = ["previous", "current", "duplicate", "start"];
  if (block < shape.blocks / 2) return early[(head + block) % early.length]!;
  return head % 4 === 3 ? null : "induction";
}

function headRow({ block, head }: { block: number; head: number }, role: Role, random: Random): HeadRow {
  const strength = 0.55 + 0.43 * random.next();
  const scores: Record<string, Estimate> = {};
  for (const [id] of kScores) {
    const mean = id === role ? strength : 0.08 * random.next();
    scores[id] = { mean, spread: 0.05 * random.next() * mean };
  }
  const disagrees = role === "induction" && head % 4 === 0;
  const loss = role === "previous" ? 0.8 + 1.8 * random.next() : disagrees ? 0.004 : 0.3 * random.next() - 0.05;
  return {
    block,
    head,
    scores,
    ablations: {
      zero: { mean: loss, spread: Math.abs(loss) * 0.12 },
      mean: { mean: loss * 0.7, spread: Math.abs(loss) * 0.1 },
    },
    role,
    reads_as: role === null ? "nothing stands out" : disagrees ? "induction; alone it is covered by 1.1, 1.2" : role === "previous" ? "previous token" : role,
    disagrees,
    note: disagrees ? "Zeroing it alone changes the loss by less than its spread." : undefined,
    top_writes: [11, 7, 63].map((id, i) => ({ id, token: `t${id}`, value: 3.1 - 0.8 * i })),
  };
}

function heads(rows: HeadRow[], { half }: Shape): Heads {
  return {
    condition: `On 32 sequences [start] R R of 2 × ${half} tokens, seed 7; zero ablation at z; loss on the second copy`,
    spread: "standard deviation over 32 sequences",
    scores: kScores.map(([id, label, definition], i) => ({ id, label, definition, baseline: { mean: [0.05, 0.02, 0.02, 0.05, 0.05][i]!, spread: 0.004 } })),
    ablations: [
      { id: "zero", label: "zeroed", definition: "change in loss when the head's z becomes 0", unit: "nats per token" },
      { id: "mean", label: "set to its mean", definition: "change in loss when the head's z becomes its mean over 32 other sequences, over all positions", unit: "nats per token" },
    ],
    rows,
    writes: "the head's own direct logit for the token, final normalisation frozen",
  };
}

function training(places: { block: number; head: number }[], roles: Role[], random: Random): Training {
  const steps = Array.from({ length: 61 }, (_, i) => 25 * i);
  const formed = (step: number, at: number) => 1 / (1 + Math.exp(-(step - at) / 22));
  const series: Training["series"] = [
    { name: "first copy", group: "loss", unit: "nats per token", definition: "mean loss on the first copy", values: steps.map((s) => 4.12 + 0.06 * Math.exp(-s / 80)) },
    { name: "second copy", group: "loss", unit: "nats per token", definition: "mean loss on the second copy", values: steps.map((s) => 4.15 - 3.9 * formed(s, 430) + 0.03 * random.next()) },
  ];
  places.slice(0, 16).forEach(({ block, head }, i) => {
    for (const kind of ["previous", "induction", "start"]) {
      const high = roles[i] === kind ? 0.5 + 0.4 * random.next() : 0.05;
      const at = kind === "previous" ? 400 : 440;
      const values = steps.map((s) => (s === 0 && kind === "start" ? null : high * formed(s, at + 4 * i) + 0.015 * random.next()));
      series.push({ name: `${kind} ${block}.${head}`, group: "score", unit: "", kind, block, head, values });
    }
  });
  return { steps, series, formation: { from: 400, to: 450, text: "heads formed between steps 400 and 450: previous token in block 0, induction in block 1" } };
}

function knockout(rows: HeadRow[]): Knockout {
  const order = [...rows].sort((a, b) => b.scores.induction!.mean! - a.scores.induction!.mean!).map(({ block, head }) => `${block}.${head}`);
  const counts = order.map((_, i) => i + 1).filter((count) => count <= 16 || count % 10 === 0);
  const rise = (share: number) => 4.1 / (1 + Math.exp(-(share - 0.3) * 16));
  return {
    condition: "zero ablation at z, 32 sequences, loss on the second copy",
    order: "most inductive first",
    spread: "standard deviation over 20 random orders",
    definition: "loss with these heads' z at 0, minus the loss with every head in place",
    unit: "nats per token",
    baseline_loss: 0.021,
    ordered: counts.map((count) => ({ count, heads: order.slice(0, count), change: rise(count / order.length) })),
    random: counts.map((count) => ({ count, mean: 0.7 * rise(count / order.length - 0.25), spread: 0.3 * Math.sqrt(count / order.length) })),
  };
}

/** [start] R R: every head shows its pattern. */
function repeats({ half, blocks, heads }: Shape, roles: Role[], random: Random): Text {
  const once = Array.from({ length: half }, () => 1 + random.below(62));
  const ids = [0, ...once, ...once];
  const target = (role: Role, i: number): number => {
    if (role === "previous") return i - 1;
    if (role === "start") return 0;
    if (role === "current") return i;
    if (role === "duplicate") return i > half ? i - half : -1;
    return role === "induction" && i > half ? i - half + 1 : -1;
  };
  return {
    name: `[start] R R, 2 × ${half} tokens`,
    tokens: ids.map((id) => (id === 0 ? "[start]" : `t${id}`)),
    ids,
    start_token: true,
    causal: true,
    maps: roles.map((role, index) => ({
      block: Math.floor(index / heads),
      head: index % heads,
      ...encodeMap(ids.map((_, i) => noisyRow(i + 1, target(role, i), role ? 0.85 : 0, random))),
      writes: blocks * heads <= 16 ? writes(ids, random) : undefined,
    })),
  };
}

function running({ heads }: Shape, roles: Role[], random: Random): Text {
  const tokens = kWords.split(/(?= )|(?<=\n)/);
  return {
    name: "a sentence",
    tokens,
    ids: tokens.map((_, i) => 100 + i),
    start_token: false,
    causal: true,
    maps: roles.map((role, index) => ({
      block: Math.floor(index / heads),
      head: index % heads,
      ...encodeMap(tokens.map((_, i) => noisyRow(i + 1, role === "previous" ? i - 1 : role === "start" ? 0 : random.below(i + 1), 0.6, random))),
    })),
  };
}

/** Only the first head is kept here, and one of its rows is not a number. */
function hostile(_shape: Shape, random: Random): Text {
  const map = encodeMap(kHostile.map((_, i) => noisyRow(i + 1, i - 1, 0.7, random)));
  const most = Buffer.from(map.row_max, "base64");
  most.writeFloatLE(NaN, 4 * 5);
  map.row_max = most.toString("base64");
  return { name: "<b>hostile</b> tokens", tokens: kHostile, ids: kHostile.map((_, i) => i), start_token: false, causal: true, maps: [{ block: 0, head: 0, ...map }] };
}

function bidirectional({ heads }: Shape, random: Random): Text {
  const tokens = ["[CLS]", "a", "pump", "is", "a", "machine", "[SEP]"];
  const rows = () => tokens.map((_, i) => noisyRow(tokens.length, tokens.length - 1 - i, 0.5, random));
  const maps = Array.from({ length: heads }, (_, head) => ({ block: 0, head, ...encodeMap(rows()) }));
  return { name: "both directions", tokens, ids: tokens.map((_, i) => 200 + i), start_token: true, causal: false, maps };
}

/** `share` of the weight on one key, the rest on all of them as softmax noise. */
function noisyRow(length: number, target: number, share: number, random: Random): number[] {
  const noise = Array.from({ length }, () => random.exponential() ** 3);
  const sum = noise.reduce((a, b) => a + b, 0);
  const focused = target >= 0 && target < length ? share : 0;
  return noise.map((value, j) => ((1 - focused) * value) / sum + (j === target ? focused : 0));
}

function writes(ids: number[], random: Random): { top: number; ids: number[]; values: number[] } {
  const top = 5;
  const written = ids.flatMap((_, i) => [ids[i]!, 63, ids[0]!, ids[1]!, 64].slice(0, top));
  return { top, ids: written, values: written.map((_, i) => 4 - 0.7 * (i % top) + 0.1 * random.next()) };
}

function cost({ blocks, heads }: Shape): Cost {
  const attention = Array.from({ length: blocks }, (_, block) => ({
    name: `blocks.${block}.attn`,
    parameters: 4 * 64 * 64,
    flops_per_token: 8 * 64 * 64 + 4 * 97 * 16 * heads,
    note: block === 0 ? "W_Q, W_K, W_V, W_O and the scores" : undefined,
  }));
  const parts = [{ name: "embed", parameters: 64 * 64, flops_per_token: 0 }, ...attention, { name: "unembed", parameters: 64 * 64, flops_per_token: 2 * 64 * 64 }];
  return {
    parts,
    total: { parameters: parts.reduce((sum, part) => sum + part.parameters, 0), flops_per_token: parts.reduce((sum, part) => sum + part.flops_per_token, 0) },
    training: { tokens: 4_608_000, flops: 1.43e12 },
    assumptions: "a multiply-add is 2 FLOPs; attention at length 97, masked pairs not counted; normalisation left out",
  };
}
