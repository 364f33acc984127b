import { describe, expect, it } from "vitest";
import type { Token } from "../../apps/web/src/data";
import { endsLine, pieces, tokenText } from "../../apps/web/src/tokens";
import { kHostile } from "./sample";

describe("tokenText", () => {
  it.each<[Token, string]>([
    [" the", "·the"],
    ["\n", "⏎"],
    ["\t", "⇥"],
    ["\r\n", "\\x0d⏎"],
    ["\u0000", "\\x00"],
    ["\u007f\u0085", "\\x7f\\x85"],
    ["\u00a0", "\\xa0"],
    ["\u202eabc\u202c", "\\u202eabc\\u202c"],
    ["\u2066\u200f", "\\u2066\\u200f"],
    ["\u200b\ufeff", "\\u200b\\ufeff"],
    ["\u{e0041}", "\\u{e0041}"],
    ["\ud800", "\\ud800"],
    ["", "∅"],
    [[], "∅"],
    [[226, 130], "\\xe2\\x82"],
    [[32, 0, 60, 255], "·\\x00<\\xff"],
    ["</script>", "</script>"],
    ["日本 שלום", "日本·שלום"],
    ["e\u0301", "e\u0301"],
    ["\u0301", "◌\u0301"],
  ])("shows %j as %s", (token, shown) => {
    expect(tokenText(token)).toBe(shown);
  });

  it("cuts long tokens by characters, not by halves of one", () => {
    expect(tokenText("x".repeat(30), 5)).toBe("xxxx…");
    expect(tokenText("🙂🙂🙂", 3)).toBe("🙂🙂🙂");
    expect(tokenText("🙂🙂🙂🙂", 3)).toBe("🙂🙂…");
  });

  it("leaves nothing invisible and no pile of accents, whatever the token", () => {
    const everyCharacter = Array.from({ length: 0x3000 }, (_, code) => String.fromCodePoint(code));
    for (const token of [...kHostile, ...everyCharacter]) {
      const shown = tokenText(token);
      expect(shown, JSON.stringify(token)).not.toMatch(/[\p{C}\p{Z}]|\p{M}{4}/u);
      expect(shown).not.toBe("");
    }
  });
});

describe("pieces", () => {
  it("tells marks from the token's own characters", () => {
    expect(pieces(" a\\x00\u0000b")).toEqual([
      { text: "·", mark: true },
      { text: "a\\x00", mark: false },
      { text: "\\x00", mark: true },
      { text: "b", mark: false },
    ]);
  });
});

describe("endsLine", () => {
  it("is true after a newline, as text or as bytes", () => {
    expect([endsLine("a\n"), endsLine([10]), endsLine("\na"), endsLine(""), endsLine([])]).toEqual([true, true, false, false, false]);
  });
});
