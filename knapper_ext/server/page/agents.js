// The agents: what each does and is for, and the deeds of a person on them.
import { useEffect, useState } from "./vendor/preact.js";
import { api, Fault, go, html, part, plain, tell, to, useDraft, useLoaded, when } from "./kit.js";

const STATES = { running: "good", stuck: "bad", stopped: "bad", paused: "warn", waiting: "warn" };
const NAME = /^[A-Za-z0-9_-]{1,64}$/;
const amounts = (values) => Object.entries(values || {}).map(([name, amount]) => `${(Math.round(amount * 100) / 100).toLocaleString()} ${name}`).join(", ");
const patternsOf = (text) => text.split(/[,\s]+/).filter(Boolean);

// How many functions fit the patterns of a file: a name or `module.name`, in which * and ? stand for others.
const like = (pattern) => new RegExp(`^${pattern.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".")}$`);
const fitting = (patterns, functions) => functions.filter((row) => patterns.some((pattern) => like(pattern).test(row.name) || like(pattern).test(`${row.module}.${row.name}`))).length;

// What the file of an agent says; the file has the rest, and its comments stay.
function Description({ name, isNew, agent, changed }) {
  const [file, lost, again] = useLoaded(isNew ? "" : `/agents/${part(name)}/file`), [now] = useLoaded(`/agents/${part(isNew ? agent : name)}/status`), [listed] = useLoaded("/functions");
  const [typed, setTyped] = useDraft(`agent:${name}`, null), [own, setOwn] = useDraft(":agent"), [fault, setFault] = useState(""), [isBusy, setBusy] = useState(false);
  const profile = file ? file.profile : { purpose: "", persona: "", model: "", functions: ["*"] }, patterns = profile.functions.join(", ");
  const said = { purpose: profile.purpose, persona: profile.persona, model: profile.model, functions: patterns === "*" ? "" : patterns, ...typed };
  const set = (more) => setTyped((old) => ({ ...old, ...more })), who = isNew ? own.trim() : name, isFit = NAME.test(who);
  const functions = listed ? listed.functions : [], wanted = patternsOf(said.functions);
  const save = async (event) => {
    event.preventDefault();
    setBusy(true); setFault("");
    const body = { over: (file && file.text) || "" };
    for (const key of ["purpose", "persona", "model"]) if (said[key] !== profile[key]) body[key] = said[key];
    if (wanted.join(", ") !== (patterns === "*" ? "" : patterns)) body.functions = wanted.length ? wanted : ["*"];
    try {
      await api(`/agents/${part(who)}/file`, "PUT", body);
      if (isNew) { await api("/agents", "POST", { name: who }); setOwn(""); go("Agents", who); }
      setTyped(null); again(); changed(); tell(isNew ? `${who} is made.` : `${who} is changed from its next step on.`);
    } catch (error) { setFault(error); if (error.status === 409) again(); }
    setBusy(false);
  };
  const field = (label, key, help, rows) => html`<label class="field"><span>${label}</span>${rows ? html`<textarea rows=${rows} value=${said[key]} onInput=${({ target }) => set({ [key]: target.value })}></textarea>` : html`<input class="mono" value=${said[key]} onInput=${({ target }) => set({ [key]: target.value })} />`}<span class="help">${help}</span></label>`;
  if (!isNew && !file) return html`<${Fault} text=${lost} />`;
  return html`<form class="stack apart" onSubmit=${save}><${Fault} text=${fault || lost} />${file && file.problems.map((row) => html`<p class="note bad">${plain(row.message)} ${plain(row.fix)}</p>`)}
    <div class="split even">${isNew ? html`<label class="field"><span>A new agent</span><input class="mono" maxlength="64" autocomplete="off" value=${own} onInput=${({ target }) => setOwn(target.value)} /><span class=${`help ${own && !isFit ? "bad" : ""}`}>Letters, digits, <code>_</code> and <code>-</code>.</span></label>` : html`<div class="field"><span>File</span><span class="mono">${file.path}</span><span class="help">${file.text === null ? "Not written yet." : "It has what is not here, such as limits."}</span></div>`}
      <label class="field"><span>Model</span><select value=${said.model} onChange=${({ target }) => set({ model: target.value })}><option value="">that of the workspace</option>${[...new Set([...(now ? now.models : []), ...(said.model ? [said.model] : [])])].map((one) => html`<option value=${one}>${plain(one)}</option>`)}</select><span class="help">${plain(now && (now.about[said.model] || (said.model ? "" : now.model)))}</span></label></div>
    ${field("Purpose", "purpose", "What others see of it.", 2)}
    ${field("Persona", "persona", isNew ? "Who it is, in its memory from the beginning." : html`Of a new agent; what it is now stands in its <a href=${to("Memory", name)}>memory</a>.`, 2)}
    ${field("Functions", "functions", wanted.length ? `${fitting(wanted, functions)} of ${functions.length}. Names, or patterns such as text.*` : `All ${functions.length}. Names, or patterns such as text.*`)}
    <p class="row"><button class="strong" disabled=${!isFit || isBusy || (!isNew && !typed)}>${isNew ? "Make it" : "Save"}</button>${typed && html`<button type="button" class="quiet" onClick=${() => setTyped(null)}>Revert</button>`}</p></form>`;
}

