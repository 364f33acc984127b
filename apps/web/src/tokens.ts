// Token text, made safe to look at: blanks, control and direction characters become visible marks.
// What comes out is only ever put into text nodes.

import type { Token } from "./data";

/** A run of characters; marks stand for characters that have no shape of their own. */
export interface Piece {
  text: string;
  mark: boolean;
}

const kNamed: Record<string, string> = { " ": "·", "\n": "⏎", "\t": "⇥" };
const kEmpty = "∅";
const kDottedCircle = "◌";
/** Combining marks beyond this many on one character could paint over their neighbours. */
const kMostCombining = 3;

const invisible = /[\p{C}\p{Z}]/u;
const combining = /\p{M}/u;

export function pieces(token: Token): Piece[] {
  const found: Piece[] = [];
  const add = (text: string, mark: boolean) => {
    const last = found[found.length - 1];
    if (last && last.mark === mark) last.text += text;
    else found.push({ text, mark });
  };
  if (typeof token === "string") addCharacters(token, add);
  else for (const byte of token) addByte(byte, add);
  if (found.length === 0) add(kEmpty, true);
  return found;
}

/** The same as one string, cut to `most` characters when it is longer. */
export function tokenText(token: Token, most = Infinity): string {
  const text = pieces(token)
    .map((piece) => piece.text)
    .join("");
  const characters = [...text];
  return characters.length <= most ? text : characters.slice(0, most - 1).join("") + "…";
}

/** Whether a line of running text ends after this token. */
export function endsLine(token: Token): boolean {
  return typeof token === "string" ? token.endsWith("\n") : token[token.length - 1] === 10;
}

type Add = (text: string, mark: boolean) => void;

function addCharacters(text: string, add: Add): void {
  let stacked = 0;
  let first = true;
  for (const character of text) {
    stacked = combining.test(character) ? stacked + 1 : 0;
    const named = kNamed[character];
    if (named !== undefined) add(named, true);
    else if (invisible.test(character) || stacked > kMostCombining) add(escaped(character), true);
    else add(first && stacked > 0 ? kDottedCircle + character : character, false);
    first = false;
  }
}

function addByte(byte: number, add: Add): void {
  if (byte > 0x20 && byte < 0x7f) add(String.fromCharCode(byte), false);
  else if (byte < 0x80) addCharacters(String.fromCharCode(byte), add);
  else add(`\\x${hex(byte, 2)}`, true);
}

function escaped(character: string): string {
  const code = character.codePointAt(0)!;
  if (code < 0x100) return `\\x${hex(code, 2)}`;
  return code < 0x10000 ? `\\u${hex(code, 4)}` : `\\u{${hex(code, 5)}}`;
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, "0");
}
