// The life of a function in one room: its source, edited there; a form to try it; what the gate found; its versions, calls and reach.
import { useEffect, useState } from "./vendor/preact.js";
import { Approval } from "./approvals.js";
import { Beside } from "./beside.js";
import { Editor } from "./editor.js";
import { api, changed, count, Fault, go, html, part, plain, reaches, tell, Text, to, typedOf, useDraft, useLoaded, when } from "./kit.js";
import { Icon, Only, Standing, Strip } from "./marks.js";
import { standsIn, StopFacts, StopRoom, useStops } from "./stop.js";
import { Outcome, Problems, Stages, Verdict, wordOf } from "./verdict.js";

const who = (row) => plain(row.agent || (row.by === "human" ? "you" : row.by));
const TABS = [["", "Source"], ["evidence", "Evidence"], ["versions", "Versions"], ["calls", "Calls"], ["stop", "Stop"], ["reach", "Reach"]];

// The bar above it: where it is, its neighbors in the list, and what can be done with it as a whole.
export function FunctionBar({ name, beat }) {
  const [listed] = useLoaded("/functions", beat), rows = listed ? [...listed.functions].sort((a, b) => a.name.localeCompare(b.name)) : [], at = rows.findIndex((row) => row.name === name);
  const beside = (by) => rows[(at + by + rows.length) % rows.length]?.name;
  return html`<h1 class="row line-row grow"><a href=${to("Functions")}>Functions</a><span class="dim">/</span><span class="cut">${name === "+" ? "New function" : name}</span></h1>
    ${at >= 0 && rows.length > 1 && html`<span class="dim mid number">${at + 1} of ${rows.length.toLocaleString()}</span><${Only} name="before" kind="quiet mid" label="Previous function" onClick=${() => go("Functions", beside(-1))} /><${Only} name="down" kind="quiet mid" label="Next function" onClick=${() => go("Functions", beside(1))} />`}${name !== "+" && html`<a class="button mid" href=${to("Functions", "+")}>New function</a>`}`;
}

