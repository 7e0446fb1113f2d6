// What is set and allowed in this workspace, part by part; the file has the rest.
import { useEffect, useState } from "./vendor/preact.js";
import { ran, shellWords } from "./commands.js";
import { api, count, Fault, html, part, plain, tell, to, useLoaded, when } from "./kit.js";
import { Spending } from "./spending.js";

const PARTS = [["", "Model and machine"], ["spending", "Spending"], ["keys", "Keys and secrets"], ["grants", "Grants"], ["mcp", "MCP servers"]];
const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;
const each = (grants) => Object.entries(grants).flatMap(([kind, value]) => [value].flat().map((item) => [kind, String(item), Array.isArray(value) ? [item] : item]));

// The command of a server that has a document, again whenever `beat` changes.
function useRan(words, beat) {
  const [again, setAgain] = useState(0), [state, setState] = useState({ value: null, fault: "" });
  useEffect(() => { let over = false; ran(words).then((read) => over || setState({ value: read.document, fault: "" }), (error) => over || setState({ value: null, fault: error })); return () => { over = true; }; }, [beat, again]);
  return [state.value, state.fault, () => setAgain((old) => old + 1)];
}

function Grants({ beat, reload }) {
  const [listed, fault, again] = useLoaded("/grants", beat), [wanted, setWanted] = useState("");
  const rows = (listed ? listed.grants : []).filter((row) => `${row.name} ${JSON.stringify(row.grants)}`.toLowerCase().includes(wanted.toLowerCase()));
  const revoke = (name, kind, item, value) => api(`/grants/${part(name)}/revoke`, "POST", { grants: { [kind]: value } }).then(() => { tell(`${kind} ${item} of ${name} was revoked.`); again(); reload(); }, (error) => tell(error.message));
  return html`<section class="section"><div class="head"><h2 class="grow">In force</h2><label><span class="unseen">Filter the grants</span><input type="search" placeholder="Filter" value=${wanted} onInput=${({ target }) => setWanted(target.value)} /></label></div><${Fault} text=${fault} />
    ${listed && rows.length === 0 && html`<p class="dim">Nothing was granted.</p>`}
    <ul class="list">${rows.flatMap((row) => each(row.grants).map(([kind, item, value]) => html`<li key=${`${row.name} ${kind} ${item}`}><a class="mono" href=${to("Functions", row.name, "reach")}>${row.name}</a><span class="grow"><code>${kind}</code> ${plain(item)}${row.changed && html` <span class="dim">not in force: ${plain(row.changed)}</span>`}</span><button type="button" class="quiet danger" onClick=${() => revoke(row.name, kind, item, value)} aria-label=${`Revoke ${kind} ${item} of ${row.name}`}>Revoke</button></li>`))}</ul></section>`;
}

// Who allowed what, when and on which text; what still holds is taken back in its row.
const FOR = { once: "once", yes: "always", no: "no", never: "never" };
function Log({ beat, reload }) {
  const [read, fault, again] = useRan(["functions", "approvals"], beat), rows = read ? [...read.approvals].reverse() : [];
  const undo = (row) => ran(shellWords(row.undo).slice(1)).then(() => { tell(`${row.function}: taken back.`); again(); reload(); }, (error) => tell(error.message));
  const by = (row) => [row.by === "human" ? "you" : row.by, row.agent && `for ${row.agent}`].filter(Boolean).join(" ");
  return html`<section class="section" aria-label="Who allowed what"><h2>Who allowed what</h2><${Fault} text=${fault} />${read && rows.length === 0 && html`<p class="dim">Nothing was asked or allowed yet.</p>`}
    <ul class="list log-list">${rows.map((row) => html`<li key=${`${row.at} ${row.function} ${row.question} ${row.says.join()}`}><a class="mono" href=${to("Functions", row.function, "reach")}>${row.function}</a><span class="grow">${plain(row.says.join("; ") || "join")}${row.word && html` <span class="dim">“${plain(row.word)}”</span>`}</span><span class=${row.stands ? "good" : row.kind === "open" ? "hand" : "dim"}>${row.kind === "open" ? "waits" : FOR[row.answer] || row.answer}${row.stands ? ", holds" : ""}</span><span class="help">${[by(row), when(row.at), row.calls > 0 && count(row.calls, "call")].filter(Boolean).join(" · ")}</span>${row.undo && (row.stands || row.kind === "open") && html`<button type="button" class="quiet danger" aria-label=${`${row.kind === "open" ? "No" : "Take back"}: ${row.function} may ${row.says.join("; ")}`} onClick=${() => undo(row)}>${row.kind === "open" ? "No" : "Take back"}</button>`}</li>`)}</ul></section>`;
}

