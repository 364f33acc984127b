// What the grid and the table of heads show: measure, order, threshold, roles.

import type { Estimate, Heads } from "../data";
import { fixed, plural } from "../numbers";
import { estimateOf, type HeadView, type Measure } from "../order";
import { roleColour, roleLabel } from "./roles";

interface Props {
  heads: Heads;
  view: HeadView;
  shown: number;
  onView: (view: HeadView) => void;
}

export function Controls({ heads, view, shown, onView }: Props) {
  const change = (part: Partial<HeadView>) => onView({ ...view, ...part });
  const [low, high] = range(heads, view.measure);
  const toggleRole = (role: string) =>
    change({ roles: view.roles.includes(role) ? view.roles.filter((one) => one !== role) : [...view.roles, role] });
  const minimum = view.minimum ?? low;

  return (
    <div class="controls">
      <div class="control-row">
        <label>
          Figure{" "}
          <select
            value={`${view.measure.kind}:${view.measure.id}`}
            onChange={(event) => change({ measure: parseMeasure(event.currentTarget.value), minimum: null })}
          >
            <optgroup label="Scores">
              {heads.scores.map((score) => (
                <option key={score.id} value={`score:${score.id}`}>
                  {score.label}
                </option>
              ))}
            </optgroup>
            <optgroup label="Change in loss when taken away">
              {heads.ablations.map((ablation) => (
                <option key={ablation.id} value={`ablation:${ablation.id}`}>
                  {ablation.label}
                </option>
              ))}
            </optgroup>
          </select>
        </label>
        <label>
          Order{" "}
          <select
            value={`${view.by} ${view.descending ? "down" : "up"}`}
            onChange={(event) => {
              const [by, direction] = event.currentTarget.value.split(" ");
              change({ by: by as HeadView["by"], descending: direction === "down" });
            }}
          >
            <option value="position up">by block and head</option>
            <option value="position down">by block and head, last first</option>
            <option value="value down">largest figure first</option>
            <option value="value up">smallest figure first</option>
          </select>
        </label>
        <label class="slider">
          At least{" "}
          <input
            type="range"
            min={low}
            max={high}
            step={(high - low) / 100}
            value={minimum}
            onInput={(event) => {
              const value = Number(event.currentTarget.value);
              change({ minimum: value <= low ? null : value });
            }}
          />
          <output>{view.minimum === null ? "any" : fixed(minimum)}</output>
        </label>
      </div>
      <div class="keys" role="group" aria-label="Show only heads that do this">
        {rolesIn(heads).map(([role, count]) => (
          <button
            type="button"
            key={role}
            class="chip"
            aria-pressed={view.roles.includes(role)}
            title={definitionOf(heads, role)}
            style={{ "--role": roleColour(heads, role) }}
            onClick={() => toggleRole(role)}
          >
            {roleLabel(heads, role)} <span class="count">{count}</span>
          </button>
        ))}
        {heads.rows.some((row) => row.disagrees) && (
          <button
            type="button"
            class="chip warning"
            aria-pressed={view.onlyDisagreements}
            title="Heads whose score says one thing and whose ablation says another"
            onClick={() => change({ onlyDisagreements: !view.onlyDisagreements })}
          >
            ≠ disagree <span class="count">{heads.rows.filter((row) => row.disagrees).length}</span>
          </button>
        )}
        <span class="shown" role="status">
          {shown} of {plural(heads.rows.length, "head")} shown
        </span>
      </div>
    </div>
  );
}

function parseMeasure(value: string): Measure {
  const colon = value.indexOf(":");
  return { kind: value.slice(0, colon) as Measure["kind"], id: value.slice(colon + 1) };
}

/** The threshold runs over 0..1 for scores, over what was found for ablations. */
function range(heads: Heads, measure: Measure): [number, number] {
  const means = heads.rows
    .map((row) => estimateOf(row, measure))
    .filter((estimate): estimate is Estimate & { mean: number } => typeof estimate?.mean === "number")
    .map((estimate) => estimate.mean);
  const least = Math.min(0, ...means);
  const most = Math.max(measure.kind === "score" ? 1 : 0, ...means);
  return [least, most > least ? most : least + 1];
}

/** The roles that occur, in the order of the scores, with how many heads have each; "" is no role. */
function rolesIn(heads: Heads): [role: string, count: number][] {
  return [...heads.scores.map((score) => score.id), ""]
    .map((role): [string, number] => [role, heads.rows.filter((row) => (row.role ?? "") === role).length])
    .filter(([, count]) => count > 0);
}

function definitionOf(heads: Heads, role: string): string {
  return heads.scores.find((score) => score.id === role)?.definition ?? "No score stands out from the untrained model";
}
