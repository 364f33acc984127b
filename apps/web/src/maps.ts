// Attention maps as they are stored: one companded byte per weight and the largest weight of each row.

import type { AttentionMap, Text } from "./data";

/** Bytes in T rows: the lower triangle of a causal text, the square otherwise. */
export function packedLength(size: number, causal: boolean): number {
  return causal ? (size * (size + 1)) / 2 : size * size;
}

/** The number of bytes that a base64 text stands for, or NaN when its length cannot be right. */
export function base64Length(text: string): number {
  if (text.length % 4 !== 0) return NaN;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  return (text.length / 4) * 3 - padding;
}

export function decodeBase64(text: string): Uint8Array {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = characters.charCodeAt(i);
  return bytes;
}

/** Little-endian float32, whatever the machine's order. */
export function decodeFloats(text: string): Float32Array {
  const bytes = decodeBase64(text);
  const view = new DataView(bytes.buffer);
  const floats = new Float32Array(bytes.length / 4);
  for (let i = 0; i < floats.length; ++i) floats[i] = view.getFloat32(4 * i, true);
  return floats;
}

/** The weights P(i, j) of one head on one text; query i, key j. */
export class Weights {
  constructor(
    readonly size: number,
    readonly causal: boolean,
    readonly rowMax: Float32Array,
    readonly bytes: Uint8Array,
  ) {}

  /** Where row i starts in bytes. */
  rowStart(i: number): number {
    return this.causal ? (i * (i + 1)) / 2 : i * this.size;
  }

  /** How many keys of row i are stored: 0..i in a causal text. */
  rowLength(i: number): number {
    return this.causal ? i + 1 : this.size;
  }

  /** P(i, j) = row_max[i] * (byte / 255)^2; 0 for a key that is not visible. */
  at(i: number, j: number): number {
    if (j >= this.rowLength(i)) return 0;
    const share = this.bytes[this.rowStart(i) + j]! / 255;
    return this.rowMax[i]! * share * share;
  }

  row(i: number): Float64Array {
    const row = new Float64Array(this.size);
    for (let j = 0; j < this.rowLength(i); ++j) row[j] = this.at(i, j);
    return row;
  }

  /** The most that a weight of row i is off by rounding to a byte. */
  rounding(i: number): number {
    return this.rowMax[i]! / 255;
  }

  /** The key that row i attends to most; the first of equals. */
  strongest(i: number): number {
    const start = this.rowStart(i);
    let best = 0;
    for (let j = 1; j < this.rowLength(i); ++j) {
      if (this.bytes[start + j]! > this.bytes[start + best]!) best = j;
    }
    return best;
  }
}

/** The keys of a row in falling order of weight, at most `count`, none of weight 0. */
export function topKeys(row: Float64Array, count: number): { key: number; weight: number }[] {
  return Array.from(row, (weight, key) => ({ key, weight }))
    .filter((entry) => entry.weight > 0)
    .sort((a, b) => b.weight - a.weight || a.key - b.key)
    .slice(0, count);
}

const kCacheBytes = 48 << 20;
const cache = new Map<AttentionMap, Weights>();
let cachedBytes = 0;

/** Decodes a map when it is first looked at and keeps the latest ones. */
export function weightsOf(map: AttentionMap, text: Text): Weights {
  let weights = cache.get(map);
  if (weights) {
    cache.delete(map);
  } else {
    weights = new Weights(text.tokens.length, text.causal, decodeFloats(map.row_max), decodeBase64(map.data));
    cachedBytes += weights.bytes.length;
  }
  cache.set(map, weights);
  for (const [oldest, held] of cache) {
    if (cachedBytes <= kCacheBytes || oldest === map) break;
    cache.delete(oldest);
    cachedBytes -= held.bytes.length;
  }
  return weights;
}