// Secrets by name; a value is typed hidden, goes to the file of this user, and is never shown.
function Secrets({ beat }) {
  const [listed, fault, again] = useLoaded("/secrets", beat), [name, setName] = useState(""), [value, setValue] = useState(""), [trouble, setTrouble] = useState(""), [leaving, setLeaving] = useState("");
  const keep = (event) => { event.preventDefault(); api(`/secrets/${part(name)}`, "PUT", { value }).then(() => { tell(`${name} is set.`); setName(""); setTrouble(""); again(); }, setTrouble).finally(() => setValue("")); };
  const remove = (row) => api(`/secrets/${part(row.name)}`, "DELETE").then(() => { tell(`${row.name} is removed.`); again(); }, setTrouble).finally(() => setLeaving(""));
  const rows = listed ? listed.secrets : [];
  return html`<section class="section" aria-label="Keys and secrets"><h2>Keys and secrets, by name</h2><${Fault} text=${fault || trouble} />${listed && listed.problem && html`<p class="note bad">${plain(listed.problem)}</p>`}
    ${listed && rows.length === 0 && html`<p class="dim">None is set.</p>`}
    <ul class="list">${rows.map((row) => html`<li key=${row.name}><code>${row.name}</code><span class="grow dim">${row.functions.length ? html`read by ${row.functions.map((one) => html`<a class="mono" href=${to("Functions", one, "reach")}>${one}</a> `)}` : "not granted to any function"}</span><span class=${row.from ? "dim" : "bad"}>${plain(row.from || "not set")}</span>${leaving === row.name ? html`<button type="button" class="danger" onClick=${() => remove(row)}>Remove ${row.name}</button><button type="button" class="quiet" onClick=${() => setLeaving("")}>Cancel</button>` : html`<button type="button" class="quiet" onClick=${() => { setName(row.name); document.getElementById("secret").focus(); }}>${row.from ? "Replace" : "Set"}</button>${row.from && html`<button type="button" class="quiet danger" aria-label=${`Remove ${row.name}`} onClick=${() => setLeaving(row.name)}>Remove</button>`}`}</li>`)}</ul>
    <form class="row" onSubmit=${keep} autocomplete="off"><label><span class="unseen">Name of the secret</span><input class="mono" placeholder="NAME" autocomplete="off" spellcheck="false" value=${name} onInput=${({ target }) => setName(target.value)} /></label><label class="wide"><span class="unseen">Its value, not shown as you type</span><input id="secret" type="password" class="wide" placeholder="value, not shown" autocomplete="new-password" value=${value} onInput=${({ target }) => setValue(target.value)} /></label><button class="strong" disabled=${!NAME.test(name) || !value}>Keep</button></form>
    <p class="help">It goes to a file that only you can read. A function reads it once you granted it; the model never sees it.</p></section>`;
}

