// What is in sight on a page, as an SVG: boxes with their colors and borders, and each line of text where it stands.
() => {
  const NAMES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  const safe = (text) => text.replace(/[&<>"]/g, (sign) => NAMES[sign]);
  const round = (number) => Math.round(number * 10) / 10;
  const parts = [];
  const isSeen = (color) => color && color !== "transparent" && !/, 0\)$/.test(color);

  const above = (element) => element.parentElement || element.getRootNode().host;

  // The part of a box that the boxes around it let through.
  function clip(element) {
    let box = { left: 0, top: 0, right: innerWidth, bottom: innerHeight };
    for (let at = element; at && at !== document.documentElement; at = above(at)) {
      if (getComputedStyle(at).overflowY === "visible") continue;
      const own = at.getBoundingClientRect();
      box = { left: Math.max(box.left, own.left), top: Math.max(box.top, own.top), right: Math.min(box.right, own.right), bottom: Math.min(box.bottom, own.bottom) };
    }
    return box;
  }

  function drawBox(element) {
    const style = getComputedStyle(element), box = element.getBoundingClientRect(), seen = clip(above(element) || element);
    const left = Math.max(box.left, seen.left), top = Math.max(box.top, seen.top), right = Math.min(box.right, seen.right), bottom = Math.min(box.bottom, seen.bottom);
    const isBordered = style.borderTopWidth !== "0px" && style.borderLeftWidth !== "0px" && isSeen(style.borderTopColor);
    if (right - left < 2 || bottom - top < 2 || style.clipPath !== "none" || !(isSeen(style.backgroundColor) || isBordered)) return;
    const fill = isSeen(style.backgroundColor) ? style.backgroundColor : "none", line = isBordered ? style.borderTopColor : "none";
    parts.push(`<rect x="${round(left)}" y="${round(top)}" width="${round(right - left)}" height="${round(bottom - top)}" rx="${parseFloat(style.borderTopLeftRadius) || 0}" fill="${fill}" stroke="${line}"/>`);
  }

  function drawLine(text, box, element) {
    const style = getComputedStyle(element), seen = clip(element), size = parseFloat(style.fontSize), middle = (box.top + box.bottom) / 2;
    if (!text.trim() || middle < seen.top || middle > seen.bottom || box.left >= seen.right || style.clipPath !== "none" || style.visibility === "hidden") return;
    const family = style.fontFamily.includes("mono") ? "monospace" : "sans-serif", weight = Number(style.fontWeight) > 500 ? ' font-weight="bold"' : "";
    const trimmed = text.replace(/\s+$/, ""), lead = trimmed.length - trimmed.trimStart().length;
    const left = box.left + (lead * box.width) / Math.max(text.length, 1), width = (box.width * (trimmed.length - lead)) / Math.max(text.length, 1);
    parts.push(`<text x="${round(left)}" y="${round(middle + size * 0.35)}" font-size="${size}" font-family="${family}"${weight} fill="${style.color}" textLength="${round(width)}" lengthAdjust="spacingAndGlyphs">${safe(trimmed.trimStart())}</text>`);
  }

  // A text node is split where it is broken on the screen.
  function drawText(node) {
    const range = document.createRange(), text = node.data;
    let from = 0, line = null;
    const end = (to) => { if (line) { range.setStart(node, from); range.setEnd(node, to); drawLine(text.slice(from, to), range.getBoundingClientRect(), node.parentElement || node.getRootNode().host); } };
    for (let at = 0; at < text.length; at += 1) {
      range.setStart(node, at); range.setEnd(node, at + 1);
      const box = range.getClientRects()[0];
      if (!box || box.width === 0) continue;
      if (line === null || Math.abs(box.top - line) > 3) { end(at); from = at; line = box.top; }
    }
    end(text.length);
  }

  function drawField(element) {
    const box = element.getBoundingClientRect(), style = getComputedStyle(element);
    const shown = element.tagName === "SELECT" ? (element.selectedOptions[0] || {}).text : element.value;
    const left = box.left + parseFloat(style.paddingLeft), height = parseFloat(style.lineHeight) || 20, width = parseFloat(style.fontSize) * 0.5;
    (shown || "").split("\n").forEach((row, at) => drawLine(row, new DOMRect(left, box.top + parseFloat(style.paddingTop) + at * height, row.length * width, height), element));
  }

  // A mark: its shapes, in the colors that they have here.
  function drawMark(node) {
    const box = node.getBoundingClientRect(), seen = clip(above(node));
    if (box.width < 2 || box.bottom > seen.bottom + 2 || box.top < seen.top - 2) return;
    const shapes = [...node.querySelectorAll("path, rect")].map((shape) => {
      const { fill, stroke, strokeWidth } = getComputedStyle(shape), own = [...shape.attributes].filter(({ name }) => name !== "class" && name !== "style").map(({ name, value }) => `${name}="${safe(value)}"`).join(" ");
      return `<${shape.tagName} ${own} fill="${fill}" stroke="${stroke}" stroke-width="${strokeWidth}"/>`;
    });
    parts.push(`<svg x="${round(box.left)}" y="${round(box.top)}" width="${round(box.width)}" height="${round(box.height)}" viewBox="${node.getAttribute("viewBox")}">${shapes.join("")}</svg>`);
  }

  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) { drawText(node); return; }
    if (node.nodeType !== Node.ELEMENT_NODE || ["SCRIPT", "STYLE", "NOSCRIPT"].includes(node.tagName)) return;
    if (!node.checkVisibility || !node.checkVisibility()) return;
    if (node.tagName === "svg") { drawMark(node); return; }
    drawBox(node);
    if (node.shadowRoot) { node.shadowRoot.childNodes.forEach(walk); return; }
    if (["INPUT", "TEXTAREA", "SELECT"].includes(node.tagName)) { drawField(node); return; }
    node.childNodes.forEach(walk);
  };
  walk(document.body);
  const back = getComputedStyle(document.documentElement).backgroundColor;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${innerWidth} ${innerHeight}" width="${innerWidth}" height="${innerHeight}" role="img">\n<title>${safe(document.title)}</title>\n<rect width="100%" height="100%" fill="${isSeen(back) ? back : "#fff"}"/>\n${parts.join("\n")}\n</svg>\n`;
}
