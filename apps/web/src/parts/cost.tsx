// Parameters and arithmetic, part by part.

import { useRef } from "preact/hooks";
import type { Cost as CostData } from "../data";
import { compact, count } from "../numbers";
import { Defined } from "./defined";
import { useRoving } from "./roving";

export function Cost({ cost }: { cost: CostData }) {
  const table = useRef<HTMLTableElement>(null);
  const onKeyDown = useRoving(table);
  return (
    <section aria-labelledby="cost-title">
      <h2 id="cost-title">What it costs</h2>
      <p class="caption">
        Counted, not timed: {cost.assumptions}.
        {cost.training && (
          <>
            {" "}
            Training on{" "}
            <Defined how={`${count(cost.training.tokens)} tokens, each step's batch counted`}>
              {compact(cost.training.tokens)} tokens
            </Defined>{" "}
            took{" "}
            <Defined how={cost.training.note ?? "Forward and backward together, over all tokens"}>
              {compact(cost.training.flops)} FLOPs
            </Defined>
            .
          </>
        )}
      </p>
      <div class="table-frame">
        <table class="cost" ref={table} role="grid" aria-label="Parameters and FLOPs by part" onKeyDown={onKeyDown}>
          <thead>
            <tr>
              <th scope="col">part</th>
              <th scope="col" class="number">
                parameters
              </th>
              <th scope="col" class="number">
                FLOPs per token, forward
              </th>
            </tr>
          </thead>
          <tbody>
            {cost.parts.map((part) => (
              <tr key={part.name}>
                <th scope="row" data-cell tabIndex={-1} title={part.note ?? part.name}>
                  {part.name}
                  {part.note && <span class="note"> {part.note}</span>}
                </th>
                <Amount value={part.parameters} of={cost.total.parameters} what="parameters" />
                <Amount value={part.flops_per_token} of={cost.total.flops_per_token} what="FLOPs per token" />
              </tr>
            ))}
          </tbody>
          <tfoot>
            <tr>
              <th scope="row">total</th>
              <Amount value={cost.total.parameters} of={cost.total.parameters} what="parameters" />
              <Amount value={cost.total.flops_per_token} of={cost.total.flops_per_token} what="FLOPs per token" />
            </tr>
          </tfoot>
        </table>
      </div>
    </section>
  );
}

/** An amount, with its share of the total as a bar. */
function Amount({ value, of, what }: { value: number; of: number; what: string }) {
  const share = of > 0 ? value / of : 0;
  return (
    <td
      class="number score"
      data-cell
      tabIndex={-1}
      title={`${count(value)} ${what}, ${(100 * share).toFixed(1)}% of the total`}
      style={{ "--share": share.toFixed(4) }}
    >
      <span class="value">{count(value)}</span>
    </td>
  );
}