function Servers({ beat }) {
  const [listed] = useLoaded("/functions", beat), byServer = new Map();
  for (const row of ((listed && listed.functions) || []).filter((one) => one.standing === "foreign")) byServer.set(row.module, [...(byServer.get(row.module) || []), row]);
  return html`<section class="section" aria-label="MCP servers"><h2>MCP servers</h2>${byServer.size === 0 ? html`<p class="dim">No tool of another program is in use.</p>` : html`<ul class="list">${[...byServer].map(([name, rows]) => html`<li key=${name}><code>${plain(name)}</code><span class="grow dim">${rows.map((row) => plain(row.name)).join(", ")}</span><span>${count(rows.length, "tool")}</span></li>`)}</ul>`}
    <p class="help">Servers are added and approved where you see all that they say: <code>knapper mcp add NAME COMMAND…</code>, <code>knapper mcp approve NAME</code>. They stand in <code>mcp.toml</code>.</p></section>`;
}

// A part of what the machine says of itself, as a sentence: whether it is well, what it is, and what to do.
const FACTS = ["name", "level", "endpoint", "why", "problem", "warning", "fix"];
function shown(value) {
  if (value === null || value === undefined || value === "") return "–";
  if (typeof value !== "object") return String(value);
  const told = FACTS.map((key) => value[key]).filter((fact) => typeof fact === "string" && fact);
  return [value.ok === true && "✓", value.ok === false && "✗", told.join(" · ")].filter(Boolean).join(" ") || "–";
}

function Machine({ beat, agent }) {
  const [status, fault] = useLoaded("/status", beat), [machine] = useLoaded("/doctor"), [now] = useLoaded(agent ? `/agents/${part(agent)}/status` : "", beat);
  const facts = status ? [["Workspace", status.workspace], ["Agent", status.agent], ["Functions", status.functions], ["Sandbox", status.sandbox]] : [];
  return html`<${Fault} text=${fault} />${now && html`<section class="section" aria-label="Model"><h2>Model</h2><dl class="facts"><dt>Answers ${agent}</dt><dd class="mono">${plain(now.model)}</dd>${now.context_limit > 0 && html`<dt>Window</dt><dd>${count(now.context_limit, "token")}</dd>`}<dt>Mode, growth</dt><dd>${now.policy.mode}, ${now.policy.growth}</dd></dl>
      ${now.models.length > 0 && html`<ul class="list">${now.models.map((name) => html`<li key=${name}><code>${plain(name)}</code><span class="grow dim">${plain(now.about[name])}</span></li>`)}</ul>`}${status && status.model_trouble && html`<p class="note bad">${plain(status.model_trouble.message ?? status.model_trouble)}</p>`}
      <p class="help">The endpoint, and models with their windows and prices, stand in <code>knapper.toml</code> of the workspace; <code>knapper configure</code> tries one with a real request.</p></section>`}
    <section class="section"><h2>This workspace</h2><dl class="facts">${facts.map(([title, value]) => html`<dt>${title}</dt><dd>${plain(shown(value))}</dd>`)}</dl></section>
    ${machine && html`<section class="section"><h2>This machine</h2><dl class="facts">${Object.entries(machine).slice(0, 24).map(([title, value]) => html`<dt>${title}</dt><dd>${plain(shown(value)).slice(0, 400)}</dd>`)}</dl></section>`}`;
}

export function Settings({ chosen = "", agent, beat, reload }) {
  const at = PARTS.some(([key]) => key === chosen) ? chosen : "";
  return html`<div class="page settings"><nav class="parts" aria-label="Settings">${PARTS.map(([key, title]) => html`<a href=${to("Settings", ...(key ? [key] : []))} aria-current=${key === at ? "page" : undefined}>${title}</a>`)}</nav><div class="stack far-apart">
    ${at === "" && html`<${Machine} beat=${beat} agent=${agent} />`}${at === "spending" && html`<${Spending} beat=${beat} reload=${reload} />`}${at === "keys" && html`<${Secrets} beat=${beat} />`}${at === "mcp" && html`<${Servers} beat=${beat} />`}
    ${at === "grants" && html`<${Grants} beat=${beat} reload=${reload} /><${Log} beat=${beat} reload=${reload} />`}</div></div>`;
}
