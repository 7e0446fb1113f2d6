// Two sources side by side: equal lines stand beside each other, those far from a difference are folded and counted.
import { useMemo } from "./vendor/preact.js";
import { compared } from "./cards.js";
import { html, plain } from "./kit.js";
import { colored, Lines } from "./python.js";

const bare = (text) => text.replace(/^\n+/, "").trimEnd();

function columns(one, other) {
  const left = [], right = [], colors = [one, other].map((text) => colored(plain(bare(text))));
  let [a, b, alike] = [0, 0, 0];
  const even = () => { while (left.length < right.length) left.push(["", "nothing", " "]); while (right.length < left.length) right.push(["", "nothing", " "]); };
  for (const row of compared(one, other, Infinity).split("\n")) {
    if (row[0] === "-") { left.push([a + 1, "refuses", colors[0][a]]); a += 1; } else if (row[0] === "+") { right.push([b + 1, "added", colors[1][b]]); b += 1; } else { even(); left.push([a + 1, "", colors[0][a]]); right.push([b + 1, "", colors[1][b]]); a += 1; b += 1; alike += 1; }
  }
  even();
  const isNear = (at) => left.slice(Math.max(0, at - 3), at + 4).some(([, kind], k) => kind || right[Math.max(0, at - 3) + k][1]);
  const kept = left.map((_, at) => isNear(at)), folded = kept.filter((is) => !is).length;
  return { left: left.filter((_, at) => kept[at]), right: right.filter((_, at) => kept[at]), folded, added: right.filter(([, kind]) => kind === "added").length, removed: left.filter(([, kind]) => kind === "refuses").length, alike };
}

export function Beside({ one, other, titles, about = ["", ""], children }) {
  const { left, right, folded, added, removed } = useMemo(() => columns(one, other), [one, other]);
  const side = (rows, at) => html`<div><div class="head"><strong>${titles[at]}</strong><span class="dim cut">${about[at]}</span></div><pre class="source" tabindex="0" aria-label=${titles[at]}><code><${Lines} rows=${rows} /></code></pre></div>`;
  if (!added && !removed) return html`<p class="dim">No difference.</p>`;
  return html`<div class="stack"><div class="row"><span class="meta grow"><span>${added} added, ${removed} removed</span>${folded > 0 && html`<span>${folded} lines alike</span>`}</span>${children}</div><div class="beside">${side(left, 0)}${side(right, 1)}</div></div>`;
}
