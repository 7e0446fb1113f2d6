// What goes on: how functions come to be, what the model saw in a step, what it cost, and agents at work.
import { useState } from "/page/preact.js";
import { api, count, Fault, html, part, plain, Sentence, Text, useDraft, useLoaded, when } from "/page/kit.js";

const bare = (text) => text.replace(/^#+ +|\*\*|`/g, ""); // an option of a list shows no Markdown
const STAGES = { wanted: "dim", written: "", rejected: "bad", fixed: "warn", admitted: "good", used: "good" };

export function Growth({ go, beat }) {
  const [grown, fault] = useLoaded("/growth?last=100", beat);
  const rows = grown ? [...grown.functions].reverse() : [];
  return html`<${Fault} text=${fault} />${grown && rows.length === 0 && html`<p class="dim">No function was made in a conversation yet.</p>`}
    ${rows.map((row) => html`<section class="card" key=${`${row.agent}:${row.function}`}><h2><button class="link" onClick=${() => go("Functions", row.function)}>${row.function}</button> <span class="dim">by ${row.agent}, ${row.used ? `used ${row.used}×` : "not used yet"}</span></h2>
      <ol class="stages">${row.stages.map((stage) => html`<li><strong class=${STAGES[stage.stage]}>${stage.stage}</strong> <span class="dim">${when(stage.at)}</span> <${Sentence} text=${stage.text} /></li>`)}</ol></section>`)}`;
}

export function Steps({ agent, beat }) {
  const [listed, fault] = useLoaded(`/agents/${part(agent)}/steps?last=200`, beat);
  const [chosen, setChosen] = useState(0);
  const rows = listed ? [...listed.steps].reverse() : [], seq = chosen || (rows[0] && rows[0].seq);
  const [seen, trouble] = useLoaded(seq ? `/agents/${part(agent)}/steps/${seq}` : "");
  const name = (one) => (one.part === "section" ? (/^\s*<(\w+)/.exec(one.text) || [])[1] || `${plain(one.text.trim().split("\n", 1)[0]).slice(0, 40)}…` : one.part);
  const title = (row) => `${when(row.at)} · ${row.calls.length ? row.calls.join(", ") : bare(plain(row.text)) || "a reply"}`;
  const most = seen ? Math.max(1, seen.window, seen.tokens) : 1;
  return html`<${Fault} text=${fault || trouble} />${listed && rows.length === 0 && html`<p class="dim">The model was not asked anything yet.</p>`}
    ${rows.length > 0 && html`<label>Step <select value=${seq} onChange=${(event) => setChosen(Number(event.target.value))}>${rows.map((row) => html`<option key=${row.seq} value=${row.seq}>${title(row)}</option>`)}</select></label>`}
    ${seen && html`<section class="card"><h2>What the model saw <span class="dim">${seen.model}, about ${seen.tokens.toLocaleString()} of ${count(seen.window, "token")}</span></h2>
      ${seen.parts.map((one, at) => html`<details key=${`${seq}:${at}`}><summary><strong>${name(one)}</strong>${one.count ? ` (${one.count})` : ""} <span class="dim">${one.tokens === null ? "size unknown" : `≈ ${count(one.tokens, "token")}`}</span> <meter min="0" max=${most} value=${one.tokens || 0} aria-label=${`Share of ${name(one)} in the window`}></meter></summary>
        ${one.text && html`<${Text} label=${one.part} text=${one.text} />`}
        ${(one.messages || []).map((message) => html`<p class="dim">${message.kind}, ≈ ${count(message.tokens, "token")}</p><${Text} label=${message.kind} text=${message.text} />`)}</details>`)}</section>`}
    <${Cost} agent=${agent} beat=${beat} />`;
}

const money = (cost) => (cost === null ? "unknown" : cost === 0 ? "$0" : `$${cost.toFixed(cost >= 1 ? 2 : 4)}`);

function Cost({ agent, beat }) {
  const [costs, fault] = useLoaded(`/agents/${part(agent)}/cost`, beat);
  if (!costs) return html`<${Fault} text=${fault} />`;
  const cells = (row) => html`<td>${plain(row.message)}</td><td class="number far">${row.steps}</td><td class="number">${row.is_estimated ? "≈ " : ""}${row.prompt.toLocaleString()}</td><td class="number far">${row.cached.toLocaleString()}</td><td class="number">${row.completion.toLocaleString()}</td><td class="number">${row.steps ? money(row.cost) : "not counted"}</td>`;
  return html`<section class="card"><h2>Cost</h2>${costs.turns.length === 0 ? html`<p class="dim">No turn was taken yet.</p>` : html`<table><thead><tr><th scope="col">Turn</th><th scope="col" class="number far">Steps</th><th scope="col" class="number">In</th><th scope="col" class="number far">Cached</th><th scope="col" class="number">Out</th><th scope="col" class="number">Cost</th></tr></thead>
    <tbody>${costs.turns.slice(-50).map((row) => html`<tr>${cells(row)}</tr>`)}<tr class="sum">${cells(costs.total)}</tr></tbody></table>`}
    ${costs.unpriced.length > 0 && html`<p class="dim">No price is known for ${costs.unpriced.map(plain).join(", ")}; prices.toml in the workspace can say it.</p>`}</section>`;
}

const STATES = { running: "good", stuck: "bad", stopped: "bad", paused: "warn", waiting: "warn" };
const amounts = (values) => Object.entries(values || {}).map(([name, amount]) => `${(Math.round(amount * 100) / 100).toLocaleString()} ${name}`).join(", ");

export function Agents({ go, choose, beat }) {
  const [states, fault, again] = useLoaded("/tree", beat);
  const [said, setSaid] = useState("");
  const [name, setName] = useDraft(":agent");
  const rows = states ? states.agents : [];
  const depth = (row, on = 0) => { // below whoever waits for it
    const above = rows.find((other) => on < rows.length && (other.waits_on || "").split(", ").includes(row.name));
    return above ? 1 + depth(above, on + 1) : 0;
  };
  const act = (row, verb) => api(`/agents/${part(row.name)}/${verb}`, "POST").then(() => { setSaid(`${row.name}: ${verb}`); again(); }, (error) => setSaid(error.message));
  const make = (event) => { event.preventDefault(); api("/agents", "POST", { name }).then((made) => { setName(""); setSaid(""); choose(made.name); again(); }, (error) => setSaid(error.message)); };
  return html`<${Fault} text=${fault} /><p role="status" class="dim">${said}</p><ul class="tree">${rows.map((row) => html`<li key=${row.name} style=${{ marginLeft: `${1.5 * Math.min(depth(row), 5)}rem` }}><div class="row"><button class="link" onClick=${() => { choose(row.name); go("Chat"); }}>${row.name}</button>
      <strong class=${STATES[row.state] || "dim"}>${row.state}</strong>${row.waits_on ? html`<span>waits for ${row.waits_on}</span>` : ""}<span class="wide dim">${[plain(row.why), row.since && `since ${when(row.since)}`, amounts(row.spent) && `spent ${amounts(row.spent)}`, amounts(row.left) && `${amounts(row.left)} left`].filter(Boolean).join(" · ")}</span>
      ${row.state === "paused" || row.state === "stuck" ? html`<button onClick=${() => act(row, "resume")}>Resume</button>` : html`<button onClick=${() => act(row, "pause")}>Pause</button>`}
      <button disabled=${row.state === "idle"} onClick=${() => act(row, "stop")}>Stop</button></div></li>`)}</ul>
    <form class="row" onSubmit=${make}><label>A new agent <input value=${name} maxlength="64" onInput=${(event) => setName(event.target.value)} /></label><button disabled=${!name.trim()}>Make it</button></form>`;
}
