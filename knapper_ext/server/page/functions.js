// The functions: all of them, and one with its source, examples, history, verdict, and a form to call it.
import { useEffect, useRef, useState } from "/page/preact.js";
import { Approval } from "/page/approvals.js";
import { api, count, Diff, Fault, html, part, plain, reaches, Rows, Source, Text, useDraft, useLoaded, when } from "/page/kit.js";
import { Outcome, Verdict } from "/page/verdict.js";

const HEADS = [["Function", ""], ["What it does", "wide"], ["Standing", "far short"], ["By", "far short"], ["Reaches", "far"], ["Verdict", "far"], ["Calls", "far number"]];

export function Functions({ chosen, go, beat, approvals, reload }) {
  const [listed, fault] = useLoaded("/functions", beat);
  const [gate] = useLoaded("/functions/verdicts", beat);
  const [filter, setFilter] = useDraft(":filter");
  const [ranked, setRanked] = useState(null);
  const [trouble, setTrouble] = useState("");
  if (chosen) return html`<${OneFunction} key=${chosen} name=${chosen} close=${() => go("Functions")} beat=${beat} questions=${approvals.filter((row) => !row.agent && row.function === chosen)} reload=${reload} />`;
  const rows = listed ? listed.functions : [], verdicts = gate ? gate.verdicts : {}, wanted = filter.trim().toLowerCase();
  const byName = new Map(rows.map((row) => [row.name, row]));
  const shown = ranked ? ranked.map((name) => byName.get(name)).filter(Boolean) : rows.filter((row) => !wanted || `${row.name} ${row.module} ${row.description} ${row.standing} ${row.source}`.toLowerCase().includes(wanted));
  const search = (event) => {
    event.preventDefault();
    if (!wanted) return;
    api(`/functions/search?count=50&need=${part(filter)}`).then((value) => { setRanked(value.results.map((match) => match.name || match.function)); setTrouble(""); }, setTrouble);
  };
  const down = (event) => { const first = event.key === "ArrowDown" && document.querySelector(".rows tbody button"); if (first) { event.preventDefault(); first.focus(); } };
  const word = (row) => { const verdict = verdicts[row.name]; return verdict ? `${verdict.admitted ? "✓" : "✗"}${verdict.agreed ? ` ${count(verdict.agreed, "example")}` : ""}${verdict.warned ? `, ${verdict.warned} warned` : ""}` : ""; };
  return html`<form class="row" role="search" onSubmit=${search}><label class="wide">Search ${count(rows.length, "function")} <input type="search" data-find="1" value=${filter} onKeyDown=${down} onInput=${(event) => { setFilter(event.target.value); setRanked(null); }} /></label>
      <button>By what is needed</button><span class="dim" role="status">${ranked ? "the best first" : `${shown.length.toLocaleString()} shown`}</span></form>
    <${Fault} text=${fault || trouble} />
    ${gate && gate.pending.length > 0 && html`<p class="dim">Rejected, and kept to be corrected: ${gate.pending.map(plain).join(", ")}</p>`}
    ${listed && listed.rejected.length > 0 && html`<details><summary class="bad">${count(listed.rejected.length, "problem")} in files</summary><ul>${listed.rejected.map((problem) => html`<li>${plain(problem.path)}:${problem.line} ${plain(problem.message)}</li>`)}</ul></details>`}
    <${Rows} rows=${shown} heads=${HEADS} label="Functions" row=${(row) => html`<td><button class="link" onClick=${() => go("Functions", row.name)}>${row.name}</button></td><td class="wide">${plain(row.description)}</td>
      <td class="far">${row.standing}</td><td class="far">${row.source}</td><td class="far">${plain(reaches(row.reach))}</td><td class="far">${word(row)}</td><td class="far number">${row.calls}</td>`} />`;
}

