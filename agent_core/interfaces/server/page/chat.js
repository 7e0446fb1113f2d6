// The conversation with an agent: as it streams, as it was, and each call in it.
import { html, useEffect, useReducer, useRef, useState } from "/page/preact.js";
import { api, Fault, part, plain, Prose, Source, Text, useWindow } from "/page/kit.js";
import { isVerdict, Outcome, Verdict } from "/page/verdict.js";

const LOADED = 300; // entries at once
const CODE = ["function_code_with_docstring", "code", "old_text", "new_text", "source"]; // arguments that are source

// Entries of a conversation, in order. What has a number is on disk, and replaces the pieces that came before it.
function heard(state, event) {
  const isPiece = ["writing", "usage", "reading", "waiting"].includes(event.type); // what was written of calls stays until they are known
  const entries = isPiece ? [...state.entries] : state.entries.filter((entry) => !entry.writing);
  const at = (key) => entries.findLastIndex((entry) => entry.key === key);
  const put = (entry) => { const place = at(entry.key); place < 0 ? entries.push(entry) : (entries[place] = { ...entries[place], ...entry }); };
  let { running, used, first, said, waits } = state;
  switch (event.type) {
    case "history": return { ...state, entries: event.entries, first: event.first, running: event.running };
    case "earlier": {
      const ids = new Set(entries.map((entry) => entry.key));
      const args = new Map(event.entries.filter((entry) => ids.has(entry.key)).map((entry) => [entry.key, entry.args]));
      const known = entries.map((entry) => (args.has(entry.key) ? { ...entry, args: args.get(entry.key) } : entry));
      return { ...state, entries: [...event.entries.filter((entry) => !ids.has(entry.key)), ...known], first: event.first };
    }
    case "turn_started":
      running = true; said = waits = "";
      if (event.message) put({ key: `${event.turn}:start`, kind: event.event === "message" ? "user" : "notice", text: event.message });
      break;
    case "text": case "thought": {
      const key = `${event.turn || state.turn}:${event.step}:${event.type}`;
      const old = entries[at(key)];
      put({ key, kind: event.type, text: old && !event.whole ? old.text + event.text : event.text });
      break;
    }
    case "writing": {
      const key = `${event.turn}:${event.step}:writing:${event.place}`, old = entries[at(key)];
      put({ key, kind: "call", name: event.name, writing: (old ? old.writing : "") + event.arguments });
      break;
    }
    case "call": put({ key: event.call_id, kind: "call", name: event.name, args: event.arguments, outcome: "" }); break;
    case "answer": put({ key: event.call_id, kind: "call", name: event.name, outcome: event.outcome, text: event.text, detail: event.detail, seconds: event.seconds }); break;
    case "progress": put({ key: event.call_id, kind: "call", progress: `${event.done}${event.total ? ` of ${event.total}` : ""} ${event.note}` }); break;
    case "printed": put({ key: event.call_id, kind: "call", printed: ((entries[at(event.call_id)] || {}).printed || "") + event.text }); break;
    case "grant_asked": put({ key: `ask:${event.question}`, kind: "notice", text: `${event.function} asks: ${event.says.join("; ")}. Answer under Approvals.` }); break;
    case "grant_answered": put({ key: `ask:${event.question}`, kind: "notice", text: `${event.function}: ${event.says.join("; ")}: ${event.answer}` }); break;
    case "quarantined": put({ key: `quarantine:${event.name}`, kind: "warning", text: `${event.name} kept failing, and is not shown to the model any more.` }); break;
    case "usage": used = event.context_limit ? `${event.context_tokens.toLocaleString()} of ${event.context_limit.toLocaleString()} tokens of context` : used; break;
    case "waiting": waits = event.what; break;
    case "warning": put({ key: `warn:${entries.length}`, kind: "warning", text: [event.message, event.fix].filter(Boolean).join(" ") }); break;
    case "turn_ended":
      running = false; waits = ""; said = event.reply || `The turn ended: ${event.reason}.`;
      if (event.reply && !entries.some((entry) => entry.key.startsWith(event.turn) && entry.kind === "text" && entry.text.includes(event.reply.trim())))
        put({ key: `${event.turn}:end`, kind: "text", text: event.reply });
      if (event.reason !== "replied") put({ key: `${event.turn}:why`, kind: "notice", text: `The turn ended: ${event.reason}.` });
      break;
  }
  return { entries, running, used, first, said, waits, turn: event.turn || state.turn };
}

