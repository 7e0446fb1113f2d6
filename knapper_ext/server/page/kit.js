// What all rooms use: requests, texts made safe to look at, lists of which only a window is drawn.
import { html as made, useEffect, useLayoutEffect, useRef, useState } from "/page/preact.js";

const visible = (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`;

// What turns the reading direction, or steers, lets a text look like another: all draw by this `html`.
const STEERING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const drawn = new WeakSet();
function draw(node) {
  if (typeof node === "string") return node.replace(STEERING, visible);
  if (Array.isArray(node)) return node.map(draw);
  if (!node || !node.props || drawn.has(node)) return node;
  drawn.add(node);
  for (const name of ["children", "title", "aria-label", "placeholder"]) if (name in node.props) node.props[name] = draw(node.props[name]);
  return node;
}
export const html = (...template) => draw(made(...template));

// The cookie goes to every port of this machine, so it counts with a key alone, which no other origin can read: it lies in
// this tab, and another hands it on.
const KEY = "knapper-key", TABS_MS = 300;
const tabs = new BroadcastChannel("knapper");
let hearKey = () => {};
const keep = (key) => { sessionStorage.setItem(KEY, key); hearKey(); };
tabs.onmessage = ({ data }) => {
  if (data.key) keep(data.key);
  else if (data.asks && sessionStorage.getItem(KEY)) tabs.postMessage({ key: sessionStorage.getItem(KEY) });
};

// Ask the other tabs for the key, unless it is here already.
export const askTabs = () => sessionStorage.getItem(KEY) ? Promise.resolve() : new Promise((done) => {
  hearKey = done;
  setTimeout(done, TABS_MS);
  tabs.postMessage({ asks: true });
});

export const hasKey = () => sessionStorage.getItem(KEY) !== null;
const keyed = (headers = {}) => ({ ...headers, "Knapper-Key": sessionStorage.getItem(KEY) || "" });

async function answered(answer) {
  const value = await answer.json().catch(() => ({}));
  if (answer.ok) return value;
  const error = value.error || { message: `The server answered ${answer.status}.` };
  throw Object.assign(new Error([error.message, error.fix].filter(Boolean).join(" ")), { status: answer.status, error, verdict: value.verdict });
}

const GONE = "The server cannot be reached.";
const reached = (asking) => asking.catch((error) => { throw error.name === "AbortError" ? error : Object.assign(new Error(GONE), { status: 0 }); });

const sent = (path, method, body, headers) => reached(fetch(path, {
  method, headers: body === undefined ? headers : { ...headers, "Content-Type": "application/json" }, body: body === undefined ? undefined : JSON.stringify(body),
})).then(answered);

// Asks the API; an error has the server's sentence, and what to do about it.
export const api = (path, method = "GET", body = undefined) => sent(`/api/v1${path}`, method, body, keyed());

// A picture by its digest, as an address that an image shows: only an image may, so nothing in it runs.
export const picture = (digest) => reached(fetch(`/api/v1/pictures/${digest}`, { headers: keyed() })).then((answer) => answer.ok ? answer.blob() : Promise.reject(new Error(GONE)))
  .then((blob) => new Promise((done) => { const reader = new FileReader(); reader.onload = () => done(reader.result); reader.readAsDataURL(blob); })).catch(() => "");

export const logIn = async (code) => {
  const { key } = await sent("/login", "POST", { code }, {});
  keep(key);
  tabs.postMessage({ key });
};

// Hears the events after a number until it is ended, and goes on after a break where it was. An EventSource sends no header.
const FIRST_S = 1, LONGEST_S = 30;
export function listen(path, after, hear, tell) {
  const ending = new AbortController();
  let last = String(after), wait = FIRST_S;
  const take = (frame) => {
    const fields = Object.fromEntries(frame.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
    if (fields.id !== undefined) last = fields.id;
    if (fields.data !== undefined) hear({ ...JSON.parse(fields.data), whole: fields.id !== undefined, seq: fields.id });
    else if (fields.id !== undefined) hear({ type: "kept" }); // what came in pieces is on disk
  };
  const once = async () => {
    const answer = await reached(fetch(`/api/v1${path}`, { headers: keyed({ "Last-Event-ID": last }), signal: ending.signal }));
    if (!answer.ok) await answered(answer);
    hear({ type: "again" });
    tell(""); wait = FIRST_S;
    const parts = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (let part = await parts.read(); !part.done; part = await parts.read()) {
      const frames = (text + part.value).split("\n\n");
      text = frames.pop();
      frames.forEach(take);
    }
  };
  const always = async () => {
    while (!ending.signal.aborted) {
      let why = "The connection was lost.";
      try { await once(); } catch (error) {
        if ([401, 403, 404].includes(error.status)) { tell(error.message); return; }
        why = error.status === undefined ? why : error.message;
      }
      if (ending.signal.aborted) return;
      tell(`${why} It is tried again in ${wait} s.`);
      await new Promise((done) => setTimeout(done, wait * 1000));
      wait = Math.min(2 * wait, LONGEST_S);
    }
  };
  always();
  return () => ending.abort();
}

export const part = (name) => encodeURIComponent(name);
// The time, with the day if that is not today.
export const when = (seconds) => {
  if (!seconds) return "";
  const at = new Date(seconds * 1000), time = { hour: "2-digit", minute: "2-digit" };
  const day = at.toDateString() === new Date().toDateString() ? {} : { day: "numeric", month: "short", ...(at.getFullYear() === new Date().getFullYear() ? {} : { year: "numeric" }) };
  return at.toLocaleString(undefined, { ...day, ...time });
};
export const count = (number, noun) => `${number.toLocaleString()} ${noun}${number === 1 ? "" : "s"}`;
// What a function gets at besides its arguments, as the gate says it; null where it was not recorded.
export const reaches = (words) => (words ? words.join("; ") || "computes only" : "");
export const lines = (value) => (Array.isArray(value) ? value.join("\n") : String(value ?? ""));

// In code and texts of the program, all is shown.
const UNSEEN = /[\u00ad\u200b-\u200d\u2028\u2029\u2060-\u206f\ufeff]/g;
export const plain = (text) => String(text ?? "").replace(UNSEEN, visible);

// A sentence of the program's own, in which names stand between backticks.
export const Sentence = ({ text }) => html`${plain(text).split(/`([^`\n]+)`/).map((piece, at) => (at % 2 ? html`<code>${piece}</code>` : piece))}`;

export const Fault = ({ text }) => (text ? html`<p class="fault" role="alert"><${Sentence} text=${text.message ?? text} /></p>` : null);
export const Text = ({ text, label }) => html`<pre tabindex="0" aria-label=${label}>${plain(text)}</pre>`;

// A source as it is written, with the numbers of its lines.
export function Source({ text, first = 1, label = "Source" }) {
  const rows = plain(text).replace(/^\n+/, "").trimEnd().split("\n");
  return html`<pre class="source" tabindex="0" aria-label=${label}><code>${rows.map((row, at) => html`<span class="line" data-line=${first + at}>${row}${"\n"}</span>`)}</code></pre>`;
}

const SIGNS = { "+": "good", "-": "bad", "@": "dim" };
export const Diff = ({ text, label = "What is different" }) => html`<pre class="diff" tabindex="0" aria-label=${label}>${plain(text).replace(/\n$/, "").split("\n").map((row) => html`<span class=${SIGNS[row[0]] || ""}>${row}${"\n"}</span>`)}</pre>`;

// What was typed stays in this tab: it outlives rooms and reloads.
export function useDraft(name, empty = "") {
  const key = `knapper-typed:${name}`, [typed, show] = useState(() => JSON.parse(sessionStorage.getItem(key)) ?? empty);
  return [typed, (change) => show((now) => { const next = change instanceof Function ? change(now) : change; sessionStorage.setItem(key, JSON.stringify(next)); return next; })];
}

// A text that comes from the server, again whenever `asked` changes.
export function useLoaded(asked, beat = "") {
  const [state, setState] = useState({ asked: "", value: null, fault: "" });
  const [again, setAgain] = useState(0);
  useEffect(() => {
    if (!asked) return undefined;
    let over = false;
    api(asked).then((value) => over || setState({ asked, value, fault: "" }), (error) => over || setState((old) => ({ asked, value: old.asked === asked ? old.value : null, fault: error })));
    return () => { over = true; };
  }, [asked, beat, again]);
  return [state.asked === asked ? state.value : null, state.asked === asked ? state.fault : "", () => setAgain((number) => number + 1)];
}

// A table of rows of one height, of which those in sight are drawn.
const ROW = 44, MORE = 8;
export function Rows({ rows, heads, row, label }) {
  const box = useRef(null);
  const [seen, setSeen] = useState({ top: 0, height: 800 });
  const look = () => box.current && setSeen({ top: box.current.scrollTop, height: box.current.clientHeight });
  useLayoutEffect(() => { look(); addEventListener("resize", look); return () => removeEventListener("resize", look); }, []);
  const from = Math.max(0, Math.min(Math.floor(seen.top / ROW) - MORE, rows.length - 1)), to = Math.min(rows.length, Math.ceil((seen.top + seen.height) / ROW) + MORE);
  const space = (many) => many > 0 && html`<tr aria-hidden="true"><td style=${{ height: `${many * ROW}px`, padding: 0 }}></td></tr>`;
  const move = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const buttons = step && [...box.current.querySelectorAll("tbody button")];
    const next = buttons && buttons[buttons.indexOf(document.activeElement) + step];
    if (next) { event.preventDefault(); next.focus(); }
  };
  return html`<div class="rows" ref=${box} onScroll=${look} onKeyDown=${move} tabindex="0" role="region" aria-label=${label}>
    <table aria-rowcount=${rows.length + 1}><thead><tr aria-rowindex="1">${heads.map(([name, kind]) => html`<th scope="col" class=${kind}>${name}</th>`)}</tr></thead>
    <tbody>${space(from)}${rows.slice(from, to).map((item, at) => html`<tr key=${item.name} aria-rowindex=${from + at + 2}>${row(item)}</tr>`)}${space(rows.length - to)}</tbody></table></div>`;
}