export function OneFunction({ name, tab: asked, agent, beat, approvals, stopped, reload }) {
  const [facts, fault, again] = useLoaded(`/functions/${part(name)}`, beat);
  const [past, , reread] = useLoaded(`/functions/${part(name)}/history`, beat);
  const [ended, setEnded] = useState(0); // calls from here
  const [listed] = useLoaded("/functions", beat);
  const tab = TABS.some(([key]) => key === asked) ? asked : "", questions = approvals.filter((row) => !row.agent && row.function === name);
  const stops = useStops(tab === "stop" || Boolean(stopped)), renew = () => { again(); reread(); reload(); };
  const kept = facts ? null : typedOf(`source:${name}`); // a source that was never saved, or a candidate that is edited
  if (kept && fault && fault.status === 404) return html`<div class="page"><${Editor} name=${name} module=${kept.module || "grown"} source="" agent=${agent} names=${listed ? listed.functions.map((row) => row.name) : []} saved=${renew} /></div>`;
  if (!facts) return html`<div class="page"><${Fault} text=${fault} />${fault && past && past.versions.length > 0 && html`<${Gone} name=${name} done=${renew} />`}</div>`;
  const { calls = 0, failures = 0 } = facts.statistics || {}, number = { versions: past && past.versions.length, calls };
  const signature = facts.source.replace(/^\n+/, "").split(/:\n/, 1)[0].replace(/^(?:async +)?def +\w+/, "").replace(/\s+/g, " ");
  return html`<div class="life"><div class="row"><h2 tabindex="-1">${facts.name}</h2><${Standing} standing=${facts.standing} /><span class="grow"></span><${Deeds} facts=${facts} listed=${listed} renew=${renew} agent=${agent} /></div><p class="signature">${plain(signature)}</p>
      <div class="about"><p>${plain(facts.schema.description.split("\n")[0])}</p><p class="meta"><span>${facts.path}:${facts.line}</span><span>${count(calls, "call")}${failures ? `, ${failures} failed` : ""}</span><span>${plain(reaches(facts.reach))}</span>${facts.maker && html`<span>made by ${plain(facts.maker)}</span>`}</p></div>
      <nav class="tabs" aria-label=${`Life of ${facts.name}`}>${TABS.map(([key, title]) => html`<a href=${to("Functions", name, ...(key ? [key] : []))} aria-current=${tab === key ? "page" : undefined}>${title}${number[key] ? html`<span class="dim">${number[key].toLocaleString()}</span>` : ""}</a>`)}</nav></div>
    <div class="page stack apart"><${Fault} text=${fault} />
      ${facts.quarantine && html`<p class="note bad"><span class="grow">In quarantine: the model does not see it.</span><button type="button" onClick=${() => api(`/functions/${part(name)}/release`, "POST").then(() => { tell("Released."); renew(); }, (error) => tell(error.message))}>Release it</button></p>`}
      ${questions.map((row) => html`<${Approval} key=${row.id} row=${row} reload=${reload} />`)}
      ${tab !== "stop" && standsIn(stops.stop, name) && html`<p class="note hand"><span class="grow">A call of it stands at line ${stops.stop.frames[stops.stop.current].line}.</span><a class="button" href=${to("Functions", name, "stop")}>Look</a></p>`}
      ${(tab === "" || tab === "stop") && html`<div class="split">${tab === "stop" ? html`<${StopRoom} key="stop" name=${name} facts=${facts} stops=${stops} />` : html`<${Editor} key=${name} name=${name} module=${facts.module} source=${facts.source} first=${facts.line} path=${facts.path} agent=${agent} names=${listed ? listed.functions.map((row) => row.name) : []} agreed=${agreedLines(facts)} verdict=${facts.verdict} saved=${renew} />`}
        <div class="stack far-apart">${tab === "stop" && html`<${StopFacts} key="facts" name=${name} stops=${stops} />`}<${Form} key="form" name=${name} parameters=${facts.schema.parameters || {}} reload=${reload} done=${() => { again(); setEnded((old) => old + 1); }} />${tab === "" && facts.state && html`<section class="section"><h2>What it keeps</h2><${Text} label="State" text=${JSON.stringify(facts.state.value)} /></section>`}
          ${tab === "" && (facts.callers.length > 0 || facts.callees.length > 0) && html`<section class="section"><h2>Beside it</h2><dl class="facts">${[["Called by", facts.callers], ["Calls", facts.callees]].filter(([, names]) => names.length).map(([title, names]) => html`<dt>${title}</dt><dd>${names.map((one) => html`<a href=${to("Functions", one)}>${one}</a> `)}</dd>`)}</dl></section>`}</div></div>`}
      ${tab === "evidence" && html`<${Evidence} facts=${facts} past=${past} beat=${beat} agent=${agent} renew=${renew} />`}
      ${tab === "versions" && html`<${Versions} name=${name} past=${past} renew=${renew} key=${facts.source} />`}
      ${tab === "calls" && html`<${Calls} name=${name} past=${past} beat=${`${beat}/${ended}`} />`}
      ${tab === "reach" && html`<${Reach} name=${name} facts=${facts} beat=${`${beat}/${ended}`} reload=${reload} />`}</div>`;
}

// The lines of its source at which an example agreed.
function agreedLines({ examples, verdict, line, source }) {
  if (!verdict || !verdict.admitted || verdict.agreed !== examples.length) return [];
  const rows = source.split("\n");
  return examples.map((row) => row.line - line + 1).filter((at) => at > 0 && at <= rows.length);
}

function Gone({ name, done }) {
  const back = () => api(`/functions/${part(name)}/rollback`, "POST", {}).then(() => { tell(`${name} is back.`); done(); }, (error) => tell(error.message));
  return html`<p class="note">It was deleted; its versions are kept. <button type="button" onClick=${back}>Bring it back</button></p>`;
}

