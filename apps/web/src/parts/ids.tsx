// The exact token ids that were run, and what the figures mean.

import type { Report } from "../data";
import { plural } from "../numbers";

export function Ids({ texts }: { texts: Report["texts"] }) {
  return (
    <section id="ids" aria-labelledby="ids-title">
      <h2 id="ids-title">The exact token ids</h2>
      {texts.map((text, i) => (
        <details key={i}>
          <summary>
            {text.name}: {plural(text.ids.length, "token")}, {text.start_token ? "start token prepended" : "no start token"},{" "}
            {text.causal ? "causal" : "every token sees every other"}
          </summary>
          <p class="id-list">{text.ids.join(" ")}</p>
        </details>
      ))}
    </section>
  );
}

export function Glossary({ report: { heads } }: { report: Report }) {
  const entries = [...heads.scores, ...heads.ablations];
  return (
    <section aria-labelledby="glossary-title">
      <h2 id="glossary-title">How the figures are defined</h2>
      <dl class="glossary">
        {entries.map(({ id, label, definition }) => (
          <div key={id}>
            <dt>{label}</dt>
            <dd>{definition}</dd>
          </div>
        ))}
        <div>
          <dt>±</dt>
          <dd>{heads.spread}</dd>
        </div>
      </dl>
    </section>
  );
}
