// The page, top to bottom, and what its parts share: the head in view, the text, the order.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Report } from "./data";
import { arrange, firstView, neighbour, sameHead, type HeadRef } from "./order";
import { Controls } from "./parts/controls";
import { Cost } from "./parts/cost";
import { FocusBubble } from "./parts/defined";
import { Grid } from "./parts/grid";
import { Header } from "./parts/header";
import { HeadPanel } from "./parts/headpanel";
import { HeadTable } from "./parts/headtable";
import { Glossary, Ids } from "./parts/ids";
import { Knockout } from "./parts/knockout";
import { Training } from "./parts/training";

export function App({ report }: { report: Report }) {
  const { heads, texts } = report;
  const [view, setView] = useState(() => firstView(heads));
  const [selected, setSelected] = useState<HeadRef>(() => firstHead(report));
  const [textIndex, setTextIndex] = useState(0);
  const panel = useRef<HTMLDivElement>(null);
  const shown = useMemo(() => arrange(heads.rows, view), [heads, view]);
  const row = heads.rows.find((one) => sameHead(one, selected));
  const text = texts[textIndex];

  const select = useCallback(({ block, head }: HeadRef) => setSelected({ block, head }), []);
  const step = (by: number) => {
    const next = neighbour(shown, selected, by);
    if (next) select(next);
  };
  const open = useCallback((head: HeadRef) => {
    select(head);
    panel.current!.scrollIntoView({ block: "start" });
    panel.current!.querySelector<HTMLElement>(".map-window")?.focus({ preventScroll: true });
  }, []);
  useBracketKeys(step);

  return (
    <>
      <a class="skip" href="#opened">
        Skip to the opened head
      </a>
      <Header report={report} />
      <main>
        {report.training && <Training report={report} selected={selected} />}
        {row && (
          <section aria-labelledby="heads-title">
            <h2 id="heads-title">The heads</h2>
            <p class="caption">
              Each square is one attention head reading {text ? <>“{text.name}”</> : "a text"}: every row is a token, and the
              marks along it show which tokens it takes information from; the deeper the colour, the more. A diagonal line just
              below the edge is a head that looks one token back; a line further in finds an earlier copy. A map says where a
              head read from, not why: its ablation says whether that mattered. {heads.condition}.
            </p>
            <Controls heads={heads} view={view} shown={shown.length} onView={setView} />
            <div class="explore">
              <Grid heads={heads} shown={shown} text={text} view={view} selected={selected} onSelect={select} />
              <div id="opened" ref={panel}>
                <HeadPanel report={report} row={row} text={text} onText={setTextIndex} onStep={step} />
              </div>
            </div>
            <h2>What each head does, and what breaks without it</h2>
            <p class="caption">
              Scores say what a head’s attention looks like; the bars say how much the loss changes when that head is taken away.
              A head marked ≠ scores one way and matters another. ± is the {heads.spread}. Press a heading to sort; the grid
              above follows.
            </p>
            <HeadTable
              heads={heads}
              shown={shown}
              view={view}
              selected={selected}
              onView={setView}
              onSelect={select}
              onOpen={open}
            />
          </section>
        )}
        {report.knockout && <Knockout knockout={report.knockout} />}
        <Cost cost={report.cost} />
        <Glossary report={report} />
        <Ids texts={texts} />
      </main>
      <FocusBubble />
    </>
  );
}

/** The head to open first: the most inductive, or else the first. */
function firstHead({ heads }: Report): HeadRef {
  const best = arrange(heads.rows, { ...firstView(heads), by: "value", descending: true })[0];
  return { block: best?.block ?? 0, head: best?.head ?? 0 };
}

/** [ and ] step through the heads from anywhere but a field that takes text. */
function useBracketKeys(step: (by: number) => void): void {
  const latest = useRef(step);
  latest.current = step;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "[" && event.key !== "]") return;
      if ((event.target as Element).closest("input, select, textarea")) return;
      event.preventDefault();
      latest.current(event.key === "]" ? 1 : -1);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
}
