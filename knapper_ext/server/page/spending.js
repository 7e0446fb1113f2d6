// What models cost by day, agent, conversation or turn; the caps; and the lever that stops what runs by itself.
import { useEffect, useRef, useState } from "./vendor/preact.js";
import { api, count, Fault, html, plain, tell, useDraft, useLoaded } from "./kit.js";
import { ran } from "./commands.js";
import { Meter } from "./marks.js";

const GROUPS = ["day", "agent", "conversation", "turn"], LAST = 28;
const SCOPES = { turn: "a turn", conversation: "a conversation", agent: "an agent", day: "a day", unattended: "a day's turns that nobody watches" }, KINDS = ["money", "tokens", "requests"];
const AMOUNT = { money: (value) => `$${value.toFixed(value >= 1 || value === 0 ? 2 : 4)}`, tokens: (value) => count(value, "token"), requests: (value) => count(value, "request") };
const money = (cost) => (cost === null ? "unknown" : AMOUNT.money(cost));

function Days({ rows }) {
  const box = useRef(null), [width, setWidth] = useState(560);
  useEffect(() => { const look = () => box.current && setWidth(Math.max(240, box.current.clientWidth)); look(); addEventListener("resize", look); return () => removeEventListener("resize", look); }, []);
  const isPriced = rows.some((row) => row.cost > 0), value = (row) => (isPriced ? row.cost || 0 : row.prompt + row.completion), most = Math.max(...rows.map(value), 1e-9);
  const left = 56, height = 120, step = Math.min(36, (width - left) / rows.length), told = (amount) => (isPriced ? AMOUNT.money(amount) : Math.round(amount).toLocaleString());
  return html`<div ref=${box}><svg class="chart" viewBox=${`0 0 ${width} ${height + 32}`} width=${width} height=${height + 32} role="img" aria-label=${`Spent on each of ${count(rows.length, "day")}: at most ${told(most)}${isPriced ? "" : " tokens"}`}>
    ${[0, most].map((amount) => html`<path class="axis" d=${`M${left} ${8 + height - (amount * height) / most}H${width}`} /><text x=${left - 6} y=${12 + height - (amount * height) / most} text-anchor="end">${told(amount)}</text>`)}
    ${rows.map((row, at) => html`<rect class=${at === rows.length - 1 ? "today" : "stratum-2"} x=${left + at * step + 2} y=${8 + height - (value(row) * height) / most} width=${Math.max(2, step - 4)} height=${(value(row) * height) / most}><title>${row.agent}: ${told(value(row))}</title></rect>`)}
    <text x=${left} y=${height + 26}>${rows[0].agent}</text>${rows.length > 3 && html`<text x=${left + rows.length * step} y=${height + 26} text-anchor="end">${rows.at(-1).agent}</text>`}</svg></div>`;
}

function Caps({ caps, done }) {
  const [scope, setScope] = useDraft(":cap scope", "day"), [kind, setKind] = useDraft(":cap kind", "money"), [amount, setAmount] = useDraft(":cap", ""), [fault, setFault] = useState("");
  const set = (name, value) => ran(["cap", "", name, value]).then(() => { setAmount(""); setFault(""); tell(`The cap is set: ${name} ${value}.`); done(); }, setFault);
  return html`<section class="section" aria-label="Caps"><h2>Caps</h2>${caps.length === 0 && html`<p class="dim">There is none.</p>`}
    <ul class="list">${caps.map((row) => html`<li key=${row.name}><span class="grow">${row.spent === null ? "" : `${AMOUNT[row.kind](row.spent)} of `}<strong>${AMOUNT[row.kind](row.most)}</strong> for ${SCOPES[row.scope]}${row.is_set ? "" : html` <span class="dim">usual</span>`}${row.wanted !== null && html` <span class="dim">knapper.toml asks for ${AMOUNT[row.kind](row.wanted)}, and can only narrow</span>`}</span>${row.spent !== null && html`<span class="cap-meter"><${Meter} share=${(100 * row.spent) / (row.most || 1)} says=${`${row.name}: ${AMOUNT[row.kind](row.spent)} of ${AMOUNT[row.kind](row.most)}`} /></span>`}<button type="button" class="quiet" aria-label=${`Lift ${row.name}`} onClick=${() => set(row.name, "none")}>Lift</button>${row.is_set && html`<button type="button" class="quiet" aria-label=${`The usual for ${row.name}`} onClick=${() => set(row.name, "usual")}>Usual</button>`}</li>`)}</ul>
    <form class="row" onSubmit=${(event) => { event.preventDefault(); set(`${scope}_${kind}`, amount); }}><label><span class="unseen">Of what</span><select value=${scope} onChange=${({ target }) => setScope(target.value)}>${Object.entries(SCOPES).map(([name, says]) => html`<option value=${name}>${says}</option>`)}</select></label><label><span class="unseen">Kind</span><select value=${kind} onChange=${({ target }) => setKind(target.value)}>${KINDS.map((name) => html`<option value=${name}>${name}</option>`)}</select></label><label><span class="unseen">At most</span><input inputmode="decimal" size="10" placeholder="at most" value=${amount} onInput=${({ target }) => setAmount(target.value)} /></label><button disabled=${!amount.trim()}>Set</button></form>
    <p class="help">Reserved before a request and settled after it: at most one reply too much.</p><${Fault} text=${fault} /></section>`;
}

