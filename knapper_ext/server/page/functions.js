// The functions: a list to look through, and a new one from nothing.
import { useMemo, useState } from "./vendor/preact.js";
import { Editor } from "./editor.js";
import { api, count, draftsOf, Fault, go, html, part, plain, reaches, to, useDraft, useLoaded, when } from "./kit.js";
import { Icon, Stone, Strip } from "./marks.js";

const COLUMNS = [["name", "Function", ""], ["description", "What it does", "mid"], ["module", "Module", "far late"], ["standing", "Standing", ""], ["reach", "Reach", "far"], ["strip", "Evidence", "far"], ["calls", "Used", "number"], ["last_called", "Last used", "far late"]];
const STANDINGS = ["trusted", "trial", "draft", "quarantined"];
const ORDER = { number: (a, b) => a - b, string: (a, b) => a.localeCompare(b), object: (a, b) => String(a).localeCompare(String(b)) };

const Head = ({ column: [key, name, kind], sort: [by, isUp], choose }) => html`<th scope="col" class=${kind} aria-sort=${by === key ? (isUp ? "ascending" : "descending") : undefined}>${key === "strip" ? name : html`<button type="button" onClick=${() => choose([key, by === key ? !isUp : !["calls", "last_called"].includes(key)])}>${name}${by === key && html`<span aria-hidden="true">${isUp ? " ↑" : " ↓"}</span>`}</button>`}</th>`;

function Row({ row, verdict, most }) {
  const first = plain(row.description.split("\n")[0]);
  return html`<tr><td><a href=${to("Functions", row.name)}>${row.name}</a>${row.pinned && html`<span class="pinned" title="Pinned: only you change it"><${Icon} name="pin" /><span class="unseen">pinned</span></span>`}<span class="dim what">${first}</span></td><td class="mid dim">${first}</td><td class="far late dim">${row.module}</td><td><span class=${`standing ${row.standing}`}><${Stone} standing=${row.standing} />${row.standing}</span></td>
    <td class="far dim">${plain(reaches(row.reach))}</td><td class="far">${verdict ? html`<${Strip} verdict=${verdict} />` : html`<span class="dim">–</span>`}</td><td class="number">${row.calls.toLocaleString()}<svg class="use" viewBox="0 0 40 4" aria-hidden="true"><rect width=${(row.calls / most) * 40} height="4" /></svg></td><td class="far late dim">${when(row.last_called)}</td></tr>`;
}

