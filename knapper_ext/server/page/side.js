// The side of the page: its rooms, the agents, and the conversations with the one that is talked to.
import { useState } from "./vendor/preact.js";
import { conversationsOf, MAIN, useConversations } from "./conversations.js";
import { api, changed, Fault, go, html, tell, to } from "./kit.js";
import { Icon, Mark, Only } from "./marks.js";
import { pauseAll } from "./spending.js";

const ROOMS = [["Functions", "functions"], ["Growth", "growth"], ["Memory", "memory"], ["Settings", "settings"]];
const THEME = "knapper-theme", DAY_S = 86_400;

export const isDark = () => (localStorage.getItem(THEME) || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
export const setTheme = () => { const theme = localStorage.getItem(THEME); if (theme) document.documentElement.dataset.theme = theme; };

const midnight = () => new Date().setHours(0, 0, 0, 0) / 1000;
const DAYS = [["Today", 0], ["Yesterday", 1], ["The last week", 7], ["Earlier", Infinity]];
const dayOf = (used) => DAYS.find(([, days]) => used >= midnight() - days * DAY_S)[0];

function Naming({ row, path, done, fail }) {
  const [name, setName] = useState(row.name);
  const keep = (event) => { event.preventDefault(); api(path, "PATCH", { name }).then(done, fail); };
  return html`<form class="row line-row" onSubmit=${keep} onKeyDown=${(event) => event.key === "Escape" && done()}><label class="grow"><span class="unseen">Name of ${row.name}</span><input value=${name} maxlength="60" onInput=${({ target }) => setName(target.value)} /></label><button type="submit">Keep</button></form>`;
}

function Talks({ agent, current, beat, asking }) {
  const [rows, lost, again] = useConversations(agent, beat);
  const [naming, setNaming] = useState(""), [fault, setFault] = useState("");
  const root = conversationsOf(agent), done = () => { setNaming(""); setFault(""); again(); changed("conversations"); };
  const remove = (row) => api(`${root}/${row.id}`, "DELETE").then(() => {
    done();
    if (row.id === current) go("Chat", agent, MAIN);
    tell(`Deleted: ${row.name}`, () => api(`${root}/${row.id}/undelete`, "POST").then(done, setFault));
  }, setFault);
  const item = (row) => html`<li key=${row.id} class="with-acts">${naming === row.id ? html`<${Naming} row=${row} path=${`${root}/${row.id}`} done=${done} fail=${setFault} />` : html`
    <a class="item" href=${to("Chat", agent, row.id)} aria-current=${row.id === current ? "true" : undefined}><span class="cut">${row.name || row.id}</span>${row.running && html`<span class="tail">${asking ? html`<span class="waits">asks</span>` : "works"}</span>`}${row.origin?.token && html`<span class="tail" title="Private to a token">token</span>`}</a>
    <span class="acts"><${Only} name="pen" label=${`Rename ${row.name || row.id}`} onClick=${() => setNaming(row.id)} />${row.id !== MAIN && html`<${Only} name="close" label=${`Delete ${row.name || row.id}`} onClick=${() => remove(row)} />`}</span>`}</li>`;
  return html`<${Fault} text=${fault || lost} />${DAYS.map(([day]) => [day, (rows || []).filter((row) => dayOf(row.used || 0) === day)]).filter(([, list]) => list.length).map(([day, list]) => html`<h2>${day}</h2><ul aria-label=${`Conversations: ${day}`}>${list.map(item)}</ul>`)}`;
}

const stateOf = ({ running, paused }, asks) => (asks ? "waits for you" : paused ? "paused" : running ? "works" : "idle");

export function Side({ room, agent, chosen, agents, approvals, status, beat, search, reload }) {
  const [, redraw] = useState(0);
  const flip = () => { localStorage.setItem(THEME, isDark() ? "light" : "dark"); setTheme(); redraw((number) => number + 1); };
  const begin = () => api(conversationsOf(agent), "POST", {}).then((made) => go("Chat", agent, made.id), (error) => tell(error.message));
  const tails = { Functions: status ? status.functions.toLocaleString() : "", Growth: status && status.waiting > 0 ? html`<span class="waits">${status.waiting} wait</span>` : "" };
  const item = ([name, icon], at) => html`<li><a class="item" href=${to(name)} title=${`Alt+${at + 2}`} aria-current=${room === name ? "page" : undefined}><${Icon} name=${icon} /><span>${name}</span><span class="tail">${tails[name]}</span></a></li>`;
  const asks = (name) => approvals.some((row) => row.agent === name);
  const current = room === "Chat" ? chosen[1] || sessionStorage.getItem(`knapper-conversation:${agent}`) || MAIN : "";
  return html`<nav class="side" aria-label="Rooms and conversations" id="side"><div class="brand"><a href=${to("Chat")}><${Mark} /><span>Knapper</span></a><${Only} name=${isDark() ? "light" : "dark"} label="Light or dark" onClick=${flip} /></div>
    <div class="begin"><button type="button" class="grow" onClick=${begin}><${Icon} name="add" />New conversation</button><${Only} name="search" kind="" label="Search everything, Ctrl+K" onClick=${search} /></div>
    <div class="side-list"><ul>${ROOMS.map(item)}${approvals.length > 0 && html`<li><a class="item" href=${to("Approvals")} aria-current=${room === "Approvals" ? "page" : undefined} title="Alt+Q"><${Icon} name="hand" /><span>Questions</span><span class="tail waits">${approvals.length}</span></a></li>`}</ul>
      <h2><a href=${to("Agents")} aria-current=${room === "Agents" ? "page" : undefined}>Agents</a></h2><ul>${agents.map((row) => html`<li key=${row.name}><a class="item" href=${to("Chat", row.name)} aria-current=${row.name === agent && room === "Chat" && !current ? "true" : undefined}><span class=${`dot ${asks(row.name) ? "asks" : row.running ? "on" : ""}`}></span><span class="mono cut">${row.name}</span><span class="tail">${stateOf(row, asks(row.name))}</span></a></li>`)}</ul>
      <${Talks} key=${agent} agent=${agent} current=${current} beat=${beat} asking=${asks(agent)} /></div>
    <div class="foot">${status && status.paused !== null && html`<span class="row line-row"><span class="hand grow">Paused: nothing runs by itself</span><button type="button" onClick=${() => pauseAll("resume").then(reload, (error) => tell(error.message))}>Resume</button></span>`}<a class="dim" href=${to("Settings", "spending")}>Spending and caps</a><span class="dim cut">${status ? `${status.workspace} · sandbox ${status.sandbox}` : ""}</span></div></nav>`;
}
