// What a step did: a function that was made or changed is a card, any other call a line that opens.
import { count, html, picture, plain, reaches, Sentence, Text, to } from "./kit.js";
import { Standing, Strip } from "./marks.js";
import { Diff, Source } from "./python.js";
import { Finding, isVerdict, Outcome, Problems, Verdict } from "./verdict.js";
import { useEffect, useState } from "./vendor/preact.js";

const CODE = ["function_code_with_docstring", "code", "old_text", "new_text", "source"]; // arguments that are source
const MARKS = { "": ["…", "dim", "running"], returned: ["✓", "good", ""], admitted: ["✓", "good", ""] };
const LONGEST_HEAD = 600, LONGEST_WORD = 48, LONGEST_LINE = 110, MOST_COMPARED = 160_000, AROUND = 2;

const cut = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const flat = (text) => plain(text).replace(/\s+/g, " ").trim();

function read(text) {
  try { const value = JSON.parse(text); return value && typeof value === "object" ? value : null; } catch { return null; }
}

// The signature of a function and the first line of its docstring, as its source has them.
function headOf(source, name) {
  const from = /^\w+$/.test(name) ? source.search(new RegExp(`^(?:async +)?def +${name}\\b`, "m")) : -1;
  if (from < 0) return { signature: name, does: "" };
  const head = source.slice(from, from + LONGEST_HEAD);
  let depth = 0, to = 0;
  for (; to < head.length && !(head[to] === ":" && depth === 0); to += 1) depth += "([{".includes(head[to]) ? 1 : ")]}".includes(head[to]) ? -1 : 0;
  const does = /^:\s*[rRuU]?(?:"""|'''|"|')\s*([^\n"]+)/.exec(head.slice(to));
  return { signature: flat(head.slice(0, to)).replace(/^(?:async +)?def +/, "").replace(/\(self\b(?:, *|(?=\)))/, "("), does: does ? does[1] : "" };
}

const Signature = ({ text }) => {
  const name = /^\w+/.exec(text)?.[0] || "";
  return html`<code><b>${name}</b>${cut(plain(text.slice(name.length)), LONGEST_HEAD)}</code>`;
};

// What stands of a text in a JSON object that is still being written.
export function written(json, names) {
  const from = new RegExp(`"(?:${names.join("|")})"\\s*:\\s*"`).exec(json);
  if (!from) return "";
  const rest = json.slice(from.index + from[0].length), whole = /^(?:[^"\\]|\\(?:u[0-9a-fA-F]{4}|[^u]))*/.exec(rest)[0];
  return whole.replace(/\\(u[0-9a-fA-F]{4}|[^u])/g, (_, sign) => (sign[0] === "u" ? String.fromCharCode(parseInt(sign.slice(1), 16)) : { n: "\n", t: "\t", r: "", b: "", f: "" }[sign] ?? sign));
}

const NEWEST_LINES = 40;
function Growing({ entry }) {
  const source = written(entry.writing, CODE).replace(/^\n+/, ""), name = written(entry.writing, ["function_name", "name"]) || (/def +(\w+)/.exec(source) || [])[1] || entry.name;
  const lines = source.split("\n"), first = Math.max(0, lines.length - NEWEST_LINES);
  return html`<section class="call made" aria-label=${`writing ${name}`}><h3><span class="deed hand">writing</span> <${Signature} text=${headOf(source, name).signature} /><span class="dim mid">line ${lines.length}</span></h3>
    ${source ? html`<${Source} label="What the model writes" text=${lines.slice(first).join("\n")} first=${first + 1} isGrowing />` : html`<p class="dim">${plain(entry.name)}</p>`}</section>`;
}

// The lines at which a finding stands, with the finding under them.
function Spot({ source, problem }) {
  const lines = source.split("\n"), at = problem.line;
  if (!at || at > lines.length) return html`<${Finding} problem=${problem} />`;
  const first = Math.max(1, at - 1);
  return html`<div><${Source} text=${`${lines.slice(first - 1, at).join("\n")}`} first=${first} marks=${{ [at]: "refuses" }} label=${`Line ${at}`} /><${Finding} problem=${{ ...problem, line: 0 }} /></div>`;
}

// The lines that differ between two sources, as a diff has them, each with a few around it.
export function compared(old, now, around = AROUND) {
  const lines = (text) => text.replace(/^(?:[ \t]*\n)+/, "").trimEnd().split("\n"); // the first one's indentation stays
  const before = lines(old), after = lines(now), rows = [];
  if (before.length * after.length > MOST_COMPARED) return [...before.map((row) => `-${row}`), ...after.map((row) => `+${row}`)].join("\n");
  const common = Array.from({ length: before.length + 1 }, () => new Uint16Array(after.length + 1)); // of what follows
  for (let i = before.length - 1; i >= 0; i -= 1) for (let j = after.length - 1; j >= 0; j -= 1) common[i][j] = before[i] === after[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
  for (let i = 0, j = 0; i < before.length || j < after.length;) {
    if (i < before.length && before[i] === after[j]) { rows.push(` ${before[i]}`); i += 1; j += 1; }
    else if (j >= after.length || (i < before.length && common[i + 1][j] >= common[i][j + 1])) { rows.push(`-${before[i]}`); i += 1; }
    else { rows.push(`+${after[j]}`); j += 1; }
  }
  const isNear = (at) => rows.slice(Math.max(0, at - around), at + around + 1).some((row) => row[0] !== " ");
  return rows.map((row, at) => (isNear(at) ? row : at && isNear(at - 1) ? "@" : null)).filter((row) => row !== null).join("\n");
}

// A creation or a change, judged: what it is, what it does, the gate's word, and what an edit made different.
function Made({ entry, before }) {
  const verdict = entry.detail, given = read(entry.args) || {}, source = verdict.source || given.function_code_with_docstring || given.code || "";
  const { signature, does } = headOf(source, verdict.name), problems = verdict.problems || [];
  const refusals = problems.filter((problem) => problem.severity !== "warns"), hints = problems.filter((problem) => problem.severity === "warns");
  const edits = Array.isArray(given.changes) ? given.changes : [], parts = (key) => edits.map((edit) => (edit && edit[key]) || "").join("\n");
  const old = before && before !== source ? before : parts("old_text"), now = before && before !== source ? source : parts("new_text");
  const { note = "" } = (verdict.stages || []).find(({ stage, note }) => stage === "examples" && !note.startsWith("not run")) || {}; // such as 2 of 2 examples agree
  const made = entry.name === "create_function" || before === null ? "made" : "changed";
  const lead = /^\n*/.exec(source)[0].length, shown = source.slice(lead); // the empty lines before it are not shown, so no finding counts them
  const deed = verdict.admitted ? made : "rejected", [first, ...others] = refusals.map((problem) => ({ ...problem, line: problem.line ? problem.line - lead : 0 }));
  return html`<section class="call made" aria-label=${`${deed} ${verdict.name}`}><h3><span class=${`deed ${verdict.admitted ? "good" : "bad"}`}>${verdict.admitted ? "✓" : "✗"} ${deed}</span> <${Signature} text=${signature} /> <${Strip} verdict=${verdict} /></h3>
    ${does && html`<p>${plain(does)}</p>`}
    <p class="meta">${verdict.admitted && html`<${Standing} standing=${verdict.standing} />`}${[note.replace(/ agree$/, ""), verdict.admitted ? reaches(verdict.reach) : ""].filter(Boolean).map((text) => html`<span>${plain(text)}</span>`)}</p>
    ${!verdict.admitted && html`${(verdict.error || !first) && html`<p class="bad">${plain(verdict.error || "It was not admitted.")}</p>`}${first && html`<${Spot} source=${shown} problem=${first} />`}<${Problems} rows=${others} />`}
    ${(old || now) && entry.name !== "create_function" && html`<${Diff} text=${compared(old, now)} />`}
    ${source && html`<details><summary>Source</summary><${Source} text=${shown} /></details>`}
    <details><summary>Verdict${hints.length ? `, ${count(hints.length, "hint")}` : ""}</summary><${Verdict} verdict=${verdict} />${entry.text && html`<details><summary class="dim">What the model reads</summary><${Text} label="Answer" text=${entry.text} /></details>`}</details>
    ${verdict.admitted && html`<p class="row"><a class="button quiet" href=${to("Functions", verdict.name)}>Open ${verdict.name}</a></p>`}</section>`;
}

function Arguments({ text }) {
  const value = read(text);
  if (!value) return html`<${Text} label="Arguments" text=${text} />`;
  return html`<dl class="arguments">${Object.entries(value).map(([name, given]) => html`<dt>${plain(name)}</dt><dd>${CODE.includes(name) && typeof given === "string" ? html`<${Source} text=${given} label=${name} />`
    : html`<${Text} label=${name} text=${typeof given === "string" ? given : JSON.stringify(given, null, 1)} />`}</dd>`)}</dl>`;
}

// A call in one line: what it was given, and what came of it.
function inShort({ args, detail, text, outcome }) {
  const value = read(args), given = value ? Object.entries(value).filter(([name]) => !CODE.includes(name)).map(([name, one]) => `${name}=${cut(flat(JSON.stringify(one)), LONGEST_WORD)}`).join(", ") : flat(args || "");
  const result = !outcome ? "" : outcome === "returned" && detail && detail.value !== undefined ? JSON.stringify(detail.value) : (text || "").split("\n").find((row) => row.trim()) || "";
  return [cut(given, LONGEST_LINE), cut(flat(result), LONGEST_LINE)];
}

function Pictures({ rows }) {
  const [urls, setUrls] = useState([]);
  useEffect(() => { Promise.all(rows.map(({ digest }) => picture(digest))).then(setUrls); }, []);
  return html`${urls.map((url, at) => url && html`<p key=${at}><img src=${url} alt=${plain(rows[at].name || "picture")} style="max-width:100%" /></p>`)}`;
}

export const isPlain = (entry) => entry.kind === "call" && !entry.writing && !isVerdict(entry.detail) && Boolean(entry.outcome);

// Many calls in one line that tells what they did; each is in it.
export function Folded({ entries }) {
  const names = new Map();
  for (const { name } of entries) names.set(name, (names.get(name) || 0) + 1);
  const failed = entries.filter(({ outcome }) => !MARKS[outcome]).length, seconds = entries.reduce((sum, entry) => sum + (entry.seconds || 0), 0);
  const told = [...names].slice(0, 3).map(([name, times]) => html`<strong>${plain(name)}</strong>${times > 1 ? ` ×${times}` : ""} `), more = names.size - 3;
  return html`<details class="folded"><summary><span class="cut">Called ${told}${more > 0 ? `and ${more} more ` : ""}· ${count(entries.length, "call")}${failed ? html`, <span class="bad">${failed} failed</span>` : ", all returned"}${seconds > 0.05 ? ` · ${seconds.toFixed(1)} s` : ""}</span></summary>
    <div class="calls">${entries.map((entry) => html`<${Call} key=${entry.key} entry=${entry} />`)}</div></details>`;
}

export function Call({ entry, before }) {
  if (isVerdict(entry.detail)) return html`<${Made} entry=${entry} before=${before} />`;
  if (entry.writing && CODE.some((name) => entry.writing.includes(`"${name}"`))) return html`<${Growing} entry=${entry} />`;
  const [mark, kind, word] = MARKS[entry.outcome || ""] || ["✗", "bad", ""], detail = entry.detail || {};
  const [given, result] = inShort(entry), doing = entry.writing ? "is being written" : word || (kind === "bad" ? entry.outcome : ""), state = plain(entry.progress && !entry.outcome ? entry.progress : doing);
  return html`<details class="call"><summary><span class=${kind} aria-hidden="true">${mark}</span> <span class="cut"><strong>${plain(entry.name)}</strong>${entry.writing ? "" : html`<span class="dim">(${given})</span>`}
      ${state && html`<span class=${kind}> ${state}</span>`}${result && html` → <${Sentence} text=${result} />`}${entry.seconds > 0.05 ? html`<span class="dim"> ${entry.seconds.toFixed(1)} s</span>` : ""}</span></summary>
    ${entry.args && html`<${Arguments} text=${entry.args} />`}
    ${entry.printed && !entry.outcome && html`<${Text} label="What it printed" text=${entry.printed} />`}
    ${detail.outcome ? html`<${Outcome} outcome=${detail} />` : ""}
    ${entry.text && html`<details><summary class="dim">What the model reads</summary><${Text} label="Answer" text=${entry.text} /></details>`}</details>${detail.pictures && html`<${Pictures} rows=${detail.pictures} />`}`;
}
