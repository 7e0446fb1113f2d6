// The questions about grants, with all that the prompt shows, here and in a conversation. What is pressed before a question
// was in sight answers nothing; whoever answers first has answered.
import { useEffect, useRef, useState } from "./vendor/preact.js";
import { api, Fault, html, plain, useDraft, when } from "./kit.js";
import { colored, Diff, Lines } from "./python.js";

const QUIET_MS = 600;

export function Approvals({ rows, reload }) {
  const [later, setLater] = useState(() => new Set());
  const now = rows.filter((row) => !later.has(row.id)), put = rows.filter((row) => later.has(row.id));
  const shelve = (id, isLater) => setLater((old) => { const ids = new Set(old); isLater ? ids.add(id) : ids.delete(id); return ids; });
  return html`<div class="page read stack apart">${now.length === 0 && html`<p class="dim">No question waits for an answer.</p>`}
    ${now.map((row) => html`<${Approval} key=${row.id} row=${row} reload=${reload} notNow=${() => shelve(row.id, true)} />`)}
    ${put.length > 0 && html`<section class="card"><h2>Not now: ${put.length}</h2><p class="dim">Their turns wait.</p><ul>${put.map((row) => html`<li><button onClick=${() => shelve(row.id, false)}>${row.function}</button> ${plain(row.form === undefined ? row.says.join("; ") : row.text)}</li>`)}</ul></section>`}</div>`;
}

// A question that a function asks in its call: its own words, with what may be answered.
function Asked({ row, reload, answered }) {
  const [text, setText] = useDraft(`answer:${row.id}`), [fault, setFault] = useState(""), [isReady, setReady] = useState(false);
  useEffect(() => { const timer = setTimeout(() => setReady(true), QUIET_MS); return () => clearTimeout(timer); }, []);
  const answer = (given) => { if (!isReady) return; setReady(false); api(`/approvals/${row.id}`, "POST", given).then(() => { setText(""); reload(); answered?.(); }, (error) => { setFault(error); setReady(true); reload(); }); };
  const say = (event) => { event.preventDefault(); answer({ answer: "yes", word: text }); };
  const { choices } = row;
  return html`<section class="card asking" aria-label=${`Question of ${row.function}`}><h2><span class="mono">${row.function}</span> asks</h2><p class="question">${plain(row.text)}</p>
    ${choices.length ? html`<div class="row">${choices.map((one) => html`<button type="button" disabled=${!isReady} onClick=${() => answer({ answer: "yes", word: one })}>${plain(one)}</button>`)}</div>` : html`<form class="row" onSubmit=${say}><label class="wide"><span class="unseen">The answer: ${row.form}</span><input class="wide" maxlength="400" placeholder=${row.form} value=${text} onInput=${(event) => setText(event.target.value)} /></label><button class="strong" disabled=${!isReady || !text.trim()}>Answer</button></form>`}
    <div class="row"><span class="help grow">${plain(row.otherwise)}${row.agent && ` In a turn of ${row.agent}.`}</span><button type="button" class="quiet" disabled=${!isReady} onClick=${() => answer({ answer: "no" })}>No answer</button></div><${Fault} text=${fault} /></section>`;
}

export const Approval = (given) => (given.row.form === undefined ? html`<${Grant} ...${given} />` : html`<${Asked} ...${given} />`);