export function Functions({ beat }) {
  const [listed, fault] = useLoaded("/functions", beat);
  const [gate] = useLoaded("/functions/verdicts", beat);
  const [filter, setFilter] = useDraft(":filter"), [standing, setStanding] = useState("all"), [sort, setSort] = useState(["name", true]);
  const [ranked, setRanked] = useState(null);
  const [trouble, setTrouble] = useState("");
  const rows = listed ? listed.functions : [], verdicts = gate ? gate.verdicts : {}, wanted = filter.trim().toLowerCase(), most = Math.max(1, ...rows.map((row) => row.calls));
  const byName = new Map(rows.map((row) => [row.name, row]));
  const fits = (row) => (standing === "all" || row.standing === standing) && (!wanted || `${row.name} ${row.module} ${row.description} ${row.standing} ${row.source} ${reaches(row.reach)}`.toLowerCase().includes(wanted));
  const [by, isUp] = sort, sorted = useMemo(() => [...rows].sort((a, b) => { const [x, y] = [a[by] ?? "", b[by] ?? ""]; return (typeof x === typeof y ? ORDER[typeof x](x, y) : ORDER.string(String(x), String(y))) * (isUp ? 1 : -1); }), [listed, by, isUp]);
  const shown = ranked ? ranked.map((name) => byName.get(name)).filter(Boolean) : sorted.filter(fits);
  const search = (event) => {
    event.preventDefault();
    if (!wanted) return;
    api(`/functions/search?count=50&need=${part(filter)}`).then((value) => { setRanked(value.results.map((match) => match.name || match.function)); setTrouble(""); }, setTrouble);
  };
  const move = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key], links = step ? [...document.querySelectorAll(".rows tbody a")] : [];
    const next = links[links.indexOf(document.activeElement) + step];
    if (next) { event.preventDefault(); next.focus(); }
  };
  const many = (name) => (name === "all" ? rows.length : rows.filter((row) => row.standing === name).length);
  const unsaved = draftsOf("source:").filter((name) => byName.has(name));
  return html`<form class="filters" role="search" onSubmit=${search} onKeyDown=${move}><label class="search"><${Icon} name="search" /><span class="unseen">Search ${count(rows.length, "function")}</span><input type="search" data-find="1" placeholder="Filter, or say what is needed and press Enter" value=${filter} onInput=${(event) => { setFilter(event.target.value); setRanked(null); }} /><span class="key mid">/</span></label>
      <div class="segments" role="group" aria-label="Standing">${["all", ...STANDINGS].map((name) => html`<button type="button" aria-pressed=${standing === name} onClick=${() => { setStanding(name); setRanked(null); }}><${Stone} standing=${name} />${name} <span class="dim">${many(name)}</span></button>`)}</div><span class="dim" role="status">${ranked ? "the best first" : `${shown.length.toLocaleString()} shown`}</span></form>
    <div class="notes stack"><${Fault} text=${fault || trouble} />
    ${unsaved.length > 0 && html`<p class="note hand">Not saved yet: ${unsaved.map((name) => html`<a href=${to("Functions", name)}>${name}</a> `)}</p>`}
    ${gate && gate.pending.length > 0 && html`<p class="dim">Rejected, and kept to be corrected: ${gate.pending.map(plain).join(", ")}</p>`}
    ${listed && listed.rejected.length > 0 && html`<details><summary class="bad">${count(listed.rejected.length, "problem")} in files</summary><ul>${listed.rejected.map((problem) => html`<li>${plain(problem.path)}:${problem.line} ${plain(problem.message)}</li>`)}</ul></details>`}</div>
    <div class="rows" tabindex="0" role="region" aria-label="Functions" onKeyDown=${move}><table><colgroup>${COLUMNS.map(([key, , kind]) => html`<col class=${`c-${key} ${kind}`} />`)}</colgroup><thead><tr>${COLUMNS.map((column) => html`<${Head} column=${column} sort=${sort} choose=${setSort} />`)}</tr></thead>
      <tbody>${shown.map((row) => html`<${Row} key=${row.name} row=${row} verdict=${verdicts[row.name]} most=${most} />`)}</tbody></table></div>`;
}

const NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;
const KINDS = ["str", "int", "float", "bool", "list[str]", "list[int]", "dict[str, int]"];
const SAMPLES = { str: ['"one"', '"two"'], int: ["1", "2"], float: ["1.5", "2.5"], bool: ["True", "False"], "list[str]": ['["one"]', '["one", "two"]'], "list[int]": ["[1]", "[1, 2]"], "dict[str, int]": ['{"one": 1}', '{"two": 2}'] };

// A source to start from: what one fills in is what the gate asks for.
export function stub(name, parameters, returned, says) {
  const head = parameters.map((one) => `${one.name}: ${one.kind}`).join(", "), call = (at) => `${name}(${parameters.map((one) => (SAMPLES[one.kind] || ["..."])[at] || "...").join(", ")})`;
  return [`def ${name}(${head}) -> ${returned}:`, `    """${says || "Say what it returns."}`, "", ...(parameters.length ? ["    Args:", ...parameters.map((one) => `        ${one.name}: ${one.says || "What it is."}`), ""] : []), `    >>> ${call(0)}`, "    ...", `    >>> ${call(1)}`, "    ...", '    """', "    raise NotImplementedError", ""].join("\n");
}