// What is done with it as a whole; each is taken back by one click.
function Deeds({ facts, renew, agent }) {
  const [open, setOpen] = useState(""), [text, setText] = useState(""), [fault, setFault] = useState("");
  const path = `/functions/${part(facts.name)}`, begin = (what, now) => { setOpen(what); setText(now); setFault(""); };
  const back = (name, then) => () => api(`/functions/${part(name)}/rollback`, "POST", {}).then(then, (error) => tell(error.message));
  const rename = () => api(`${path}/rename`, "POST", { new: text }).then(() => { changed("functions"); tell(`${facts.name} is called ${text} now.`, back(text, () => { renew(); go("Functions", facts.name); })); go("Functions", text); }, setFault);
  const move = () => api(`${path}/move`, "POST", { module: text }).then(() => { setOpen(""); renew(); tell(`${facts.name} is in ${text} now.`, back(facts.name, renew)); }, setFault);
  const remove = () => api(path, "DELETE").then(() => { tell(`${facts.name} was deleted.`, back(facts.name, () => { renew(); go("Functions", facts.name); })); go("Functions"); }, setFault);
  const DOES = { rename: ["Rename", rename, "New name"], move: ["Move", move, "Module"], remove: ["Delete", remove, ""] }, [title, act, label] = DOES[open] || [];
  const ask = () => { sessionStorage.setItem(`knapper-typed:${agent}`, JSON.stringify(`About ${facts.name}: `)); go("Chat", agent, "main"); };
  const hold = (verb, says) => api(`/functions/${verb}`, "POST", { pattern: facts.name }).then(() => { changed("functions"); renew(); tell(says); }, (error) => tell(error.message));
  const pin = () => (facts.pinned ? hold("unpin", `Agents may change ${facts.name} again.`) : hold("pin", `Only you change ${facts.name}; agents may propose.`));
  if (!open) return html`<button type="button" class="quiet" onClick=${ask}>Ask about it</button><button type="button" class="quiet" aria-pressed=${Boolean(facts.pinned)} title=${facts.pinned ? "Pinned: only you change it, agents may propose" : "Keep agents from changing it"} onClick=${pin}><${Icon} name="pin" />${facts.pinned ? "Pinned" : "Pin"}</button><button type="button" class="quiet" onClick=${() => begin("rename", facts.name)}>Rename</button><button type="button" class="quiet" onClick=${() => begin("move", facts.module)}>Move</button><button type="button" class="quiet danger" onClick=${() => begin("remove", "")}>Delete</button>`;
  return html`<form class="row" onSubmit=${(event) => { event.preventDefault(); act(); }} onKeyDown=${(event) => event.key === "Escape" && setOpen("")}>${label ? html`<label class="row line-row"><span>${label}</span><input class="mono" value=${text} onInput=${(event) => setText(event.target.value)} /></label>` : html`<span>${facts.callers.length ? html`Called by ${facts.callers.join(", ")}: it cannot be deleted.` : "A rollback brings it back."}</span>`}<button class=${open === "remove" ? "danger" : "strong"}>${title}</button><button type="button" class="quiet" onClick=${() => setOpen("")}>Cancel</button><${Fault} text=${fault} /></form>`;
}

