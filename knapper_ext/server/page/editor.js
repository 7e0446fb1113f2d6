// A source that is edited: what the gate finds stands at its line while one types, and Save goes through it. What is typed is kept
// in this browser until it is saved or dropped.
import { useEffect, useRef, useState } from "./vendor/preact.js";
import { api, count, Fault, go, html, part, plain, tell, useDraft } from "./kit.js";
import { Strip } from "./marks.js";
import { Source } from "./python.js";
import { Beside } from "./beside.js";
import { Finding } from "./verdict.js";

const PAUSE_MS = 600; // after the last key
const isRefusal = (problem) => problem.severity !== "warns";

// The gate's word on what is typed; one question at a time, and the last text is always asked about.
function useCheck(name, module, text, isEdited) {
  const [state, setState] = useState({ verdict: null, of: "", fault: "" }), work = useRef({ isBusy: false, wanted: null });
  const ask = (source) => {
    if (work.current.isBusy) { work.current.wanted = source; return; }
    work.current = { isBusy: true, wanted: null };
    const end = (next) => { setState(next); const { wanted } = work.current; work.current = { isBusy: false, wanted: null }; if (wanted !== null && wanted !== source) ask(wanted); };
    api("/functions/check", "POST", { source, name, module }).then((verdict) => end({ verdict, of: source, fault: "" }), (error) => end({ verdict: null, of: source, fault: error }));
  };
  useEffect(() => { const timer = isEdited && text.trim() ? setTimeout(ask, PAUSE_MS, text) : 0; return () => clearTimeout(timer); }, [text, isEdited]);
  return [state, () => ask(text)];
}

// What is typed goes out of it, and into it only what comes from elsewhere: a new source, unless one has typed, and what is put back.
function Mirror({ text, source, turn, first, label, names, findings, agreed, change, save, fix }) {
  const host = useRef(null), editor = useRef(null), latest = useRef({}), [fault, setFault] = useState(""), [isOpen, setOpen] = useState(false);
  latest.current = { names, change, save, fix };
  useEffect(() => {
    let over = false;
    import("./mirror.js").then((mirror) => {
      if (over || !host.current) return;
      editor.current = mirror.open(host.current, { text, first, label, names: () => latest.current.names, changed: (now) => latest.current.change(now), save: () => latest.current.save(), fix: (finding) => latest.current.fix(finding) });
      setOpen(true);
    }).catch((error) => setFault(`The editor did not load: ${error.message}`));
    return () => { over = true; editor.current?.close(); editor.current = null; };
  }, []);
  const before = useRef(source);
  useEffect(() => { editor.current?.set(source, before.current); before.current = source; }, [source, isOpen]);
  useEffect(() => { if (turn) editor.current?.set(text); }, [turn]);
  useEffect(() => editor.current?.tell(findings, agreed), [findings, agreed, isOpen]);
  return html`<${Fault} text=${fault} />${!isOpen && html`<${Source} text=${text} first=${first} label=${label} />`}<div class="mirror" ref=${host} hidden=${!isOpen}></div>`;
}

// Another window of this browser that edits the same. When it has saved or dropped what it had, what is typed here is kept again.
function useOther(key, draft, keep) {
  const [isOther, setOther] = useState(false), mine = useRef(draft);
  mine.current = draft;
  useEffect(() => { const heard = (event) => { if (event.key !== `knapper-typed:${key}`) return; setOther(event.newValue !== null); if (event.newValue === null && mine.current) keep(mine.current); }; addEventListener("storage", heard); return () => removeEventListener("storage", heard); }, [key]);
  return isOther;
}

