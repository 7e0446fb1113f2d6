// The gate's word on a candidate, and how a call ended, as they are written.
import { count, Diff, html, plain, Sentence, Text } from "/page/kit.js";

export const isVerdict = (detail) => Boolean(detail) && "admitted" in detail;

export const Problems = ({ rows }) => rows.length > 0 && html`<ul class="problems">${rows.map((problem) => html`<li><span class=${problem.severity === "warns" ? "warn" : "bad"}>${problem.severity || "refuses"}</span>
      ${problem.line ? ` line ${problem.line}: ` : " "}<${Sentence} text=${problem.message} />${problem.fix && html`<br /><span class="dim"><${Sentence} text=${problem.fix} /></span>`}</li>`)}</ul>`;

// It did not run, or not to its end: that is neither a pass nor a refusal.
const isOpen = (stage) => stage.late || (stage.note || "").startsWith("not run");

export function Verdict({ verdict }) {
  const stages = verdict.stages || [];
  return html`<div class="verdict">
    <p><strong class=${verdict.admitted ? "good" : "bad"}>${verdict.admitted ? `✓ Admitted${verdict.standing ? `, ${verdict.standing}` : ""}` : "✗ Rejected"}</strong>
      ${verdict.agreed ? html` <span class="dim">${count(verdict.agreed, "example")} agreed</span>` : ""} ${plain(verdict.error)}</p>
    <${Problems} rows=${verdict.problems || []} />
    ${(verdict.fixes || []).map((fix) => html`<details><summary>Fixed by itself: ${plain(fix.message)}</summary><${Diff} text=${fix.diff} /></details>`)}
    ${stages.length > 0 && html`<details><summary>${count(stages.length, "stage")}</summary><ul class="stages">${stages.map((stage) => html`<li><span class=${stage.passed ? "good" : isOpen(stage) ? "dim" : "bad"}>${stage.passed ? "✓" : isOpen(stage) ? "–" : "✗"}</span> ${stage.stage} <span class="dim">${Math.round(stage.seconds * 1000)} ms ${plain(stage.note)}</span></li>`)}</ul></details>`}</div>`;
}

const framed = ({ path, line, function: name, source, locals }) => [`${path}:${line} ${name}: ${source}`, ...Object.entries(locals || {}).map((pair) => `  ${pair.join(" = ")}`)].join("\n");

export function Outcome({ outcome }) {
  const error = outcome.error, isGood = outcome.outcome === "returned";
  return html`<div role="status"><p><strong class=${isGood ? "good" : "bad"}>${isGood ? "✓" : "✗"} ${plain(outcome.outcome)}</strong> <span class="dim">${Math.round((outcome.seconds || 0) * 1000)} ms</span></p>
    ${isGood && html`<${Text} label="What it returned" text=${typeof outcome.value === "string" ? outcome.value : JSON.stringify(outcome.value, null, 1)} />`}
    ${error && html`<${Text} label="The error" text=${[`${error.type}: ${error.message}`, ...(error.frames || []).map((frame) => (typeof frame === "string" ? frame : framed(frame)))].join("\n")} />`}
    ${outcome.output && html`<p class="dim">It printed:</p><${Text} label="What it printed" text=${outcome.output} />`}</div>`;
}
