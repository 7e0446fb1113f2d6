// The conversation with an agent: as it streams, as it was, and each call in it.
import { useEffect, useReducer, useRef, useState } from "./vendor/preact.js";
import { Approval } from "./approvals.js";
import { added, apart, asMessage, Attached } from "./attach.js";
import { Call, Folded, isPlain } from "./cards.js";
import { commandOf, run, Shown } from "./commands.js";
import { Composer, usePolicy } from "./composer.js";
import { conversationsOf, MAIN } from "./conversations.js";
import { api, changed, copy, count, Fault, go, html, listen, part, plain, Sentence, tell, to, useChanged, useDraft, useLoaded, useWindow } from "./kit.js";
import { asWords, Prose } from "./markdown.js";
import { Icon, Mark, Only } from "./marks.js";

const LOADED = 300; // entries at once

const ANSWERS = { once: "allowed once", yes: "allowed always", no: "not allowed" };

// Entries of a conversation, in order. What has a number is on disk, and replaces the pieces that came before it.
function heard(state, event) {
  const isPiece = ["writing", "usage", "reading", "waiting", "stopped", "message_withdrawn"].includes(event.type) || (event.type === "message" && !event.turn); // what was written of calls stays until they are known
  const entries = isPiece ? [...state.entries] : state.entries.filter((entry) => !entry.writing);
  const at = (key) => entries.findLastIndex((entry) => entry.key === key);
  const number = event.type === "turn_ended" ? 0 : Number(event.seq) || 0; // of its entry: a branch may end there
  const put = (entry) => {
    const place = at(entry.key), kept = number ? { ...entry, last: number } : entry;
    place < 0 ? entries.push(kept) : (entries[place] = { ...entries[place], ...kept });
  };
  let { running, used, first, said, waits, asked, unread, taken } = state;
  const takenUp = (id) => { unread = unread.filter((message) => message.id !== id); taken = [...taken.slice(-99), id]; };
  switch (event.type) {
    case "history": return { ...state, entries: event.entries, first: event.first, running: event.running, used: "", unread: [], said: "", waits: "" };
    case "kept": return { ...state, entries: state.entries.map((entry) => (entry.isPiece ? { ...entry, isPiece: false, last: number } : entry)) };
    case "again": return { ...state, unread: [], entries: state.entries.filter((entry) => !entry.isPiece && !entry.writing) }; // what is not on disk yet comes again
    case "earlier": {
      const ids = new Set(entries.map((entry) => entry.key));
      const args = new Map(event.entries.filter((entry) => ids.has(entry.key)).map((entry) => [entry.key, entry.args]));
      const known = entries.map((entry) => (args.has(entry.key) ? { ...entry, args: args.get(entry.key) } : entry));
      return { ...state, entries: [...event.entries.filter((entry) => !ids.has(entry.key)), ...known], first: event.first };
    }
    case "turn_started":
      running = true; said = waits = ""; takenUp(event.message_id);
      if (event.message) put({ key: `${event.turn}:start`, kind: event.event === "message" ? "user" : "notice", text: event.message, origin: event.origin });
      break;
    case "message":
      if (!event.turn) {
        if (taken.includes(event.message_id)) break; // it was told of before the turn that has it, and came later
        const message = { id: event.message_id, text: event.message, origin: event.origin };
        unread = unread.some(({ id }) => id === message.id) ? unread.map((old) => (old.id === message.id ? message : old)) : [...unread, message];
        break;
      }
      takenUp(event.message_id);
      put({ key: `${event.turn}:${event.seq}`, kind: "user", text: event.message, origin: event.origin, pictures: event.pictures });
      break;
    case "message_withdrawn": takenUp(event.message_id); break;
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
    case "answer": waits = ""; put({ key: event.call_id, kind: "call", name: event.name, outcome: event.outcome, text: event.text, detail: event.detail, seconds: event.seconds }); break;
    case "progress": put({ key: event.call_id, kind: "call", progress: `${event.done}${event.total ? ` of ${event.total}` : ""} ${event.note}` }); break;
    case "printed": put({ key: event.call_id, kind: "call", printed: ((entries[at(event.call_id)] || {}).printed || "") + event.text }); break;
    case "grant_asked": asked = asked.includes(event.question) ? asked : [...asked, event.question]; break;
    case "grant_answered":
      asked = asked.filter((question) => question !== event.question);
      put({ key: `ask:${event.question}`, kind: "notice", text: `${event.function} asked to ${event.says.join("; ")}: ${ANSWERS[event.answer] || event.answer}${event.word ? ` (“${event.word}”)` : ""}` });
      break;
    case "function_asked": asked = asked.includes(event.question) ? asked : [...asked, event.question]; break;
    case "function_answered":
      asked = asked.filter((question) => question !== event.question);
      put({ key: `ask:${event.question}`, kind: "notice", text: `Its question was answered: ${event.answer || "with nothing"}${event.by === "human" ? "" : ` (${event.by})`}` });
      break;
    case "quarantined": put({ key: `quarantine:${event.name}`, kind: "warning", text: `${event.name} kept failing, and is not shown to the model any more.` }); break;
    case "usage": used = event.context_limit && event.context_tokens ? `${event.context_tokens.toLocaleString()} of ${event.context_limit.toLocaleString()} tokens` : used; break;
    case "waiting": waits = event.what; break;
    case "stopped": waits = `${event.function} is stopped at ${event.place}, ${event.why}: a prompt steps it`; break;
    case "warning": put({ key: `${event.turn}:warn:${entries.length}`, kind: "warning", text: [event.message, event.fix].filter(Boolean).join(" ") }); break;
    case "turn_ended":
      running = false; waits = ""; asked = []; said = event.reply || `The turn ended: ${event.reason}.`;
      if (event.reply && !entries.some((entry) => entry.key.startsWith(event.turn) && entry.kind === "text" && entry.text.includes(event.reply.trim())))
        put({ key: `${event.turn}:end`, kind: "text", text: event.reply });
      if (event.reason !== "replied") put(endOf(event));
      if (at(`${event.turn}:receipt`) >= 0) entries.splice(at(`${event.turn}:receipt`), 1); // it was read while the turn ran
      put(receiptOf(event));
      break;
  }
  return { entries, running, used, first, said, waits, asked, unread, taken, turn: event.turn || state.turn };
}

