// What is set and allowed in this workspace: read here, with the grants to be taken back; the file has the rest.
import { useState } from "./vendor/preact.js";
import { api, Fault, html, part, plain, tell, to, useLoaded } from "./kit.js";

const each = (grants) => Object.entries(grants).flatMap(([kind, value]) => [value].flat().map((item) => [kind, String(item), Array.isArray(value) ? [item] : item]));

function Grants({ beat, reload }) {
  const [listed, fault, again] = useLoaded("/grants", beat), [wanted, setWanted] = useState("");
  const rows = (listed ? listed.grants : []).filter((row) => `${row.function} ${JSON.stringify(row.grants)}`.toLowerCase().includes(wanted.toLowerCase()));
  const revoke = (name, kind, item, value) => api(`/grants/${part(name)}/revoke`, "POST", { grants: { [kind]: value } }).then(() => { tell(`${kind} ${item} of ${name} was revoked.`); again(); reload(); }, (error) => tell(error.message));
  return html`<section class="section"><div class="head"><h2 class="grow">Grants</h2><label><span class="unseen">Filter the grants</span><input type="search" placeholder="Filter" value=${wanted} onInput=${({ target }) => setWanted(target.value)} /></label></div><${Fault} text=${fault} />
    ${listed && rows.length === 0 && html`<p class="dim">Nothing was granted.</p>`}
    <ul class="list">${rows.flatMap((row) => each(row.grants).map(([kind, item, value]) => html`<li key=${`${row.function} ${kind} ${item}`}><a class="mono" href=${to("Functions", row.function, "reach")}>${row.function}</a><span class="grow"><code>${kind}</code> ${plain(item)}${row.changed && html` <span class="dim">not in force: ${plain(row.changed)}</span>`}</span><button type="button" class="quiet danger" onClick=${() => revoke(row.function, kind, item, value)} aria-label=${`Revoke ${kind} ${item} of ${row.function}`}>Revoke</button></li>`))}</ul></section>`;
}

const shown = (value) => (value === null || value === undefined || value === "" ? "–" : typeof value === "object" ? JSON.stringify(value) : String(value));

export function Settings({ beat, reload }) {
  const [status, fault] = useLoaded("/status", beat), [machine] = useLoaded("/doctor");
  const facts = status ? [["Workspace", status.workspace], ["Agent", status.agent], ["Functions", status.functions], ["Sandbox", status.sandbox]] : [];
  return html`<div class="page read stack far-apart"><${Fault} text=${fault} /><section class="section"><h2>This workspace</h2><dl class="facts">${facts.map(([title, value]) => html`<dt>${title}</dt><dd>${plain(shown(value))}</dd>`)}</dl>${status && status.model_trouble && html`<p class="note bad">${plain(status.model_trouble.message ?? status.model_trouble)}</p>`}
      <p class="help">Models with their windows and prices, MCP servers, limits and modes stand in <code>knapper.toml</code> of the workspace, secrets in the secret file: <code>knapper secrets set NAME</code>.</p></section>
    <${Grants} beat=${beat} reload=${reload} />
    ${machine && html`<section class="section"><h2>This machine</h2><dl class="facts">${Object.entries(machine).slice(0, 24).map(([title, value]) => html`<dt>${title}</dt><dd>${plain(shown(value)).slice(0, 400)}</dd>`)}</dl></section>`}</div>`;
}
