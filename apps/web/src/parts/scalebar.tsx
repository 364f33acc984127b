// What the shades of a map mean.

import { useEffect, useRef } from "preact/hooks";
import { kShades } from "../colours";
import type { Scale } from "../paint";
import { currentPalette, onRepaint } from "../theme";

const kMarks = [0, 0.01, 0.1, 0.25, 0.5, 1];

export function ScaleBar({ scale, onScale }: { scale: Scale; onScale: (scale: Scale) => void }) {
  const canvas = useRef<HTMLCanvasElement>(null);

  useEffect(() => {
    const paint = () => {
      const context = canvas.current!.getContext("2d")!;
      const image = context.createImageData(kShades, 1);
      new Uint32Array(image.data.buffer).set(currentPalette().pixels);
      context.putImageData(image, 0, 0);
    };
    paint();
    return onRepaint(paint);
  }, []);

  const unit = scale === "row" ? " of the row’s largest" : "";
  return (
    <div class="scale">
      <div class="scale-ramp" role="img" aria-label={`Shades from weight 0 to 1${unit}, by the square root`}>
        <canvas ref={canvas} width={kShades} height={1} />
        {kMarks.map((weight) => (
          <span key={weight} class="scale-mark" style={{ left: `${100 * Math.sqrt(weight)}%` }}>
            {weight}
          </span>
        ))}
      </div>
      <label>
        Shade{" "}
        <select value={scale} onChange={(event) => onScale(event.currentTarget.value as Scale)}>
          <option value="absolute">weight</option>
          <option value="row">weight by the row’s largest</option>
        </select>
      </label>
    </div>
  );
}
