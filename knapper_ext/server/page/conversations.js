// The conversations of an agent: a list from which one is opened, renamed or deleted.
import { useState } from "/page/preact.js";
import { api, count, Fault, html, part, useLoaded, when } from "/page/kit.js";

export const MAIN = "main";

export const conversationsOf = (agent) => `/agents/${part(agent)}/conversations`;

function Naming({ row, path, done, fail }) {
  const [name, setName] = useState(row.name);
  const keep = (event) => { event.preventDefault(); api(path, "PATCH", { name }).then(done, fail); };
  return html`<form class="row" onSubmit=${keep}><label class="wide"><span class="unseen">Name of ${row.name}</span><input value=${name} maxlength="60" onInput=${({ target }) => setName(target.value)} /></label>
    <button type="submit">Keep</button><button type="button" onClick=${() => done()}>Cancel</button></form>`;
}

export function Conversations({ agent, current, open, beat }) {
  const root = conversationsOf(agent);
  const [listed, lost, again] = useLoaded(root, beat);
  const [naming, setNaming] = useState(""), [gone, setGone] = useState(null), [fault, setFault] = useState("");
  const done = () => { setNaming(""); setFault(""); again(); };
  const remove = (row) => api(`${root}/${row.id}`, "DELETE").then(() => { setGone(row); done(); }, setFault);
  const bringBack = () => api(`${root}/${gone.id}/undelete`, "POST").then(() => { setGone(null); done(); }, setFault);
  return html`<section class="card" aria-label="Conversations"><h2>Conversations of ${agent}</h2><${Fault} text=${fault || lost} />
    ${gone && html`<p class="row" role="status"><span class="wide">Deleted: ${gone.name}</span><button type="button" onClick=${bringBack}>Bring back</button></p>`}
    ${listed && listed.conversations.length === 0 && html`<p class="dim">Nothing was said yet.</p>`}
    <ul class="rooms">${listed && listed.conversations.map((row) => html`<li key=${row.id}>${naming === row.id ? html`<${Naming} row=${row} path=${`${root}/${row.id}`} done=${done} fail=${setFault} />` : html`<div class="row">
      <button type="button" class="wide" aria-current=${row.id === current ? "true" : undefined} onClick=${() => open(row.id)}>${row.name || row.id}</button>
      <span class="dim">${when(row.used)} · ${count(row.messages, "message")}${row.origin.token ? " · private to a token" : ""}</span>
      <button type="button" onClick=${() => setNaming(row.id)} aria-label=${`Rename ${row.name || row.id}`}>Rename</button>
      ${row.id !== MAIN && row.id !== current && html`<button type="button" onClick=${() => remove(row)} aria-label=${`Delete ${row.name || row.id}`}>Delete</button>`}</div>`}</li>`)}</ul></section>`;
}
