// How the functions grew, as a list that one reads: what was made, fixed and used, when and by whom; and what waits to be decided.
import { useEffect, useRef, useState } from "./vendor/preact.js";
import { compared } from "./cards.js";
import { api, count, Fault, go, html, part, plain, reaches, Sentence, tell, to, useLoaded, when } from "./kit.js";
import { Standing, Strip } from "./marks.js";
import { Diff, Source } from "./python.js";
import { Problems } from "./verdict.js";

const KINDS = { wanted: "dim", written: "", rejected: "bad", fixed: "hand", admitted: "good", used: "good" };
const STRATA = 5, STEPS = 12, DAY_S = 86_400;
const first = (row, stage) => row.stages.find((one) => one.stage === stage);

// How many there were of each module at each of twelve times; the smallest modules are one.
function strata(rows, moduleOf) {
  const made = rows.map((row) => [first(row, "admitted")?.at, moduleOf(row.function)]).filter(([at, module]) => at && module).sort((a, b) => a[0] - b[0]);
  if (made.length < 2) return null;
  const now = Date.now() / 1000, from = Math.min(made[0][0], now - DAY_S), times = Array.from({ length: STEPS }, (_, at) => from + ((now - from) * at) / (STEPS - 1));
  const sizes = new Map();
  for (const [, module] of made) sizes.set(module, (sizes.get(module) || 0) + 1);
  const names = [...sizes].sort((a, b) => b[1] - a[1]).map(([name]) => name), own = names.slice(0, names.length > STRATA ? STRATA - 1 : STRATA);
  const layers = [...own, ...(names.length > STRATA ? ["others"] : [])].map((name) => [name, times.map((time) => made.filter(([at, module]) => at <= time && (name === "others" ? !own.includes(module) : module === name)).length)]);
  return { times, layers, most: made.length };
}

function Strata({ rows, moduleOf }) {
  const box = useRef(null), [width, setWidth] = useState(800);
  useEffect(() => { const look = () => box.current && setWidth(Math.max(280, box.current.clientWidth)); look(); addEventListener("resize", look); return () => removeEventListener("resize", look); }, []);
  const drawn = strata(rows, moduleOf);
  if (!drawn) return html`<div ref=${box}></div>`;
  const { times, layers, most } = drawn, left = 28, right = 108, height = 220, top = 12, x = (at) => left + (at * (width - left - right)) / (STEPS - 1), y = (value) => top + height - (value * height) / (most * 1.1);
  const point = (values, at) => `${x(at).toFixed(1)} ${y(values[at]).toFixed(1)}`;
  const curve = (values, order) => order.map((at, k) => { if (!k) return point(values, at); const middle = ((x(at) + x(order[k - 1])) / 2).toFixed(1); return `C${middle} ${y(values[order[k - 1]]).toFixed(1)} ${middle} ${y(values[at]).toFixed(1)} ${point(values, at)}`; }).join("");
  const forth = [...times.keys()], back = [...forth].reverse(), day = (time) => new Date(time * 1000).toLocaleDateString(undefined, { day: "numeric", month: "short" });
  let base = times.map(() => 0);
  const areas = layers.map(([name, values], at) => { const above = values.map((value, k) => base[k] + value), below = base; base = above; return { name, at, path: `M${curve(above, forth)}L${curve(below, back)}Z`, middle: y((above.at(-1) + below.at(-1)) / 2) + 4, last: values.at(-1) }; });
  const dots = rows.flatMap((row) => row.stages.filter(({ stage }) => stage === "admitted" || stage === "fixed").map(({ stage, at }) => [Math.max(0, Math.min(STEPS - 1, Math.round(((at - times[0]) / (times.at(-1) - times[0])) * (STEPS - 1)))), stage === "fixed" ? "fixed-mark" : "made-mark"]));
  const stacked = new Map(), lane = top + height + 32, placed = dots.map(([at, kind]) => { const deep = stacked.get(at) || 0; stacked.set(at, deep + 1); return [x(at) - 4, lane + 10 * Math.min(deep, 8), kind]; });
  const deepest = Math.min(9, Math.max(0, ...stacked.values())), whole = lane + 10 * deepest + 4, many = (kind) => dots.filter(([, one]) => one === kind).length;
  const grid = [0, Math.round(most / 2), most].filter((value, at, all) => all.indexOf(value) === at);
  return html`<div ref=${box}><svg class="chart" viewBox=${`0 0 ${width} ${whole}`} width=${width} height=${whole} role="img" aria-label=${`The library over time: ${count(most, "function")} made in conversations since ${day(times[0])}; ${layers.map(([name, values]) => `${name} ${values.at(-1)}`).join(", ")}; ${many("fixed-mark")} fixed`}>
    ${grid.map((value) => html`<path class="axis" d=${`M${left} ${y(value)}H${width - right}`} /><text x=${left - 6} y=${y(value) + 4} text-anchor="end">${value}</text>`)}
    ${areas.map(({ name, at, path, middle, last }) => html`<path class=${`stratum-${at + 1} area`} d=${path} /><text class="label" x=${width - right + 14} y=${middle}>${name.slice(0, 12)} ${last}</text>`)}
    ${[0, Math.floor(STEPS / 2), STEPS - 1].map((at) => html`<text x=${x(at)} y=${top + height + 18} text-anchor="middle">${day(times[at])}</text>`)}
    ${placed.map(([dx, dy, kind]) => html`<path class=${kind} transform=${`translate(${dx} ${dy})`} d="M4 0 8 3.5 6.5 8h-5L0 3.5Z" />`)}
    <text class="label" x=${width - right + 14} y=${lane + 8}>made ${many("made-mark")}, fixed ${many("fixed-mark")}</text></svg></div>`;
}

