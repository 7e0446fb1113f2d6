// Where a function stops, and the call that stands there: its variables, its way, and how it goes on.
import { useEffect, useRef, useState } from "./vendor/preact.js";
import { api, Fault, html, part, plain, tell, to, when } from "./kit.js";
import { Only } from "./marks.js";
import { colored, Lines } from "./python.js";

const LOOK_MS = 500, MOST_SAID = 40;
const STEPS = [["next", "Next line", "next", "n"], ["step", "Step in", "step", "s"], ["out", "Run to its end", "return", "r"], ["play", "Continue", "continue", "c"]];
const QUIT = "quit", LOCALS = "locals";

// The stop of this process and its breakpoints, looked at again and again while they are in sight.
export function useStops(isLooking) {
  const [state, setState] = useState({ stops: [], breakpoints: [] }), [fault, setFault] = useState("");
  const take = (now) => { setFault(""); setState((old) => (JSON.stringify(old) === JSON.stringify(now) ? old : now)); };
  const look = () => api("/stops").then(take, setFault);
  useEffect(() => { if (!isLooking) return undefined; look(); const timer = setInterval(() => document.hidden || look(), LOOK_MS); return () => clearInterval(timer); }, [isLooking]);
  return { stop: state.stops[0] || null, points: state.breakpoints, fault, take, look };
}

const placeOf = (stop) => stop.frames[stop.current];
export const standsIn = (stop, name) => Boolean(stop) && (stop.call === name || stop.frames.some((frame) => frame.function === name));

// The source at a stop, or that of the function while none stands; a line that is pressed gets a breakpoint, or loses it.
function Code({ first, text, marks, label, flip }) {
  const rows = colored(plain(text)).map((inside, at) => [first + at, marks.get(first + at) || "", inside]);
  const pressed = ({ target }) => { const line = target.closest("[data-line]"); if (line && getSelection().isCollapsed) flip(Number(line.dataset.line)); };
  return html`<pre class="source flush" tabindex="0" aria-label=${label} onClick=${pressed}><code><${Lines} rows=${rows} /></code></pre>`;
}

