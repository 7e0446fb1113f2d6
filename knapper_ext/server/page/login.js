// Who is not logged in is told how, and can give a link by hand. The link in the address is used at once.
import { useEffect, useState } from "./vendor/preact.js";
import { Fault, hasKey, html, logIn } from "./kit.js";
import { Mark } from "./marks.js";

const codeIn = (text) => { try { return new URL(text.trim()).searchParams.get("code") || ""; } catch { return text.trim(); } };

const OVER = "The server was started again, or twelve hours are over: log in again with the link of `knapper login`. What you typed is kept in this tab.";

export function LogIn({ link, done }) {
  const [text, setText] = useState("");
  const [fault, setFault] = useState("");
  const [isTrying, setTrying] = useState(Boolean(link));
  const [wasIn] = useState(() => !link && hasKey());
  const enter = (code) => { setTrying(true); logIn(code).then(done, setFault).finally(() => setTrying(false)); };
  useEffect(() => { document.title = "Log in · Knapper"; if (link) enter(link); }, []);
  const submit = (event) => { event.preventDefault(); enter(codeIn(text)); };
  if (isTrying) return html`<main class="login"><p class="dim">Logging in…</p></main>`;
  return html`<main class="login"><div class="stack apart"><${Mark} /><h1>Log in to Knapper</h1><${Fault} text=${fault || (wasIn ? OVER : "")} />
    <p>Type this where the workspace is, and open the link that it prints. It lets one browser in, within ten minutes.</p><pre tabindex="0" aria-label="The command"><code>knapper login</code></pre>
    <form class="row" onSubmit=${submit}><label class="wide">Or paste the link here <input value=${text} autocomplete="off" spellcheck="false" onInput=${(event) => setText(event.target.value)} /></label><button class="strong" disabled=${!text.trim()}>Log in</button></form>
    <p class="dim">A new tab is logged in as long as another one is open.</p></div></main>`;
}
