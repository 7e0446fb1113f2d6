// The editor, which is loaded when a source is opened: CodeMirror, as its packages publish it. It stands in a root of its own,
// where it may have its styles without an inline style, which the page's policy forbids.
import { plain } from "./kit.js";
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "./vendor/codemirror-autocomplete.js";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "./vendor/codemirror-commands.js";
import { python, pythonLanguage } from "./vendor/codemirror-lang-python.js";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting, syntaxTree } from "./vendor/codemirror-language.js";
import { lintKeymap, setDiagnostics } from "./vendor/codemirror-lint.js";
import { highlightSelectionMatches, search, searchKeymap } from "./vendor/codemirror-search.js";
import { EditorState, StateEffect, StateField } from "./vendor/codemirror-state.js";
import { Decoration, drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, keymap, lineNumbers, ViewPlugin, WidgetType } from "./vendor/codemirror-view.js";
import { tags } from "./vendor/lezer-highlight.js";

const BARS = 56; // what stands above and below it covers so many pixels
const COLORS = HighlightStyle.define([
  { tag: [tags.keyword, tags.bool, tags.null, tags.self], color: "var(--word)" }, { tag: [tags.string, tags.special(tags.string)], color: "var(--string)" }, { tag: tags.number, color: "var(--number)" },
  { tag: [tags.function(tags.variableName), tags.function(tags.definition(tags.variableName)), tags.definition(tags.className)], color: "var(--name)" }, { tag: [tags.comment, tags.docString], color: "var(--doc)" },
]);
const LOOK = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--panel)", fontSize: "12px" }, "&.cm-focused": { outline: "none" }, ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "20px", containerType: "inline-size", scrollPaddingLeft: "64px" },
  ".cm-content": { padding: "8px 0", caretColor: "var(--hand)" }, ".cm-line": { padding: "0 16px 0 12px" }, ".cm-cursor": { borderLeftColor: "var(--hand)", borderLeftWidth: "2px" },
  ".cm-gutters": { backgroundColor: "var(--panel)", color: "var(--dim)", border: "0" }, ".cm-lineNumbers .cm-gutterElement": { minWidth: "44px", padding: "0 8px 0 0" },
  ".cm-activeLine": { backgroundColor: "transparent" }, ".cm-activeLineGutter": { backgroundColor: "transparent", color: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--picked)" }, ".cm-selectionMatch": { backgroundColor: "var(--hover)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--hover)", color: "inherit" }, ".cm-specialChar": { color: "var(--bad)" },
  ".docstring, .docstring *": { color: "var(--doc)" }, ".example, .example *": { color: "var(--text)" }, ".refused": { backgroundColor: "var(--bad-soft)" }, ".hinted": { backgroundColor: "var(--hand-soft)" }, ".agreed::after": { content: '" ✓"', color: "var(--good)", fontFamily: "var(--sans)" },
  ".found": { position: "sticky", left: "44px", width: "fit-content", display: "grid", gridTemplateColumns: "auto minmax(0, 1fr)", gap: "2px 12px", padding: "4px 16px 8px 12px", backgroundColor: "var(--bad-soft)", font: "13px/20px var(--sans)", whiteSpace: "normal", overflowWrap: "anywhere", boxSizing: "border-box", maxWidth: "min(640px, calc(100cqi - 44px))" }, ".found.hint": { backgroundColor: "var(--hand-soft)" },
  ".found code": { fontFamily: "var(--mono)", fontSize: "12px", overflowWrap: "anywhere" }, ".found > strong": { color: "var(--bad)", fontWeight: "600" }, ".found.hint > strong": { color: "var(--hand)" }, ".found > .fix": { gridColumn: "2", color: "var(--dim)" }, ".found > button": { gridColumn: "2", justifySelf: "start", font: "inherit", fontWeight: "500", color: "inherit", height: "28px", padding: "0 10px", border: "1px solid var(--line)", borderRadius: "6px", background: "var(--lift)", cursor: "pointer" },
  ".found > button:focus-visible": { outline: "2px solid var(--hand)", outlineOffset: "2px" },
  ".cm-panels": { backgroundColor: "var(--bg)", color: "var(--text)", fontFamily: "var(--sans)" }, ".cm-panels-bottom": { borderTop: "1px solid var(--line)" }, ".cm-textfield": { backgroundColor: "var(--lift)", border: "1px solid var(--edge)", borderRadius: "6px", padding: "4px 8px", font: "inherit" }, ".cm-button": { backgroundColor: "var(--lift)", backgroundImage: "none", border: "1px solid var(--line)", borderRadius: "6px", padding: "4px 10px" },
  ".cm-tooltip": { backgroundColor: "var(--lift)", border: "1px solid var(--line)", borderRadius: "8px", color: "var(--text)" }, ".cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)" }, ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--hover)", color: "var(--text)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)" }, ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--hand)" },
});

