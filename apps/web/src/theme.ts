// Light or dark: the system's choice until the reader makes another, which is remembered where that is allowed.
// Canvases take no style sheets, so whatever draws on one registers to be told when colours change.

import { palette, type Palette } from "./colours";

const kKey = "headlight-theme";
type Theme = "light" | "dark";

const system = matchMedia("(prefers-color-scheme: dark)");
const resolved = new Map<string, string>();
const painters = new Set<(all: boolean) => void>();
let chosen: Theme | null = remembered();
let printing = false;

function remembered(): Theme | null {
  try {
    const value = localStorage.getItem(kKey);
    return value === "light" || value === "dark" ? value : null;
  } catch {
    return null; // storage may be refused to a page opened from a file
  }
}

function remember(theme: Theme): void {
  try {
    localStorage.setItem(kKey, theme);
  } catch {
    return; // the choice then lasts as long as the page
  }
}

export function isDark(): boolean {
  return !printing && (chosen ? chosen === "dark" : system.matches);
}

export const currentPalette = (): Palette => palette(isDark());

/** A colour of the style sheet as the current theme has it, for drawing. */
export function cssColour(name: string): string {
  let colour = resolved.get(name);
  if (colour === undefined) {
    const probe = document.body.appendChild(document.createElement("span"));
    probe.style.color = `var(${name})`;
    colour = getComputedStyle(probe).color;
    probe.remove();
    resolved.set(name, colour);
  }
  return colour;
}

/** `paint` is called when colours change; `all` asks for what is out of sight too, for a printer. */
export function onRepaint(paint: (all: boolean) => void): () => void {
  painters.add(paint);
  return () => void painters.delete(paint);
}

function apply(): void {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  resolved.clear();
  for (const paint of painters) paint(printing);
}

export function toggleTheme(): void {
  chosen = isDark() ? "light" : "dark";
  remember(chosen);
  apply();
}

/** Follows the system and the printer from now on. */
export function startTheme(): void {
  apply();
  system.addEventListener("change", apply);
  for (const event of ["beforeprint", "afterprint"]) {
    addEventListener(event, () => {
      printing = event === "beforeprint";
      apply();
    });
  }
}