// What waits: a candidate that the gate rejected, or a draft that nothing proves. Each is decided here, or several at once.
function Waiting({ candidates, drafts, again }) {
  const [open, setOpen] = useState({}), [chosen, setChosen] = useState(() => new Set()), [fault, setFault] = useState("");
  const rows = [...candidates.map((row) => ({ key: `candidate:${row.name}`, kind: "rejected", ...row })), ...drafts.map((row) => ({ key: `draft:${row.name}`, kind: "draft", ...row }))];
  const flip = (key, what) => setOpen((old) => ({ ...old, [key]: old[key] === what ? "" : what }));
  const mark = (key, is) => setChosen((old) => { const keys = new Set(old); if (is) keys.add(key); else keys.delete(key); return keys; });
  const drop = (row) => (row.kind === "draft" ? api(`/functions/${part(row.name)}`, "DELETE") : api(`/candidates/${part(row.name)}`, "DELETE"));
  const join = (row) => (row.kind === "draft" ? api(`/functions/${part(row.name)}/good`, "POST", {}) : api(`/functions/${part(row.name)}/confirm`, "POST", {}));
  const decide = async (deed, list, says) => {
    setFault("");
    for (const row of list) try { await deed(row); } catch (error) { setFault(error); }
    setChosen(new Set()); again();
    const [one] = list, wasDraft = list.length === 1 && one.kind === "draft" && deed === drop;
    tell(`${list.map((row) => row.name).join(", ")}: ${says}.`, wasDraft ? () => api(`/functions/${part(one.name)}/rollback`, "POST", {}).then(again, (error) => tell(error.message)) : null);
  };
  const write = (row) => { localStorage.setItem(`knapper-typed:source:${row.name}`, JSON.stringify({ text: row.code.replace(/^\n+/, ""), over: row.source || "", module: row.module })); go("Functions", row.name); };
  const picked = rows.filter((row) => chosen.has(row.key)), canJoin = (row) => row.kind === "draft" || row.verdict.can_be_confirmed;
  return html`<section class="section" aria-label="What waits for you"><div class="head"><h2 class="grow">What waits for you</h2>${picked.length > 0 && html`<button type="button" class="danger" onClick=${() => decide(drop, picked, "dropped")}>Drop ${picked.length}</button>${picked.every(canJoin) && html`<button type="button" onClick=${() => decide(join, picked, "joined")}>Join ${picked.length}</button>`}`}</div><${Fault} text=${fault} />
    ${rows.length === 0 && html`<p class="dim">Nothing waits.</p>`}
    <ul class="waiting">${rows.map((row) => html`<li key=${row.key}><div class="row"><input type="checkbox" aria-label=${`Choose ${row.name}`} checked=${chosen.has(row.key)} onChange=${({ target }) => mark(row.key, target.checked)} />${row.kind === "draft" || row.source ? html`<a class="mono" href=${to("Functions", row.name)}>${row.name}</a>` : html`<span class="mono">${row.name}</span>`}<span class=${`tag ${row.kind === "rejected" ? "bad" : ""}`}>${row.kind}</span>${row.verdict && html`<${Strip} verdict=${row.verdict} />`}<span class="grow"></span>
        ${row.code && html`<button type="button" class="quiet" aria-pressed=${open[row.key] === "look"} onClick=${() => flip(row.key, "look")}>Look</button>`}${row.code && row.source && html`<button type="button" class="quiet" aria-pressed=${open[row.key] === "diff"} onClick=${() => flip(row.key, "diff")}>Diff</button>`}${row.kind === "draft" ? html`<a class="button quiet" href=${to("Functions", row.name)}>Try</a>` : html`<button type="button" class="quiet" onClick=${() => write(row)}>Edit</button>`}<button type="button" class="quiet danger" onClick=${() => decide(drop, [row], "dropped")}>Drop</button>${canJoin(row) && html`<button type="button" title=${row.kind === "draft" ? "Its results are right" : "Its examples then hold what it returned"} onClick=${() => decide(join, [row], "joined")}>Join</button>`}</div>
      ${row.kind === "draft" ? html`<p>${plain(row.description.split("\n")[0])} <span class="dim">${plain(reaches(row.reach))}</span></p>` : html`<${Problems} rows=${(row.verdict.problems || []).filter((problem) => problem.severity !== "warns").slice(0, 2)} />`}
      ${open[row.key] === "look" && html`<${Source} text=${row.code} label=${`Source of ${row.name}`} />`}${open[row.key] === "diff" && html`<${Diff} text=${compared(row.source, row.code)} />`}</li>`)}</ul></section>`;
}

