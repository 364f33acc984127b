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

/** Shows the title of whatever has the keyboard's focus; one on a page. Escape puts it away. */
export function FocusBubble() {
  const [anchor, setAnchor] = useState<HTMLElement | null>(null);
  const bubble = useRef<HTMLDivElement>(null);

  useEffect(() => {
    const show = (event: FocusEvent) => {
      const target = event.target as HTMLElement;
      setAnchor(target.title !== "" && target.matches(":focus-visible") ? target : null);
    };
    const hide = () => setAnchor(null);
    const onKey = (event: KeyboardEvent) => event.key === "Escape" && hide();
    document.addEventListener("focusin", show);
    document.addEventListener("focusout", hide);
    document.addEventListener("keydown", onKey);
    return () => {
      document.removeEventListener("focusin", show);
      document.removeEventListener("focusout", hide);
      document.removeEventListener("keydown", onKey);
    };
  }, []);

  useLayoutEffect(() => {
    if (!anchor) return;
    const follow = () => place(bubble.current!, anchor);
    follow();
    addEventListener("scroll", follow, { capture: true, passive: true });
    return () => removeEventListener("scroll", follow, { capture: true });
  }, [anchor]);

  return anchor && (
    <div class="bubble" role="tooltip" ref={bubble}>
      {anchor.title}
    </div>
  );
}

/** Below the anchor, or above it where there is no room; inside the window, and over the grid for one of its tiles. */
function place(bubble: HTMLElement, anchor: HTMLElement): void {
  const margin = 8;
  const { top: start, bottom, left: wanted } = anchor.getBoundingClientRect();
  const { width, height } = bubble.getBoundingClientRect();
  const edge = anchor.closest(".grid")?.getBoundingClientRect().right ?? document.documentElement.clientWidth - margin;
  const below = bottom + margin;
  const top = below + height > innerHeight ? start - margin - height : below;
  const left = Math.max(margin, Math.min(wanted, edge - width));
  bubble.style.top = `${Math.max(margin, top)}px`;
  bubble.style.left = `${left}px`;
}
