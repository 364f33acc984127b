// What was run, in two lines, and whether its identities hold.

import type { Check, Report } from "../data";
import { count, plural, tiny } from "../numbers";
import { toggleTheme } from "../theme";
import { Defined } from "./defined";

export function Header({ report }: { report: Report }) {
  const { run, model, texts } = report;
  const tokens = texts.reduce((sum, text) => sum + text.ids.length, 0);
  return (
    <header class="top">
      <div class="top-bar">
        <span class="product">Headlight report</span>
        <button type="button" class="quiet" onClick={toggleTheme} title="Switch between light and dark; remembered for this browser">
          Light / dark
        </button>
      </div>
      <h1>{report.title}</h1>
      <p class="ran">
        <strong>{run.model}</strong>, {model.summary}
        <Dot />
        data {run.data}
        <Dot />
        <a href="#ids">
          {count(tokens)} token ids on {plural(texts.length, "text")}
        </a>
        <Dot />
        seed {run.seed}
      </p>
      <p class="ran">
        Headlight {report.version}
        <Dot />
        {run.isa}, {plural(run.threads, "thread")}
        <Dot />
        <time dateTime={report.created}>{report.created.replace("T", " ").replace(/(:\d\d)(\.\d+)?Z$/, "$1 UTC")}</time>
        {run.normalisation && (
          <>
            <Dot />
            {run.normalisation}
          </>
        )}
        <Dot />
        <Verdict checks={report.checks} />
      </p>
      <Checks checks={report.checks} />
      <details>
        <summary>The command and the model’s configuration</summary>
        <pre class="command">{run.command}</pre>
        <dl class="config">
          {Object.entries(model.config).map(([key, value]) => (
            <div key={key}>
              <dt>{key}</dt>
              <dd>{String(value ?? "–")}</dd>
            </div>
          ))}
        </dl>
      </details>
    </header>
  );
}

const Dot = () => <span class="dot"> · </span>;

function Verdict({ checks }: { checks: Check[] }) {
  const failed = checks.filter((check) => !check.passed).length;
  if (failed > 0) {
    return (
      <strong class="verdict failed">
        ✗ {failed} of {plural(checks.length, "check")} failed
      </strong>
    );
  }
  return <strong class="verdict passed">{checks.length > 0 ? `✓ ${plural(checks.length, "check")} passed` : "no checks"}</strong>;
}

function Checks({ checks }: { checks: Check[] }) {
  if (checks.length === 0) return null;
  return (
    <details open={checks.some((check) => !check.passed)}>
      <summary>Identities that prove the numbers</summary>
      <ul class="checks">
        {checks.map((check) => (
          <li key={check.name} class={check.passed ? "passed" : "failed"}>
            <span class="sign">{check.passed ? "✓" : "✗"}</span>
            <span class="visually-hidden">{check.passed ? "passed: " : "failed: "}</span>
            {check.name}:{" "}
            <Defined how={check.definition}>
              {check.text ?? `${tiny(check.value)}${check.passed ? " ≤ " : ", allowed "}${tiny(check.bound)}`}
            </Defined>
          </li>
        ))}
      </ul>
    </details>
  );
}