export function StopRoom({ name, facts, stops }) {
  const { stop: any, points, take, look } = stops, stop = standsIn(any, name) ? any : null;
  const [said, setSaid] = useState([]), [text, setText] = useState(""), [fault, setFault] = useState(""), busy = useRef(false), latest = useRef(null);
  const mine = points.filter((row) => row.function === name), at = stop && placeOf(stop);
  const give = (typed, isTold = false) => {
    if (!stop || busy.current) return;
    busy.current = true; setFault("");
    api(`/stops/${stop.number}`, "POST", { typed }).then((now) => {
      take(now);
      const [here] = now.stops;
      if (!here) setSaid([]);
      if (!isTold || !here) return undefined;
      setSaid((old) => [...old, { typed, text: here.message }].slice(-MOST_SAID));
      return api(`/stops/${here.number}`, "POST", { typed: LOCALS }).then(take); // what was typed may have changed them
    }).catch((error) => { setFault(error); look(); }).finally(() => { busy.current = false; });
  };
  latest.current = give;
  useEffect(() => { // the keys of the prompt, where nothing is typed
    const pressed = (event) => {
      const [target] = event.composedPath(), isTyping = /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable;
      const step = isTyping || event.ctrlKey || event.altKey || event.metaKey ? null : STEPS.find(([, , , key]) => key === event.key);
      if (step) { event.preventDefault(); latest.current(step[2]); }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  const clear = (row) => api(`/breakpoints/${row.number}`, "DELETE").then(look, setFault);
  const flip = (line) => {
    const there = points.find((row) => row.line === line && row.path === (at ? at.path : facts.path));
    if (there) clear(there); else arm(String(line), at ? at.function.split(".")[0] : name);
  };
  const arm = (where, owner = name) => { setFault(""); return api(`/functions/${part(owner)}/breakpoints`, "POST", { at: where }).then((row) => { if (row.moved) tell(row.moved); look(); }, setFault); };
  const typed = (event) => { event.preventDefault(); if (text.trim()) { give(text.trim(), true); setText(""); } };
  const marks = new Map(points.filter((row) => row.line && row.path === (at ? at.path : facts.path)).map((row) => [row.line, "armed"]));
  if (at) marks.set(at.line, `stopped${marks.has(at.line) ? " armed" : ""}`);
  const first = stop ? stop.lines[0]?.[0] ?? 1 : facts.line, source = stop ? stop.lines.map((line) => line[1]).join("\n") : facts.source.replace(/^\n+/, "").trimEnd();
  return html`<section class="editor" aria-label=${stop ? `Stopped at line ${at.line}` : `Where ${name} stops`}>
    <div class="tools">${stop ? html`<span class="tag hand">stopped at line ${at.line}</span><span class="dim mid cut">${plain(stop.why)}, clock paused</span><span class="grow"></span>${STEPS.map(([icon, label, command, key]) => html`<${Only} name=${icon} label=${label} title=${`${label} (${key})`} onClick=${() => give(command)} />`)}<button type="button" class="quiet danger" onClick=${() => give(QUIT)}>End the call</button>`
      : html`<span class="mono cut">${facts.path}</span><span class="grow"></span><span class="dim">${mine.length ? "Call it, and it stops there." : "Press a line to stop there."}</span>`}</div>
    <div class="inside"><${Code} first=${first} text=${source} marks=${marks} label=${stop ? `${at.function}, stopped` : `Lines of ${name}`} flip=${flip} /></div>
    ${stop && stop.error && html`<p class="note bad below">${plain(stop.error)}</p>`}${stop && stop.value !== null && html`<p class="note below">It returns <code>${plain(stop.value)}</code></p>`}
    ${said.length > 0 && html`<div class="said-at" role="log" tabindex="0" aria-label="What was typed here"><dl>${said.map((row) => html`<dt><span class="hand mono">› </span><code>${plain(row.typed)}</code></dt><dd><pre tabindex="0" aria-label="Answer">${plain(row.text)}</pre></dd>`)}</dl></div>`}
    <div class="below"><${Fault} text=${fault || stops.fault} /></div>
    ${stop && html`<form class="gate" onSubmit=${typed}><label class="row line-row grow"><span class="hand mono" aria-hidden="true">›</span><span class="unseen">Expression, or name = value</span><input class="mono grow" autocomplete="off" spellcheck="false" placeholder="An expression, or name = value" value=${text} onInput=${({ target }) => setText(target.value)} /></label></form>`}
    <p class="unseen" role="status">${stop ? `Stopped at line ${at.line}, ${plain(stop.why)}` : ""}</p></section>`;
}

// What the call has there: variables, the frames that led to it, and all places where it stops.
export function StopFacts({ name, stops }) {
  const { stop: any, points, take, look } = stops, stop = standsIn(any, name) ? any : null;
  const [where, setWhere] = useState(""), [fault, setFault] = useState("");
  const go = async (frame) => { // one frame at a time, as at the prompt
    setFault("");
    try {
      for (let now = stop, left = stop.frames.length; left > 0 && now && now.current !== frame; left -= 1) { const read = await api(`/stops/${now.number}`, "POST", { typed: now.current > frame ? "up" : "down" }); take(read); [now] = read.stops; }
    } catch (error) { setFault(error); look(); }
  };
  const add = (event) => { event.preventDefault(); setFault(""); api(`/functions/${part(name)}/breakpoints`, "POST", { at: where }).then((row) => { setWhere(""); if (row.moved) tell(row.moved); look(); }, setFault); };
  const clear = (row) => api(`/breakpoints/${row.number}`, "DELETE").then(look, setFault);
  const rows = stop ? stop.locals : [], frames = stop ? [...stop.frames.entries()].reverse() : [];
  const says = (row) => [row.condition && `if ${row.condition}`, row.after > 0 && `after ${row.after}`, row.every > 1 && `every ${row.every}`, row.once && "once"].filter(Boolean).join(" ");
  return html`${any && !stop && html`<p class="note hand"><span class="grow">A call of ${any.call} stands at line ${placeOf(any).line}; others wait for it.</span><a class="button" href=${to("Functions", any.call, "stop")}>Look</a></p>`}
    ${stop && html`<section class="section" aria-label="Variables"><h2>Variables</h2>${rows.length ? html`<dl class="facts variables">${rows.map(([one, value]) => html`<dt class="mono">${plain(one)}</dt><dd><code>${plain(value)}</code></dd>`)}</dl>` : html`<p class="dim">None yet.</p>`}${stop.shown.length > 0 && html`<dl class="facts variables">${stop.shown.map(([one, value]) => html`<dt class="mono hand">${plain(one)}</dt><dd><code>${plain(value)}</code></dd>`)}</dl>`}<p class="help">What you change applies to this call only, and its answer says so.</p></section>
      <section class="section"><h2>How it got here</h2><ol class="list frames">${frames.map(([at, frame]) => html`<li><button type="button" class="link mono" aria-current=${at === stop.current ? "true" : undefined} disabled=${at === stop.current} onClick=${() => go(at)}>${plain(frame.function)}:${frame.line}</button><span class="dim cut">${plain(frame.arguments)}</span>${at === stop.frames.length - 1 && html`<span class="grow"></span><span class="help">stopped, ${when(stop.since)}</span>`}</li>`)}</ol>${stop.call_arguments && html`<p class="help">The call: <code>${plain(stop.call_arguments)}</code></p>`}</section>`}
    <section class="section" aria-label="Where it stops"><h2>Where it stops</h2>${points.length === 0 ? html`<p class="dim">Nowhere yet. Calls by hand stop, and those of agents that this server runs.</p>` : html`<ul class="list">${points.map((row) => html`<li key=${row.number}><span class="grow">${row.function !== name && html`<a class="mono" href=${to("Functions", row.function, "stop")}>${row.function}</a> `}${row.line ? html`line <code>${row.line}</code>` : html`<span class="bad">its line is gone: <code>${plain(row.text)}</code></span>`} ${says(row) && html`<code>${plain(says(row))}</code>`}${row.by === "agent" && html` <span class="dim">by an agent: it records</span>`}</span><${Only} name="close" label=${`Remove the stop at line ${row.line}`} onClick=${() => clear(row)} /></li>`)}</ul>`}
      <form class="row line-row" onSubmit=${add}><label class="wide"><span class="unseen">Line, and when it stops there</span><input class="mono" placeholder="line, if condition, after N" value=${where} onInput=${({ target }) => setWhere(target.value)} /></label><button>Add</button></form><${Fault} text=${fault} /></section>`;
}
