// A number that says how it is defined: on hover by its title, on keyboard focus by a bubble with the same words.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

export function Defined({ how, children }: { how: string; children: ComponentChildren }) {
  return (
    <span class="defined" tabIndex={0} title={how}>
      {children}
    </span>
  );
}

interface Bubble {
  text: string;
  anchor: DOMRect;
}

/** Shows the title of whatever has the keyboard's focus; one on a page. Escape puts it away. */
export function FocusBubble() {
  const [bubble, setBubble] = useState<Bubble | null>(null);
  const element = useRef<HTMLDivElement>(null);

  useEffect(() => {
    const show = (event: FocusEvent) => {
      const target = event.target as HTMLElement;
      const described = target.title !== "" && target.matches(":focus-visible");
      setBubble(described ? { text: target.title, anchor: target.getBoundingClientRect() } : null);
    };
    const hide = () => setBubble(null);
    const onKey = (event: KeyboardEvent) => event.key === "Escape" && hide();
    document.addEventListener("focusin", show);
    document.addEventListener("focusout", hide);
    document.addEventListener("keydown", onKey);
    addEventListener("scroll", hide, { passive: true });
    return () => {
      document.removeEventListener("focusin", show);
      document.removeEventListener("focusout", hide);
      document.removeEventListener("keydown", onKey);
      removeEventListener("scroll", hide);
    };
  }, []);

  useLayoutEffect(() => {
    if (bubble && element.current) place(element.current, bubble.anchor);
  }, [bubble]);

  return bubble && (
    <div class="bubble" role="tooltip" ref={element}>
      {bubble.text}
    </div>
  );
}

/** Below the anchor, or above it where there is no room; always inside the window. */
function place(bubble: HTMLElement, anchor: DOMRect): void {
  const margin = 8;
  const { width, height } = bubble.getBoundingClientRect();
  const below = anchor.bottom + margin;
  const top = below + height > innerHeight ? anchor.top - margin - height : below;
  const left = Math.min(Math.max(margin, anchor.left), document.documentElement.clientWidth - width - margin);
  bubble.style.top = `${Math.max(margin, top)}px`;
  bubble.style.left = `${left}px`;
}
