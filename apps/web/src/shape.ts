// Readers: each takes a JSON value, and gives it back typed or says what is wrong with it and where.

export class DataError extends Error {}

export type Reader<T> = (value: unknown, at: string) => T;

function wrong(at: string, wanted: string, found: unknown): never {
  const shown = JSON.stringify(found) ?? "nothing";
  throw new DataError(`${at}: ${wanted} wanted, ${shown.length > 60 ? `${shown.slice(0, 59)}…` : shown} found`);
}

export const text: Reader<string> = (value, at) => (typeof value === "string" ? value : wrong(at, "text", value));

export const flag: Reader<boolean> = (value, at) =>
  typeof value === "boolean" ? value : wrong(at, "true or false", value);

export const number: Reader<number> = (value, at) => (typeof value === "number" ? value : wrong(at, "number", value));

/** A whole number of at least 0. */
export const whole: Reader<number> = (value, at) =>
  Number.isInteger(value) && (value as number) >= 0 ? (value as number) : wrong(at, "whole number", value);

export const figure: Reader<number | null> = (value, at) =>
  value === null || typeof value === "number" ? value : wrong(at, "number or null", value);

export function oneOf<T extends string>(...allowed: T[]): Reader<T> {
  const wanted = allowed.map((name) => `"${name}"`).join(" or ");
  return (value, at) => (allowed.includes(value as T) ? (value as T) : wrong(at, wanted, value));
}

/** The first reader that accepts the value; `wanted` names them all. */
export function either<A, B>(first: Reader<A>, second: Reader<B>, wanted: string): Reader<A | B> {
  return (value, at) => {
    for (const reader of [first, second]) {
      try {
        return reader(value, at);
      } catch {
        continue;
      }
    }
    return wrong(at, wanted, value);
  };
}

export function list<T>(item: Reader<T>): Reader<T[]> {
  return (value, at) =>
    Array.isArray(value) ? value.map((entry, i) => item(entry, `${at}[${i}]`)) : wrong(at, "list", value);
}

export function optional<T>(reader: Reader<T>): Reader<T | undefined> {
  return (value, at) => (value === undefined ? undefined : reader(value, at));
}

export function record<T>(entry: Reader<T>): Reader<Record<string, T>> {
  return (value, at) => {
    const from = fields(value, at);
    return Object.fromEntries(Object.keys(from).map((key) => [key, entry(from[key], `${at}["${key}"]`)]));
  };
}

/** Names every field of T, so that a field added to the type cannot be left unchecked. */
export function object<T>(readers: { [K in keyof T]-?: Reader<T[K]> }): Reader<T> {
  return (value, at) => {
    const from = fields(value, at);
    const made = {} as T;
    for (const key of Object.keys(readers) as (keyof T & string)[]) {
      made[key] = readers[key](from[key], at === "" ? key : `${at}.${key}`);
    }
    return made;
  };
}

function fields(value: unknown, at: string): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) wrong(at || "report", "object", value);
  return value as Record<string, unknown>;
}
