// The conversation with an agent: as it streams, as it was, and each call in it.
import { useEffect, useReducer, useRef, useState } from "/page/preact.js";
import { Approval } from "/page/approvals.js";
import { Call } from "/page/cards.js";
import { Conversations, conversationsOf, MAIN } from "/page/conversations.js";
import { api, count, Fault, html, listen, part, plain, Sentence, useDraft, useWindow } from "/page/kit.js";
import { asWords, Prose } from "/page/markdown.js";

const LOADED = 300; // entries at once

const ANSWERS = { once: "allowed once", yes: "allowed always", no: "not allowed" };

// Entries of a conversation, in order. What has a number is on disk, and replaces the pieces that came before it.
function heard(state, event) {
  const isPiece = ["writing", "usage", "reading", "waiting"].includes(event.type) || (event.type === "message" && !event.turn); // what was written of calls stays until they are known
  const entries = isPiece ? [...state.entries] : state.entries.filter((entry) => !entry.writing);
  const at = (key) => entries.findLastIndex((entry) => entry.key === key);
  const put = (entry) => { const place = at(entry.key); place < 0 ? entries.push(entry) : (entries[place] = { ...entries[place], ...entry }); };
  let { running, used, first, said, waits, asked, unread } = state;
  const takenUp = (text) => { const place = unread.findIndex((message) => message.text === text); unread = unread.filter((_, index) => index !== place); };
  switch (event.type) {
    case "history": return { ...state, entries: event.entries, first: event.first, running: event.running, used: "", unread: [], said: "", waits: "" };
    case "kept": return { ...state, entries: state.entries.map((entry) => (entry.isPiece ? { ...entry, isPiece: false } : entry)) };
    case "again": return { ...state, unread: [], entries: state.entries.filter((entry) => !entry.isPiece && !entry.writing) }; // what is not on disk yet comes again
    case "earlier": {
      const ids = new Set(entries.map((entry) => entry.key));
      const args = new Map(event.entries.filter((entry) => ids.has(entry.key)).map((entry) => [entry.key, entry.args]));
      const known = entries.map((entry) => (args.has(entry.key) ? { ...entry, args: args.get(entry.key) } : entry));
      return { ...state, entries: [...event.entries.filter((entry) => !ids.has(entry.key)), ...known], first: event.first };
    }
    case "turn_started":
      running = true; said = waits = ""; takenUp(event.message);
      if (event.message) put({ key: `${event.turn}:start`, kind: event.event === "message" ? "user" : "notice", text: event.message });
      break;
    case "message":
      if (!event.turn) { if (unread.every((message) => message.id !== event.message_id)) unread = [...unread, { id: event.message_id, text: event.message }]; break; }
      takenUp(event.message);
      put({ key: `${event.turn}:${event.seq}`, kind: "user", text: event.message });
      break;
    case "text": case "thought": {
      const key = `${event.turn || state.turn}:${event.step}:${event.type}`;
      const old = entries[at(key)];
      put({ key, kind: event.type, text: old && !event.whole ? old.text + event.text : event.text, isPiece: !event.whole });
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
    case "grant_asked": asked = asked.includes(event.question) ? asked : [...asked, event.question]; break;
    case "grant_answered":
      asked = asked.filter((question) => question !== event.question);
      put({ key: `ask:${event.question}`, kind: "notice", text: `${event.function} asked to ${event.says.join("; ")}: ${ANSWERS[event.answer] || event.answer}${event.word ? ` (“${event.word}”)` : ""}` });
      break;
    case "quarantined": put({ key: `quarantine:${event.name}`, kind: "warning", text: `${event.name} kept failing, and is not shown to the model any more.` }); break;
    case "usage": used = event.context_limit && event.context_tokens ? `${event.context_tokens.toLocaleString()} of ${event.context_limit.toLocaleString()} tokens` : used; break;
    case "waiting": waits = event.what; break;
    case "warning": put({ key: `${event.turn}:warn:${entries.length}`, kind: "warning", text: [event.message, event.fix].filter(Boolean).join(" ") }); break;
    case "turn_ended":
      running = false; waits = ""; asked = []; said = event.reply || `The turn ended: ${event.reason}.`;
      if (event.reply && !entries.some((entry) => entry.key.startsWith(event.turn) && entry.kind === "text" && entry.text.includes(event.reply.trim())))
        put({ key: `${event.turn}:end`, kind: "text", text: event.reply });
      if (event.reason !== "replied") put(endOf(event));
      if (event.receipt) put(receiptOf(event));
      break;
  }
  return { entries, running, used, first, said, waits, asked, unread, turn: event.turn || state.turn };
}

const endOf = ({ turn, reason }) => ({ key: `${turn}:why`, kind: "notice", text: `The turn ended: ${reason}.`, reason });

// What the program knows that a turn did, whatever its reply says.
const receiptOf = ({ turn, receipt }) => ({ key: `${turn}:receipt`, kind: "receipt", text: receipt });

const EMPTY = { entries: [], running: false, turn: "", used: "", first: 0, said: "", waits: "", asked: [], unread: [] };

// What is on disk, told as it was when it happened.
function past({ messages, ends = [], receipts = [] }) {
  let state = EMPTY;
  const tell = (type, row, more) => { state = heard(state, { ...row, type, whole: true, step: row.seq, ...more }); };
  for (const [at, row] of messages.entries()) {
    const calls = row.calls || [], of = ({ turn }) => turn === row.turn;
    if (row.kind === "user") tell("message", row, { message: row.text });
    if (row.kind === "assistant" && row.text) tell(calls.some((call) => call.name === "send_message") ? "thought" : "text", row);
    for (const call of calls) tell("call", call, { call_id: call.id });
    if (row.kind === "result") {
      tell("answer", row);
      if (row.name === "send_message") try { tell("text", row, { text: String(JSON.parse(state.entries.find((entry) => entry.key === row.call_id).args).message) }); } catch { /* the answer says what was wrong with it */ }
    }
    if (messages[at + 1]?.turn === row.turn) continue;
    const end = ends.find(of);
    if (end && end.text) tell("warning", row, { message: end.text });
    tell("turn_ended", row, { reason: "replied", ...end, ...receipts.find(of) });
  }
  return state.entries;
}


// `isAll`: also what left it, as the events from the first one on tell.
function useConversation(agent, conversation, isAll) {
  const [state, dispatch] = useReducer(heard, EMPTY);
  const [fault, setFault] = useState("");
  const [again, setAgain] = useState(0);
  const readAgain = () => setAgain((number) => number + 1);
  const path = `/agents/${part(agent)}`, here = `conversation=${part(conversation)}`;
  useEffect(() => {
    let end = () => {}, over = false;
    const begin = (after) => { end = listen(`${path}/events?${here}&after=${after}`, after, (event) => (event.type === "turns_removed" ? readAgain() : dispatch(event)), setFault); };
    if (isAll) { dispatch({ type: "history", running: false, entries: [], first: 0 }); begin(0); }
    else api(`${path}/messages?${here}&last=${LOADED}`).then((read) => {
      if (over) return;
      const { messages, after, running } = read;
      dispatch({ type: "history", running, entries: past(read), first: read.more ? messages[0].seq : 0 });
      begin(after);
    }).catch(setFault);
    return () => { over = true; end(); };
  }, [agent, again, isAll]);
  const earlier = state.first ? () => api(`${path}/messages?${here}&before=${state.first}&last=${LOADED}`).then(
    (read) => dispatch({ type: "earlier", entries: past(read), first: read.more ? read.messages[0].seq : 0 }), setFault) : null;
  return [state, fault, earlier];
}

// The source of a function before each change, as far as the conversation shows it; null if it was not made yet.
function sourcesBefore(entries) {
  const now = new Map(), before = new Map();
  for (const { key, name, detail } of entries) {
    if (!detail || !detail.source || !detail.name) continue;
    before.set(key, now.get(detail.name));
    if (detail.admitted) now.set(detail.name, detail.source);
    else if (name === "create_function" && !now.has(detail.name)) now.set(detail.name, null);
  }
  return before;
}

const WHO = { user: "You: ", text: "Answer: ", thought: "Thought: ", notice: "", warning: "Warning: ", receipt: "This turn: " };

function Entry({ entry, before }) {
  if (entry.kind === "call") return html`<${Call} entry=${entry} before=${before} />`;
  return html`<div class=${`said ${entry.kind}`}><span class="unseen">${WHO[entry.kind]}</span>${entry.kind === "text" ? html`<${Prose} text=${entry.text} />` : entry.kind === "user" ? entry.text : html`<${Sentence} text=${entry.text} />`}</div>`;
}

const TRY_AGAIN = ["failed", "interrupted", "repeated"]; // ends after which the same may go well

// Which conversation is open is kept for this tab; another tab may have another one.
export function Chat({ agent, ...rest }) {
  const key = `knapper-conversation:${agent}`, [conversation, show] = useState(() => sessionStorage.getItem(key) || MAIN);
  const open = (id) => { sessionStorage.setItem(key, id); show(id); };
  return html`<${Conversation} key=${conversation} agent=${agent} conversation=${conversation} open=${open} ...${rest} />`;
}

function Conversation({ agent, conversation, open, approvals, reload, say, trouble, paused }) {
  const [isAll, setAll] = useState(false);
  const [isListed, setListed] = useState(false);
  const [{ entries, running, used, said, waits, asked, unread }, lost, earlier] = useConversation(agent, conversation, isAll);
  const [text, setText] = useDraft(conversation === MAIN ? agent : `${agent}/${conversation}`);
  const [fault, setFault] = useState("");
  const log = useRef(null), box = useRef(null);
  useEffect(() => { if (lost && lost.status === 404 && conversation !== MAIN) open(MAIN); }, [lost]); // it was deleted meanwhile
  const questions = approvals.filter((row) => row.agent === agent || asked.includes(row.id));
  const shown = useWindow(log, entries, earlier, questions.length + unread.length + isListed), before = sourcesBefore(entries);
  useEffect(() => { if (running) say("It is working."); else if (said) say(asWords(said)); }, [running, said]);
  useEffect(() => { reload(); }, [asked.join(), running]); // the rows have all that the prompt shows
  useEffect(() => { if (matchMedia("(hover: hover)").matches) box.current.focus(); }, []); // where no keyboard would cover the page
  const send = async (event) => {
    event.preventDefault();
    if (!text.trim()) return;
    shown.toEnd();
    try {
      setText(""); // at once: what is typed before the answer comes is the next message
      await api(`/agents/${part(agent)}/messages?conversation=${part(conversation)}`, "POST", { text, key: crypto.randomUUID ? crypto.randomUUID() : `${Date.now()}-${Math.random()}` });
      setFault("");
    } catch (error) { setFault(error); setText((now) => now || text); }
  };
  const act = (verb) => api(`/agents/${part(agent)}/${verb}?conversation=${part(conversation)}`, "POST"), stop = () => act("interrupt").catch(setFault);
  const begin = () => api(conversationsOf(agent), "POST", {}).then((made) => { say("A new conversation."); open(made.id); }, setFault);
  const why = entries.findLast((entry) => entry.kind === "warning")?.text, [tried, setTried] = useState({});
  const retry = ({ target }) => {
    target.disabled = true; // a second click would be another retry
    act("retry").then(() => { setFault(""); setTried({ why, times: tried.why === why ? tried.times + 1 : 1 }); }, setFault).finally(() => { target.disabled = false; });
  };
  const last = entries.findLast((entry) => entry.kind !== "receipt"), canRetry = !running && !isAll && !unread.length && last && TRY_AGAIN.includes(last.reason);
  const typed = (event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) send(event); };
  useEffect(() => { // wherever the focus is
    const pressed = (event) => { if (event.key === "Escape" && running) stop(); };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [running]);
  return html`<div class="chat"><div class="log" ref=${log} onScroll=${shown.scrolled} role="log" aria-live="off" aria-label="Conversation" tabindex="0">
    ${entries.length + unread.length === 0 && (trouble ? html`<${Fault} text=${trouble} />` : html`<p class="dim">Nothing was said yet. Ask for something; what is missing will be made.</p>`)}
    ${(shown.from > 0 || earlier !== null) && html`<p class="dim">Earlier messages come as you scroll up.</p>`}
    ${entries.slice(shown.from, shown.to).map((entry) => html`<${Entry} key=${entry.key} entry=${entry} before=${before.get(entry.key)} />`)}
    ${canRetry && html`<p><button type="button" onClick=${retry}>Try again</button>${tried.times && tried.why === why && html` <span role="status">Tried again ${count(tried.times, "time")}: it failed as before.</span>`}</p>`}
    ${questions.map((row) => html`<${Approval} key=${`ask:${row.id}`} row=${row} reload=${reload} answered=${() => box.current.focus()} />`)}
    ${unread.map((message) => html`<div key=${`unread:${message.id}`} class="said user unread"><span class="unseen">${WHO.user}</span>${message.text}${running && html`<span class="dim"> (waits: added to this turn)</span>`}</div>`)}
    </div>${isListed && html`<${Conversations} agent=${agent} current=${conversation} open=${open} beat=${`${running}`} />`}<form onSubmit=${send}>
    ${!shown.isAtEnd && html`<button type="button" class="down" onClick=${shown.toEnd}>↓ To the newest</button>`}
    <${Fault} text=${fault || lost} />
    ${paused && html`<p class="row warn" role="status">${agent} is paused: what you send waits. <button type="button" onClick=${() => api(`/agents/${part(agent)}/resume`, "POST").then(reload, setFault)}>Resume</button></p>`}
    <label><span class="unseen">Message to ${agent}</span>
      <textarea ref=${box} rows="2" placeholder=${`Message to ${agent}`} aria-describedby="keys" value=${text} onInput=${({ target }) => setText(target.value)} onKeyDown=${typed}></textarea></label>
    <div class="row"><button class="strong" type="submit">Send</button>
      <button type="button" onClick=${stop} disabled=${!running}>Stop</button>
      <button type="button" onClick=${begin} disabled=${entries.length + unread.length === 0}>New conversation</button>
      <button type="button" aria-expanded=${isListed} onClick=${() => setListed(!isListed)}>Conversations</button>
      <button type="button" aria-pressed=${isAll} onClick=${() => setAll(!isAll)}>Earlier ones</button>
      <span class="dim" title="Of the model's context">${running ? `${plain(questions.length ? "waits for your answer" : waits || "working")}… ` : ""}${used}</span><span id="keys" class="dim keys">Enter sends · Shift+Enter breaks · Esc stops</span></div></form></div>`;
}
