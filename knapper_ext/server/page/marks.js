// The marks of the page, drawn for it: icons of 16 px, the program's own mark, the stone of a standing, the line of the gate's stages.
import { html } from "./kit.js";

const ICONS = {
  add: "M8 3v10M3 8h10", close: "m4 4 8 8m0-8-8 8", check: "m3 8.5 3.2 3.2L13 4.8", search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9Zm3.3-1.2L13.5 13.5", down: "m4.5 6.5 3.5 3.5 3.5-3.5", before: "m4.5 9.5 3.5-3.5 3.5 3.5",
  functions: "M11.5 2.8c-2.6-.8-3.4.5-3.7 2.4L6.6 11c-.4 2-1.3 2.7-3.1 2.3M5 7h5.5", growth: "M2 12.5c3-2 5 .5 7-1s3-1.5 5-1M2 8.5C5 6 7 9 9.5 6.5S13 5.5 14 5.5M2 4.5c3-2 4.5 1 6.5-.5S12 1.8 14 2", memory: "M2.5 3h11v4h-11zM2.5 9.5h5v3.5h-5zM10.5 9.5h3v3.5h-3z",
  settings: "M2.5 4.5H8m4 0h1.5M2.5 11.5H4m4 0h5.5M10 6.5a2 2 0 1 0 0-4 2 2 0 0 0 0 4Zm-4 7a2 2 0 1 0 0-4 2 2 0 0 0 0 4Z", hand: "M9.5 2.5h4v4M13.3 2.7 7.5 8.5M7 3.5H3V13h9.5V9", panel: "M2.5 3h11v10h-11zM10 3v10", coin: "M13.5 5c0 1.4-2.5 2.5-5.5 2.5S2.5 6.4 2.5 5 5 2.5 8 2.5s5.5 1.1 5.5 2.5Zm0 0v6c0 1.4-2.5 2.5-5.5 2.5S2.5 12.4 2.5 11V5",
  next: "M3 9.5c0-4 9-4.5 10 0m-3-.5 3 .5.5-3", step: "M3 4v5a2 2 0 0 0 2 2h7m-2.5-2.5L12 11l-2.5 2.5", out: "M8 2.5v7m-3-4 3-3 3 3M4 13h8", clip: "m13 7.5-5.3 5.3a3.3 3.3 0 0 1-4.6-4.7l5.6-5.6a2.2 2.2 0 0 1 3.1 3.1l-5.5 5.5a1.1 1.1 0 0 1-1.6-1.5L9.5 4.8",
  send: "M8 13V3.5m-4 4 4-4 4 4", stop: "M4.5 4.5h7v7h-7z", copy: "M6 5.5h7v8H6zM3.5 10.5H3v-8h7V3", again: "M13 3v3.5H9.5M13 6.3A5.3 5.3 0 1 0 13.3 9", branch: "M4.5 4.5v7m0-4c0-2 7 0 7-3M4.5 4.5a1.3 1.3 0 1 0 0-2.6 1.3 1.3 0 0 0 0 2.6Zm7 0a1.3 1.3 0 1 0 0-2.6 1.3 1.3 0 0 0 0 2.6Zm-7 9.6a1.3 1.3 0 1 0 0-2.6 1.3 1.3 0 0 0 0 2.6Z", pen: "m3 13 .6-3L10.8 2.8l2.4 2.4L6 12.4zM9.3 4.3l2.4 2.4", more: "M3 8a.6.6 0 1 0 1.2 0A.6.6 0 1 0 3 8M7.4 8a.6.6 0 1 0 1.2 0 .6.6 0 1 0-1.2 0M11.8 8a.6.6 0 1 0 1.2 0 .6.6 0 1 0-1.2 0",
  light: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6Zm0-9.5v1m0 11v1m6.5-6.5h-1m-11 0h-1m11.1-4.6-.7.7m-7.8 7.8-.7.7m9.2 0-.7-.7M4.1 4.1l-.7-.7", dark: "M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5Z", rooms: "M2.5 4.5h11m-11 3.5h11m-11 3.5h7", play: "M5 3.5v9l7-4.5z", file: "M4 2h5l3 3v9H4zM9 2v3h3", talk: "M2.5 3h11v8H7l-3 2.5V11H2.5z", warn: "M8 2.5 14 13H2zM8 6.5V9.5M8 11.3v.1", pin: "M6 2.5h4l-.5 4 2 2.5h-7l2-2.5zM8 9v4.5", agents: "M3 13.5c0-2.5 2-4 5-4s5 1.5 5 4M8 7.5a2.75 2.75 0 1 0 0-5.5 2.75 2.75 0 0 0 0 5.5Z",
};
export const Icon = ({ name, kind = "" }) => html`<svg class=${`icon ${kind}`} viewBox="0 0 16 16" aria-hidden="true"><path d=${ICONS[name]} /></svg>`;
export const Mark = () => html`<svg class="mark" viewBox="0 0 24 24" aria-hidden="true"><path d="M3 4.5 8 1.5l2.6 9.8L8.6 22.5 3 20z" /><path class="struck" d="m12.2 8.2 3-6L21.5 4l-9 7.7z" /><path d="m12.6 13.2 8.9 8.6-6.6.9-3.6-5.6z" /></svg>`;

