// The agents: what each does, and the deeds of a person on them.
import { useState } from "./vendor/preact.js";
import { api, Fault, go, html, part, plain, to, useDraft, useLoaded, when } from "./kit.js";

const STATES = { running: "good", stuck: "bad", stopped: "bad", paused: "warn", waiting: "warn" };
const amounts = (values) => Object.entries(values || {}).map(([name, amount]) => `${(Math.round(amount * 100) / 100).toLocaleString()} ${name}`).join(", ");

export function Agents({ beat, changed }) {
  const [states, fault, again] = useLoaded("/tree", beat);
  const [said, setSaid] = useState(""), [leaving, setLeaving] = useState("");
  const [name, setName] = useDraft(":agent");
  const rows = states ? states.agents : [];
  const depth = (row, on = 0) => { // below whoever waits for it
    const above = rows.find((other) => on < rows.length && (other.waits_on || "").split(", ").includes(row.name));
    return above ? 1 + depth(above, on + 1) : 0;
  };
  const done = (text) => () => { setSaid(text); again(); changed(); }, fail = (error) => setSaid(error.message);
  const act = (row, verb) => api(`/agents/${part(row.name)}/${verb}`, "POST").then(done(`${row.name}: ${verb}`), fail);
  const make = (event) => { event.preventDefault(); api("/agents", "POST", { name }).then((made) => { setName(""); done("")(); go("Chat", made.name); }, fail); };
  const remove = (row) => api(`/agents/${part(row.name)}`, "DELETE").then(done(`${row.name} was deleted.`), fail).finally(() => setLeaving(""));
  return html`<div class="page read stack apart"><${Fault} text=${fault} /><p role="status" class="dim">${said}</p><ul class="list tree">${rows.map((row) => html`<li key=${row.name} style=${{ marginLeft: `${24 * Math.min(depth(row), 5)}px` }}><a class="mono" href=${to("Chat", row.name)}>${row.name}</a>
      <strong class=${STATES[row.state] || "dim"}>${row.state}</strong>${row.waits_on ? html`<span>waits for ${row.waits_on}</span>` : ""}<span class="grow dim">${[plain(row.why), row.since && `since ${when(row.since)}`, amounts(row.spent) && `spent ${amounts(row.spent)}`, amounts(row.left) && `${amounts(row.left)} left`].filter(Boolean).join(" · ")}</span>
      ${leaving === row.name ? html`<span>Its conversations and memory go with it.</span><button type="button" class="danger" onClick=${() => remove(row)}>Delete ${row.name}</button><button type="button" class="quiet" onClick=${() => setLeaving("")}>Cancel</button>` : html`
      ${row.state === "paused" || row.state === "stuck" ? html`<button type="button" onClick=${() => act(row, "resume")}>Resume</button>` : html`<button type="button" onClick=${() => act(row, "pause")}>Pause</button>`}
      <button type="button" disabled=${row.state === "idle"} onClick=${() => act(row, "stop")}>Stop</button><button type="button" class="quiet danger" onClick=${() => setLeaving(row.name)} aria-label=${`Delete ${row.name}`}>Delete</button>`}</li>`)}</ul>
    <form class="row" onSubmit=${make}><label>A new agent <input value=${name} maxlength="64" onInput=${(event) => setName(event.target.value)} /></label><button disabled=${!name.trim()}>Make it</button></form></div>`;
}
