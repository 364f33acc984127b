// A uPlot chart that a keyboard can read: arrow keys move the cursor, and what is under it is given back.

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { cssColour, onRepaint } from "../theme";

const kAxisWidth = 58;
const kPrintWidth = 660; // fits upright A4 and Letter

export interface ChartProps {
  label: string;
  height: number;
  data: uPlot.AlignedData;
  series: uPlot.Series[];
  xLabel: string;
  yLabel: string;
  /** Charts of one group share their cursor. */
  group?: string;
  bands?: uPlot.Band[];
  /** Drawn behind the lines. */
  background?: (u: uPlot) => void;
  /** Integer marks only on the x axis. */
  wholeSteps?: boolean;
  onIndex: (index: number | null) => void;
}

export function Chart(props: ChartProps) {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const { data, series, height } = props;

  useLayoutEffect(() => {
    const u = new uPlot(options(props, frame.current!.clientWidth), data, frame.current!);
    plot.current = u;
    const forget = onRepaint((printing) => {
      const width = printing ? kPrintWidth : frame.current!.clientWidth;
      if (u.width === width) u.redraw(false);
      else u.setSize({ width, height });
    });
    return () => {
      forget();
      u.destroy();
    };
  }, [data, series]);

  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => {
      const width = Math.floor(entry!.contentRect.width);
      if (plot.current!.width !== width) plot.current!.setSize({ width, height });
    });
    observer.observe(frame.current!);
    return () => observer.disconnect();
  }, []);

  const onKeyDown = (event: KeyboardEvent) => {
    const u = plot.current!;
    const last = data[0].length - 1;
    const from = u.cursor.idx ?? (event.key === "ArrowLeft" ? last + 1 : -1);
    const stride = event.shiftKey ? 10 : 1;
    const moves: Record<string, number> = { ArrowLeft: from - stride, ArrowRight: from + stride, Home: 0, End: last };
    const target = moves[event.key];
    if (target === undefined) return;
    event.preventDefault();
    const index = Math.min(last, Math.max(0, target));
    const cursor = { left: u.valToPos(data[0][index]!, "x"), top: u.over.clientHeight / 2 };
    for (const one of props.group ? uPlot.sync(props.group).plots : [u]) one.setCursor(cursor);
  };

  return (
    <div
      class="chart"
      ref={frame}
      tabIndex={0}
      role="application"
      aria-roledescription="chart"
      aria-label={`${props.label}. Left and right arrow keys move along it.`}
      style={{ height: `${height}px` }}
      onKeyDown={onKeyDown}
    />
  );
}

function options(props: ChartProps, width: number): uPlot.Options {
  const font = `12px ${getComputedStyle(document.body).fontFamily}`;
  const axis: uPlot.Axis = {
    stroke: () => cssColour("--muted"),
    grid: { stroke: () => cssColour("--rule"), width: 1 },
    ticks: { stroke: () => cssColour("--rule"), width: 1, size: 5 },
    font,
    labelFont: font,
    labelSize: 20,
  };
  const whole = props.wholeSteps ? { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500] } : {};
  return {
    width,
    height: props.height,
    series: [{}, ...props.series],
    bands: props.bands,
    scales: { x: { time: false } },
    axes: [
      { ...axis, ...whole, label: props.xLabel, size: 32, space: 60 },
      { ...axis, label: props.yLabel, size: kAxisWidth - 14, space: 34 },
    ],
    legend: { show: false },
    padding: [8, 24, 0, 0],
    cursor: {
      y: false,
      drag: { x: false, y: false },
      sync: props.group ? { key: props.group, setSeries: false } : undefined,
      points: { size: 6 },
    },
    hooks: {
      drawClear: props.background ? [props.background] : [],
      setCursor: [(u) => props.onIndex(u.cursor.idx ?? null)],
    },
  };
}