function past(rows) {
  const entries = new Map();
  const put = (entry) => entries.set(entry.key, { ...entries.get(entry.key), ...entry });
  for (const row of rows) {
    const key = `${row.turn}:${row.seq}`;
    if (row.kind === "user") put({ key, kind: "user", text: row.text });
    if (row.kind === "assistant") {
      const calls = row.calls || [];
      if (row.text) put({ key, kind: calls.some((call) => call.name === "send_message") ? "thought" : "text", text: row.text });
      for (const call of calls) put({ key: call.id, kind: "call", name: call.name, args: call.arguments, outcome: "" });
    }
    if (row.kind === "result") {
      put({ key: row.call_id, kind: "call", name: row.name, outcome: row.outcome, text: row.text, detail: row.detail, seconds: row.seconds });
      if (row.name === "send_message") try { put({ key: `${row.call_id}:said`, kind: "text", text: String(JSON.parse(entries.get(row.call_id).args).message) }); } catch { /* the answer says what was wrong with it */ }
    }
  }
  return [...entries.values()];
}

function useConversation(agent, isRunning) {
  const [state, dispatch] = useReducer(heard, { entries: [], running: false, turn: "", used: "", first: 0, said: "", waits: "" });
  const [fault, setFault] = useState("");
  const path = `/agents/${part(agent)}`;
  useEffect(() => {
    let source, over = false, last = "";
    api(`${path}/messages?last=${LOADED}`).then(({ messages, after }) => {
      if (over) return;
      dispatch({ type: "history", running: isRunning, entries: past(messages), first: messages.length < LOADED ? 0 : messages[0].seq });
      source = new EventSource(`/api/v1${path}/events?after=${after}`);
      source.onmessage = (message) => {
        dispatch({ ...JSON.parse(message.data), whole: message.lastEventId !== last });
        last = message.lastEventId;
        setFault("");
      };
      source.onerror = () => setFault("The connection was lost; it is tried again.");
    }).catch((error) => setFault(error.message));
    return () => { over = true; source && source.close(); };
  }, [agent]);
  const earlier = state.first ? () => api(`${path}/messages?before=${state.first}&last=${LOADED}`).then(
    ({ messages }) => dispatch({ type: "earlier", entries: past(messages), first: messages.length < LOADED ? 0 : messages[0].seq }), (error) => setFault(error.message)) : null;
  return [state, fault, earlier];
}

const MARKS = { "": ["…", "dim", "running"], returned: ["✓", "good", ""], admitted: ["✓", "good", ""] };

function Call({ entry }) {
  const [mark, kind, word] = MARKS[entry.outcome || ""] || ["✗", "bad", ""];
  const detail = entry.detail || {};
  return html`<details class="call" open=${entry.writing || (isVerdict(detail) && !detail.admitted)}><summary><span class=${kind} aria-hidden="true">${mark}</span> <strong>${entry.name}</strong>
      <span class=${kind}> ${plain(entry.progress && !entry.outcome ? entry.progress : entry.writing ? "is being written" : word || entry.outcome)}</span>${entry.seconds > 0.05 ? html`<span class="dim"> ${entry.seconds.toFixed(1)} s</span>` : ""}</summary>
    ${entry.writing && html`<${Text} label="What the model writes" text=${entry.writing.replace(/\\(u[0-9a-fA-F]{4}|[^u])/g, (_, mark) => ({ n: "\n", t: "\t" })[mark] || mark.slice(-1)).split("\n").slice(-40).join("\n")} />`}
    ${entry.args && html`<${Arguments} text=${entry.args} />`}
    ${isVerdict(detail) ? html`<${Verdict} verdict=${detail} />` : entry.printed && !entry.outcome && html`<${Text} label="What it printed" text=${entry.printed} />`}
    ${detail.outcome ? html`<${Outcome} outcome=${detail} />` : ""}
    ${entry.text && html`<details><summary class="dim">What the model reads</summary><${Text} label="Answer" text=${entry.text} /></details>`}</details>`;
}