function OneFunction({ name, close, beat, questions, reload }) {
  const [facts, fault, again] = useLoaded(`/functions/${part(name)}`, beat);
  const [said, setSaid] = useState(null);
  const [ended, setEnded] = useState(0); // calls from here
  const title = useRef(null);
  useEffect(() => { if (facts && title.current) title.current.focus(); }, [Boolean(facts)]);
  const act = (verb, shown) => api(`/functions/${part(name)}/${verb}`, "POST").then((value) => { setSaid(shown(value)); again(); }, (error) => setSaid(html`<${Fault} text=${error} />`));
  const tested = (value) => html`<ul>${value.examples.map((row) => html`<li class=${row.passed === false ? "bad" : ""}><code>${plain(row.call)}</code> → ${plain(row.returned ?? row.expected)} ${row.passed === false ? "✗" : "✓"}</li>`)}</ul>`;
  if (!facts) return html`<p><button onClick=${close}>← All functions</button></p><${Fault} text=${fault} />`;
  const { calls = 0, failures = 0 } = facts.statistics || {};
  return html`<p><button onClick=${close}>← All functions</button></p><${Fault} text=${fault} />
    <section class="card"><h2 ref=${title} tabindex="-1">${facts.name} <span class="dim">${facts.path}:${facts.line} · ${facts.standing} · ${count(calls, "call")}${failures ? `, ${failures} failed` : ""}</span></h2>
      <p>${plain(facts.schema.description)}</p><p class="dim">${plain(reaches(facts.reach))}${facts.maker && ` · made by ${plain(facts.maker)}`}</p>
      ${facts.state && html`<${Text} label="State" text=${JSON.stringify(facts.state.value)} />`}<${Source} text=${facts.source} first=${facts.line} />
      ${facts.callers.length > 0 && html`<p class="dim">Called by ${facts.callers.join(", ")}</p>`}${facts.callees.length > 0 && html`<p class="dim">Calls ${facts.callees.join(", ")}</p>`}
      ${facts.quarantine && html`<p class="row"><span class="bad">In quarantine: the model does not see it.</span> <button onClick=${() => act("release", () => "Released.")}>Release it</button></p>`}</section>
    <${Form} name=${name} parameters=${facts.schema.parameters || {}} reload=${reload} done=${() => { again(); setEnded((number) => number + 1); }} />
    ${questions.map((row) => html`<${Approval} key=${row.id} row=${row} reload=${reload} />`)}
    <${Granted} name=${name} beat=${`${beat}/${ended}`} reload=${reload} />
    <section class="card"><h3>Examples: ${facts.examples.length}</h3><ul>${facts.examples.map((row) => html`<li><code>${plain([...row.setup, row.call].join("; "))}</code> → <code>${plain(row.expected)}</code></li>`)}</ul>
      <button onClick=${() => act("test", tested)}>Run them</button><div role="status">${said}</div></section>
    ${facts.verdict && html`<section class="card"><h3>Verdict</h3><${Verdict} verdict=${facts.verdict} /></section>`}
    <${History} name=${name} changed=${again} key=${facts.source} />`;
}

// Its grants, each to be taken back.
function Granted({ name, beat, reload }) {
  const [listed, fault] = useLoaded(`/grants?function=${part(name)}`, beat);
  const [said, setSaid] = useState("");
  const revoke = (kind, one, value) => api(`/grants/${part(name)}/revoke`, "POST", { grants: { [kind]: value } }).then(() => { setSaid(`${one} was revoked.`); reload(); }, (error) => setSaid(error.message));
  const rows = listed ? listed.grants : [];
  return (rows.length > 0 || said || fault) && html`<section class="card"><h3>Grants</h3><${Fault} text=${fault} />${rows.map((row) => html`
    ${row.changed && html`<p class="dim">Not in force: ${plain(row.changed)}</p>`}
    <ul>${Object.entries(row.grants).flatMap(([kind, value]) => [value].flat().map((item) => [kind, `${kind} ${item}`, Array.isArray(value) ? [item] : item])).map((grant) => html`<li key=${grant[1]}><code>${grant[0]}</code> ${plain(grant[1].slice(grant[0].length))} <button onClick=${() => revoke(...grant)} aria-label=${`Revoke ${plain(grant[1])}`}>Revoke</button></li>`)}</ul>`)}
    <p role="status">${said}</p></section>`;
}

