// What all rooms use: requests, texts made safe to look at, lists of which only a window is drawn.
import { html as made, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact.js";

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

// The content of a file, as JSON holds it.
export const base64 = (blob) => new Promise((done, failed) => {
  const reader = new FileReader();
  reader.onload = () => done(reader.result.slice(reader.result.indexOf(",") + 1));
  reader.onerror = () => failed(reader.error);
  reader.readAsDataURL(blob);
});

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
    else if (fields.id !== undefined) hear({ type: "kept", seq: fields.id }); // what came in pieces is on disk
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

// What was typed stays: in this tab, or in this browser, where it outlives the tab and the program. Where no room is left, it is told.
const TYPED = "knapper-typed:";
export function typedOf(name, kept = localStorage) { // what cannot be read, as another version may have kept it, counts as nothing
  try { return JSON.parse(kept.getItem(`${TYPED}${name}`)); } catch { return null; }
}
export function useDraft(name, empty = "", kept = sessionStorage) {
  const key = `${TYPED}${name}`, [typed, show] = useState(() => typedOf(name, kept) ?? empty);
  const keep = (next) => {
    try { if (next === empty) kept.removeItem(key); else kept.setItem(key, JSON.stringify(next)); } catch (error) { tell(`This browser does not keep what you type: ${error.message}`); }
  };
  return [typed, (change) => show((now) => { const next = change instanceof Function ? change(now) : change; keep(next); return next; })];
}

// What was typed of a name, without a component: names that have something begin with `prefix`.
export const draftsOf = (prefix, kept = localStorage) => Object.keys(kept).filter((key) => key.startsWith(`${TYPED}${prefix}`)).map((key) => key.slice(TYPED.length + prefix.length));

// What happened, told for a moment at the edge of the page, with a way back where there is one.
export const told = new EventTarget();
export const tell = (text, undo = null) => told.dispatchEvent(new CustomEvent("told", { detail: { text, undo } }));
// Something of the page's own changed that another part of it shows.
export const changed = (what) => told.dispatchEvent(new CustomEvent("changed", { detail: what }));
export function useChanged(what) {
  const [number, setNumber] = useState(0);
  useEffect(() => { const heard = ({ detail }) => detail === what && setNumber((old) => old + 1); told.addEventListener("changed", heard); return () => told.removeEventListener("changed", heard); }, [what]);
  return number;
}

export async function copy(text) {
  try { await navigator.clipboard.writeText(text); } catch { // not over plain HTTP from elsewhere
    const box = document.createElement("textarea");
    box.value = text; document.body.append(box); box.select(); document.execCommand("copy"); box.remove();
  }
  tell("Copied.");
}

// An address of the page: a room, and what is chosen in it.
export const to = (...parts) => `#/${parts.map(part).join("/")}`;
export const go = (...parts) => { location.hash = to(...parts); };

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

// Of a long conversation a window is drawn, which follows the scrolling; at its end it stays at the end.
const DRAWN = 120, STEP = 40, NEAR = 400, ACTED_MS = 1000;
export function useWindow(box, entries, earlier, below = 0) {
  const place = useRef(null), [, redraw] = useState(0); // where the window ends; null: at the end of all
  const isLoading = useRef(false), before = useRef({ length: 0, first: "" });
  const setLast = (value) => { if (value !== place.current) { place.current = value; redraw((number) => number + 1); } };
  const first = entries[0] && entries[0].key, more = entries.length - before.current.length;
  if (place.current !== null && first !== before.current.first && more > 0) place.current += more; // what came before the rest moves the window with it
  before.current = { length: entries.length, first };
  const last = place.current, to = last === null ? entries.length : Math.min(last, entries.length), from = Math.max(0, to - DRAWN);
  const seen = useRef({ top: 0, height: 0, acted: 0 }), held = useRef(null); // the first entry in sight and where it stood: browsers hold nothing in place at the very top
  useLayoutEffect(() => {
    if (!box.current) return;
    if (last === null) box.current.scrollTop = box.current.scrollHeight;
    else {
      if (held.current && held.current.node.isConnected) box.current.scrollTop += held.current.node.getBoundingClientRect().top - held.current.top;
      if (box.current.scrollTop < NEAR && from > 0) setLast(Math.max(DRAWN, to - STEP)); // at the very top nothing scrolls any more
    }
  }, [entries, last, below]);
  useEffect(() => { // a text that is read a stretch at a time
    const grew = () => { if (place.current === null && box.current) box.current.scrollTop = box.current.scrollHeight; };
    told.addEventListener("grew", grew);
    return () => told.removeEventListener("grew", grew);
  }, []);
  useEffect(() => {
    const acted = () => { seen.current.acted = Date.now(); }, kinds = ["wheel", "touchmove", "pointerdown", "keydown"];
    for (const kind of kinds) addEventListener(kind, acted, { passive: true });
    return () => { for (const kind of kinds) removeEventListener(kind, acted); };
  }, []);
  useEffect(() => { // what is drawn later than it is placed, a question, a turned phone: at the end it stays at the end
    if (!box.current) return;
    const sizes = new ResizeObserver(() => { if (place.current === null && box.current) box.current.scrollTop = box.current.scrollHeight; });
    for (const one of [box.current, ...box.current.children]) sizes.observe(one);
    return () => sizes.disconnect();
  }, [entries, last, below]);
  const scrolled = () => {
    if (!box.current) return;
    const edge = box.current.getBoundingClientRect().top, node = [...box.current.querySelectorAll(":scope > .said, :scope > .call, :scope > .card, :scope > .made")].find((one) => one.getBoundingClientRect().bottom > edge);
    held.current = node ? { node, top: node.getBoundingClientRect().top } : null;
    const { scrollTop, scrollHeight, clientHeight } = box.current, below = scrollHeight - scrollTop - clientHeight;
    // Away from the end goes who scrolls, and nobody because of what is drawn anew above or below.
    const isUp = scrollTop < seen.current.top && (scrollHeight === seen.current.height || Date.now() - seen.current.acted < ACTED_MS);
    Object.assign(seen.current, { top: scrollTop, height: scrollHeight });
    if (to === entries.length && (below < 40 || isUp)) setLast(below < 40 ? null : to);
    if (scrollTop < NEAR && from > 0) setLast(Math.max(DRAWN, to - STEP));
    else if (below < NEAR && to < entries.length) setLast(to + STEP);
    else if (scrollTop < NEAR && from === 0 && !isLoading.current && earlier) {
      isLoading.current = true;
      earlier().finally(() => { isLoading.current = false; });
    }
  };
  return { from, to, scrolled, isAtEnd: last === null, toEnd: () => setLast(null) };
}

const TOAST_MS = 6000;
export function Toast() {
  const [shown, setShown] = useState(null), isHeld = useRef(false);
  useEffect(() => { const heard = ({ detail }) => { isHeld.current = false; setShown({ ...detail, at: Date.now() }); }; told.addEventListener("told", heard); return () => told.removeEventListener("told", heard); }, []);
  useEffect(() => { // it stays while it is pointed at or has the focus
    const timer = shown ? setInterval(() => isHeld.current || Date.now() - shown.at < TOAST_MS || setShown(null), 500) : 0;
    return () => clearInterval(timer);
  }, [shown]);
  const hold = (is) => () => { isHeld.current = is; };
  return html`<div role="status">${shown && html`<div class="toast" onMouseEnter=${hold(true)} onMouseLeave=${hold(false)} onFocusIn=${hold(true)} onFocusOut=${hold(false)}><span class="grow">${plain(shown.text)}</span>${shown.undo && html`<button type="button" class="quiet" onClick=${() => { shown.undo(); setShown(null); }}>Undo</button>`}<button type="button" class="quiet" onClick=${() => setShown(null)}>Close</button></div>`}</div>`;
}