function Arguments({ text }) {
  let value;
  try { value = JSON.parse(text); } catch { value = null; }
  if (!value || typeof value !== "object") return html`<${Text} label="Arguments" text=${text} />`;
  return html`<dl class="arguments">${Object.entries(value).map(([name, given]) => html`<dt>${plain(name)}</dt><dd>${CODE.includes(name) && typeof given === "string" ? html`<${Source} text=${given} label=${name} />`
    : html`<${Text} label=${name} text=${typeof given === "string" ? given : JSON.stringify(given, null, 1)} />`}</dd>`)}</dl>`;
}

const WHO = { user: "You: ", text: "Answer: ", thought: "Thought: ", notice: "", warning: "Warning: " };

function Entry({ entry }) {
  if (entry.kind === "call") return html`<${Call} entry=${entry} />`;
  return html`<div class=${`said ${entry.kind}`}><span class="unseen">${WHO[entry.kind]}</span>${entry.kind === "text" ? html`<${Prose} text=${entry.text} />` : entry.kind === "user" ? entry.text : plain(entry.text)}</div>`;
}

export function Chat({ agent, isRunning, say }) {
  const [{ entries, running, used, said, waits }, lost, earlier] = useConversation(agent, isRunning);
  const [text, setText] = useState("");
  const [fault, setFault] = useState("");
  const log = useRef(null);
  const shown = useWindow(log, entries, earlier);
  useEffect(() => { if (running) say("It is working."); else if (said) say(said); }, [running, said]);
  const send = async (event) => {
    event.preventDefault();
    if (!text.trim()) return;
    shown.toEnd();
    try { await api(`/agents/${part(agent)}/messages`, "POST", { text, key: crypto.randomUUID ? crypto.randomUUID() : `${Date.now()}-${Math.random()}` }); setText(""); setFault(""); }
    catch (error) { setFault(error.message); }
  };
  const stop = () => api(`/agents/${part(agent)}/interrupt`, "POST").catch((error) => setFault(error.message));
  const typed = (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) send(event);
    if (event.key === "Escape" && running) stop();
  };
  return html`<div class="chat"><div class="log" ref=${log} onScroll=${shown.scrolled} role="log" aria-live="off" aria-label="Conversation" tabindex="0">
    ${entries.length === 0 && html`<p class="dim">Nothing was said yet. Ask for something; what is missing will be made.</p>`}
    ${(shown.from > 0 || earlier !== null) && html`<p class="dim">Earlier messages come as you scroll up.</p>`}
    ${entries.slice(shown.from, shown.to).map((entry) => html`<${Entry} key=${entry.key} entry=${entry} />`)}
    </div><form onSubmit=${send}>
    ${!shown.isAtEnd && html`<button type="button" class="down" onClick=${shown.toEnd}>↓ To the newest</button>`}
    <${Fault} text=${fault || lost} />
    <label><span class="dim">Message to ${agent}: Enter sends, Shift+Enter is a new line, Escape stops the turn</span>
      <textarea value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${typed}></textarea></label>
    <div class="row"><button class="strong" type="submit">Send</button>
      <button type="button" onClick=${stop} disabled=${!running}>Stop</button><span class="dim">${running ? `${plain(waits || "working")}… ` : ""}${used}</span></div></form></div>`;
}
