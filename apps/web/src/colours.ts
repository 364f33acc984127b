// The scale of weights: lightness changes evenly from one end to the other, so that it reads the same with any
// colour vision and in grey. Light pages run from paper to deep blue, dark pages from night to pale yellow.

/** Lightness, chroma and hue (degrees) in OKLCH (Ottosson 2020). */
type Anchor = [lightness: number, chroma: number, hue: number];

const kLight: Anchor[] = [
  [0.965, 0.012, 100],
  [0.84, 0.085, 165],
  [0.67, 0.11, 205],
  [0.46, 0.125, 255],
  [0.24, 0.11, 285],
];
const kDark: Anchor[] = [
  [0.235, 0.02, 270],
  [0.39, 0.105, 275],
  [0.56, 0.11, 235],
  [0.76, 0.13, 170],
  [0.95, 0.13, 105],
];

export const kShades = 256;

export interface Palette {
  /** Shade 0..255 as the 32 bits of an RGBA pixel, least significant byte first. */
  pixels: Uint32Array;
  /** Shade 0..255 as a CSS colour. */
  css: string[];
  /** Black or white, whichever reads better on that shade. */
  ink: string[];
  /** Weights that are not numbers. */
  invalidPixel: number;
}

const palettes = new Map<boolean, Palette>();

export function palette(dark: boolean): Palette {
  let made = palettes.get(dark);
  if (!made) {
    made = makePalette(dark ? kDark : kLight);
    palettes.set(dark, made);
  }
  return made;
}

/** The shade of a weight: its square root, so that small weights are seen beside large ones. */
export function shadeOf(weight: number): number {
  return Number.isNaN(weight) ? 0 : Math.round((kShades - 1) * Math.sqrt(Math.min(1, weight)));
}

function makePalette(anchors: Anchor[]): Palette {
  const pixels = new Uint32Array(kShades);
  const css: string[] = [];
  const ink: string[] = [];
  for (let shade = 0; shade < kShades; ++shade) {
    const rgb = toRgb(between(anchors, shade / (kShades - 1)));
    pixels[shade] = pixelOf(rgb);
    css.push(`rgb(${rgb.join(" ")})`);
    ink.push(luminance(rgb) > 0.18 ? "#000" : "#fff");
  }
  return { pixels, css, ink, invalidPixel: pixelOf([214, 39, 112]) };
}

function pixelOf([red, green, blue]: number[]): number {
  return ((255 << 24) | (blue! << 16) | (green! << 8) | red!) >>> 0;
}

/** Straight lines between the anchors, in OKLab. */
function between(anchors: Anchor[], share: number): [number, number, number] {
  const place = share * (anchors.length - 1);
  const index = Math.min(Math.floor(place), anchors.length - 2);
  const low = toLab(anchors[index]!);
  const high = toLab(anchors[index + 1]!);
  const mix = (c: 0 | 1 | 2) => low[c] + (high[c] - low[c]) * (place - index);
  return [mix(0), mix(1), mix(2)];
}

function toLab([lightness, chroma, hue]: Anchor): [number, number, number] {
  const angle = (hue * Math.PI) / 180;
  return [lightness, chroma * Math.cos(angle), chroma * Math.sin(angle)];
}

/** OKLab to 8-bit sRGB, clipped to what a screen shows. */
function toRgb([l, a, b]: [number, number, number]): number[] {
  const long = (l + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const middle = (l - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const short = (l - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
    -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
    -0.0041960863 * long - 0.7034186147 * middle + 1.707614701 * short,
  ].map((linear) => {
    const clipped = Math.min(1, Math.max(0, linear));
    return Math.round(255 * (clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055));
  });
}

/** Relative luminance (WCAG 2). */
export function luminance(rgb: number[]): number {
  const [red, green, blue] = rgb.map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}