// A docstring is one color, except for the examples in it: the syntax tree has it as any other text.
const docstrings = ViewPlugin.fromClass(class {
  constructor(view) { this.decorations = this.found(view); }
  update(change) { if (change.docChanged || change.viewportChanged || syntaxTree(change.startState) !== syntaxTree(change.state)) this.decorations = this.found(change.view); }
  found(view) {
    const marks = [], { doc } = view.state;
    for (const { from, to } of view.visibleRanges) syntaxTree(view.state).iterate({ from, to, enter: (node) => {
      if (node.name !== "String" || node.node.parent?.name !== "ExpressionStatement") return;
      for (let line = doc.lineAt(Math.max(node.from, from)); line.from < Math.min(node.to, to); line = doc.line(line.number + 1)) {
        if (line.length) marks.push(Decoration.mark({ class: /^\s*(>>>|\.\.\.) /.test(line.text) ? "example" : "docstring" }).range(Math.max(line.from, node.from), Math.min(line.to, node.to)));
        if (line.number === doc.lines) break;
      }
    } });
    return Decoration.set(marks, true);
  }
}, { decorations: (plugin) => plugin.decorations });

// A finding stands under its line, with what to do about it.
class Found extends WidgetType {
  constructor(finding, act) { super(); this.finding = finding; this.act = act; }
  eq(other) { return JSON.stringify(other.finding) === JSON.stringify(this.finding); }
  toDOM() {
    const { severity, message, fix } = this.finding, isHint = severity === "warns", row = document.createElement("div");
    const put = (tag, kind, text) => { // names stand between backticks
      const one = document.createElement(tag);
      one.className = kind;
      text.split(/`([^`\n]+)`/).forEach((piece, at) => { const part = document.createElement(at % 2 ? "code" : "span"); part.textContent = piece; one.append(part); });
      row.append(one);
      return one;
    };
    row.className = isHint ? "found hint" : "found"; row.contentEditable = "false";
    put("strong", "", severity || "refuses"); put("span", "", plain(message));
    if (fix) put("span", "fix", plain(fix));
    if (!isHint && this.act) put("button", "", "Let the assistant fix this").addEventListener("click", () => this.act(this.finding));
    return row;
  }
  ignoreEvent() { return true; }
}

const put = StateEffect.define();
const shown = StateField.define({
  create: () => Decoration.none,
  update(marks, change) {
    let now = marks.map(change.changes);
    for (const effect of change.effects) if (effect.is(put)) now = effect.value;
    return now;
  },
  provide: (field) => EditorView.decorations.from(field),
});

function marksOf(state, findings, agreed, act) {
  const marks = [], lineOf = (number) => state.doc.line(Math.max(1, Math.min(number, state.doc.lines)));
  for (const number of agreed) if (number <= state.doc.lines) marks.push(Decoration.line({ class: "agreed" }).range(lineOf(number).from));
  for (const finding of findings.filter(({ line }) => line)) {
    const line = lineOf(finding.line);
    marks.push(Decoration.line({ class: finding.severity === "warns" ? "hinted" : "refused" }).range(line.from));
    marks.push(Decoration.widget({ widget: new Found(finding, act), block: true, side: 1 }).range(line.to));
  }
  return Decoration.set(marks, true);
}

// Where a finding stands: from its column to the end of the word there, or the whole line without what indents it.
function placeOf(state, { line: number, column }) {
  const line = state.doc.line(Math.max(1, Math.min(number, state.doc.lines))), indent = line.text.length - line.text.trimStart().length;
  const from = column > 0 && column <= line.text.length ? column - 1 : indent, word = /^\w+|^[^\w\s]+/.exec(line.text.slice(from));
  return { from: line.from + from, to: column > 0 && word ? line.from + from + word[0].length : line.to };
}

export function open(host, { text, first, label, names, changed, save, fix }) {
  const root = host.shadowRoot || host.attachShadow({ mode: "open" });
  const own = pythonLanguage.data.of({ autocomplete: (context) => { const word = context.matchBefore(/\w+/); return word && { from: word.from, options: names().map((name) => ({ label: name, type: "function" })) }; } });
  const extensions = [
    lineNumbers({ formatNumber: (number) => String(number + first - 1) }), highlightSpecialChars(), history(), drawSelection(), indentOnInput(), indentUnit.of("    "), bracketMatching(), closeBrackets(), autocompletion({ activateOnTyping: true }), highlightActiveLine(), highlightActiveLineGutter(), highlightSelectionMatches(), search(),
    keymap.of([{ key: "Mod-s", run: () => { save(); return true; }, preventDefault: true }, ...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap, indentWithTab]),
    EditorView.scrollMargins.of(() => ({ top: BARS, bottom: BARS })), python(), own, syntaxHighlighting(COLORS), docstrings, LOOK, shown, EditorState.tabSize.of(4),
    EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", autocapitalize: "off", autocorrect: "off", "aria-description": "Tab indents. Escape and then Tab leaves the source." }),
    EditorView.updateListener.of((update) => { if (update.docChanged && !update.transactions.some((one) => one.isUserEvent("set"))) changed(update.state.doc.toString()); }),
  ];
  const view = new EditorView({ state: EditorState.create({ doc: text, extensions }), parent: root, root });
  return {
    set(now, from = null) { // where one has typed since `from`, that stays
      const text = view.state.doc.toString();
      if (now !== text && (from === null || from === text)) view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: now }, userEvent: "set" });
    },
    tell(findings, agreed) {
      const { state } = view;
      view.dispatch({ effects: put.of(marksOf(state, findings, agreed, fix)) });
      view.dispatch(setDiagnostics(view.state, findings.filter(({ line }) => line).map((one) => ({ ...placeOf(state, one), severity: one.severity === "warns" ? "warning" : "error", message: one.message }))));
    },
    close() { view.destroy(); },
  };
}
