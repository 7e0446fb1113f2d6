"""Docstrings in the Google style: other styles are read by `docstring-parser`, and lines that describe a parameter by
its name move under `Args:`.

Lines are moved, never invented, and no sentence is read. Examples and all other text stay as they are, in their order.
"""

import re

import docstring_parser
from docstring_parser.common import DocstringParam, DocstringReturns, DocstringStyle

from sandbox.wire.lines import bare_lines

from ..tree import parameters
from .prose import prose
from .view import View

_HEADER = re.compile(r"^(Args|Arguments|Parameters|Params|Inputs?)\s*:\s*$", re.IGNORECASE)
_ON_ONE_LINE = re.compile(r"^(Args|Arguments|Parameters|Params)\s*:\s*(\w+\s*(?:\([^)]*\))?\s*:\s.*)$")
_UNDERLINE = re.compile(r"^-{3,}\s*$")
_OTHER_STYLES = (DocstringStyle.REST, DocstringStyle.EPYDOC, DocstringStyle.NUMPYDOC)
STYLE_MARKS = (":param", ":arg", ":key", ":type", ":return", ":rtype", ":raise", ":except", "@", "---")


def to_google(view: View) -> str:
    """Return the text with a reST, Epydoc or NumPy docstring in the Google style."""
    written = prose(view.text, view.node)
    if written is None:
        return view.text
    lines = list(written.lines)
    end = _first_example(lines)
    try:
        parsed = docstring_parser.parse("\n".join(lines[:end]))
    except docstring_parser.ParseError:
        return view.text
    if parsed.style not in _OTHER_STYLES or not (parsed.params or parsed.returns or parsed.raises):
        return view.text
    hinted = _hinted(view)
    for part in parsed.meta:
        if isinstance(part, DocstringParam):
            part.is_optional = False  # which the signature says
            part.type_name = None if part.arg_name in hinted else part.type_name
            part.description = " ".join((part.description or "").split())
        elif isinstance(part, DocstringReturns) and view.node.returns is not None:
            part.type_name = None
    composed = _trimmed(bare_lines(docstring_parser.compose(parsed, style=DocstringStyle.GOOGLE)))
    examples = lines[end:] if end < len(lines) else []
    return written.rewritten(view.text, [*composed, *([""] if examples else []), *_trimmed(examples)])


def _hinted(view: View) -> set[str]:
    return {parameter.arg for parameter in parameters(view.node) if parameter.annotation is not None}


def _first_example(lines: list[str]) -> int:
    """Return the number of lines before the first example, and before the heading over it."""
    at = next((at for at, line in enumerate(lines) if line.lstrip().startswith(">>>")), len(lines))
    while at and (
        not lines[at - 1].strip() or _UNDERLINE.match(lines[at - 1]) or lines[at - 1].strip().rstrip(":") == "Examples"
    ):
        at -= 1
    return at


def describe_parameters(view: View) -> str:
    """Return the text with descriptions from elsewhere in the docstring (`x: …`, `- x (int): …`) under `Args:`."""
    missing, written = view.undescribed, prose(view.text, view.node)
    if written is None or not missing:
        return view.text
    lines = [part for line in written.lines for part in _unfolded(line)]
    kept, entries, at = _taken(lines, missing, _hinted(view))
    if not entries:
        return view.text
    headers = [index for index, line in enumerate(kept) if _HEADER.match(line)]
    order = [parameter.arg for parameter in parameters(view.node)]
    described = [line for name in sorted(entries, key=order.index) for line in entries[name]]
    if headers and view.described.parameters:
        return written.rewritten(view.text, [*kept[: headers[0] + 1], *described, *kept[headers[0] + 1 :]])
    at = headers[0] if headers else at
    after = kept[at + 1 :] if headers else kept[at:]
    blocks = [_trimmed(kept[:at]), ["Args:", *described], _trimmed(after)]
    return written.rewritten(view.text, [line for block in blocks if block for line in ["", *block]][1:])


def _unfolded(line: str) -> list[str]:
    """Return a line; for `Args: x: the number`, a heading and an entry."""
    match = _ON_ONE_LINE.match(line)
    return [f"{match[1]}:", f"    {match[2]}"] if match else [line]


def _taken(lines: list[str], missing: list[str], hinted: set[str]) -> tuple[list[str], dict[str, list[str]], int]:
    """Return the lines without those that begin with a parameter's name, these as entries, and where they stood."""
    names = "|".join(map(re.escape, missing))
    stray = re.compile(
        rf"^(?P<indent>\s*+)(?:[-*•]\s++)?[`*]*+(?P<name>{names})[`*]*+\s*+(?P<kind>\([^)]*+\)|\{{[^}}]*+\}})?\s*+"
        rf"(?::|(?<=\s)[-–—]{{1,2}}\s)\s*+(?P<text>\S.*)$"
    )
    kept: list[str] = []
    entries: dict[str, list[str]] = {}
    at, depth, entry = -1, 0, None
    for line in lines:
        match = stray.match(line)
        if match and match["name"] not in entries:
            at = len(kept) if at < 0 else at
            kind = f" ({match['kind'][1:-1]})" if match["kind"] and match["name"] not in hinted else ""
            entry = entries[match["name"]] = [f"    {match['name']}{kind}: {match['text'].strip()}"]
            depth = len(match["indent"])
        elif entry and line.strip() and len(line) - len(line.lstrip()) > depth and ">>>" not in line:
            entry.append(f"        {line.strip()}")
        else:
            entry = None
            kept.append(line)
    return kept, entries, at


def _trimmed(lines: list[str]) -> list[str]:
    """Return the lines without blank ones at the beginning and the end."""
    written = [at for at, line in enumerate(lines) if line.strip()]
    return lines[written[0] : written[-1] + 1] if written else []
