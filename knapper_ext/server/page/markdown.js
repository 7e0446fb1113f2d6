// What a model says, as Markdown. A kept library cuts it into tokens, and each becomes an element here: no HTML of a model's
// passes, no picture is loaded from anywhere, and a link leads to the web or to mail and nowhere else.
import { useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact.js";
import { copy, html, plain, told } from "./kit.js";
import { Only } from "./marks.js";
import { coloredFrom, Lines } from "./python.js";
import { Lexer, Tokenizer } from "./vendor/marked.js";

// What is longer, wider or nested deeper is shown as it was written: the library takes the square of it, or more.
const LONGEST = 50_000, LONGEST_PARAGRAPH = 2_000, MOST_CELLS = 4_000, DEEPEST = 12;
const SCHEMES = ["http:", "https:", "mailto:"];
const ENTITIES = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&nbsp;": "\u00a0" };

const decoded = (text) => text.replace(/&(?:amp|lt|gt|quot|#39|nbsp);/g, (entity) => ENTITIES[entity]);

const asWritten = (text) => ({ type: "text", raw: text, text });

class Tables extends Tokenizer {
  table(source) { // a row that names no cell has as many as the head
    const rows = source.split(/\n[ \t]*\n/, 1)[0].split("\n");
    return rows.length * rows[0].split("|").length > MOST_CELLS ? undefined : super.table(source);
  }
}

class Reader extends Lexer {
  depth = 0;
  blockTokens(source, tokens = [], ...more) {
    if (this.depth >= DEEPEST) { tokens.push(asWritten(source)); return tokens; }
    this.depth += 1;
    try { return super.blockTokens(source, tokens, ...more); } finally { this.depth -= 1; }
  }
  inlineTokens(source, tokens = []) {
    if (source.length <= LONGEST_PARAGRAPH) return super.inlineTokens(source, tokens);
    tokens.push(asWritten(source));
    return tokens;
  }
}

function address(href) {
  try { const url = new URL(href); return SCHEMES.includes(url.protocol) ? url.href : ""; } catch { return ""; }
}

function Link({ href, children }) {
  const leads = address(href);
  return leads ? html`<a href=${leads} title=${leads} target="_blank" rel="noopener noreferrer">${children}</a>` : html`<span>${children} (${href})</span>`;
}

// Code in chunks of lines: of one that grows, only the last is colored and laid out again.
const CHUNK = 64;
function Code({ text, isPython }) {
  const kept = useRef([]), lines = text.split("\n"), chunks = [];
  for (let at = 0, before = ""; at < lines.length; at += CHUNK) {
    const own = lines.slice(at, at + CHUNK).join("\n"), old = kept.current[chunks.length];
    const isSame = old && old.own === own && old.before === before, read = isSame || !isPython ? null : coloredFrom(before, plain(own));
    const shown = () => html`<span class="chunk">${read ? html`<${Lines} rows=${read.lines.map((line) => ["", "", line])} />` : `${own}\n`}</span>`;
    chunks.push(isSame ? old : { own, before, after: read ? read.after : "", shown: shown() });
    before = chunks.at(-1).after;
  }
  kept.current = chunks;
  return chunks.map(({ shown }) => shown);
}

const PYTHON = ["python", "py", "python3", "pycon"];
function Block({ text, language }) {
  const inside = html`<${Code} text=${text} isPython=${PYTHON.includes(language)} />`;
  return html`<div class="block"><div class="head"><span class="grow cut">${language || "text"}</span><${Only} name="copy" label="Copy the code" onClick=${() => copy(text)} /></div><pre class=${PYTHON.includes(language) ? "source plain" : ""} tabindex="0" aria-label="Code"><code>${inside}</code></pre></div>`;
}

const many = (tokens, depth) => (depth > DEEPEST ? tokens.map((token) => token.raw).join("") : tokens.map((token) => one(token, depth)));

function one(token, depth) {
  const inside = () => (token.tokens ? many(token.tokens, depth + 1) : decoded(token.text));
  switch (token.type) {
    case "space": case "def": return null;
    case "text": return inside();
    case "escape": return token.text;
    case "paragraph": return html`<p>${inside()}</p>`;
    case "heading": return html`<${`h${Math.min(token.depth + 2, 6)}`}>${inside()}<//>`; // below those of the page
    case "strong": return html`<strong>${inside()}</strong>`;
    case "em": return html`<em>${inside()}</em>`;
    case "del": return html`<del>${inside()}</del>`;
    case "br": return html`<br />`;
    case "hr": return html`<hr />`;
    case "codespan": return html`<code>${token.text}</code>`;
    case "code": return html`<${Block} text=${token.text} language=${(token.lang || "").split(/\s/)[0]} />`;
    case "blockquote": return html`<blockquote>${inside()}</blockquote>`;
    case "checkbox": return token.checked ? "☑ " : "☐ ";
    case "list": return html`<${token.ordered ? "ol" : "ul"} start=${token.ordered && token.start !== 1 ? token.start : undefined}>${token.items.map((item) => html`<li>${many(item.tokens, depth + 1)}</li>`)}<//>`;
    case "table": return html`<div class="wide-table" tabindex="0" role="group" aria-label="Table"><table><thead><tr>${token.header.map((cell) => html`<th scope="col" class=${cell.align || ""}>${many(cell.tokens, depth + 1)}</th>`)}</tr></thead>
      <tbody>${token.rows.map((row) => html`<tr>${row.map((cell) => html`<td class=${cell.align || ""}>${many(cell.tokens, depth + 1)}</td>`)}</tr>`)}</tbody></table></div>`;
    case "link": return html`<${Link} href=${token.href}>${inside()}<//>`;
    case "image": return html`<${Link} href=${token.href}>Image: ${token.text || token.href}<//>`;
    default: return token.block || !depth ? html`<p>${token.raw}</p>` : token.raw; // HTML, as it was written
  }
}

// A text that is longer is read in stretches, which end at an empty line, or else at the end of a line.
const STRETCH = 12_000;
function stretchOf(text) {
  const cut = [/\n\n(?=\S)/g, /\n/g].map((end) => [...text.slice(0, STRETCH).matchAll(end)].at(-1)).find(Boolean);
  return cut ? cut.index + cut[0].length : text.length;
}
function lexed(text) {
  const tokens = [];
  let rest = text;
  for (; rest.length > LONGEST; rest = rest.slice(stretchOf(rest))) {
    const end = stretchOf(rest), stretch = rest.slice(0, end);
    tokens.push(...(end > STRETCH ? [{ type: "paragraph", raw: stretch, text: stretch }] : new Reader({ gfm: true, tokenizer: new Tables() }).lex(stretch)));
  }
  return rest ? [...tokens, ...new Reader({ gfm: true, tokenizer: new Tables() }).lex(rest)] : tokens;
}

// The blocks of a text. A fence at the beginning of a line is cut out first: code is not read, however long it is.
const FENCE = /^(`{3,}|~{3,})([^\n`]*)$/gm;
function blocksOf(text) {
  const tokens = [];
  let at = 0;
  while (at < text.length) {
    FENCE.lastIndex = at;
    const open = FENCE.exec(text), before = text.slice(at, open ? open.index : text.length);
    if (before) tokens.push(...lexed(before));
    if (!open) break;
    const from = open.index + open[0].length + 1, close = new RegExp(`^ {0,3}${open[1][0]}{${open[1].length},}[ \\t]*(?:\\n|$)`, "gm");
    close.lastIndex = from;
    const end = from < text.length ? close.exec(text) : null;
    at = end ? end.index + end[0].length : text.length;
    tokens.push({ type: "code", raw: text.slice(open.index, at), text: text.slice(from, end ? Math.max(from, end.index - 1) : text.length), lang: open[2].trim() });
  }
  return tokens;
}

// Links that are named at its end belong to the whole text.
const NAMES_LINKS = /^ {0,3}\[[^\]\n]{1,200}\]:/m, MOST_READ = 4 * LONGEST;
function read(text) {
  const whole = String(text ?? "");
  if (whole.length > MOST_READ) return html`<p>${whole}</p>`;
  try { return many(whole.length <= LONGEST && NAMES_LINKS.test(whole) ? lexed(whole) : blocksOf(whole), 0); } catch { return html`<p>${whole}</p>`; } // nested beyond what the library can take
}

// Of a text that grows, what stands before its last blocks is read once, and so are the first items of a long list.
const OPEN_BLOCKS = 3, LIST_ITEMS = 40;
function split(tokens) {
  const last = tokens.at(-1);
  if (last && last.type === "list" && last.items.length > 2 * LIST_ITEMS) {
    const items = last.items.slice(0, -LIST_ITEMS), raw = items.map((item) => item.raw).join("");
    if (last.raw.startsWith(raw)) return { closed: [...tokens.slice(0, -1), { ...last, items, raw }], open: [{ ...last, items: last.items.slice(-LIST_ITEMS), start: last.ordered ? Number(last.start) + items.length : "", raw: last.raw.slice(raw.length) }] };
  }
  const closed = tokens.slice(0, -OPEN_BLOCKS);
  return { closed, open: tokens.slice(closed.length) };
}
function readOn(text, { raw = "", blocks = [] }) {
  if (text.length <= LONGEST && NAMES_LINKS.test(text)) return { raw: "", blocks: [], value: read(text) };
  const isMore = text.startsWith(raw), kept = isMore ? blocks : [], from = isMore ? raw.length : 0;
  try {
    const { closed, open } = split(blocksOf(text.slice(from))), now = [...kept, ...many(closed, 0)];
    return { raw: text.slice(0, from) + closed.map((token) => token.raw).join(""), blocks: now, value: [...now, ...many(open, 0)] };
  } catch { return { raw: "", blocks: [], value: read(text) }; }
}

// The words of it alone, for who hears it: a block stands between spaces, and what lies within a line as it is.
const WITHIN_A_LINE = ["strong", "em", "del", "code", Link];
const wordsIn = (node) => {
  if (Array.isArray(node)) return node.map(wordsIn).join("");
  if (!node || !node.props) return typeof node === "string" ? node : "";
  const inside = wordsIn(node.props.children);
  return WITHIN_A_LINE.includes(node.type) ? inside : ` ${inside} `;
};
const LONGEST_HEARD = 8_000;
export const asWords = (text) => wordsIn(read(text.slice(0, LONGEST_HEARD)));

// It is called with each piece that comes: what is not closed yet is read as far as it goes, and of a long text a stretch at a
// time. What took long waits ten times as long for the next piece, so that no text keeps the page from answering.
const BEGIN = { of: null, text: "", at: 0, began: 0, took: 0, value: null };
export function Prose({ text }) {
  const last = useRef(BEGIN), [, look] = useState(0), whole = String(text ?? "").replace(/\r\n?/g, "\n");
  const isNew = whole !== last.current.of, more = isNew || last.current.text.length < whole.length;
  const rest = more ? last.current.at + (isNew ? 10 : 2) * last.current.took - performance.now() : 0;
  if (more && rest <= 0) {
    const began = performance.now(), known = whole.startsWith(last.current.text) ? last.current.text.length : 0, now = whole.slice(0, known + STRETCH);
    last.current = { of: whole, text: now, at: began, began, took: 0, ...readOn(now, last.current) };
  }
  useLayoutEffect(() => { // with what it took to draw it
    const { began, text: read } = last.current, at = performance.now();
    if (began) { last.current = { ...last.current, began: 0, took: at - began, at }; told.dispatchEvent(new Event("grew")); }
    const timer = last.current.of !== whole || read.length < whole.length ? setTimeout(() => look((number) => number + 1), Math.max(0, rest)) : 0;
    return () => clearTimeout(timer);
  });
  return html`<div class="prose">${last.current.value}</div>`;
}