function Evidence({ facts, past, beat, renew }) {
  const current = past && past.versions.find((row) => row.current), [made] = useLoaded(current ? `/functions/${part(facts.name)}/versions/${current.number}` : "");
  const [gate] = useLoaded("/functions/verdicts", beat), [said, setSaid] = useState(null), path = `/functions/${part(facts.name)}`;
  const tested = (value) => html`<ul class="list">${value.examples.map((row) => html`<li class=${row.passed === false ? "bad" : ""}><code>${plain(row.call)}</code> → <code>${plain(row.returned ?? row.expected)}</code> ${row.passed === false ? "✗" : "✓"}</li>`)}</ul>`;
  const run = () => api(`${path}/test`, "POST").then((value) => { setSaid(tested(value)); renew(); }, (error) => setSaid(html`<${Fault} text=${error} />`));
  const rate = (verb) => api(`${path}/${verb}`, "POST", {}).then(() => { tell(verb === "good" ? "Its results are right." : "It is a draft until it is changed."); renew(); }, (error) => tell(error.message));
  const { calls = 0, failures = 0 } = facts.statistics || {}, { verdict } = facts;
  return html`<div class="split"><section class="section"><div class="head"><h2 class="grow">The gate's word</h2><${Strip} verdict=${verdict} /></div>${verdict ? html`<p>${wordOf(verdict)} ${plain(verdict.error)}</p><${Problems} rows=${verdict.problems || []} /><${Stages} stages=${verdict.stages || []} asked=${gate ? gate.asked : {}} />` : html`<p class="dim">The gate has not judged it yet.</p>`}</section>
    <div class="stack far-apart"><section class="section"><div class="head"><h2 class="grow">Examples: ${facts.examples.length}</h2><button type="button" onClick=${run}>Run them</button></div>${said || html`<ul class="list">${facts.examples.map((row) => html`<li><code>${plain([...row.setup, row.call].join("; "))}</code> <span class="dim">→</span> <code>${plain(row.expected)}</code></li>`)}</ul>`}<div role="status"></div></section>
      <section class="section"><h2>How it behaves</h2><dl class="facts"><dt>Standing</dt><dd><${Standing} standing=${facts.standing} /></dd><dt>Failed</dt><dd>${failures.toLocaleString()} of ${count(calls, "call")}</dd><dt>Lines that its examples reach</dt><dd>${facts.coverage.reached} of ${facts.coverage.lines}</dd><dt>Called by</dt><dd>${facts.callers.join(", ") || "nothing yet"}</dd>${made && html`<dt>Made by</dt><dd>${who(made)}${facts.maker ? ` with ${plain(facts.maker)}` : ""}, ${when(made.at)}${made.conversation && html`, in <a href=${to("Chat", made.agent, made.conversation)}>this conversation</a>`}</dd>`}</dl><p class="row"><button type="button" onClick=${() => rate("good")}>Its results are right</button><button type="button" onClick=${() => rate("bad")}>A result was wrong</button></p></section></div></div>`;
}

