// The page: its frame, its rooms, and what is common to them. All texts become text nodes.
import { Component, render, useEffect, useRef, useState } from "./vendor/preact.js";
import { Agents } from "./agents.js";
import { Approvals } from "./approvals.js";
import { Chat, ChatBar } from "./chat.js";
import { FunctionBar, OneFunction } from "./function.js";
import { Functions, NewFunction } from "./functions.js";
import { Growth } from "./growth.js";
import { api, askTabs, count, Fault, go, hasKey, html, plain, to, Toast } from "./kit.js";
import { LogIn } from "./login.js";
import { Memory } from "./memory.js";
import { Palette } from "./palette.js";
import { setTheme, Side } from "./side.js";
import { Settings } from "./settings.js";
import { Steps } from "./steps.js";
import { Icon } from "./marks.js";

const ROOMS = ["Chat", "Functions", "Growth", "Memory", "Settings", "Agents", "Steps", "Approvals"], KEYED = 6;
const OF_AGENT = ["Chat", "Memory", "Steps"]; // the first part of their address is an agent
const TITLES = { Steps: "What the model sees", Approvals: "Questions" };
let isOut = false;
const LOOK_MS = 3000, AGENT = "knapper-agent"; // the chosen one, in this tab

// The room and what is chosen in it stand in the address, so that the browser's keys go back and forth.
const decoded = (text) => { try { return decodeURIComponent(text); } catch { return ""; } }; // an address that somebody typed
function here() {
  const [room, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  return ROOMS.includes(room) ? { room, chosen: rest.map(decoded) } : { room: "Chat", chosen: [] };
}

// What goes wrong in a room stays in it: the rest of the page goes on.
class Room extends Component {
  componentDidCatch(error) { console.error(error); this.setState({ error }); }
  render({ children }, { error }) {
    return error ? html`<div class="page stack"><${Fault} text=${`This room failed: ${error.message}. What you typed is kept.`} /><p><button type="button" onClick=${() => this.setState({ error: null })}>Try again</button></p></div>` : children;
  }
}

function App({ link: given }) {
  const [{ room, chosen }, setPlace] = useState(here);
  const [{ agents, approvals, status }, setSeen] = useState({ agents: [], approvals: [], status: null });
  const [kept, setAgent] = useState("");
  const [fault, setFault] = useState("");
  const [said, say] = useState("");
  const [told, setTold] = useState(localStorage.told); // the last save whose notice was closed
  const [link, setLink] = useState(given); // it is good once
  const [isIn, setIn] = useState(() => !given && hasKey());
  const [isDrawn, setDrawn] = useState(false), [isSearching, setSearching] = useState(false);
  const main = useRef(null), burger = useRef(null);
  const look = () => hasKey() && Promise.all([api("/agents"), api("/approvals"), api("/status")]).then(([known, waiting, now]) => {
    setSeen({ agents: known.agents, approvals: [...waiting.approvals, ...waiting.asks], status: now }); setFault(""); setIn(true); isOut = false;
    const named = (name) => known.agents.find((row) => row.name === name);
    setAgent((old) => old || (named(sessionStorage.getItem(AGENT)) || named("main") || known.agents[0])?.name || "");
  }, (error) => { isOut = error.status === 401; if (isOut) setIn(false); else setFault(error); });
  const agent = (OF_AGENT.includes(room) && chosen[0]) || kept;
  useEffect(() => { look(); const timer = setInterval(() => document.hidden || isOut || look(), LOOK_MS); return () => clearInterval(timer); }, []);
  useEffect(() => { if (agent && agent !== kept) setAgent(agent); if (agent) sessionStorage.setItem(AGENT, agent); }, [agent]);
  useEffect(() => { const moved = () => { setPlace(here()); setDrawn(false); setSearching(false); }; addEventListener("hashchange", moved); return () => removeEventListener("hashchange", moved); }, []);
  const title = (room === "Functions" && chosen[0]) || TITLES[room] || room;
  useEffect(() => { if (isIn) document.title = `${title} · Knapper`; }, [title, isIn]);
  useEffect(() => { if (approvals.length) say(`${count(approvals.length, "question")} to answer: Alt+Q.`); }, [approvals.length]);
  useEffect(() => { if (isDrawn) document.querySelector(".side a")?.focus(); }, [isDrawn]);
  useEffect(() => { // Alt and a number opens a room, Alt+Q goes to a question, Alt+M to the mode, / to the search of a list, Ctrl+K to that of all
    const pressed = (event) => {
      if (event.altKey && event.code === "KeyQ") {
        event.preventDefault();
        const question = document.querySelector("main .asking button");
        if (!question) go("Approvals");
        (question || main.current).focus();
      }
      if (event.altKey && event.code === "KeyM") { const menu = document.querySelector(".composer .has-menu > button"); if (menu) { event.preventDefault(); menu.click(); } }
      const number = event.altKey && /^Digit[1-9]$/.test(event.code) ? Number(event.code.slice(5)) : 0;
      if (number && number <= KEYED) { event.preventDefault(); go(ROOMS[number - 1]); }
      if ((event.ctrlKey || event.metaKey) && event.key === "k") { event.preventDefault(); setSearching(true); }
      if (event.key === "Escape" && isDrawn) { setDrawn(false); burger.current.focus(); }
      const [target] = event.composedPath(), isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable, search = document.querySelector("[data-find]");
      if (event.key === "/" && !isTyping && search) { event.preventDefault(); search.focus(); }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [isDrawn]);
  if (!isIn) return html`<${LogIn} link=${link} done=${() => { setLink(""); return look(); }} />`;
  if (!agent) return html`<main>${fault ? html`<${Fault} text=${fault} />` : html`<p class="dim">Loading…</p>`}</main>`;
  const saved = status && status.last_save && status.saves + status.last_save;
  const beat = status ? `${status.saves}/${status.functions}/${status.grants}/${status.running.join()}/${approvals.length}/${status.stopped}/${status.paused}` : "";
  const paused = Boolean(agents.find((row) => row.name === agent)?.paused), common = { beat, approvals, reload: look };
  return html`<div class=${`app${isDrawn ? " drawer" : ""}`}><a class="skip" href=${location.hash || "#"} onClick=${(event) => { event.preventDefault(); main.current.focus(); }}>Skip to the room</a>
    <${Side} room=${room} agent=${agent} chosen=${chosen} agents=${agents} approvals=${approvals} status=${status} beat=${beat} search=${() => setSearching(true)} reload=${look} />
    <div class="room" onClick=${() => isDrawn && setDrawn(false)}><header><div class="bar"><button type="button" class="only quiet burger" ref=${burger} aria-label="Rooms and conversations" aria-controls="side" aria-expanded=${isDrawn} onClick=${(event) => { event.stopPropagation(); setDrawn(!isDrawn); }}><${Icon} name="rooms" /></button>
      ${room === "Chat" ? html`<${ChatBar} key=${agent} agent=${agent} conversation=${chosen[1]} beat=${beat} />` : room === "Functions" && chosen[0] ? html`<${FunctionBar} name=${chosen[0]} beat=${beat} />` : html`<h1 class="grow cut">${title}</h1>${room === "Functions" && html`<a class="button" href="#/Functions/+">New function</a>`}`}
      ${status && status.rejected > 0 && html`<button type="button" class="badge" onClick=${() => go("Functions")}>${count(status.rejected, "file")} rejected</button>`}${status && status.stopped && !(room === "Functions" && chosen[1] === "stop") && html`<a class="button badge" href=${to("Functions", status.stopped, "stop")}>${status.stopped} stands at a stop</a>`}</div>
      <${Fault} text=${fault} />${saved && saved !== told && html`<div role="status" class="row saved"><span class="wide">${plain(status.last_save)}</span><button type="button" class="quiet" onClick=${() => setTold(localStorage.told = saved)}>Close</button></div>`}</header>
    <main id="main" aria-label=${TITLES[room] || room} ref=${main} tabindex="-1" class=${room}><${Room} key=${room === "Functions" ? `${room}/${chosen[0] || ""}` : room}>${room === "Chat" && html`<${Chat} key=${agent} agent=${agent} chosen=${chosen[1]} say=${say} trouble=${status && status.model_trouble} paused=${paused} ...${common} />`}
      ${room === "Functions" && (chosen[0] ? html`<${chosen[0] === "+" ? NewFunction : OneFunction} key=${chosen[0]} name=${chosen[0]} tab=${chosen[1] || ""} agent=${agent} stopped=${status && status.stopped} ...${common} />` : html`<${Functions} ...${common} />`)}
      ${room === "Growth" && html`<${Growth} ...${common} />`}
      ${room === "Memory" && html`<${Memory} key=${agent} agent=${agent} beat=${status} />`}
      ${room === "Steps" && html`<${Steps} key=${`${agent}/${chosen[1]}`} agent=${agent} conversation=${chosen[1]} beat=${beat} />`}
      ${room === "Agents" && html`<${Agents} beat=${status} chosen=${chosen[0]} agent=${agent} changed=${look} />`}
      ${room === "Settings" && html`<${Settings} chosen=${chosen[0]} agent=${agent} beat=${beat} reload=${look} />`}
      ${room === "Approvals" && html`<${Approvals} rows=${approvals} reload=${look} />`}<//></main></div>
    ${isSearching && html`<${Palette} agent=${agent} close=${() => setSearching(false)} />`}<${Toast} /><p class="unseen" role="status">${said}</p></div>`;
}

// A login link is used here, not by opening its address: what checks links before a click uses none up.
async function start() {
  setTheme();
  const link = location.pathname === "/login" ? new URLSearchParams(location.search).get("code") || "" : "";
  if (location.pathname !== "/") history.replaceState(null, "", `/${location.hash}`);
  if (!link) await askTabs();
  render(html`<${App} link=${link} />`, document.getElementById("app"));
}

start();
