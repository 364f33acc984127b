import { describe, expect, it } from "vitest";
import type { AttentionMap, Text } from "../../apps/web/src/data";
import { base64Length, decodeBase64, decodeFloats, packedLength, topKeys, Weights, weightsOf } from "../../apps/web/src/maps";
import { encodeMap } from "./encode";
import { Random } from "./random";

function textOf(size: number, causal: boolean, maps: AttentionMap[] = []): Text {
  return { name: "", tokens: Array(size).fill("a"), ids: Array(size).fill(0), start_token: false, causal, maps };
}

function softmaxRows(size: number, causal: boolean, random: Random): number[][] {
  return Array.from({ length: size }, (_, i) => {
    const row = Array.from({ length: causal ? i + 1 : size }, () => random.exponential() ** 6);
    const sum = row.reduce((a, b) => a + b, 0);
    return row.map((value) => value / sum);
  });
}

describe("base64", () => {
  it("decodes the bytes that a writer of another language wrote", () => {
    expect([...decodeBase64("AAEC/f7/")]).toEqual([0, 1, 2, 253, 254, 255]);
    expect([...decodeFloats("AACAPwAAAD4AAMB/")]).toEqual([1, 0.125, NaN]);
  });

  it("knows the length without decoding", () => {
    for (let length = 0; length < 20; ++length) {
      expect(base64Length(Buffer.alloc(length, 7).toString("base64"))).toBe(length);
    }
    expect(base64Length("AAE")).toBeNaN();
  });
});

describe("Weights", () => {
  it("finds each weight of a causal map where the format puts it", () => {
    const weights = new Weights(3, true, Float32Array.of(1, 0.5, 0.25), Uint8Array.of(255, 51, 255, 255, 0, 102));
    expect([weights.at(0, 0), weights.at(1, 1), weights.at(2, 0), weights.at(2, 1)]).toEqual([1, 0.5, 0.25, 0]);
    expect(weights.at(1, 0)).toBeCloseTo(0.5 * 0.2 ** 2, 12);
    expect(weights.at(2, 2)).toBeCloseTo(0.25 * 0.4 ** 2, 12);
    expect([weights.at(0, 1), weights.at(0, 2), weights.at(1, 2)]).toEqual([0, 0, 0]);
  });

  it("finds each weight of a square map where the format puts it", () => {
    const weights = new Weights(2, false, Float32Array.of(1, 0.5), Uint8Array.of(0, 255, 255, 0));
    expect([weights.at(0, 0), weights.at(0, 1), weights.at(1, 0), weights.at(1, 1)]).toEqual([0, 1, 0.5, 0]);
  });

  it.each([true, false])("gives back what was encoded within the stated error, causal %s", (causal) => {
    const random = new Random(11);
    for (const size of [1, 2, 3, 17, 64, 129]) {
      const rows = softmaxRows(size, causal, random);
      const map: AttentionMap = { block: 0, head: 0, ...encodeMap(rows) };
      expect(base64Length(map.data)).toBe(packedLength(size, causal));
      const weights = weightsOf(map, textOf(size, causal));
      rows.forEach((row, i) =>
        row.forEach((weight, j) => {
          const error = Math.abs(weights.at(i, j) - weight);
          expect(error, `size ${size} (${i},${j})`).toBeLessThanOrEqual(weights.rounding(i) * (1 + 1e-6));
          if (weight > 4e-6 * weights.rowMax[i]!) expect(weights.at(i, j), `(${i},${j}) is not lost`).toBeGreaterThan(0);
        }),
      );
      expect(Array.from(weights.row(size - 1))).toHaveLength(size);
    }
  });

  it("keeps rows that see nothing at 0 and rows that are not numbers apart", () => {
    const weights = new Weights(2, false, Float32Array.of(0, NaN), Uint8Array.of(0, 0, 9, 9));
    expect([weights.at(0, 0), weights.at(0, 1)]).toEqual([0, 0]);
    expect(weights.at(1, 0)).toBeNaN();
    expect(topKeys(weights.row(1), 3)).toEqual([]);
  });

  it("names the strongest keys in falling order, the first of equals first", () => {
    const weights = new Weights(4, false, Float32Array.of(1, 1, 1, 1), Uint8Array.of(5, 200, 0, 200, ...Array(12).fill(0)));
    expect(weights.strongest(0)).toBe(1);
    expect(topKeys(weights.row(0), 2).map(({ key }) => key)).toEqual([1, 3]);
    expect(topKeys(weights.row(0), 9).map(({ key }) => key)).toEqual([1, 3, 0]);
  });
});

describe("weightsOf", () => {
  it("decodes once while the map is in use", () => {
    const map: AttentionMap = { block: 0, head: 0, ...encodeMap([[1], [0.5, 0.5]]) };
    const text = textOf(2, true, [map]);
    expect(weightsOf(map, text)).toBe(weightsOf(map, text));
  });
});
