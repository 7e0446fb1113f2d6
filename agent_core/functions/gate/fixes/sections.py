"""Docstrings in the Google style: fields of other styles and descriptions in plain sentences move to their section.

Words are moved, never invented, and only if they certainly describe a parameter: a sentence of its own moves, words
inside another are copied. Examples and all other text stay as they are, in their order.
"""

import re
import textwrap
from dataclasses import dataclass, field

from ..tree import FunctionNode, parameters
from .prose import prose
from .view import View

_END = re.compile(r"(?<=[.;!?])(?<!e\.g\.)(?<!i\.e\.)\s+")
_SECTION = re.compile(r"^\s*[A-Z]\w*(?: \w+)?:\s*$")
_IS = (
    r"(?P<verb>is|are|gives?|holds?|contains?|specif(?:y|ies)|sets?|says?|tells?"
    r"|denotes?|represents?|determines?|indicates?)"
)
_STARTERS = "the|a|an|how|whether|what|which|where|when|one|all|each|any|true|if"
_SMALL = "of|in|on|to|and|or|from|for|with|by|that|is|are|as|at|than|between|into|over|the|an?"
_NOUNS = (
    "list|string|text|number|integer|float|dictionary|dict|array|tuple|set|word|sentence|character|matrix|sequence"
    "|numbers|integers|strings|words|floats|lists|delimiter|delimeter|separator|threshold|target|substring|prefix"
    "|suffix|limit|boolean|flag|date|amount|index|path"
)
_WIDTH = 96
# Beyond these no sentence is looked at: each is tried for each parameter, and patterns walk what fits nearly.
_MOST, _LONGEST = 40, 8_000


