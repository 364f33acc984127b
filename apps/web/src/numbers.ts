// Numbers as text. A missing figure is "–"; the minus sign is a minus, not a hyphen.

import type { Estimate, Figure } from "./data";

const kMissing = "–";
const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

const minus = (text: string) => text.replace("-", "−");

/** An attention weight: three decimals, or two digits when it is smaller than that. */
export function weightText(weight: number): string {
  if (Number.isNaN(weight)) return "not a number";
  if (weight === 0) return "0";
  if (weight >= 0.001) return weight.toFixed(3);
  return weight >= 1e-6 ? weight.toFixed(7).replace(/(\.0*[1-9]\d)\d*$/, "$1") : weight.toExponential(1);
}

export function fixed(value: Figure, digits = 2): string {
  return value === null ? kMissing : minus(value.toFixed(digits));
}

/** A change, always with its sign: +2.60, −0.03. What rounds to 0 is +0.00. */
export function signed(value: Figure, digits = 2): string {
  if (value === null) return kMissing;
  const text = Math.abs(value).toFixed(digits);
  return (value < 0 && Number(text) !== 0 ? "−" : "+") + text;
}

/** ±.02, or nothing when it is missing. */
export function spreadText(value: Figure, digits = 2): string {
  return value === null ? "" : `±${value.toFixed(digits).replace(/^0\./, ".")}`;
}

export function estimateText(estimate: Estimate, show: (value: Figure) => string): string {
  return `${show(estimate.mean)} ${spreadText(estimate.spread)}`.trim();
}

/** 49,152 */
export function count(value: number): string {
  return grouped.format(value);
}

/** 49.2 k, 3.15 M: three digits and a unit. */
export function compact(value: number): string {
  const units = ["", " k", " M", " G", " T", " P", " E"];
  let power = 0;
  let rest = value;
  while (Math.abs(rest) >= 999.5 && power < units.length - 1) {
    rest /= 1000;
    ++power;
  }
  return power === 0 ? grouped.format(rest) : rest.toPrecision(3) + units[power];
}

/** 2e-7, for deviations and bounds. */
export function tiny(value: Figure): string {
  if (value === null) return "not a number";
  return value === 0 ? "0" : minus(value.toExponential(value.toExponential(1).includes(".0") ? 0 : 1));
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}