// Of a long conversation a window is drawn, which follows the scrolling; at its end it stays at the end.
const DRAWN = 120, STEP = 40, NEAR = 400;
export function useWindow(box, entries, earlier, below = 0) {
  const place = useRef(null), [, redraw] = useState(0); // where the window ends; null: at the end of all
  const isLoading = useRef(false), before = useRef({ length: 0, first: "" });
  const setLast = (value) => { if (value !== place.current) { place.current = value; redraw((number) => number + 1); } };
  const first = entries[0] && entries[0].key, more = entries.length - before.current.length;
  if (place.current !== null && first !== before.current.first && more > 0) place.current += more; // what came before the rest moves the window with it
  before.current = { length: entries.length, first };
  const last = place.current, to = last === null ? entries.length : Math.min(last, entries.length), from = Math.max(0, to - DRAWN);
  const held = useRef(null); // the first entry in sight and where it stood: browsers hold nothing in place at the very top
  useLayoutEffect(() => {
    if (!box.current) return;
    if (last === null) box.current.scrollTop = box.current.scrollHeight;
    else {
      if (held.current && held.current.node.isConnected) box.current.scrollTop += held.current.node.getBoundingClientRect().top - held.current.top;
      if (box.current.scrollTop < NEAR && from > 0) setLast(Math.max(DRAWN, to - STEP)); // at the very top nothing scrolls any more
    }
  }, [entries, last, below]);
  const scrolled = () => {
    if (!box.current) return;
    const edge = box.current.getBoundingClientRect().top, node = [...box.current.querySelectorAll(":scope > .said, :scope > .call, :scope > .card")].find((one) => one.getBoundingClientRect().bottom > edge);
    held.current = node ? { node, top: node.getBoundingClientRect().top } : null;
    const { scrollTop, scrollHeight, clientHeight } = box.current, below = scrollHeight - scrollTop - clientHeight;
    if (to === entries.length) setLast(below < 40 ? null : to);
    if (scrollTop < NEAR && from > 0) setLast(Math.max(DRAWN, to - STEP));
    else if (below < NEAR && to < entries.length) setLast(to + STEP);
    else if (scrollTop < NEAR && from === 0 && !isLoading.current && earlier) {
      isLoading.current = true;
      earlier().finally(() => { isLoading.current = false; });
    }
  };
  return { from, to, scrolled, isAtEnd: last === null, toEnd: () => setLast(null) };
}