def take(lines: list[str], missing: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return the lines without the sentences that describe one of the parameters, and the description of each."""
    end = _first_section(lines)
    descriptions: dict[str, str] = {}
    remaining_lines: list[str] = []
    if len(missing) > _MOST or sum(map(len, lines[:end])) > _LONGEST:
        return lines, descriptions
    for number, block in enumerate(_paragraphs(lines[:end])):
        remaining_lines += _without(block, missing, descriptions, is_first=number == 0)
    text = " ".join(" ".join(lines[:end]).split())
    for name in missing:
        if name not in descriptions and (phrase := _phrase_before(name, text)):
            descriptions[name] = phrase
    return [*remaining_lines, *lines[end:]], descriptions


def _first_section(lines: list[str]) -> int:
    """Return the number of lines before the first example or section."""
    return next((at for at, line in enumerate(lines) if ">>>" in line or _SECTION.match(line)), len(lines))


def _paragraphs(lines: list[str]) -> list[list[str]]:
    """Return runs of lines that are all blank or all not."""
    blocks: list[list[str]] = []
    for line in lines:
        if blocks and bool(blocks[-1][-1].strip()) == bool(line.strip()):
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return blocks


def _without(block: list[str], missing: list[str], descriptions: dict[str, str], *, is_first: bool) -> list[str]:
    sentences, has_moved = [], False
    for number, sentence in enumerate(_END.split(" ".join(" ".join(block).split()))):
        open_ = [name for name in missing if name not in descriptions]
        texts = _parameter_texts(sentence, open_)
        descriptions |= texts or _parameter_texts(_clause(sentence), open_)
        if texts and not (is_first and number == 0):
            has_moved = True
        else:
            sentences.append(sentence)
    if not has_moved:
        return block
    return textwrap.wrap(" ".join(sentences), _WIDTH, break_long_words=False, break_on_hyphens=False)


def _clause(sentence: str) -> str:
    """Return the text after the last "where" of a sentence."""
    return sentence.rpartition(" where ")[2] if " where " in sentence else ""


def _parameter_texts(sentence: str, missing: list[str]) -> dict[str, str]:
    """Return what a sentence says about parameters, if it says nothing else."""
    texts: dict[str, str] = {}
    names = "|".join(map(re.escape, missing))
    if not names:
        return texts
    subject = (
        rf"(?:(?:[Hh]ere|[Ww]here),?\s+)?(?:[Tt]he (?:parameter|argument|input)\s+)?[`'\"*]*(?P<name>{names})[`'\"*]*"
    )
    fits = re.compile(rf"^{subject}\s+{_IS}\s+(?P<rest>(?:(?i:{_STARTERS})\b)?.*\S)$", re.DOTALL)
    for part in re.split(rf",?\s+and\s+(?=[`'\"*]*(?:{names})[`'\"*]*\s+(?:is|are)\b)", sentence):
        match = fits.match(part.strip())
        words = _description(match) if match else ""
        if not match or not words:
            return {}
        texts[match["name"]] = words
    return texts


def _description(match: re.Match[str]) -> str:
    remainder = match["rest"].strip().rstrip(";")
    if not re.match(rf"(?:{_STARTERS})\b", remainder, re.IGNORECASE):
        return ""
    words = remainder if match["verb"] in ("is", "are") else f"{match['verb']} {remainder}"
    return words[:1].upper() + words[1:]


def _phrase_before(name: str, text: str) -> str:
    """Return the phrase right before a parameter's quoted name: "a list of integers `items`"."""
    plain = rf"(?:(?!(?:{_SMALL})\b)[a-z-]+\s+)"
    match = re.search(
        rf"\b(?P<words>(?i:an?|the)\s+{plain}{{0,2}}?(?:{_NOUNS})(?:\s+of\s+{plain}?[a-z]+s)?)\s+[`'\"]{re.escape(name)}[`'\"]",
        text,
    )
    return f"{match['words'][:1].upper()}{match['words'][1:]}." if match else ""


_FIELD = re.compile(
    r"^\s*+[:@](?P<kind>param|parameter|arg|argument|key|keyword|type|returns?|rtype|raises?|except)\b\s*+"
    r"(?P<subject>[^:\n]*+):\s*+(?P<text>.*)$"
)
_RULE = re.compile(r"^-{3,}\s*$")
_NUMPY = {"Parameters": "Args", "Other Parameters": "Args", "Returns": "Returns", "Raises": "Raises"}
STYLE_MARKS = (":param", ":arg", ":key", ":type", ":return", ":rtype", ":raise", ":except", "@", "---")
_HEADER = re.compile(r"^(Args|Arguments|Parameters|Params|Inputs?)\s*:\s*$", re.IGNORECASE)


@dataclass(slots=True)
class _Entry:
    name: str
    kind: str = ""
    text: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Moved:
    """The pieces taken out of a docstring, and the lines that stay; `at` is where the sections belong."""

    kept: list[str] = field(default_factory=list)
    at: int = -1
    arguments: dict[str, _Entry] = field(default_factory=dict)
    returns: _Entry = field(default_factory=lambda: _Entry(""))
    raises: list[_Entry] = field(default_factory=list)

    def mark(self) -> None:
        """Mark the place of the first piece taken as the place of the sections."""
        if self.at < 0:
            self.at = len(self.kept)


def to_google(view: View) -> str:
    """Return the text with a reST, Epydoc or NumPy docstring in the Google style."""
    text, node = view.text, view.node
    written = prose(text, node)
    if written is None:
        return text
    lines = list(written.lines)
    if any(_FIELD.match(line) for line in lines):
        moved = _take_fields(lines)
    elif any(_RULE.match(line) and lines[index].strip() in _NUMPY for index, line in enumerate(lines[1:])):
        moved = _take_numpy(lines)
    else:
        return text
    return written.rewritten(text, _compose(moved, node))


def describe_parameters(view: View) -> str:
    """Return the text with descriptions from elsewhere in the docstring (`x: …`, `- x (int): …`) under `Args:`."""
    text, node, missing = view.text, view.node, view.undescribed
    written = prose(text, node)
    if written is None or not missing:
        return text
    lines = _unfold(list(written.lines))
    moved = _take_stray(lines, missing)
    if not moved.arguments:
        remaining_lines, descriptions = take(lines, missing)
        entries = {name: _Entry(name, "", [text]) for name, text in descriptions.items()}
        moved = _Moved(remaining_lines, _first_section(remaining_lines), entries)
    if not moved.arguments:
        return text
    headers = [index for index, line in enumerate(moved.kept) if _HEADER.match(line)]
    if headers and view.described.parameters:
        moved.kept[headers[0] + 1 : headers[0] + 1] = _entries(moved, node)
        return written.rewritten(text, moved.kept)
    if headers:
        moved.at = headers[0]
        del moved.kept[headers[0]]
    return written.rewritten(text, _compose(moved, node))


def _take_fields(lines: list[str]) -> _Moved:
    moved = _Moved()
    entry: _Entry | None = None
    for line in lines:
        match = _FIELD.match(line)
        if match:
            moved.mark()
            entry = _field_entry(moved, match)
        elif entry is not None and line.strip() and line[0] in " \t" and not line.lstrip().startswith(">>>"):
            entry.text.append(line.strip())
        else:
            entry = None
            moved.kept.append(line)
    return moved


def _field_entry(moved: _Moved, match: re.Match[str]) -> _Entry:
    kind, words = match["kind"], match["subject"].split()
    if kind.startswith("ret"):
        entry = moved.returns
    elif kind == "rtype":
        moved.returns.kind = _plain(match["text"])
        return _Entry("")
    elif kind.startswith("rais") or kind == "except":
        entry = _Entry(" ".join(words))
        moved.raises.append(entry)
    elif kind == "type":
        moved.arguments.setdefault(" ".join(words), _Entry(" ".join(words))).kind = _plain(match["text"])
        return _Entry("")
    else:
        name = words[-1] if words else ""
        entry = moved.arguments.setdefault(name, _Entry(name))
        entry.kind = " ".join(words[:-1]) or entry.kind
    entry.text.append(match["text"].strip())
    return entry


def _plain(kind: str) -> str:
    """Return a type without Epydoc's marks: `C{int}`, `L{str}`."""
    return re.sub(r"\b[A-Z]\{([^{}]*)\}", r"\1", kind).strip()


def _take_numpy(lines: list[str]) -> _Moved:
    moved = _Moved()
    index, section = 0, ""
    while index < len(lines):
        line = lines[index]
        if index + 1 < len(lines) and _RULE.match(lines[index + 1]) and line.strip():
            section = _NUMPY.get(line.strip(), "")
            if not section:
                moved.kept.append(f"{line.strip()}:")
            index += 2
            section = section or "other"
            continue
        _numpy_line(moved, section, line)
        index += 1
    return moved


def _numpy_line(moved: _Moved, section: str, line: str) -> None:
    if not section:
        moved.kept.append(line)
    elif section == "other":
        moved.kept.append(f"    {line}" if line.strip() else "")
    elif line.strip():
        moved.mark()
        _numpy_entry(moved, section, line)


def _numpy_entry(moved: _Moved, section: str, line: str) -> None:
    is_head = not line[0].isspace()
    name, _, kind = (part.strip() for part in line.partition(":"))
    if section == "Args" and is_head:
        for parameter in name.split(","):
            moved.arguments[parameter.strip()] = _Entry(parameter.strip(), kind)
    elif section == "Args" and moved.arguments:
        next(reversed(moved.arguments.values())).text.append(line.strip())
    elif section == "Raises" and is_head:
        moved.raises.append(_Entry(line.strip()))
    elif section == "Raises" and moved.raises:
        moved.raises[-1].text.append(line.strip())
    elif section == "Returns" and is_head and not moved.returns.kind:
        moved.returns.kind = kind or name
    else:
        moved.returns.text.append(line.strip())


def _unfold(lines: list[str]) -> list[str]:
    """Return the lines with `Args: x: the number` split into a heading and an entry."""
    unfolded: list[str] = []
    for line in lines:
        match = re.match(r"^(Args|Arguments|Parameters|Params)\s*:\s*(\w+\s*(?:\([^)]*\))?\s*:\s.*)$", line)
        unfolded += [f"{match[1]}:", f"    {match[2]}"] if match else [line]
    return unfolded


def _take_stray(lines: list[str], missing: list[str]) -> _Moved:
    names = "|".join(map(re.escape, missing))
    stray = re.compile(
        rf"^(?P<indent>\s*+)(?:[-*•]\s++)?[`*]*+(?P<name>{names})[`*]*+\s*+(?:[({{](?P<kind>[^)}}]*+)[)}}]\s*+)?"
        rf"(?::|(?<=\s)[-–—]{{1,2}}\s)\s*+(?P<text>\S.*)$"
    )
    moved = _Moved()
    entry, depth = None, 0
    for line in lines:
        match = stray.match(line)
        if match and match["name"] not in moved.arguments:
            moved.mark()
            entry = _Entry(match["name"], (match["kind"] or "").strip(), [match["text"].strip()])
            depth = len(match["indent"])
            moved.arguments[entry.name] = entry
        elif entry and line.strip() and len(line) - len(line.lstrip()) > depth and ">>>" not in line:
            entry.text.append(line.strip())
        else:
            entry = None
            moved.kept.append(line)
    return moved


def _entries(moved: _Moved, node: FunctionNode) -> list[str]:
    hinted = {parameter.arg for parameter in parameters(node) if parameter.annotation is not None}
    order = [parameter.arg for parameter in parameters(node)]
    names = sorted(moved.arguments, key=lambda name: order.index(name) if name in order else len(order))
    entries = [moved.arguments[name] for name in names]
    return [_entry_line(entry, with_kind=entry.name not in hinted) for entry in entries if entry.text or entry.kind]


def _entry_line(entry: _Entry, *, with_kind: bool) -> str:
    kind = f" ({entry.kind})" if entry.kind and with_kind else ""
    return f"    {entry.name}{kind}: {' '.join(filter(None, entry.text))}".rstrip()


def _compose(moved: _Moved, node: FunctionNode) -> list[str]:
    blocks = [["Args:", *entries]] if (entries := _entries(moved, node)) else []
    returns = " ".join(filter(None, moved.returns.text))
    if returns or moved.returns.kind:
        kind = f"{moved.returns.kind}: " if moved.returns.kind and node.returns is None else ""
        blocks.append(["Returns:", f"    {kind}{returns}".rstrip()] if kind or returns else [])
    if moved.raises:
        blocks.append(["Raises:", *(_entry_line(entry, with_kind=False) for entry in moved.raises)])
    lines: list[str] = []
    for part in filter(None, [_trimmed(moved.kept[: moved.at]), *blocks, _trimmed(moved.kept[moved.at :])]):
        lines += ["", *part] if lines else part
    return lines


def _trimmed(lines: list[str]) -> list[str]:
    """Return the lines without blank ones at the beginning and the end."""
    written = [at for at, line in enumerate(lines) if line.strip()]
    return lines[written[0] : written[-1] + 1] if written else []
