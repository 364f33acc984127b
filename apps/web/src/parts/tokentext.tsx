// The text itself, each token tinted by how much the row in view attends to it.

import { Fragment } from "preact";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { shadeOf } from "../colours";
import type { Cursor } from "../cursor";
import type { Text } from "../data";
import type { Weights } from "../maps";
import { currentPalette, onRepaint } from "../theme";
import { endsLine, tokenText } from "../tokens";
import { bringInside } from "./scroll";
import { TokenPieces } from "./token";

interface Props {
  text: Text;
  weights: Weights;
  cursor: Cursor;
  onCursor: (cursor: Cursor) => void;
}

export function TokenText({ text, weights, cursor, onCursor }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const spans = useRef<HTMLElement[]>([]);
  const tokens = useMemo(() => <Tokens text={text} />, [text]);

  useLayoutEffect(() => {
    spans.current = [...box.current!.querySelectorAll<HTMLElement>(".word")];
  }, [text]);

  useLayoutEffect(() => {
    const paint = () => tint(spans.current, weights.row(cursor.query), weights.rowLength(cursor.query));
    paint();
    return onRepaint(paint);
  }, [text, weights, cursor.query]);

  useLayoutEffect(() => {
    const marked: [HTMLElement | undefined, string][] = [
      [spans.current[cursor.query], "query"],
      [spans.current[cursor.key], "key"],
    ];
    for (const [span, name] of marked) span?.classList.add(name);
    const key = spans.current[cursor.key];
    if (key && !box.current!.matches(":hover")) bringInside(box.current!, key);
    return () => {
      for (const [span, name] of marked) span?.classList.remove(name);
    };
  }, [text, cursor.query, cursor.key]);

  const keyAt = (event: Event) => {
    const span = (event.target as Element).closest<HTMLElement>(".word");
    return span ? spans.current.indexOf(span) : -1;
  };
  const look = (position: number) => {
    if (position < 0 || position === cursor.key) return;
    if (position < weights.rowLength(cursor.query)) onCursor({ ...cursor, key: position });
  };
  const read = (position: number) => {
    if (position >= 0) onCursor({ query: position, key: weights.strongest(position), locked: true });
  };
  const onClick = (event: MouseEvent) => {
    const selecting = getSelection()?.isCollapsed === false;
    if (!selecting) read(keyAt(event));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const last = weights.size - 1;
    const moves: Record<string, number> = { ArrowLeft: cursor.query - 1, ArrowRight: cursor.query + 1, Home: 0, End: last };
    const target = moves[event.key];
    if (target === undefined || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    event.preventDefault();
    read(Math.max(0, Math.min(target, last)));
  };

  return (
    <div
      class="running"
      ref={box}
      tabIndex={0}
      role="application"
      aria-roledescription="text"
      aria-label="The text, tinted by the row in view. Left and right arrow keys take the token before or after as the row."
      onPointerOver={(event) => event.pointerType !== "touch" && look(keyAt(event))}
      onClick={onClick}
      onKeyDown={onKeyDown}
    >
      {tokens}
    </div>
  );
}

function Tokens({ text }: { text: Text }) {
  return (
    <>
      {text.tokens.map((token, i) => (
        <Fragment key={i}>
          <bdi class="word" title={`position ${i}, id ${text.ids[i]}: ${tokenText(token, 40)}`}>
            <TokenPieces token={token} />
          </bdi>
          {endsLine(token) ? <br /> : <wbr />}
        </Fragment>
      ))}
    </>
  );
}

function tint(spans: HTMLElement[], row: Float64Array, visible: number): void {
  const { css, ink } = currentPalette();
  spans.forEach((span, i) => {
    const seen = i < visible;
    const shade = shadeOf(row[i]!);
    span.style.backgroundColor = seen && shade > 0 ? css[shade]! : "";
    span.style.color = seen && shade > 0 ? ink[shade]! : "";
    span.classList.toggle("unseen", !seen);
  });
}