const endOf = ({ turn, reason }) => ({ key: `${turn}:why`, kind: "notice", text: `The turn ended: ${reason}.`, reason });

// What the program knows that a turn did, whatever its reply says.
const receiptOf = ({ turn, receipt, usage }) => ({ key: `${turn}:receipt`, kind: "receipt", turn, text: receipt || "", tokens: usage ? (usage.prompt_tokens || 0) + (usage.completion_tokens || 0) : 0 });

const EMPTY = { entries: [], running: false, turn: "", used: "", first: 0, said: "", waits: "", asked: [], unread: [], taken: [] };

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


function useConversation(agent, conversation) {
  const [state, dispatch] = useReducer(heard, EMPTY);
  const [fault, setFault] = useState("");
  const [again, setAgain] = useState(0);
  const readAgain = () => setAgain((number) => number + 1);
  const path = `/agents/${part(agent)}`, here = `conversation=${part(conversation)}`;
  useEffect(() => {
    let end = () => {}, over = false;
    const begin = (after) => { end = listen(`${path}/events?${here}&after=${after}`, after, (event) => (event.type === "turns_removed" ? readAgain() : dispatch(event)), setFault); };
    api(`${path}/messages?${here}&last=${LOADED}`).then((read) => {
      if (over) return;
      const { messages, after, running } = read;
      dispatch({ type: "history", running, entries: past(read), first: read.more ? messages[0].seq : 0 });
      begin(after);
    }).catch(setFault);
    return () => { over = true; end(); };
  }, [agent, again]);
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
const WINDOWS = { page: "", prompt: "a prompt", pipe: "a pipe", command: "a command", job: "cron or another job", library: "a program", door: "a client" };
const fromOf = (origin) => WINDOWS[origin] ?? origin; // a name says itself; this page says nothing

// From where a message came, if it was not typed here.
const From = ({ origin }) => fromOf(origin || "page") && html`<span class="dim">from ${plain(fromOf(origin))}</span>`;

const money = (cost) => `$${cost.toFixed(cost >= 1 ? 2 : 4)}`;

function Receipt({ entry, cost, answer, acts }) {
  const { tokens = entry.tokens, seconds = 0, isEstimated = false } = cost || {}, parts = [tokens > 0 && `${isEstimated ? "≈ " : ""}${count(tokens, "token")}`, seconds >= 0.1 && `${seconds.toFixed(1)} s`, cost && cost.cost > 0 && money(cost.cost)].filter(Boolean);
  if (!entry.text && !answer && !parts.length) return null;
  return html`<div class="receipt-row">${entry.text && html`<div class="said receipt"><span class="unseen">${WHO.receipt}</span><${Sentence} text=${entry.text} /></div>`}${parts.map((text) => html`<span>${text}</span>`)}
    ${answer && html`<span class="acts"><${Only} name="copy" label="Copy the answer" onClick=${() => copy(answer)} /><${Only} name="branch" label="Branch here" title="Branch here: another conversation that begins with this one; functions and memory stay as they are" onClick=${() => acts.branch(entry)} />${acts.again && html`<${Only} name="again" label="Answer again" title="Answer again: the last message is sent once more" onClick=${acts.again} />`}</span>`}</div>`;
}

function Entry({ entry, before, cost, answer, acts }) {
  if (entry.kind === "fold") return html`<${Folded} entries=${entry.entries} />`;
  if (entry.kind === "call") return html`<${Call} entry=${entry} before=${before} />`;
  if (entry.kind === "receipt") return html`<${Receipt} entry=${entry} cost=${cost} answer=${answer} acts=${acts} />`;
  if (entry.kind === "user") return html`<div class="said user"><${From} origin=${entry.origin} /><span class="unseen">${WHO.user}</span><div class="bubble"><${Words} entry=${entry} path=${acts.path} /></div><span class="acts"><${Only} name="copy" label="Copy" onClick=${() => copy(entry.text)} /><${Only} name="pen" label="Edit and send again" title="Edit and send again, in a branch: functions and memory stay as they are" onClick=${() => acts.edit(entry)} /></span></div>`;
  return html`<div class=${`said ${entry.kind}`}><span class="unseen">${WHO[entry.kind]}</span>${entry.kind === "text" ? html`<${Prose} text=${entry.text} />` : html`<${Sentence} text=${entry.text} />`}</div>`;
}

// What a person said, with the files and pictures that went along.
function Words({ entry, path }) {
  const parts = apart(entry.text);
  return html`${parts.words && html`<${Prose} text=${parts.words} />`}<${Attached} entry=${entry} parts=${parts} path=${path} />`;
}

// Calls that follow one another are one line.
function foldedCalls(entries) {
  const rows = [];
  let run = [];
  const end = () => { if (run.length > 1) rows.push({ key: `fold:${run[0].key}`, kind: "fold", entries: run }); else rows.push(...run); run = []; };
  for (const entry of entries) if (isPlain(entry)) run.push(entry); else { end(); rows.push(entry); }
  end();
  return rows;
}

const TRY_AGAIN = ["failed", "interrupted", "repeated"]; // ends after which the same may go well
const OPEN = "knapper-conversation:"; // which conversation is open is kept for this tab; another tab may have another one
const openOf = (agent) => sessionStorage.getItem(`${OPEN}${agent}`) || MAIN;

export function Chat({ agent, chosen, ...rest }) {
  const conversation = chosen || openOf(agent);
  useEffect(() => { sessionStorage.setItem(`${OPEN}${agent}`, conversation); }, [agent, conversation]);
  return html`<${Conversation} key=${conversation} agent=${agent} conversation=${conversation} ...${rest} />`;
}

function save(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/markdown" }));
  link.download = `${name.replace(/[^\w -]+/g, "") || "conversation"}.md`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// The bar above it: its name, and what can be done with it as a whole.
export function ChatBar({ agent, conversation: chosen, beat }) {
  const conversation = chosen || openOf(agent), path = `${conversationsOf(agent)}/${part(conversation)}`;
  const [row] = useLoaded(path, `${beat}/${useChanged("conversations")}`), [naming, setNaming] = useState(null);
  const fail = (error) => tell(error.message), name = row ? row.name || row.id : "";
  const rename = (event) => { event.preventDefault(); api(path, "PATCH", { name: naming }).then(() => { setNaming(null); changed("conversations"); }, fail); };
  const branch = () => api(conversationsOf(agent), "POST", { branch_of: conversation }).then((made) => { changed("conversations"); go("Chat", agent, made.id); }, fail);
  const write = async () => { let text = "", read = { after: 0, more: true }; try { while (read.more) { read = await api(`${path}/export?after=${read.after}`); text += read.markdown; } save(name, text); } catch (error) { fail(error); } };
  if (naming !== null) return html`<h1 class="unseen">${name}</h1><form class="row grow line-row" onSubmit=${rename} onKeyDown=${(event) => event.key === "Escape" && setNaming(null)}><label class="grow"><span class="unseen">Name of the conversation</span><input value=${naming} maxlength="60" onInput=${({ target }) => setNaming(target.value)} /></label><button class="strong">Keep</button><button type="button" class="quiet" onClick=${() => setNaming(null)}>Cancel</button></form>`;
  return html`<h1 class="grow cut">${name || "Chat"}</h1><span class="mono dim mid">${agent}</span>
    <${Only} name="pen" label="Rename this conversation" onClick=${() => setNaming(name)} /><${Only} name="branch" kind="quiet mid" label="Branch this conversation" title="Branch: another conversation that begins with this one; functions and memory stay as they are" onClick=${branch} /><${Only} name="file" kind="quiet mid" label="Save as Markdown" onClick=${write} /><a class="button quiet only" href=${to("Steps", agent, conversation)} aria-label="What the model sees" title="What the model sees"><${Icon} name="panel" /></a>`;
}

function Conversation({ agent, conversation, approvals, reload, say, trouble, paused }) {
  const [{ entries, running, used, said, waits, asked, unread }, lost, earlier] = useConversation(agent, conversation);
  const [text, setText] = useDraft(conversation === MAIN ? agent : `${agent}/${conversation}`);
  const [fault, setFault] = useState(""), [shownFor, setShownFor] = useState(null), [command, setCommand] = useState(null), [chosenModel, setChosenModel] = useState("");
  const log = useRef(null), box = useRef(null);
  const here = `conversation=${part(conversation)}`, path = `/agents/${part(agent)}`;
  const [costs] = useLoaded(entries.length ? `${path}/cost` : "", `${running}`), [now] = useLoaded(`${path}/status?${here}`, `${running}/${chosenModel}`);
  useEffect(() => { if (lost && lost.status === 404 && conversation !== MAIN) go("Chat", agent, MAIN); }, [lost]); // it was deleted meanwhile
  const questions = approvals.filter((row) => row.agent === agent || asked.includes(row.id));
  const shown = useWindow(log, entries, earlier, questions.length + unread.length), before = sourcesBefore(entries);
  useEffect(() => { if (running) say("It is working."); else if (said) say(asWords(said)); }, [running, said]);
  useEffect(() => { reload(); changed("conversations"); }, [asked.join(), running]); // the rows have all that the prompt shows
  useEffect(() => { if (matchMedia("(hover: hover)").matches) box.current.focus(); }, []); // where no keyboard would cover the page
  const policy = usePolicy(agent, now);
  const [files, setFiles] = useState([]), [refused, setRefused] = useState([]), [isReading, setReading] = useState(false);
  const attach = async (list) => { setReading(true); const read = await added(files, [...list]); setFiles(read.files); setRefused(read.refused); setReading(false); box.current?.focus(); };
  const post = (into, words, going = []) => api(`${path}/messages?conversation=${part(into)}`, "POST", { ...asMessage(words, going), ...policy.own, key: crypto.randomUUID ? crypto.randomUUID() : `${Date.now()}-${Math.random()}` });
  const send = async (event) => {
    event.preventDefault();
    if (isReading || (!text.trim() && !files.length)) return;
    shown.toEnd();
    try {
      const words = files.length ? null : await commandOf(text);
      setText(""); setFiles([]); setRefused([]); // at once: what is typed before the answer comes is the next message
      if (words) { setCommand({ typed: text, words, ...await run(agent, conversation, words) }); setFault(""); return; }
      await post(conversation, text, files);
      setFault("");
    } catch (error) { setFault(error); setText((now) => now || text); setFiles((now) => (now.length ? now : files)); }
  };
  const agree = () => run(agent, conversation, command.words, command.ask).then((told) => setCommand((old) => ({ typed: old.typed, words: old.words, ...told })), setFault);
  const takeBack = ({ id }) => api(`${path}/waiting/${part(id)}?${here}`, "DELETE").then((row) => { setText((now) => [row.text, now].filter(Boolean).join("\n")); box.current.focus(); }, setFault);
  const choose = (name) => api(`${path}/model?${here}`, "POST", { name }).then((told) => { setChosenModel(name); tell(told.text); }, setFault);
  const act = (verb) => api(`${path}/${verb}?${here}`, "POST"), stop = () => act("interrupt").catch(setFault);
  const why = entries.findLast((entry) => entry.kind === "warning")?.text, [tried, setTried] = useState({});
  const retry = ({ currentTarget: target }) => {
    target.disabled = true; // a second click would be another retry
    act("retry").then(() => { setFault(""); setTried({ why, times: tried.why === why ? tried.times + 1 : 1 }); }, setFault).finally(() => { target.disabled = false; });
  };
  const last = entries.findLast((entry) => entry.kind !== "receipt"), isStill = !running && !unread.length, canRetry = isStill && last && TRY_AGAIN.includes(last.reason);
  useEffect(() => { // wherever the focus is
    const pressed = (event) => { if (event.key === "Escape" && running) stop(); };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [running]);
  // A branch ends with the last entry that is known before a message.
  const upto = (entry) => Math.max(0, ...entries.slice(0, entries.indexOf(entry)).map((one) => one.last || 0));
  const begin = (body) => api(conversationsOf(agent), "POST", body).then((made) => { changed("conversations"); return made.id; });
  const edit = (entry) => setShownFor({ entry, text: entry.text });
  const sendAgain = async (event) => {
    event.preventDefault();
    const end = upto(shownFor.entry);
    try { const id = await begin(end ? { branch_of: conversation, upto: end } : {}); await post(id, shownFor.text); go("Chat", agent, id); } catch (error) { setFault(error); }
  };
  const branch = (entry) => begin({ branch_of: conversation, upto: upto(entry) || null }).then((id) => go("Chat", agent, id), setFault);
  const answerOf = (entry) => entries.slice(0, entries.indexOf(entry)).findLast((one) => one.kind === "text" || one.kind === "user");
  const rows = foldedCalls(entries.slice(shown.from, shown.to)), costOf = costsByTurn(costs);
  const note = running ? `${questions.length ? "waits for your answer" : waits || "working"}…` : "";
  return html`<div class="chat"><div class="log" ref=${log} onScroll=${shown.scrolled} role="log" aria-live="off" aria-label="Conversation" tabindex="0">
    ${entries.length + unread.length === 0 && (trouble ? html`<${Fault} text=${trouble} />` : html`<div class="fresh"><${Mark} /><h2>What should be done?</h2><p class="dim">Nothing was said yet. Ask for something; what is missing will be made, proved and kept.</p></div>`)}
    ${(shown.from > 0 || earlier !== null) && html`<p class="dim">Earlier messages come as you scroll up.</p>`}
    ${rows.map((entry) => {
      const answer = entry.kind === "receipt" ? answerOf(entry) : null, isLast = entry === entries.at(-1);
      if (shownFor && shownFor.entry.key === entry.key) return html`<form key=${entry.key} class="stack" onSubmit=${sendAgain} onKeyDown=${(event) => { if (event.key === "Escape") { event.stopPropagation(); setShownFor(null); } }}><label>Send it again, in a branch <textarea value=${shownFor.text} onInput=${({ target }) => setShownFor({ entry, text: target.value })}></textarea></label><p class="help">The branch begins before this message. Functions and memory stay as they are.</p><div class="row"><button class="strong" disabled=${!shownFor.text.trim()}>Send in a branch</button><button type="button" class="quiet" onClick=${() => setShownFor(null)}>Cancel</button></div></form>`;
      return html`<${Entry} key=${entry.key} entry=${entry} before=${before.get(entry.key)} cost=${costOf.get(entry.turn)} answer=${answer && answer.kind === "text" ? answer.text : ""} acts=${{ edit, branch, path: `${path}/messages?${here}`, again: isStill && isLast ? retry : null }} />`;
    })}
    ${canRetry && html`<p><button type="button" onClick=${retry}>Try again</button>${tried.times && tried.why === why && html` <span role="status">Tried again ${count(tried.times, "time")}: it failed as before.</span>`}</p>`}
    ${questions.map((row) => html`<${Approval} key=${`ask:${row.id}`} row=${row} reload=${reload} answered=${() => box.current.focus()} />`)}
    ${unread.map((message) => html`<div key=${`unread:${message.id}`} class="said user unread"><${From} origin=${message.origin} /><span class="unseen">${WHO.user}</span><div class="bubble">${message.text}${running && html`<span class="dim"> (waits: added to this turn)</span>`}</div><span class="acts"><${Only} name="pen" label="Take back" title="Take back, to edit it" onClick=${() => takeBack(message)} /></span></div>`)}
    </div><div class="dock">
    ${!shown.isAtEnd && html`<button type="button" class="down" onClick=${shown.toEnd}>↓ To the newest</button>`}
    <${Fault} text=${fault || lost} />${refused.map((why) => html`<${Fault} key=${why} text=${why} />`)}${command && html`<${Shown} shown=${command} agree=${agree} close=${() => { setCommand(null); box.current.focus(); }} />`}
    ${paused && html`<p class="note hand" role="status"><span class="grow">${agent} is paused: what you send waits.</span><button type="button" onClick=${() => api(`${path}/resume`, "POST").then(reload, setFault)}>Resume</button></p>`}
    <${Composer} agent=${agent} now=${now} policy=${policy} files=${files} attach=${attach} drop=${(file) => setFiles((old) => old.filter((one) => one !== file))} choose=${choose} box=${box} text=${text} setText=${setText} send=${send} stop=${stop} isRunning=${running} note=${note} used=${used} /></div></div>`;
}

const costsByTurn = (costs) => new Map((costs ? costs.turns : []).filter((row) => row.turn).map((row) => [row.turn, { cost: row.cost, tokens: row.prompt + row.completion, seconds: row.seconds, isEstimated: row.is_estimated }]));
