// A token as inert text, its blanks and control characters as faint marks.

import { Fragment } from "preact";
import type { Token as TokenData } from "../data";
import { pieces, tokenText } from "../tokens";

const kLongest = 28;

export function TokenPieces({ token }: { token: TokenData }) {
  return (
    <>
      {pieces(token).map((piece, i) =>
        piece.mark ? (
          <span key={i} class="mark">
            {piece.text}
          </span>
        ) : (
          <Fragment key={i}>{piece.text}</Fragment>
        ),
      )}
    </>
  );
}

/** A token within a sentence, cut when it is long. */
export function TokenName({ token }: { token: TokenData }) {
  return <bdi class="token-name">{tokenText(token, kLongest)}</bdi>;
}
