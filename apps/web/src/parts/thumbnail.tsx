// A small map, drawn when it comes into sight.

import { useEffect, useRef } from "preact/hooks";
import type { AttentionMap, Text } from "../data";
import { weightsOf } from "../maps";
import { paintThumbnail } from "../paint";
import { currentPalette, onRepaint } from "../theme";

const kFrameBudget = 10; // milliseconds of drawing per frame, so that scrolling stays smooth
const waiting = new Set<() => void>();
const seen = new WeakMap<Element, (visible: boolean) => void>();
const observer = new IntersectionObserver(
  (entries) => entries.forEach((entry) => seen.get(entry.target)?.(entry.isIntersecting)),
  { rootMargin: "150px" },
);

function drawWaiting(): void {
  const start = performance.now();
  for (const draw of waiting) {
    waiting.delete(draw);
    draw();
    if (performance.now() - start > kFrameBudget) break;
  }
  if (waiting.size > 0) requestAnimationFrame(drawWaiting);
}

function soon(draw: () => void): void {
  if (waiting.size === 0) requestAnimationFrame(drawWaiting);
  waiting.add(draw);
}

export function Thumbnail({ map, text, side }: { map: AttentionMap; text: Text; side: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);

  useEffect(() => {
    const element = canvas.current!;
    let visible = false;
    const draw = () => {
      const pixels = Math.round(side * devicePixelRatio);
      paintThumbnail(element, weightsOf(map, text), currentPalette(), pixels);
      element.dataset.drawn = "";
    };
    seen.set(element, (now) => {
      visible = now;
      if (visible && element.dataset.drawn === undefined) soon(draw);
    });
    observer.observe(element);
    const forget = onRepaint((all) => {
      delete element.dataset.drawn;
      if (all) draw();
      else if (visible) soon(draw);
    });
    return () => {
      observer.unobserve(element);
      waiting.delete(draw);
      delete element.dataset.drawn;
      forget();
    };
  }, [map, text, side]);

  return <canvas ref={canvas} class="thumbnail" width={1} height={1} aria-hidden="true" />;
}