// A button that is an icon alone: its label is what it does.
export const Only = ({ name, label, kind = "quiet", ...rest }) => html`<button type="button" class=${`only ${kind}`} aria-label=${label} title=${label} ...${rest}><${Icon} name=${name} /></button>`;

// A standing is a stone that is worked, from the raw core to the finished point.
const OUTLINE = "M8 1.5 12.5 6.5 11.5 12.5 8 14.5 4.5 12.5 3.5 6.5Z";
const STONES = {
  draft: html`<path d=${OUTLINE} stroke-dasharray="2 1.7" />`, trial: html`<path class="facet" d="M8 1.5 12.5 6.5 11.5 12.5 8 14.5Z" /><path d=${OUTLINE} />`,
  trusted: html`<path class="facet" d=${OUTLINE} /><path d=${OUTLINE} />`, quarantined: html`<path d=${OUTLINE} /><path d="m2.5 10.5 4-2.5 2 1.5 5-4" />`,
};
export const Stone = ({ standing }) => (STONES[standing] ? html`<svg class="stone" viewBox="0 0 16 16" aria-hidden="true">${STONES[standing]}</svg>` : null);
export const Standing = ({ standing }) => (standing ? html`<span class=${`standing ${standing}`}><${Stone} standing=${standing} />${standing}</span>` : null);

export const STAGES = ["read", "fix", "conform", "substance", "duplicate", "capability", "import", "examples", "fitted", "mutation", "robust", "neighbours", "reader"];
// It did not run, or not to its end: that is neither a pass nor a refusal.
export const isOpen = (stage) => Boolean(stage.late) || (stage.note || "").startsWith("not run");
const TOP = { passed: 2, refused: 0, open: 2 }, BOTTOM = { refused: 12 };

// What became of each stage; a saved file is judged in fewer of them, and then the word of the verdict stands for the rest.
export function strokes({ stages = [], admitted }) {
  const told = new Map(stages.map((stage) => [stage.stage, stage])), last = Math.max(-1, ...stages.map((stage) => STAGES.indexOf(stage.stage)));
  return STAGES.map((name, at) => {
    const stage = told.get(name);
    if (!stage) return admitted && at < last ? "passed" : "open";
    if (isOpen(stage)) return "open";
    return stage.passed ? "passed" : "refused";
  });
}

export function Strip({ verdict }) {
  if (!verdict || !(verdict.stages || []).length) return null;
  const kinds = strokes(verdict), named = (kind) => STAGES.filter((_, at) => kinds[at] === kind);
  const says = `The gate: ${[`${named("passed").length} stages passed`, named("refused").length && `${named("refused").join(", ")} refused`, named("open").length && `${named("open").length} not run`].filter(Boolean).join(", ")}`;
  return html`<svg class="strip" viewBox="0 0 88 12" role="img" aria-label=${says}>${kinds.map((kind, at) => html`<path class=${kind} d=${`M${at * 6.8 + 2} ${TOP[kind]}h3.2L${at * 6.8 + 3.4} ${BOTTOM[kind] || 10}h-3.2z`} />`)}</svg>`;
}

export const Meter = ({ share, says }) => html`<svg class="meter" viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label=${says}><rect width=${Math.max(0, Math.min(100, share))} height="4" /></svg>`;