// What the turns took in which it was made.
function useTokens(agents) {
  const [byTurn, setByTurn] = useState(new Map());
  useEffect(() => {
    Promise.all(agents.map((agent) => api(`/agents/${part(agent)}/cost`).catch(() => ({ turns: [] })))).then((all) => setByTurn(new Map(all.flatMap(({ turns }) => turns.map((row) => [row.turn, row])))));
  }, [agents.join()]);
  return (row) => [...new Set(row.stages.filter(({ stage }) => stage !== "used").map(({ turn }) => turn))].reduce((sum, turn) => { const spent = byTurn.get(turn); return spent ? { tokens: sum.tokens + spent.prompt + spent.completion, cost: spent.cost === null || sum.cost === null ? null : sum.cost + spent.cost } : sum; }, { tokens: 0, cost: 0 });
}

export function Growth({ beat }) {
  const [grown, fault, again] = useLoaded("/growth?last=1000", beat), [listed, , relist] = useLoaded("/functions", beat), [kept, , reread] = useLoaded("/candidates", beat);
  const rows = grown ? [...grown.functions].reverse() : [], functions = listed ? listed.functions : [], byName = new Map(functions.map((row) => [row.name, row]));
  const spent = useTokens([...new Set(rows.map((row) => row.agent))].slice(0, 8));
  const renew = () => { again(); relist(); reread(); };
  const fixed = rows.filter((row) => first(row, "rejected") && first(row, "admitted")).length, calls = functions.reduce((sum, row) => sum + row.calls, 0);
  const figures = [["Functions", functions.length, `in ${count(new Set(functions.map((row) => row.module)).size, "module")}`], ["Made in conversations", rows.filter((row) => first(row, "admitted")).length, ""], ["Calls", calls, ""], ["Rejected at first, then fixed", fixed, ""]];
  return html`<div class="page stack far-apart"><${Fault} text=${fault} /><dl class="figures">${figures.map(([title, number, about]) => html`<div><dt>${title}</dt><dd>${number.toLocaleString()} <small>${about}</small></dd></div>`)}</dl>
    ${rows.length > 1 && html`<section class="section"><h2>The library over time</h2><${Strata} rows=${rows} moduleOf=${(name) => byName.get(name)?.module} /></section>`}
    <div class="split even"><${Waiting} candidates=${kept ? kept.candidates : []} drafts=${functions.filter((row) => row.standing === "draft")} again=${renew} />
    <section class="section" aria-label="How each came to be"><h2>How each came to be</h2>${grown && rows.length === 0 && html`<p class="dim">No function was made in a conversation yet.</p>`}
      <ul class="waiting">${rows.map((row) => { const now = byName.get(row.function), { tokens, cost } = spent(row); return html`<li key=${`${row.agent}:${row.function}`}><div class="row"><a class="mono" href=${to("Functions", row.function)}>${row.function}</a>${now ? html`<${Standing} standing=${now.standing} />` : html`<span class="tag">gone</span>`}<span class="grow"></span><span class="dim">by ${plain(row.agent)}, ${row.used ? `used ${row.used}×` : "not used yet"}${tokens ? ` · ${count(tokens, "token")}` : ""}${cost ? ` · $${cost.toFixed(4)}` : ""}</span></div>
        ${row.conversation && html`<p class="help"><a href=${to("Chat", row.agent, row.conversation)}>the conversation</a></p>`}
        <ol class="stages">${row.stages.map((stage) => html`<li><strong class=${KINDS[stage.stage]}>${stage.stage}</strong> <span class="dim">${when(stage.at)}</span> <${Sentence} text=${stage.text} /></li>`)}</ol></li>`; })}</ul></section></div></div>`;
}