export function Editor({ name, module, source, stub = "", first = 1, path = "", agent, names, agreed = [], verdict: kept = null, saved }) {
  const isNew = !source, key = `source:${name}`;
  const [draft, setDraft] = useDraft(key, null, localStorage);
  const [lastSaid, setSaid] = useState(null), [turn, setTurn] = useState(0), [isSaving, setSaving] = useState(false), [fault, setFault] = useState("");
  const text = draft ? draft.text : source || stub, isEdited = draft ? draft.text !== source : isNew;
  const said = lastSaid && lastSaid.of === text ? lastSaid : null; // what is typed since has a word of its own
  const [check, ask] = useCheck(name, module, text, isEdited), isOther = useOther(key, draft, setDraft);
  const isLate = Boolean(draft) && !isNew && draft.over !== source;
  const change = (now) => { setSaid(null); setFault(""); setDraft((old) => (now === source && !(old && old.over !== source) ? null : { ...old, text: now, over: old ? old.over : source })); };
  const verdict = said || (isEdited ? check.verdict : kept), problems = verdict && (said || !isEdited || check.of === text) ? verdict.problems || [] : [];
  const isOld = isEdited && !said && check.of !== text;
  const last = useRef([]), findings = isEdited || said ? problems : [];
  const shown = JSON.stringify(last.current) === JSON.stringify(findings) || isOld ? last.current : (last.current = findings);
  const isAgreed = useRef([]), ticks = !isEdited ? agreed : [];
  if (JSON.stringify(isAgreed.current) !== JSON.stringify(ticks)) isAgreed.current = ticks;
  const save = async (over = draft ? draft.over : source) => {
    if (isSaving || (!isEdited && !isNew)) return;
    setSaving(true); setFault("");
    const sent = text;
    try {
      const joined = await api(`/functions/${part(name)}`, "PUT", { source: sent, when: isNew ? "new" : "there", ...(isNew ? { module } : { over }) });
      setDraft((old) => (old && old.text !== sent ? { ...old, over: joined.source || sent } : null));
      setSaid(null);
      tell(`${name} joined${joined.standing ? `, ${joined.standing}` : ""}.`, isNew ? null : () => api(`/functions/${part(name)}/rollback`, "POST", {}).then(() => saved(), (error) => tell(error.message)));
      saved(joined);
    } catch (error) {
      if (error.verdict) setSaid({ ...error.verdict, of: sent });
      setFault(error.verdict ? "" : error.status === 0 ? `${error.message} What you typed is kept in this browser.` : error);
      if (error.status === 409) saved(); // it shows what is there now
    }
    setSaving(false);
  };
  const confirm = () => api(`/functions/${part(name)}/confirm`, "POST", {}).then((joined) => { put(null); tell(`${name} joined with what it returned.`); saved(joined); }, (error) => setFault(error));
  const put = (now) => { setDraft(now); setSaid(null); setFault(""); setTurn((old) => old + 1); };
  const drop = () => { const before = draft; put(null); tell("Back to what is saved.", before && (() => put(before))); };
  const fix = async (finding) => {
    const where = finding.line ? ` at line ${finding.line}` : "", words = `Please fix \`${name}\`: the gate says${where}: ${finding.message}${finding.fix ? ` (${finding.fix})` : ""}\n\nThis is the source as I have it, not saved yet:\n\n\`\`\`python\n${text}\n\`\`\`\n\nSave it with ${isNew ? "create_function" : "replace_function"} when it is right.`;
    try { await api(`/agents/${part(agent)}/messages?conversation=${part(sessionStorage.getItem(`knapper-conversation:${agent}`) || "main")}`, "POST", { text: words }); go("Chat", agent); } catch (error) { setFault(error); }
  };
  const refusals = shown.filter(isRefusal), elsewhere = shown.filter((problem) => !problem.line);
  const { note = "" } = ((verdict && verdict.stages) || []).find((stage) => stage.stage === "examples") || {};
  const word = isSaving ? "saving…" : isOld ? (text.trim() ? "checking…" : "nothing to check") : verdict ? (verdict.admitted ? (isEdited ? "would join" : verdict.standing || "joined") : "rejected") : "";
  return html`<section class="editor" aria-label=${`Source of ${name}`} onKeyDown=${(event) => { if ((event.ctrlKey || event.metaKey) && event.key === "s") { event.preventDefault(); save(); } }}>
    <div class="tools"><span class="mono cut">${path || `${module}.py`}</span>${isEdited && html`<span class="tag hand">${isNew ? "new" : "edited"}</span>`}<span class="grow"></span>${draft && html`<button type="button" class="quiet" onClick=${drop}>Revert</button>`}<button type="button" class="mid" onClick=${ask}>Check</button><button type="button" class="strong" disabled=${isSaving || (!isEdited && !isNew)} title="Ctrl+S" onClick=${() => save()}>Save</button></div>
    <div class="inside"><${Mirror} text=${text} source=${source || stub} turn=${turn} first=${first} label=${`Source of ${name}`} names=${names} findings=${shown} agreed=${isAgreed.current} change=${change} save=${() => save()} fix=${fix} /></div>
    <div class="below"><${Fault} text=${fault || (check.of === text ? check.fault : "")} />${isOther && html`<p class="note hand">Another window of this browser edits ${name}, too: what is saved last is compared with what was there.</p>`}
      ${elsewhere.map((problem) => html`<${Finding} problem=${problem}>${isRefusal(problem) && html`<span class="row"><button type="button" onClick=${() => fix(problem)}>Let the assistant fix this</button></span>`}<//>`)}
      ${isLate && html`<div class="stack"><p class="note hand"><span class="grow">It was changed elsewhere since you began. Both are here: what is saved now, and yours.</span><button type="button" onClick=${() => save(source)}>Save mine instead</button><button type="button" class="quiet" onClick=${drop}>Take what is there</button></p><${Beside} one=${source} other=${text} titles=${["As it is now", "Yours"]} /></div>`}</div>
    <div class="gate" role="status"><${Strip} verdict=${isOld ? null : verdict} /><strong class=${!verdict || isOld ? "dim" : verdict.admitted ? "good" : "bad"}>${word}</strong><span>${isOld ? "" : plain(note)}</span>${!isOld && refusals.length > 0 && html`<span class="dim">${count(refusals.length, "finding")}${isNew ? "" : "; the saved one stays in use"}</span>`}<span class="grow"></span>${said && said.can_be_confirmed && html`<button type="button" class="quiet" onClick=${confirm} title="Its examples then hold what it returned">Confirm what it returned</button>`}</div></section>`;
}