export const pauseAll = (verb) => ran([verb, ""]);

export function Spending({ beat, reload }) {
  const [by, setBy] = useState("day"), [document_, setDocument] = useState(null), [again, setAgain] = useState(0), [fault, setFault] = useState("");
  useEffect(() => { let over = false; ran(["cost", "", by, "--last", String(LAST)]).then((read) => { if (!over) { setDocument(read.document); setFault(""); } }, setFault); return () => { over = true; }; }, [by, again, beat]);
  const renew = () => { setAgain((old) => old + 1); reload(); };
  if (!document_) return html`<${Fault} text=${fault} />${!fault && html`<p class="dim">Loading…</p>`}`;
  const { rows, total, unpriced, caps, paused } = document_, isDays = document_.by === "day", cells = (row) => html`<td class="number">${row.steps.toLocaleString()}</td><td class="number">${row.prompt.toLocaleString()}</td><td class="number mid">${row.cached.toLocaleString()}</td><td class="number">${row.completion.toLocaleString()}</td><td class="number">${money(row.cost)}</td>`;
  const lever = (verb) => pauseAll(verb).then(renew, setFault);
  return html`<${Fault} text=${fault} /><section class="section" aria-label="Spent"><div class="head"><h2 class="grow">Spent</h2><div class="segments" role="group" aria-label="By">${GROUPS.map((name) => html`<button type="button" aria-pressed=${by === name} onClick=${() => setBy(name)}>${name}</button>`)}</div></div>
      ${rows.length === 0 ? html`<p class="dim">No model was asked here yet.</p>` : html`${isDays && html`<${Days} rows=${rows} />`}<div class="wide-table" tabindex="0" role="region" aria-label=${`Spent by ${document_.by}`}><table><thead><tr><th scope="col">${document_.by}</th><th scope="col" class="number">Requests</th><th scope="col" class="number">In</th><th scope="col" class="number mid">Cached</th><th scope="col" class="number">Out</th><th scope="col" class="number">Cost</th></tr></thead>
        <tbody>${[...rows].reverse().map((row) => html`<tr key=${row.agent}><td>${plain(row.message || row.agent || "none")}</td>${cells(row)}</tr>`)}<tr class="sum"><td>together</td>${cells(total)}</tr></tbody></table></div>`}
      ${unpriced.length > 0 && html`<p class="help">No price is known for ${unpriced.map(plain).join(", ")}; <code>prices.toml</code> in the workspace can say it.</p>`}</section>
    <${Caps} caps=${caps} done=${renew} />
    <section class="section"><h2>What runs by itself</h2>${paused === null ? html`<p>Heartbeats, agents that others woke, and scripts run. <button type="button" onClick=${() => lever("pause")}>Pause all that</button></p>` : html`<p class="note hand"><span class="grow">Paused${paused ? `: ${plain(paused)}` : ""}. You can go on talking; nothing runs by itself.</span><button type="button" onClick=${() => lever("resume")}>Resume</button></p>`}</section>`;
}
