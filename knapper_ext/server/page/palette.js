// A search of everything: functions by name and words, conversations by name, and what was said and stored.
import { useEffect, useRef, useState } from "./vendor/preact.js";
import { conversationsOf } from "./conversations.js";
import { api, Fault, html, part, plain, to, useLoaded, when } from "./kit.js";
import { Icon, Stone } from "./marks.js";

const EACH = 6, PAUSE_MS = 250;

export function Palette({ agent, close }) {
  const [query, setQuery] = useState(""), [at, setAt] = useState(0), [found, setFound] = useState({ of: "", best: null }), [fault, setFault] = useState("");
  const [listed] = useLoaded("/functions"), [talks] = useLoaded(conversationsOf(agent)), box = useRef(null), dialog = useRef(null);
  const wanted = query.trim().toLowerCase(), fits = (text) => text.toLowerCase().includes(wanted);
  useEffect(() => { const before = document.activeElement; box.current.focus(); return () => before?.isConnected && before.focus(); }, []);
  useEffect(() => {
    if (!wanted) return undefined;
    const timer = setTimeout(() => api(`/agents/${part(agent)}/search?query=${part(query)}`).then(({ best }) => setFound({ of: wanted, best }), setFault), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [query]);
  const functions = (listed ? listed.functions : []).filter((row) => fits(`${row.name} ${row.description}`)).slice(0, EACH).map((row) => ({ to: to("Functions", row.name), mark: html`<${Stone} standing=${row.standing} />`, name: row.name, about: row.description.split("\n")[0] }));
  const conversations = (talks ? talks.conversations : []).filter((row) => fits(row.name || row.id)).slice(0, EACH).map((row) => ({ to: to("Chat", agent, row.id), mark: html`<${Icon} name="talk" />`, name: row.name || row.id, about: when(row.used) }));
  const memory = found.best && found.of === wanted && wanted ? [...found.best.blocks, ...found.best.hits].slice(0, EACH).map((row) => ({ to: to("Memory", agent), mark: html`<${Icon} name="memory" />`, name: row.about, about: row.text })) : [];
  const groups = [["Functions", functions], ["Conversations", conversations], ["Said and stored", memory]].filter(([, rows]) => rows.length), all = groups.flatMap(([, rows]) => rows), chosen = Math.min(at, Math.max(0, all.length - 1));
  const pressed = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && all.length) { event.preventDefault(); setAt((chosen + step + all.length) % all.length); }
    if (event.key === "Enter" && all[chosen]) { event.preventDefault(); location.hash = all[chosen].to; close(); }
    if (event.key === "Escape") { event.stopPropagation(); close(); }
    if (event.key === "Tab") { event.preventDefault(); box.current.focus(); } // the dialog keeps the focus
  };
  return html`<div class="veil" onClick=${(event) => event.target === event.currentTarget && close()}><div class="pop palette" role="dialog" aria-modal="true" aria-label="Search everything" ref=${dialog} onKeyDown=${pressed}>
    <label class="search"><${Icon} name="search" /><span class="unseen">Search everything</span><input type="search" ref=${box} placeholder="Functions, conversations, what was said" value=${query} role="combobox" aria-expanded=${all.length > 0} aria-controls="everything" aria-activedescendant=${all.length ? `found-${chosen}` : undefined} onInput=${({ target }) => { setQuery(target.value); setAt(0); }} /><span class="key">Esc</span></label><${Fault} text=${fault} />
    <div class="options" role="listbox" id="everything" aria-label="What was found">${groups.map(([title, rows]) => html`<div role="group" aria-label=${title}><h3 aria-hidden="true">${title}</h3>${rows.map((row) => { const number = all.indexOf(row); return html`<a class="option" role="option" id=${`found-${number}`} tabindex="-1" aria-selected=${number === chosen} href=${row.to} onClick=${close}>${row.mark}<span class="cut">${plain(row.name)}</span><span class="does cut grow">${plain(row.about)}</span></a>`; })}</div>`)}${wanted && all.length === 0 && html`<p class="option dim">Nothing fits.</p>`}</div></div></div>`;
}
