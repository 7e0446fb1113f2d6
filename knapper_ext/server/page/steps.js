// What the model saw in each step of a conversation, part by part, and what the turns cost.
import { useState } from "./vendor/preact.js";
import { count, Fault, html, part, plain, Text, useLoaded, when } from "./kit.js";

const bare = (text) => text.replace(/^#+ +|\*\*|`/g, ""); // an option of a list shows no Markdown

export function Steps({ agent, conversation = "main", beat }) {
  const here = `conversation=${part(conversation)}`;
  const [listed, fault] = useLoaded(`/agents/${part(agent)}/steps?last=200&${here}`, beat);
  const [chosen, setChosen] = useState(0);
  const rows = listed ? [...listed.steps].reverse() : [], seq = chosen || (rows[0] && rows[0].seq);
  const [seen, trouble] = useLoaded(seq ? `/agents/${part(agent)}/steps/${seq}?${here}` : "");
  const name = (one) => (one.part === "section" ? (/^\s*<(\w+)/.exec(one.text) || [])[1] || `${plain(one.text.trim().split("\n", 1)[0]).slice(0, 40)}…` : one.part);
  const title = (row) => `${when(row.at)} · ${row.calls.length ? row.calls.join(", ") : bare(plain(row.text)) || "a reply"}`;
  const most = seen ? Math.max(1, seen.window, seen.tokens) : 1;
  return html`<div class="page stack apart"><${Fault} text=${fault || trouble} />${listed && rows.length === 0 && html`<p class="dim">The model was not asked anything yet.</p>`}
    ${rows.length > 0 && html`<label>Step <select value=${seq} onChange=${(event) => setChosen(Number(event.target.value))}>${rows.map((row) => html`<option key=${row.seq} value=${row.seq}>${title(row)}</option>`)}</select></label>`}
    ${seen && html`<section class="card"><h2>What the model saw <span class="dim">${seen.model}, about ${seen.tokens.toLocaleString()} of ${count(seen.window, "token")}</span></h2>
      ${seen.parts.map((one, at) => html`<details key=${`${seq}:${at}`}><summary><strong>${name(one)}</strong>${one.count ? ` (${one.count})` : ""} <span class="dim">${one.tokens === null ? "size unknown" : `≈ ${count(one.tokens, "token")}`}</span> <meter min="0" max=${most} value=${one.tokens || 0} aria-label=${`Share of ${name(one)} in the window`}></meter></summary>
        ${one.text && html`<${Text} label=${one.part} text=${one.text} />`}
        ${(one.messages || []).map((message) => html`<p class="dim">${message.kind}, ≈ ${count(message.tokens, "token")}</p><${Text} label=${message.kind} text=${message.text} />`)}</details>`)}</section>`}
    <${Cost} agent=${agent} beat=${beat} /></div>`;
}

const money = (cost) => (cost === null ? "unknown" : cost === 0 ? "$0" : `$${cost.toFixed(cost >= 1 ? 2 : 4)}`);

function Cost({ agent, beat }) {
  const [costs, fault] = useLoaded(`/agents/${part(agent)}/cost`, beat);
  if (!costs) return html`<${Fault} text=${fault} />`;
  const cells = (row) => html`<td>${plain(row.message)}</td><td class="number far">${row.steps}</td><td class="number">${row.is_estimated ? "≈ " : ""}${row.prompt.toLocaleString()}</td><td class="number far">${row.cached.toLocaleString()}</td><td class="number">${row.completion.toLocaleString()}</td><td class="number">${row.steps ? money(row.cost) : "not counted"}</td>`;
  return html`<section class="card"><h2>Cost</h2>${costs.turns.length === 0 ? html`<p class="dim">No turn was taken yet.</p>` : html`<div class="wide-table" tabindex="0" role="region" aria-label="Cost of each turn"><table><thead><tr><th scope="col">Turn</th><th scope="col" class="number far">Steps</th><th scope="col" class="number">In</th><th scope="col" class="number far">Cached</th><th scope="col" class="number">Out</th><th scope="col" class="number">Cost</th></tr></thead>
    <tbody>${costs.turns.slice(-50).map((row) => html`<tr>${cells(row)}</tr>`)}<tr class="sum">${cells(costs.total)}</tr></tbody></table></div>`}
    ${costs.unpriced.length > 0 && html`<p class="dim">No price is known for ${costs.unpriced.map(plain).join(", ")}; prices.toml in the workspace can say it.</p>`}</section>`;
}
