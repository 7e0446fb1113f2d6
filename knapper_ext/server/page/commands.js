// A command of the prompt, typed into the chat: what runs over a server runs here, too, and shows what it showed there.
import { api, html, plain } from "./kit.js";

let known = null;
export const commands = () => (known ||= api("/slash-commands").then((read) => read.commands, (error) => { known = null; throw error; }));

// The words of a line, of which some stand in quotes.
export const wordsOf = (text) => [...text.matchAll(/"((?:\\.|[^"\\])*)"|'([^']*)'|(\S+)/g)].map((match) => match[1]?.replace(/\\(.)/g, "$1") ?? match[2] ?? match[3]);

// The command that a text is, if it is one that runs here.
export async function commandOf(text) {
  const [first, ...rest] = wordsOf(text.startsWith("/") ? text : "");
  const row = first && (await commands()).find((each) => `/${each.name}` === first);
  return row && row.words.length ? [...row.words, ...rest] : null;
}

const spoken = (lines) => lines.map((line) => [line].flat().map((piece) => (Array.isArray(piece) ? piece[1] : piece)).join("")).join("\n");

export async function run(agent, conversation, words, yes = "") {
  try {
    const { lines, aside, hint } = await api("/commands", "POST", { words, agent, conversation, at_prompt: true, yes });
    return { text: [spoken([...aside, ...lines]), hint].filter(Boolean).join("\n") || "Done." };
  } catch (error) {
    if (error.error?.code !== "needs-yes") throw error;
    return { text: error.error.message, ask: error.error.problems[0].digest };
  }
}

export function Shown({ shown, agree, close }) {
  return html`<section class="card" aria-label="What the command showed"><div class="row"><code class="grow cut">${plain(shown.typed)}</code>${shown.ask && html`<button type="button" class="danger" onClick=${agree}>Yes</button>`}<button type="button" class="quiet" onClick=${close}>${shown.ask ? "No" : "Close"}</button></div><pre tabindex="0" aria-label="Lines">${plain(shown.text)}</pre></section>`;
}

// What a command of the server says, as a document.
export const ran = (words) => api("/commands", "POST", { words });

// The words of a command as a shell reads them.
export const shellWords = (text) => [...text.matchAll(/(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\])+/g)].map(([word]) => word.replace(/'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)/g, (_, plainly, quoted, one) => plainly ?? quoted?.replace(/\\(.)/g, "$1") ?? one));