function History({ name, changed }) {
  const [past, fault] = useLoaded(`/functions/${part(name)}/history`);
  const [diffs, setDiffs] = useState({});
  const [said, setSaid] = useState(null);
  const compare = (number) => api(`/functions/${part(name)}/diff?version=${number}`).then((value) => setDiffs((old) => ({ ...old, [number]: value.diff })), (error) => setSaid(error.message));
  const back = (version) => api(`/functions/${part(name)}/rollback`, "POST", { version: String(version) }).then(
    (verdict) => { setSaid(html`<${Verdict} verdict=${verdict} />`); changed(); }, (error) => setSaid(error.verdict ? html`<${Verdict} verdict=${error.verdict} />` : html`<${Fault} text=${error} />`));
  const rows = past ? [...past.versions].reverse() : [];
  return html`<section class="card"><h3>History: ${count(rows.length, "version")}</h3><${Fault} text=${fault} /><div role="status">${said}</div>
    <ol class="plain">${rows.map((row) => html`<li><p class="row"><strong>${row.number}</strong> <span>${row.what} by ${plain(row.agent || row.by)}, ${when(row.at)}</span> <span class="dim">+${row.added} −${row.removed} ${row.standing || ""} ${plain(row.reason)}</span>
      ${row.current ? html`<span class="good">current</span>` : html`<button onClick=${() => compare(row.number)}>Compare with now</button> <button onClick=${() => back(row.number)}>Go back to it</button>`}</p>
      ${diffs[row.number] !== undefined && (diffs[row.number] ? html`<${Diff} text=${diffs[row.number]} />` : html`<p class="dim">No difference.</p>`)}</li>`)}</ol></section>`;
}

const NUMBERS = { integer: "1", number: "any" };

// What a parameter may be: the first of several kinds that is not null.
const kindOf = (schema) => (schema.anyOf || schema.oneOf || []).find((one) => one.type !== "null") || schema;

function given(schema, text) {
  const kind = kindOf(schema);
  if (kind.type === "string" && !kind.enum) return text;
  if (kind.enum) return kind.enum.find((value) => String(value) === text);
  return JSON.parse(text);
}

function Form({ name, parameters, reload, done }) {
  const [values, setValues] = useDraft(`call:${name}`, {});
  const [result, setResult] = useState(null);
  const [calls, setCalls] = useState(false);
  const [fault, setFault] = useState("");
  const properties = Object.entries(parameters.properties || {}), required = parameters.required || [];
  const run = async (event, verb) => {
    event.preventDefault();
    setFault(""); setResult(null);
    const values_ = {};
    for (const [key, schema] of properties) {
      const text = values[key] ?? "", isText = kindOf(schema).type === "string" && !kindOf(schema).enum;
      if (text === "" && !(isText && required.includes(key))) continue;
      try { values_[key] = given(schema, text); } catch { setFault(`${key}: this is not JSON.`); return; }
    }
    setCalls(true);
    const looking = setInterval(reload, 700); // it may wait for a yes
    try { setResult(await api(`/functions/${part(name)}/${verb}`, "POST", { arguments: values_ })); } catch (error) { setFault(error); }
    clearInterval(looking); setCalls(false); reload(); done();
  };
  const outcome = result && (result.lines ? result.outcome : result);
  return html`<section class="card"><h3>Call it</h3><form onSubmit=${(event) => run(event, "call")}>
    ${properties.map(([key, schema]) => html`<${Field} key=${key} name=${key} schema=${schema} isRequired=${required.includes(key)} value=${values[key] ?? ""} set=${(text) => setValues((old) => ({ ...old, [key]: text }))} />`)}
    <div class="row"><button class="strong" type="submit" disabled=${calls}>Call</button><button type="button" disabled=${calls} onClick=${(event) => run(event, "trace")}>Call, and show the lines that ran</button></div></form>
    <${Fault} text=${fault} />${outcome && html`<${Outcome} outcome=${outcome} />`}
    ${result && result.lines && html`<${Text} label="The lines that ran" text=${(result.text || "").replace(/^```\n|\n```$/g, "") || result.lines.map((row) => `${row.line} ×${row.count} ${JSON.stringify(row.last)}`).join("\n")} />`}</section>`;
}

function Field({ name, schema, isRequired, value, set }) {
  const kind = kindOf(schema), hear = (event) => set(event.target.value), choices = kind.enum || (kind.type === "boolean" ? [true, false] : null);
  const type = kind.type === "string" ? "text" : kind.type || "JSON", standard = schema.default === undefined ? "" : `, else ${JSON.stringify(schema.default)}`;
  return html`<label class="field"><span><strong>${name}</strong> <span class="dim">${type}${isRequired ? "" : ", optional"}${standard} ${plain(schema.description)}</span></span>
    ${choices ? html`<select value=${value} onChange=${hear}><option value="">—</option>${choices.map((one) => html`<option value=${String(one)}>${String(one)}</option>`)}</select>`
      : NUMBERS[kind.type] ? html`<input type="number" step=${NUMBERS[kind.type]} value=${value} onInput=${hear} />`
      : html`<textarea rows="1" value=${value} placeholder=${kind.type === "string" ? "" : kind.type === "array" ? "[]" : "{}"} onInput=${hear}></textarea>`}</label>`;
}
