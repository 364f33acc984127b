// The colour and the name of what a head does.

import type { Heads } from "../data";

const kOther = 6;

/** The style sheet's variable for a score's colour; the first six scores have one of their own. */
export function roleVariable(heads: Heads, role: string | null): string {
  const index = heads.scores.findIndex(({ id }) => id === role);
  return index < 0 ? "--role-none" : `--role-${Math.min(index, kOther)}`;
}

export const roleColour = (heads: Heads, role: string | null) => `var(${roleVariable(heads, role)})`;

export function roleLabel(heads: Heads, role: string | null): string {
  return heads.scores.find(({ id }) => id === role)?.label ?? "none stands out";
}
