// The gate's word on a candidate, and how a call ended, as they are written.
import { count, html, plain, Sentence, Text } from "./kit.js";
import { isOpen, Strip } from "./marks.js";
import { Diff } from "./python.js";

export const isVerdict = (detail) => Boolean(detail) && "admitted" in detail;

export const Finding = ({ problem, children }) => html`<div class=${`finding${problem.severity === "warns" ? " hint" : ""}`}><span>${problem.severity || "refuses"}</span><span>${problem.line ? `line ${problem.line}: ` : ""}<${Sentence} text=${problem.message} /></span>
  ${problem.fix && html`<span class="fix dim"><${Sentence} text=${problem.fix} /></span>`}${children}</div>`;

export const Problems = ({ rows }) => rows.length > 0 && html`<ul class="problems">${rows.map((problem) => html`<li><${Finding} problem=${problem} /></li>`)}</ul>`;

export const wordOf = (verdict) => html`<strong class=${verdict.admitted ? "good" : "bad"}>${verdict.admitted ? `✓ Admitted${verdict.standing ? `, ${verdict.standing}` : ""}` : "✗ Rejected"}</strong>`;

// Each stage with the question that it answers; `asked` has those that the prompt's /show puts.
export const Stages = ({ stages, asked = {} }) => html`<div class="wide-table" tabindex="0" role="region" aria-label="Stages of the gate"><table><thead><tr><th scope="col">Stage</th><th scope="col" class="mid">Question</th><th scope="col">Found</th><th scope="col" class="number">Time</th></tr></thead>
  <tbody>${stages.map((stage) => html`<tr><td><span class=${stage.passed ? "good" : isOpen(stage) ? "dim" : "bad"}>${stage.passed ? "✓" : isOpen(stage) ? "–" : "✗"}</span> ${stage.stage}</td><td class="mid dim">${asked[stage.stage] || ""}</td><td>${plain(stage.note)}</td><td class="number dim">${Math.round(stage.seconds * 1000)} ms</td></tr>`)}</tbody></table></div>`;

export function Verdict({ verdict }) {
  const stages = verdict.stages || [];
  return html`<div class="verdict stack">
    <p class="row">${wordOf(verdict)} <${Strip} verdict=${verdict} /> ${verdict.agreed ? html` <span class="dim">${count(verdict.agreed, "example")} agreed</span>` : ""} ${plain(verdict.error)}</p>
    <${Problems} rows=${verdict.problems || []} />
    ${(verdict.fixes || []).map((fix) => html`<details><summary>Fixed by itself: ${plain(fix.message)}</summary><${Diff} text=${fix.diff} /></details>`)}
    ${stages.length > 0 && html`<details><summary>${count(stages.length, "stage")}</summary><${Stages} stages=${stages} /></details>`}</div>`;
}

const framed = ({ path, line, function: name, source, locals }) => [`${path}:${line} ${name}: ${source}`, ...Object.entries(locals || {}).map((pair) => `  ${pair.join(" = ")}`)].join("\n");

export function Outcome({ outcome }) {
  const error = outcome.error, isGood = outcome.outcome === "returned";
  return html`<div role="status" class="stack"><p class=${`note ${isGood ? "good" : "bad"}`}><strong class="grow">${isGood ? "✓" : "✗"} ${plain(outcome.outcome)}</strong> <span class="dim">${Math.round((outcome.seconds || 0) * 1000)} ms</span></p>
    ${isGood && html`<${Text} label="What it returned" text=${typeof outcome.value === "string" ? outcome.value : JSON.stringify(outcome.value, null, 1)} />`}
    ${error && html`<${Text} label="The error" text=${[`${error.type}: ${error.message}`, ...(error.frames || []).map((frame) => (typeof frame === "string" ? frame : framed(frame)))].join("\n")} />`}
    ${outcome.output && html`<p class="dim">It printed:</p><${Text} label="What it printed" text=${outcome.output} />`}</div>`;
}