// Any two versions side by side, and the way back to one.
function Versions({ name, past, renew }) {
  const rows = past ? [...past.versions].reverse() : [], newest = rows.find((row) => row.current) || rows[0];
  const [sides, setSides] = useState(null), [said, setSaid] = useState(null);
  const [left, right] = sides || [(rows.find((row) => row !== newest && row.version) || newest)?.number, newest?.number];
  const source = (number) => (number ? `/functions/${part(name)}/versions/${number}` : "");
  const [one] = useLoaded(source(left)), [other] = useLoaded(source(right));
  const back = (number) => api(`/functions/${part(name)}/rollback`, "POST", { version: String(number) }).then((verdict) => { setSaid(html`<${Verdict} verdict=${verdict} />`); tell(`Back to version ${number}.`, () => api(`/functions/${part(name)}/rollback`, "POST", { version: String(newest.number) }).then(renew, (error) => tell(error.message))); renew(); }, (error) => setSaid(error.verdict ? html`<${Verdict} verdict=${error.verdict} />` : html`<${Fault} text=${error} />`));
  const about = (number) => { const row = rows.find((each) => each.number === number); return row ? `${row.what} by ${who(row)}, ${when(row.at)}` : ""; };
  const pick = (at, number) => setSides(at ? [left, number] : [number, right]);
  if (!past) return html`<p class="dim">Loading…</p>`;
  return html`<h2 class="unseen">${count(rows.length, "version")}</h2><div role="status">${said}</div><ul class="versions">${rows.map((row) => html`<li key=${row.number}><div class="sides">${["left", "right"].map((side, at) => html`<label title=${`On the ${side}`}>${"AB"[at]}<input type="radio" name=${side} aria-label=${`Version ${row.number} on the ${side}`} checked=${(at ? right : left) === row.number} disabled=${!row.version} onChange=${() => pick(at, row.number)} /></label>`)}</div>
      <div><p class="row line-row"><strong>${row.number}</strong><span class="grow cut">${row.what} by ${who(row)}</span><span class="help number">+${row.added} −${row.removed}</span><span class="dim number">${when(row.at)}</span></p><p class="help">${plain(row.reason)} ${row.current ? html`<span class="good">in use</span>` : row.standing}</p></div></li>`)}</ul>
    ${one && other && html`<${Beside} one=${one.source} other=${other.source} titles=${[`Version ${left}`, `Version ${right}`]} about=${[about(left), about(right)]}>${left !== newest.number && html`<button type="button" onClick=${() => back(left)}>Go back to ${left}</button>`}${right !== newest.number && html`<button type="button" onClick=${() => back(right)}>Go back to ${right}</button>`}<//>`}
    ${left === right && left !== newest?.number && html`<p><button type="button" onClick=${() => back(left)}>Go back to ${left}</button></p>`}`;
}

const flat = (value) => Object.entries(value || {}).map(([name, one]) => `${name}=${JSON.stringify(one)}`).join(", ");

// What was called, and what it would return under another version: its requests are answered from the record.
function Calls({ name, past, beat }) {
  const [listed, fault] = useLoaded(`/calls?function=${part(name)}`, beat);
  const [version, setVersion] = useState("now"), [replays, setReplays] = useState({});
  const rows = listed ? listed.calls : [], numbers = past ? past.versions.filter((row) => row.version).map((row) => row.number).reverse() : [];
  const replay = (row) => api(`/calls/${row.call}/replay`, "POST", { version }).then((value) => setReplays((old) => ({ ...old, [row.call]: value })), (error) => setReplays((old) => ({ ...old, [row.call]: { error } })));
  const all = async () => { for (const row of rows) await replay(row); };
  const told = (value) => (value.error ? html`<${Fault} text=${value.error} />` : value.same ? html`<p class="note good">The same${value.number ? ` under version ${value.number}` : ""}.</p>` : html`<div class="note bad"><span class="grow">Different${value.number ? ` under version ${value.number}` : ""}: ${plain(value.difference)}</span></div>`);
  return html`<section class="section"><div class="head"><h2 class="grow">${count(rows.length, "recorded call")}</h2><label class="row line-row"><span class="unseen">Version to replay under</span><select value=${version} onChange=${({ target }) => { setVersion(target.value); setReplays({}); }}><option value="now">the version in use</option><option value="">the version of then</option>${numbers.map((number) => html`<option value=${String(number)}>version ${number}</option>`)}</select></label><button type="button" disabled=${!rows.length} onClick=${all}>Replay all</button></div><${Fault} text=${fault} />
    ${listed && rows.length === 0 && html`<p class="dim">No call is recorded yet. The form beside the source makes one.</p>`}
    ${rows.length > 0 && html`<div class="wide-table" tabindex="0" role="region" aria-label=${`Calls of ${name}`}><table><thead><tr><th scope="col">Call</th><th scope="col" class="mid">When</th><th scope="col">Arguments</th><th scope="col">Ended</th><th scope="col"><span class="unseen">Replay</span></th></tr></thead>
      <tbody>${rows.map((row) => html`<tr key=${row.call}><td class="mono">${row.call}</td><td class="dim mid">${when(row.at)}</td><td><code>${plain(flat(row.arguments)).slice(0, 200)}</code></td><td class=${row.outcome === "returned" ? "" : "bad"}><code>${plain(row.ended).slice(0, 200)}</code>${replays[row.call] && told(replays[row.call])}</td><td class="number"><button type="button" class="quiet" onClick=${() => replay(row)}>Replay</button></td></tr>`)}</tbody></table></div>`}
    <p class="help">Requests are answered from the record: nothing is sent again.</p></section>`;
}

// What it gets at besides its arguments, and who allowed it; each to be taken back.
function Reach({ name, facts, beat, reload }) {
  const [listed, fault] = useLoaded(`/grants?function=${part(name)}`, beat);
  const [said, setSaid] = useState("");
  const revoke = (kind, one, value) => api(`/grants/${part(name)}/revoke`, "POST", { grants: { [kind]: value } }).then(() => { setSaid(`${one} was revoked.`); reload(); }, (error) => setSaid(error.message));
  const rows = listed ? listed.grants : [];
  return html`<section class="section"><h2>${plain(facts.reach && facts.reach.length ? `It ${facts.reach.join("; ")}` : "Computes only")}</h2><${Fault} text=${fault} />
    ${rows.length === 0 && html`<p class="dim">No grant is in force. Should it reach for something, you are asked, with the lines that do.</p>`}
    ${rows.map((row) => html`${row.changed && html`<p class="dim">Not in force: ${plain(row.changed)}</p>`}
    <ul class="list">${Object.entries(row.grants).flatMap(([kind, value]) => [value].flat().map((item) => [kind, `${kind} ${item}`, Array.isArray(value) ? [item] : item])).map((grant) => html`<li key=${grant[1]}><span class="grow"><code>${grant[0]}</code> ${plain(grant[1].slice(grant[0].length))}</span> <button type="button" onClick=${() => revoke(...grant)} aria-label=${`Revoke ${plain(grant[1])}`}>Revoke</button></li>`)}</ul>`)}
    <p role="status">${said}</p></section>`;
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
  return html`<section class="section" aria-label="Try it"><h2>Try it</h2><form class="stack apart" onSubmit=${(event) => run(event, "call")} onKeyDown=${(event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run(event, "call"); }}>
    ${properties.map(([key, schema]) => html`<${Field} key=${key} name=${key} schema=${schema} isRequired=${required.includes(key)} value=${values[key] ?? ""} set=${(text) => setValues((old) => ({ ...old, [key]: text }))} />`)}
    <div class="row"><button type="submit" disabled=${calls} title="Ctrl+Enter">Call</button><button type="button" class="quiet" disabled=${calls} onClick=${(event) => run(event, "trace")}>Call, and show the lines that ran</button></div></form>
    <${Fault} text=${fault} />${outcome && html`<${Outcome} outcome=${outcome} />`}${result && result.lines && html`<${Ran} lines=${result.lines} />`}</section>`;
}

const Ran = ({ lines }) => html`<div class="wide-table" tabindex="0" role="region" aria-label="The lines that ran"><table><thead><tr><th scope="col">Line</th><th scope="col" class="number">Times</th><th scope="col">Last values</th></tr></thead><tbody>${lines.map((row) => html`<tr><td class="mono">${row.line}</td><td class="number">${row.count}</td><td><code>${plain(typeof row.last === "object" && row.last ? Object.entries(row.last).map((pair) => pair.join(" = ")).join("; ") : String(row.last ?? ""))}</code></td></tr>`)}</tbody></table></div>`;

function Field({ name, schema, isRequired, value, set }) {
  const kind = kindOf(schema), hear = (event) => set(event.target.value), choices = kind.enum || (kind.type === "boolean" ? [true, false] : null);
  const type = kind.type === "string" ? "text" : kind.type || "JSON", standard = schema.default === undefined ? "" : `, else ${JSON.stringify(schema.default)}`;
  return html`<label class="field"><span><code>${name}</code> <span class="dim">${type}${isRequired ? "" : ", optional"}${standard}</span></span>
    ${choices ? html`<select value=${value} onChange=${hear}><option value="">—</option>${choices.map((one) => html`<option value=${String(one)}>${String(one)}</option>`)}</select>`
      : NUMBERS[kind.type] ? html`<input type="number" class="mono" step=${NUMBERS[kind.type]} value=${value} onInput=${hear} />`
      : html`<textarea rows="1" class="mono" value=${value} placeholder=${kind.type === "string" ? "" : kind.type === "array" ? "[]" : "{}"} onInput=${hear}></textarea>`}<span class="help">${plain(schema.description)}</span></label>`;
}