export function NewFunction({ agent, reload }) {
  const [plan, setPlan] = useDraft(":new function", { name: "", says: "", module: "", returned: "str", parameters: [{ name: "text", kind: "str", says: "" }] }, localStorage);
  const [isBegun, setBegun] = useState(() => draftsOf("source:").includes(plan.name));
  const set = (more) => setPlan((old) => ({ ...old, ...more })), setOne = (at, more) => set({ parameters: plan.parameters.map((one, place) => (place === at ? { ...one, ...more } : one)) });
  const isFit = NAME.test(plan.name) && plan.parameters.every((one) => NAME.test(one.name));
  const [there] = useLoaded("/functions"), isTaken = Boolean(there && there.functions.some((row) => row.name === plan.name));
  const begin = (event) => { event.preventDefault(); if (isFit && !isTaken) setBegun(true); };
  const modules = there ? [...new Set(there.functions.map((row) => row.module))].sort() : [];
  if (isBegun) return html`<div class="page"><${Editor} name=${plan.name} module=${plan.module || "grown"} source="" stub=${stub(plan.name, plan.parameters, plan.returned, plan.says)} first=${1} agent=${agent} names=${there ? there.functions.map((row) => row.name) : []} saved=${() => { setPlan({ name: "", says: "", module: "", returned: "str", parameters: [{ name: "text", kind: "str", says: "" }] }); reload(); go("Functions", plan.name); }} /><p><button type="button" class="quiet" onClick=${() => setBegun(false)}>Back to its signature</button></p></div>`;
  return html`<form class="page read stack apart" onSubmit=${begin}><p class="dim">What it is called and what it takes; its source is written next, and the gate looks on.</p>
    <div class="split even"><label class="field"><span>Name</span><input class="mono" autocomplete="off" spellcheck="false" value=${plan.name} onInput=${({ target }) => set({ name: target.value })} />${plan.name && !NAME.test(plan.name) ? html`<span class="help bad">Letters, digits and underscores; it begins with a letter.</span>` : isTaken ? html`<span class="help bad">There is one: <a href=${to("Functions", plan.name)}>open it</a>, or choose another name.</span>` : html`<span class="help">A verb, such as <code>count_words</code>.</span>`}</label>
      <label class="field"><span>Module</span><input class="mono" list="modules" placeholder="grown" value=${plan.module} onInput=${({ target }) => set({ module: target.value })} /><datalist id="modules">${modules.map((name) => html`<option value=${name}></option>`)}</datalist><span class="help">The file that it goes to.</span></label></div>
    <label class="field"><span>What it does</span><input value=${plan.says} placeholder="Count the words in a text." onInput=${({ target }) => set({ says: target.value })} /></label>
    <fieldset class="stack"><legend><strong>Parameters</strong></legend>${plan.parameters.map((one, at) => html`<div class="row" key=${at}><label><span class="unseen">Name of parameter ${at + 1}</span><input class="mono" placeholder="name" value=${one.name} onInput=${({ target }) => setOne(at, { name: target.value })} /></label><label><span class="unseen">Kind of ${one.name}</span><input class="mono" list="kinds" value=${one.kind} onInput=${({ target }) => setOne(at, { kind: target.value })} /></label><label class="wide"><span class="unseen">What ${one.name} is</span><input placeholder="What it is." value=${one.says} onInput=${({ target }) => setOne(at, { says: target.value })} /></label><button type="button" class="quiet" onClick=${() => set({ parameters: plan.parameters.filter((_, place) => place !== at) })}>Remove</button></div>`)}
      <datalist id="kinds">${KINDS.map((name) => html`<option value=${name}></option>`)}</datalist><p><button type="button" onClick=${() => set({ parameters: [...plan.parameters, { name: "", kind: "str", says: "" }] })}>Add a parameter</button></p></fieldset>
    <label class="field"><span>Returns</span><input class="mono" list="kinds" value=${plan.returned} onInput=${({ target }) => set({ returned: target.value })} /></label>
    <p class="row"><button class="strong" disabled=${!isFit || isTaken}>Write it</button><a class="button quiet" href=${to("Chat", agent)}>Have the assistant write it</a></p></form>`;
}
