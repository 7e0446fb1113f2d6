// Files and pictures that go with a message: what is taken of each, why one is not, and how a message shows them.
import { useEffect, useState } from "./vendor/preact.js";
import { api, base64, count, html, picture, plain } from "./kit.js";
import { Icon, Only } from "./marks.js";

const MOST_FILES = 20, MOST_CHARS = 100_000, MOST_FILE_BYTES = 32 << 20, MOST_SENT = 1_900_000; // characters of one request, in base64
const LARGE = 700_000, SIDES = [2_000, 1_400, 1_000], QUALITY = 0.85; // a picture of more bytes is made smaller until it is not
const NUMBER = (value) => value.toLocaleString();
const HEADS = [[/^\x89PNG/, "image/png"], [/^\xff\xd8\xff/, "image/jpeg"], [/^GIF8/, "image/gif"], [/^RIFF....WEBP/s, "image/webp"]];
const OTHERS = [[/^BM/, "BMP"], [/^(?:II\*\0|MM\0\*)/, "TIFF"], [/^....ftyp(?:hei|mif|avif)/s, "HEIC or AVIF"], [/^\0\0\x01\0/, "an icon"], [/^8BPS/, "a file of Photoshop"]];

class NotTaken extends Error {}

async function smaller(file, bitmap) {
  for (const side of SIDES) {
    const share = Math.min(1, side / Math.max(bitmap.width, bitmap.height)), canvas = document.createElement("canvas");
    canvas.width = Math.max(1, Math.round(bitmap.width * share)); canvas.height = Math.max(1, Math.round(bitmap.height * share));
    canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    for (const type of ["image/webp", "image/png"]) { // not every browser writes WebP
      const blob = await new Promise((done) => canvas.toBlob(done, type, QUALITY));
      if (blob && blob.size <= LARGE) return { blob, says: `made smaller, ${NUMBER(canvas.width)} × ${NUMBER(canvas.height)}` };
    }
  }
  throw new NotTaken(`${file.name} is too large for a message, also when it is made smaller. Cut out what matters.`);
}

async function readPicture(file) {
  const bitmap = await createImageBitmap(file).catch(() => { throw new NotTaken(`${file.name} is cut off or broken: this browser cannot show it. Save it again.`); });
  const whole = { blob: file, says: `${NUMBER(bitmap.width)} × ${NUMBER(bitmap.height)}` }, { blob, says } = file.size > LARGE ? await smaller(file, bitmap) : whole;
  bitmap.close();
  const data = await base64(blob);
  return { name: file.name || "picture.png", kind: "picture", data, url: `data:${blob.type};base64,${data}`, says, size: data.length };
}

function fenced(text) {
  const longest = Math.max(0, ...(text.match(/`+/g) || []).map((run) => run.length)), ticks = "`".repeat(Math.max(3, longest + 1));
  return `${ticks}\n${text}\n${ticks}`;
}

async function readText(file) {
  let text = "";
  try { text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer()); } catch { throw new NotTaken(`${file.name} is not text in UTF-8. Give it as a source in Memory, which reads documents.`); }
  if (text.includes("\0")) throw new NotTaken(`${file.name} is not text. Give it as a source in Memory, which reads documents.`);
  const left = text.length - MOST_CHARS, half = MOST_CHARS / 2, cut = left > 0 ? `${text.slice(0, half)}\n[Cut here: ${NUMBER(left)} characters left out.]\n${text.slice(-half)}` : text;
  const block = `\`${file.name.replace(/[`\n\r]/g, "_").slice(0, 400)}\`:\n${fenced(cut.replace(/\n+$/, ""))}`;
  return { name: file.name, kind: "text", block, says: `${count(text.split("\n").length, "line")}${left > 0 ? ", cut in the middle" : ""}`, size: block.length };
}

async function taken(file) {
  if (!file.size) throw new NotTaken(`${file.name} is empty, or a folder.`);
  if (file.size > MOST_FILE_BYTES) throw new NotTaken(`${file.name} has ${NUMBER(Math.round(file.size / (1 << 20)))} MiB; a file of a message may have ${MOST_FILE_BYTES >> 20}. Give it as a source in Memory.`);
  const head = String.fromCharCode(...new Uint8Array(await file.slice(0, 16).arrayBuffer())), other = OTHERS.find(([sign]) => sign.test(head));
  if (HEADS.some(([sign]) => sign.test(head))) return readPicture(file);
  if (other) throw new NotTaken(`${file.name} is ${other[1]}: models read PNG, JPEG, GIF and WebP. Save it as one of these.`);
  return readText(file);
}

