// A button with a menu of choices, each with what it means; the keyboard moves in it as in any menu.
import { useEffect, useRef, useState } from "./vendor/preact.js";
import { html, plain } from "./kit.js";
import { Icon } from "./marks.js";

// `groups`: [title, the one that is chosen, [[name, what it means]], what is done with a choice].
export function Menu({ label, icon, shown, groups, kind = "" }) {
  const [isOpen, setOpen] = useState(false), box = useRef(null), opener = useRef(null);
  const choices = () => [...box.current.querySelectorAll("[role=menuitemradio]")];
  const close = () => { setOpen(false); opener.current.focus(); };
  useEffect(() => { if (isOpen) (box.current.querySelector("[aria-checked=true]") || choices()[0])?.focus(); }, [isOpen]);
  useEffect(() => {
    if (!isOpen) return undefined;
    const outside = ({ target }) => box.current && !box.current.contains(target) && setOpen(false);
    addEventListener("pointerdown", outside);
    return () => removeEventListener("pointerdown", outside);
  }, [isOpen]);
  const pressed = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (isOpen && step) { event.preventDefault(); const all = choices(); all[(all.indexOf(document.activeElement) + step + all.length) % all.length].focus(); }
    if (isOpen && event.key === "Escape") { event.preventDefault(); event.stopPropagation(); close(); }
    if (isOpen && event.key === "Tab") setOpen(false);
  };
  return html`<span class="has-menu" ref=${box} onKeyDown=${pressed}><button type="button" class=${`quiet ${kind}`} ref=${opener} aria-haspopup="menu" aria-expanded=${isOpen} aria-label=${`${label}: ${shown}`} title=${label} onClick=${() => setOpen(!isOpen)}><${Icon} name=${icon} /><span class="cut">${shown}</span></button>
    ${isOpen && html`<div class="pop choices" role="menu" aria-label=${label}>${groups.map(([title, now, rows, choose]) => html`<div role="group" aria-label=${title}><p class="help" aria-hidden="true">${title}</p>${rows.map(([name, says]) => html`<button type="button" class="option bare" role="menuitemradio" aria-checked=${name === now} tabindex="-1" onClick=${() => { choose(name); close(); }}><${Icon} name="check" /><span><strong>${plain(name)}</strong><span class="help">${plain(says)}</span></span></button>`)}</div>`)}</div>`}</span>`;
}