export function Agents({ beat, chosen, agent, changed }) {
  const [states, fault, again] = useLoaded("/tree", beat);
  const [said, setSaid] = useState(""), [leaving, setLeaving] = useState("");
  const rows = states ? states.agents : [], isNew = chosen === "+", name = chosen || (rows.find((row) => row.name === agent) || rows[0])?.name || "";
  useEffect(() => setLeaving(""), [chosen]);
  const depth = (row, on = 0) => { // below whoever waits for it
    const above = rows.find((other) => on < rows.length && (other.waits_on || "").split(", ").includes(row.name));
    return above ? 1 + depth(above, on + 1) : 0;
  };
  const done = (text) => () => { setSaid(text); again(); changed(); }, fail = (error) => setSaid(error.message);
  const act = (row, verb) => api(`/agents/${part(row.name)}/${verb}`, "POST").then(done(`${row.name}: ${verb}`), fail);
  const remove = (row) => api(`/agents/${part(row.name)}`, "DELETE").then(() => api(`/agents/${part(row.name)}/file`, "DELETE")).then(() => { done(`${row.name} was deleted.`)(); go("Agents"); }, fail).finally(() => setLeaving(""));
  return html`<div class="page"><${Fault} text=${fault} /><div class="split"><section class="section" aria-label=${isNew ? "A new agent" : name}><h2 class="mono">${isNew ? "New agent" : name}</h2>${states && name && !isNew && rows.every((row) => row.name !== name) ? html`<${Fault} text=${`There is no agent ${name}.`} />` : (isNew || name) && html`<${Description} key=${isNew ? "+" : name} name=${isNew ? "+" : name} isNew=${isNew} agent=${agent} changed=${() => { again(); changed(); }} />`}</section>
    <section class="section"><div class="head"><h2 class="grow">All agents</h2><a class="button" href=${to("Agents", "+")}>New agent</a></div><p role="status" class="dim">${said}</p><ul class="list tree">${rows.map((row) => html`<li key=${row.name} style=${{ marginLeft: `${24 * Math.min(depth(row), 5)}px` }}><a class="mono" href=${to("Agents", row.name)} aria-current=${!isNew && row.name === name ? "true" : undefined}>${row.name}</a>
      <strong class=${STATES[row.state] || "dim"}>${row.state}</strong>${row.waits_on ? html`<span>waits for ${row.waits_on}</span>` : ""}<span class="grow"></span><span class="dim about">${[plain(row.why), row.since && `since ${when(row.since)}`, amounts(row.spent) && `spent ${amounts(row.spent)}`, amounts(row.left) && `${amounts(row.left)} left`].filter(Boolean).join(" · ")}</span>
      ${leaving === row.name ? html`<span>Its conversations, memory and file go with it.</span><button type="button" class="danger" onClick=${() => remove(row)}>Delete ${row.name}</button><button type="button" class="quiet" onClick=${() => setLeaving("")}>Cancel</button>` : html`
      <a class="button quiet" href=${to("Chat", row.name)}>Talk</a>${row.state === "paused" || row.state === "stuck" ? html`<button type="button" onClick=${() => act(row, "resume")}>Resume</button>` : html`<button type="button" onClick=${() => act(row, "pause")}>Pause</button>`}
      <button type="button" disabled=${row.state === "idle"} onClick=${() => act(row, "stop")}>Stop</button><button type="button" class="quiet danger" onClick=${() => setLeaving(row.name)} aria-label=${`Delete ${row.name}`}>Delete</button>`}</li>`)}</ul></section></div></div>`;
}