// Add files to those that are there; what is not taken is told, each with its reason.
export async function added(there, files) {
  const now = [...there], refused = [];
  for (const file of files) {
    try {
      if (now.length >= MOST_FILES) throw new NotTaken(`${file.name} is one too many: a message takes ${MOST_FILES} files.`);
      const one = await taken(file);
      if (now.reduce((sum, each) => sum + each.size, one.size) > MOST_SENT) throw new NotTaken(`${file.name} does not fit: what goes with a message may have ${(MOST_SENT * 0.75 / 1e6).toFixed(1)} MB in all. Send it with the next one.`);
      now.push({ ...one, key: `${Date.now()}-${now.length}-${file.name}` });
    } catch (error) { refused.push(error instanceof NotTaken ? error.message : `${file.name} cannot be read: ${error.message}`); }
  }
  return { files: now, refused };
}

// What is sent: the words with the texts under them, and the pictures.
export const asMessage = (text, files) => {
  const pictures = files.filter(({ kind }) => kind === "picture"), blocks = files.filter(({ kind }) => kind === "text").map(({ block }) => block);
  const words = [text, ...blocks].filter((one) => one.trim()).join("\n\n") || pictures.map(({ name }) => name).join(", ");
  return { text: words, ...(pictures.length ? { pictures: pictures.map(({ data, name }) => ({ data, name: name.slice(0, 200) })) } : {}) };
};

export const Chips = ({ files, drop }) => (files.length ? html`<ul class="chips" aria-label="Goes with the message">${files.map((file) => html`<li key=${file.key} class="chip">${file.url ? html`<img src=${file.url} alt="" />` : html`<${Icon} name="file" />`}<span class="cut">${plain(file.name)}</span><span class="dim">${file.says}</span><${Only} name="close" label=${`Remove ${file.name}`} onClick=${() => drop(file)} /></li>`)}</ul>` : null);

// The blocks of files at the end of a message, and the words before them.
const HEAD = /^`([^`\n]{1,400})`:$/, CAPTION = /^\[picture (.{1,600})\]$/, MOST_TRIED = 50;
function blockAt(lines, at) {
  const head = HEAD.exec(lines[at] || ""), fence = head && /^`{3,}$/.test(lines[at + 1] || "") ? lines[at + 1] : "";
  const end = fence ? lines.indexOf(fence, at + 2) : -1;
  return end < 0 ? null : { name: head[1], text: lines.slice(at + 2, end).join("\n"), end: end + 1 };
}
export function apart(message) {
  const lines = message.split("\n"), captions = [];
  while (lines.length && CAPTION.test(lines.at(-1))) captions.unshift(CAPTION.exec(lines.pop())[1]);
  let tried = 0;
  for (let from = 0; from < lines.length && tried < MOST_TRIED; from += 1) {
    if (!HEAD.test(lines[from]) || (from && lines[from - 1] !== "")) continue;
    tried += 1;
    const files = [];
    let at = from;
    for (let one = blockAt(lines, at); one; one = blockAt(lines, at)) { files.push(one); at = one.end < lines.length && lines[one.end] === "" ? one.end + 1 : one.end; }
    if (files.length && at >= lines.length) return { words: lines.slice(0, from).join("\n").trimEnd(), files, captions };
  }
  return { words: lines.join("\n"), files: [], captions };
}

// A message of a person with what went along. While it is new, which pictures it has is asked: an event does not say it.
export function Attached({ entry, parts, path }) {
  const [rows, setRows] = useState(entry.pictures || []), [urls, setUrls] = useState([]), lacks = parts.captions.length > 0 && rows.length === 0 && entry.last > 0;
  useEffect(() => { if (lacks) api(`${path}&after=${entry.last - 1}&count=1`).then((read) => setRows((read.messages[0] || {}).pictures || []), () => {}); }, [lacks, entry.last]);
  useEffect(() => { let over = false; Promise.all(rows.map(({ digest }) => picture(digest))).then((all) => over || setUrls(all)); return () => { over = true; }; }, [rows]);
  return html`${parts.files.map((file, at) => html`<details class="attached" key=${at}><summary><${Icon} name="file" /><span class="cut">${plain(file.name)}</span><span class="dim">${count(file.text.split("\n").length, "line")}</span></summary><pre tabindex="0" aria-label=${file.name}>${plain(file.text)}</pre></details>`)}
    ${parts.captions.map((caption, at) => (urls[at] ? html`<img key=${at} class="picture" src=${urls[at]} alt=${plain(caption)} title=${plain(caption)} width=${rows[at].width} height=${rows[at].height} />` : html`<p class="help" key=${at}>${plain(caption)}</p>`))}`;
}
