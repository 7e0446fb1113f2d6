// Where one writes: with pickers of what a message or a command may name, and what waits to be taken up.
import { useEffect, useRef, useState } from "./vendor/preact.js";
import { Chips } from "./attach.js";
import { commands } from "./commands.js";
import { conversationsOf } from "./conversations.js";
import { api, count, html, plain, useDraft, when } from "./kit.js";
import { Icon, Only } from "./marks.js";
import { Menu } from "./menu.js";

const MOST = 40;
const NAMED = /(^|\s)([/#])([\w.-]*)$/; // what stands before the caret
const typable = () => commands().then((rows) => rows.filter((row) => row.words.length || row.page).map((row) => ({ text: `/${row.name}`, says: row.words.length ? row.says : `Here: ${row.page}.`, icon: "hand" })));
const nouns = (agent) => Promise.all([api("/functions"), api(conversationsOf(agent))]).then(([{ functions }, { conversations }]) => [
  ...functions.map((row) => ({ text: row.name, says: row.description.split("\n")[0], icon: "functions" })),
  ...conversations.map((row) => ({ text: row.name || row.id, says: `${when(row.used)}, ${count(row.messages, "message")}`, icon: "talk" })),
]);

// What fits what is being typed; the first is chosen.
function usePicker(agent, text, caret) {
  const [known, setKnown] = useState({}), [chosen, setChosen] = useState(0), [closed, setClosed] = useState("");
  const named = NAMED.exec(text.slice(0, caret)), sign = named ? named[2] : "", word = named ? named[3].toLowerCase() : "";
  const isOpen = Boolean(named) && (sign === "#" || named.index === 0) && closed !== text;
  useEffect(() => { if (isOpen && !known[sign]) (sign === "/" ? typable() : nouns(agent)).then((rows) => setKnown((old) => ({ ...old, [sign]: rows })), () => {}); }, [isOpen, sign]);
  useEffect(() => setChosen(0), [word, sign]);
  const rows = isOpen ? (known[sign] || []).filter((row) => row.text.toLowerCase().includes(word)).slice(0, MOST) : [];
  const taken = (row) => `${text.slice(0, caret - named[3].length - 1)}${row.text} ${text.slice(caret)}`;
  const isWhole = sign === "/" && rows.some((row) => row.text.slice(1) === word);
  return { rows, isWhole, chosen: Math.min(chosen, Math.max(0, rows.length - 1)), move: (by) => setChosen((old) => (old + by + rows.length) % rows.length), close: () => setClosed(text), taken };
}

// What the next messages of this tab may reach and grow, where it is not what the workspace says.
export function usePolicy(agent, now) {
  const [chosen, setChosen] = useDraft(`policy:${agent}`, {}), usual = (now && now.policy) || {}, own = {};
  for (const key of ["mode", "growth"]) if (chosen[key] && chosen[key] !== usual[key]) own[key] = chosen[key];
  return { ...usual, ...own, own, choose: (key) => (value) => setChosen((old) => ({ ...old, [key]: value })) };
}

const MODES = [["ask", "Each new reach is asked"], ["task", "What a turn is expected to need is asked once, as one list"], ["plan", "It only reads; nothing is made or written"]];
const GROWTHS = [["on", "What is missing is made"], ["ask", "What passed the gate waits until you join it"], ["off", "Nothing is made, and no word is spent on it"]];

const Policy = ({ policy }) => (policy.mode ? html`<${Menu} label="What it may reach, and what grows" icon="hand" kind=${policy.own.mode || policy.own.growth ? "chosen" : ""} shown=${`${policy.mode}${policy.growth === "on" ? "" : `, growth ${policy.growth}`}`} groups=${[["Mode: what it may reach", policy.mode, MODES, policy.choose("mode")], ["Growth", policy.growth, GROWTHS, policy.choose("growth")]]} />` : null);

export function Composer({ agent, now, policy, files, attach, drop, choose, box, text, setText, send, stop, isRunning, note, used }) {
  const [caret, setCaret] = useState(0), [isOver, setOver] = useState(false), list = useRef(null), chooser = useRef(null);
  const picker = usePicker(agent, text, caret), isPicking = picker.rows.length > 0;
  const look = ({ target }) => setCaret(target.selectionStart);
  const take = (row) => { setText(picker.taken(row)); box.current.focus(); };
  useEffect(() => { list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" }); }, [picker.chosen, isPicking]);
  const pressed = (event) => {
    if (event.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (isPicking && step) { event.preventDefault(); picker.move(step); } else if (isPicking && (event.key === "Tab" || (event.key === "Enter" && !picker.isWhole))) { event.preventDefault(); take(picker.rows[picker.chosen]); } else if (isPicking && event.key === "Escape") { event.preventDefault(); event.stopPropagation(); picker.close(); } else if (event.key === "Enter" && !event.shiftKey) send(event);
  };
  const pasted = (event) => { const given = [...event.clipboardData.files]; if (given.length) { event.preventDefault(); attach(given); } };
  const dropped = (event) => { event.preventDefault(); setOver(false); attach([...event.dataTransfer.files]); };
  const hovered = (is) => (event) => { if (event.dataTransfer.types.includes("Files")) { event.preventDefault(); setOver(is); } };
  return html`<form onSubmit=${send}><div class=${`composer${isOver ? " over" : ""}`} onDragOver=${hovered(true)} onDragLeave=${hovered(false)} onDrop=${dropped}>${isPicking && html`<ul class="pop picker" role="listbox" id="picks" aria-label="To insert" ref=${list}>${picker.rows.map((row, at) => html`<li key=${row.text} id=${`pick-${at}`} class="option" role="option" aria-selected=${at === picker.chosen} onMouseDown=${(event) => { event.preventDefault(); take(row); }}><${Icon} name=${row.icon} /><span class=${row.icon === "talk" ? "cut" : "mono"}>${plain(row.text)}</span><span class="does cut">${plain(row.says)}</span></li>`)}</ul>`}
    <${Chips} files=${files} drop=${drop} /><label><span class="unseen">Message to ${agent}</span><textarea ref=${box} rows="1" placeholder="Ask, or say what is missing" aria-describedby="keys" aria-controls=${isPicking ? "picks" : undefined} aria-activedescendant=${isPicking ? `pick-${picker.chosen}` : undefined} value=${text} onInput=${(event) => { setText(event.target.value); look(event); }} onKeyUp=${look} onClick=${look} onKeyDown=${pressed} onPaste=${pasted}></textarea></label>
    <div class="tools"><${Only} name="clip" label="Attach files or pictures" onClick=${() => chooser.current.click()} /><input type="file" multiple hidden ref=${chooser} aria-label="Files to attach" onChange=${(event) => { attach([...event.target.files]); event.target.value = ""; }} /><${Policy} policy=${policy} /><span class="grow"></span>${now && (now.models.length ? html`<label class="row line-row"><span class="unseen">Model</span><select class="model" value=${now.model} onChange=${({ target }) => choose(target.value)}>${[...new Set([now.model, ...now.models])].map((name) => html`<option value=${name}>${plain(name)}</option>`)}</select></label>` : html`<span class="help cut" title="The model that answers">${plain(now.model)}</span>`)}
      ${isRunning && html`<${Only} name="stop" kind="" label="Stop" onClick=${stop} />`}<button class="strong only" type="submit" aria-label="Send" title="Send, Enter" disabled=${!text.trim() && !files.length}><${Icon} name="send" /></button></div></div>
    <div class="under"><span role="status">${plain(note)}</span><span id="keys" class="keys"><span class="key">/</span> commands <span class="key">#</span> functions, conversations · Enter sends · Shift+Enter breaks · Esc stops</span><span class="number" title="Of the model's context">${used}</span></div></form>`;
}