function Grant({ row, reload, notNow, answered }) {
  const [word, setWord] = useDraft(`word:${row.id}`);
  const [withWord, setWithWord] = useState(word ? 1 : 0); // 2: opened here
  const [fault, setFault] = useState("");
  const [isReady, setReady] = useState(false);
  useEffect(() => { const timer = setTimeout(() => setReady(true), QUIET_MS); return () => clearTimeout(timer); }, []);
  const field = useRef(null), opener = useRef(null);
  useEffect(() => { if (withWord > 1) field.current.focus(); }, [withWord]);
  const answer = (given) => {
    if (!isReady) return;
    setReady(false); // one answer
    api(`/approvals/${row.id}`, "POST", given).then(() => { reload(); answered?.(); }, (error) => { setFault(error); setReady(true); reload(); });
  };
  const said = (texts, kind) => texts.map((text) => html`<p class=${kind}>${plain(text)}</p>`);
  const key = (says, given) => html`<button disabled=${!isReady} onClick=${() => answer(given)}>${says}</button>`;
  const refuse = (event) => { event.preventDefault(); answer({ answer: "no", word }); };
  const close = (event) => { if (event.key === "Escape") { event.stopPropagation(); setWithWord(0); opener.current.focus(); } };
  const isNew = /^(.*\n){2}@@ -0,0 /.test(row.diff);
  const isProgram = ["program", "open"].includes(row.moment), isForText = isProgram || row.moment === "helper"; // its yes is not kept
  const yes = isForText ? "Yes" : "Always", linesOf = isProgram ? "The whole program" : "The lines that need it";
  return html`<section class="card asking" aria-label=${`Question of ${row.function}`}><h2>${plain(row.title)}</h2>
    <ul class="asked">${row.says.map((sentence) => html`<li><strong>${plain(sentence)}</strong></li>`)}</ul>
    ${row.changed && html`<p><span class="dim">Since your last yes:</span> ${plain(row.changed)}</p>`}
    ${said(row.installs)}${said(row.precedents, "dim")}${said(row.doubts, "warn")}
    ${!row.is_again && row.may.length > 0 && html`<p><span class="dim">It may already:</span> ${row.may.map(plain).join("; ")}</p>`}
    ${row.why && html`<p class="dim">The reason given:</p><blockquote>${plain(row.why)}</blockquote>`}
    ${row.lines.length > 0 && html`<p class="dim">${linesOf}:</p><pre class="source" tabindex="0" aria-label=${linesOf}><code><${Lines} rows=${row.lines.map(([number, text]) => [number, "", colored(plain(text))[0]])} /></code></pre>`}
    ${row.diff && html`<details open=${Boolean(notNow)}><summary class="dim">${isNew ? "The full source" : "What is different"}</summary><${Diff} text=${isNew ? row.diff.replace(/^(.*\n){3}/, "") : row.diff} /></details>`}
    <div class="row">${!isForText && key("Once", { answer: "once" })}${key(row.folder && !row.maker ? `${yes}, ${row.is_for_turn ? "this program" : "this file"}` : yes, { answer: "yes" })}
      ${row.folder && key(row.maker ? `${yes}, ${plain(row.folder)} for all that ${row.maker} makes here` : `${yes}, ${row.is_for_turn ? `${plain(row.folder)} for the programs of this turn` : "its folder"}`, { answer: "yes", wide: true })}${key("No", { answer: "no" })}${!isForText && html`<button disabled=${!isReady} title="Nobody asks for the same again, for no version of it" onClick=${() => answer({ answer: "never" })}>Never</button>`}
      <button ref=${opener} aria-expanded=${withWord > 0} onClick=${() => setWithWord(withWord ? 0 : 2)}>No, with a word</button>${notNow && html`<button onClick=${notNow}>Not now</button>`}</div>
    ${withWord > 0 && html`<form class="row" onSubmit=${refuse}><label class="wide">A word for the model <input ref=${field} maxlength="400" value=${word} onInput=${(event) => setWord(event.target.value)} onKeyDown=${close} /></label><button disabled=${!isReady || !word.trim()}>No, and say this</button></form>`}
    <p class="dim">${row.agent ? `The agent ${row.agent} asks${row.whom ? ` on behalf of ${row.whom}` : ""}` : "For a call by hand"}, since ${when(row.asked_at)}.${row.command && html` The same by a command: <code>${row.command}</code>`}</p>
    <${Fault} text=${fault} /></section>`;
}
