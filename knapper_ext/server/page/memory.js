// What an agent remembers: its blocks, and the sources that it was given.
import { useEffect, useRef, useState } from "./vendor/preact.js";
import { api, base64, count, Fault, html, lines, part, plain, Sentence, Text, useDraft, useLoaded, when } from "./kit.js";

export function Memory({ agent, beat }) { // with each look of the page
  const [document, fault] = useLoaded(`/agents/${part(agent)}/memory`, beat);
  return html`<div class="page read stack apart"><${Fault} text=${fault} />${document && document.blocks.map((block) => html`<${Block} key=${block.label} agent=${agent} label=${block.label} beat=${block.version} />`)}
    <${Find} agent=${agent} />${document && html`<${Sources} agent=${agent} beat=${document.passages} />`}</div>`;
}

function Block({ agent, label, beat }) {
  const path = `/agents/${part(agent)}/memory/${part(label)}`;
  const [block, fault, again] = useLoaded(path, beat);
  const [mine, setMine] = useDraft(`${agent}:memory:${label}`, null); // with its version
  const [said, setSaid] = useState("");
  const box = useRef(null);
  if (!block) return html`<${Fault} text=${fault} />`;
  const now = lines(block.value), typed = mine ? mine.text : now, isLate = mine && mine.version !== block.version;
  const drop = () => setMine(null);
  const type = (text) => setMine((old) => (text === now && !isLate ? null : { version: (old || block).version, text }));
  const act = (asked, word) => asked.then((value) => { setSaid(word || value.text); drop(); again(); }, (error) => { setSaid(error.message); if (error.status === 409) { again(); box.current.focus(); } });
  const save = () => act(api(path, "PATCH", { version: block.version, value: typed }), "Saved.");
  return html`<section class="card"><h2>${label} <span class=${typed.length > block.limit ? "bad" : "dim"}>version ${block.version}, ${typed.length.toLocaleString()} of ${block.limit.toLocaleString()} characters${block.shared ? ", shared" : ""}</span></h2>
    <p class="dim">${plain(block.description)}</p>
    <label>Text of ${label}<textarea ref=${box} rows="6" value=${typed} onInput=${(event) => type(event.target.value)} disabled=${block.read_only}></textarea></label>
    ${isLate && html`<p class="warn">It was changed elsewhere since you began. It is now:</p><${Text} label=${`${label} as it is now`} text=${now} />`}
    <div class="row"><button class="strong" onClick=${save} disabled=${typed === now}>${isLate ? "Save mine instead" : "Save"}</button>${mine && html`<button onClick=${() => { drop(); setSaid(""); box.current.focus(); }}>Drop what I typed</button>`}
      <button onClick=${() => act(api(`${path}/undo`, "POST", { version: block.version }))} disabled=${block.read_only || block.version < 2 || Boolean(mine)}>Undo the last change</button><span role="status"><${Sentence} text=${said} /></span></div>
    <details><summary>History: ${count(block.changes.length, "change")}</summary><ol class="plain">${block.changes.slice(-50).reverse().map((change) => html`<li><details><summary>${when(change.at)} · ${plain(change.by)} · ${plain(change.what)}</summary><${Text} label=${`Version ${change.version}`} text=${lines(change.value)} /></details></li>`)}</ol></details></section>`;
}

function Find({ agent }) {
  const [query, setQuery] = useDraft(":search");
  const [results, setResults] = useState(null);
  const [fault, setFault] = useState("");
  const search = (event) => {
    event.preventDefault();
    api(`/agents/${part(agent)}/search?query=${part(query)}`).then(({ best }) => { setResults(best); setFault(""); }, setFault);
  };
  return html`<section class="card"><h2>Search</h2><form class="row" role="search" onSubmit=${search}><label class="wide">In what was said and what was stored <input type="search" value=${query} onInput=${(event) => setQuery(event.target.value)} /></label><button disabled=${!query.trim()}>Search</button></form>
    <${Fault} text=${fault} /><div role="status">${results && html`${results.says && html`<p>${plain(results.says)}</p>`}<ul>${[...results.blocks, ...results.hits].map((row) => html`<li><span class="dim">${plain(row.about)}:</span> ${plain(row.text)}</li>`)}</ul>${!results.blocks.length && !results.hits.length && "Nothing was found."}`}</div></section>`;
}

const PIECE = 512 << 10;

function Sources({ agent, beat }) {
  const path = `/agents/${part(agent)}/sources`;
  const [sending, setSending] = useState(null);
  const [tick, setTick] = useState(0);
  const [listed, fault, again] = useLoaded(path, `${beat}${tick}`);
  const [said, setSaid] = useState([]);
  useEffect(() => { // while a document is read, the list says how far it is
    const timer = sending ? setInterval(() => setTick((number) => number + 1), 700) : 0;
    return () => clearInterval(timer);
  }, [Boolean(sending)]);
  const send = async (file) => {
    let at = 0, answer;
    do {
      const piece = file.slice(at, at + PIECE), end = at + piece.size;
      setSending({ name: file.name, done: at, total: file.size });
      answer = await api(path, "POST", { name: file.name, data: piece.size ? await base64(piece) : "", offset: at, more: end < file.size });
      at = end;
    } while (at < file.size);
    return answer.sources.map((row) => `${row.name}: ${row.outcome}, ${count(row.passages, "passage")}. ${(row.notes || []).join(" ")}`);
  };
  const upload = async (files) => {
    for (const file of files) try { const told = await send(file); setSaid((old) => [...old, ...told]); } catch (error) { setSaid((old) => [...old, `${file.name}: ${error.message}`]); }
    setSending(null); again();
  };
  const remove = (row) => api(`${path}?source=${part(row.hash)}`, "DELETE").then(again, (error) => setSaid((old) => [...old, error.message]));
  const drop = (event) => { event.preventDefault(); upload([...event.dataTransfer.files]); };
  return html`<section class="card" onDragOver=${(event) => event.preventDefault()} onDrop=${drop}><h2>Sources</h2>
    <label>Give ${agent} documents to know; or drop them here <input type="file" multiple onChange=${(event) => { upload([...event.target.files]); event.target.value = ""; }} disabled=${Boolean(sending)} /></label>
    ${sending && html`<p><label>Reading ${plain(sending.name)} <progress max=${sending.total || 1} value=${sending.done}></progress></label></p>`}
    <${Fault} text=${fault} /><ul role="status">${said.map((text) => html`<li>${plain(text)}</li>`)}</ul>
    ${listed && listed.sources.length > 0 && html`<table><thead><tr><th scope="col">Source</th><th scope="col" class="far">Kind</th><th scope="col">Stored</th><th scope="col"><span class="unseen">Remove</span></th></tr></thead><tbody>${listed.sources.map((row) => html`<tr key=${row.hash}><td>${row.name}</td><td class="far">${row.kind}</td>
      <td>${row.complete ? count(row.passages, "passage") : html`<progress aria-label=${`How much of ${row.name} is stored`} max=${row.total} value=${row.passages}></progress> ${row.passages} of ${row.total}`}</td><td><button onClick=${() => remove(row)} aria-label=${`Remove ${row.name}`}>Remove</button></td></tr>`)}</tbody></table>`}</section>`;
}
