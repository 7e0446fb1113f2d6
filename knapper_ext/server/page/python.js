// Python in color, line by line: enough to read by, in cards, diffs and versions. The editor has a parser of its own.
import { useMemo } from "./vendor/preact.js";
import { html, plain } from "./kit.js";

const WORDS = "def|return|if|elif|else|for|while|in|not|and|or|is|raise|import|from|as|with|try|except|finally|lambda|None|True|False|class|pass|break|continue|yield|await|async|global|nonlocal|assert|del|match|case";
const KINDS = ["doc", "string", "doc", "figure", "word", "defined"];
const LONGEST_LINE = 2_000; // a longer one has no color

function within(line) {
  if (line.length > LONGEST_LINE) return [line];
  const token = new RegExp(`("""|''')|((?:\\b[frbuFRBU]{1,2})?"(?:\\\\.|[^"\\\\])*"?|'(?:\\\\.|[^'\\\\])*'?)|(#.*)|\\b(\\d[\\d_.]*)\\b|\\b(${WORDS})\\b|([A-Za-z_]\\w*)(?=\\()`, "g");
  const parts = [];
  let at = 0;
  for (const match of line.matchAll(token)) {
    if (match.index > at) parts.push(line.slice(at, match.index));
    parts.push(html`<span class=${KINDS[match.slice(1).findIndex(Boolean)]}>${match[0]}</span>`);
    at = match.index + match[0].length;
  }
  return [...parts, line.slice(at)];
}

// The lines of a source, of which a docstring is one color, except for the examples in it.
export const colored = (text) => coloredFrom("", text).lines;

// The same from where another text ended: `before` and `after` say whether that was within a docstring, or an example in it.
const DOC = "docstring", EXAMPLE = "example";
export function coloredFrom(before, text) {
  let isDoc = before !== "", isExample = before === EXAMPLE;
  const lines = text.split("\n").map((line) => {
    const quotes = line.split(/"""|'''/).length - 1, was = isDoc;
    if (quotes % 2) isDoc = !isDoc;
    if (!was && !quotes) return within(line);
    if (!was) { // it opens here, and may be closed on the same line
      const [from, to] = [line.search(/"""|'''/), quotes % 2 ? line.length : Math.max(line.lastIndexOf('"""'), line.lastIndexOf("'''")) + 3];
      return [...within(line.slice(0, from)), html`<span class="doc">${line.slice(from, to)}</span>`, ...within(line.slice(to))];
    }
    const example = was && /^(\s*)(>>>|\.\.\.)(?= )/.exec(line);
    if (example) { isExample = true; return [example[1], html`<span class="doc">${example[2]}</span>`, ...within(line.slice(example[0].length))]; }
    if (was && isExample && line.trim() && !quotes) { isExample = false; return within(line); }
    isExample = false;
    return was ? [html`<span class="doc">${line}</span>`] : within(line);
  });
  return { lines, after: isExample ? EXAMPLE : isDoc ? DOC : "" };
}

export const Lines = ({ rows }) => rows.map(([mark, kind, inside]) => html`<span class=${`line ${kind}`} data-line=${mark}>${inside}${"\n"}</span>`);

// A source as it is written, with the numbers of its lines; `marks` has the kind of some.
export function Source({ text, first = 1, label = "Source", marks = {}, isGrowing = false }) {
  const shown = useMemo(() => colored(plain(text).replace(/^\n+/, "").trimEnd()), [text]);
  return html`<pre class="source" tabindex="0" aria-label=${label}><code><${Lines} rows=${shown.map((inside, at) => [first + at, `${marks[first + at] || ""}${isGrowing && at === shown.length - 1 ? " caret" : ""}`, inside])} /></code></pre>`;
}

const SIGNS = { "+": "added", "-": "refuses", "@": "dim" };
export function Diff({ text, label = "What is different" }) {
  const rows = plain(text).replace(/\n$/, "").split("\n").map((row) => ["", SIGNS[row[0]] || "", row[0] === "@" ? row : [row.slice(0, 1), ...within(row.slice(1))]]);
  return html`<pre class="diff" tabindex="0" aria-label=${label}><code><${Lines} rows=${rows} /></code></pre>`;
}
