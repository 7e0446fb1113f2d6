// The page: its rooms, and what is common to them. All texts become text nodes.
import { render, useEffect, useRef, useState } from "/page/preact.js";
import { Approvals } from "/page/approvals.js";
import { Chat } from "/page/chat.js";
import { Functions } from "/page/functions.js";
import { api, askTabs, count, Fault, hasKey, html, plain } from "/page/kit.js";
import { LogIn } from "/page/login.js";
import { Memory } from "/page/memory.js";
import { Agents, Growth, Steps } from "/page/work.js";

const ROOMS = ["Chat", "Approvals", "Functions", "Growth", "Memory", "Steps", "Agents"];
let isOut = false;
const LOOK_MS = 3000, AGENT = "knapper-agent"; // the chosen one, in this tab

// The room and what is chosen in it stand in the address, so that the browser's keys go back and forth.
function here() {
  const [room, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  let chosen = "";
  try { chosen = decodeURIComponent(rest.join("/")); } catch { /* an address that somebody typed */ }
  return ROOMS.includes(room) ? { room, chosen } : { room: "Chat", chosen: "" };
}

function App({ link: given }) {
  const [{ room, chosen }, setPlace] = useState(here);
  const [{ agents, approvals, status }, setSeen] = useState({ agents: [], approvals: [], status: null });
  const [agent, setAgent] = useState("");
  const [fault, setFault] = useState("");
  const [said, say] = useState("");
  const [told, setTold] = useState(localStorage.told); // the last save whose notice was closed
  const [link, setLink] = useState(given); // it is good once
  const [isIn, setIn] = useState(() => !given && hasKey());
  const main = useRef(null), rooms = useRef(null);
  const choose = (name) => { sessionStorage.setItem(AGENT, name); setAgent(name); };
  const go = (name, item = "") => { location.hash = `#/${name}${item ? `/${encodeURIComponent(item)}` : ""}`; };
  const look = () => hasKey() && Promise.all([api("/agents"), api("/approvals"), api("/status")]).then(([known, waiting, now]) => {
    setSeen({ agents: known.agents, approvals: waiting.approvals, status: now }); setFault(""); setIn(true); isOut = false;
    const named = (name) => known.agents.find((row) => row.name === name);
    setAgent((old) => old || (named(sessionStorage.getItem(AGENT)) || named("main") || known.agents[0])?.name || "");
  }, (error) => { isOut = error.status === 401; if (isOut) setIn(false); else setFault(error); });
  useEffect(() => { look(); const timer = setInterval(() => document.hidden || isOut || look(), LOOK_MS); return () => clearInterval(timer); }, []);
  useEffect(() => { // the lit room is in sight also where the bar scrolls
    const lit = rooms.current && rooms.current.querySelector("[aria-current]");
    if (lit) rooms.current.scrollLeft = lit.offsetLeft - (rooms.current.clientWidth - lit.offsetWidth) / 2;
  }, [room, Boolean(agent)]);
  useEffect(() => { const moved = () => setPlace(here()); addEventListener("hashchange", moved); return () => removeEventListener("hashchange", moved); }, []);
  useEffect(() => { if (isIn) document.title = `${room} · Knapper`; }, [room, isIn]);
  useEffect(() => { if (approvals.length) say(`${count(approvals.length, "question")} to answer: Alt+Q.`); }, [approvals.length]);
  useEffect(() => { // Alt and a number opens a room, Alt+Q goes to a question, / to the search
    const pressed = (event) => {
      if (event.altKey && event.code === "KeyQ") {
        event.preventDefault();
        const question = document.querySelector("main .asking button");
        if (!question) go("Approvals");
        (question || main.current).focus();
      }
      const number = event.altKey && /^Digit[1-7]$/.test(event.code) ? Number(event.code.slice(5)) : 0;
      if (number) { event.preventDefault(); go(ROOMS[number - 1]); }
      const isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName), search = document.querySelector("[data-find]");
      if (event.key === "/" && !isTyping && search) { event.preventDefault(); search.focus(); }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  if (!isIn) return html`<${LogIn} link=${link} done=${() => { setLink(""); return look(); }} />`;
  if (!agent) return html`<main>${fault ? html`<${Fault} text=${fault} />` : html`<p class="dim">Loading…</p>`}</main>`;
  const choices = [...agents];
  if (choices.every((row) => row.name !== agent)) choices.push({ name: agent });
  const beat = status ? `${status.saves}/${status.functions}/${status.grants}/${status.running.join()}/${approvals.length}` : "", saved = status && status.last_save && status.saves + status.last_save;
  return html`<div class="frame"><header><a class="skip" href=${location.hash || "#"} onClick=${(event) => { event.preventDefault(); main.current.focus(); }}>Skip to the room</a><h1>Knapper</h1>
    <label>Agent <select value=${agent} onChange=${(event) => choose(event.target.value)}>${choices.map((row) => html`<option key=${row.name} value=${row.name}>${row.name}${row.running ? " …" : ""}</option>`)}</select></label>
    <nav aria-label="Rooms" ref=${rooms}>${ROOMS.map((name, at) => html`<button key=${name} title=${`Alt+${at + 1}`} aria-current=${room === name ? "page" : undefined} onClick=${() => go(name)}>${name}${name === "Approvals" && approvals.length > 0 && html`<span class="badge">${approvals.length}</span>`}</button>`)}</nav>
    <span class="dim about">${status ? `${status.workspace} · ${count(status.functions, "function")} · sandbox ${status.sandbox}` : ""}</span>
    ${status && status.rejected > 0 && html`<button class="badge" onClick=${() => go("Functions")}>${count(status.rejected, "file")} rejected</button>`}
    <${Fault} text=${fault} /><div role="status">${saved && saved !== told && html`<p class="row"><span class="wide saved">${plain(status.last_save)}</span><button onClick=${() => setTold(localStorage.told = saved)}>Close</button></p>`}</div></header>
    <main aria-label=${room} ref=${main} tabindex="-1" class=${room}>${room === "Chat" && html`<${Chat} key=${agent} agent=${agent} approvals=${approvals} reload=${look} say=${say} trouble=${status && status.model_trouble} paused=${choices.find((row) => row.name === agent).paused} />`}
      ${room === "Approvals" && html`<${Approvals} rows=${approvals} reload=${look} />`}
      ${room === "Functions" && html`<${Functions} chosen=${chosen} go=${go} beat=${beat} approvals=${approvals} reload=${look} />`}
      ${room === "Growth" && html`<${Growth} go=${go} beat=${beat} />`}
      ${room === "Memory" && html`<${Memory} key=${agent} agent=${agent} beat=${status} />`}
      ${room === "Steps" && html`<${Steps} key=${agent} agent=${agent} beat=${beat} />`}
      ${room === "Agents" && html`<${Agents} go=${go} choose=${choose} beat=${status} />`}</main>
    <p class="unseen" role="status">${said}</p></div>`;
}

// A login link is used here, not by opening its address: what checks links before a click uses none up.
async function start() {
  const link = location.pathname === "/login" ? new URLSearchParams(location.search).get("code") || "" : "";
  if (location.pathname !== "/") history.replaceState(null, "", `/${location.hash}`);
  if (!link) await askTabs();
  render(html`<${App} link=${link} />`, document.getElementById("app"));
}

start();
