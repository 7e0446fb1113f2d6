"""Reads docstrings of any style (Google, NumPy, reST and Epydoc) with `docstring-parser`.

Cheap marks identify the styles first, because trying all of them takes three times as long. Spellings that the parser
does not take are brought into its form. What no parser took of a section stays text, so that no word is lost.
"""

import re
from functools import lru_cache
from inspect import cleandoc
from itertools import pairwise

from docstring_parser import (
    Docstring,
    DocstringMeta,
    DocstringParam,
    DocstringReturns,
    DocstringStyle,
    ParseError,
)
from docstring_parser import parse as parse_style
from docstring_parser.google import DEFAULT_SECTIONS, GoogleParser, Section, SectionType

from agent_core.base.records import dataclass, field
from sandbox.wire.lines import bare_lines

from .examples import without_examples

_ALSO_ENTRIES = (
    "Keyword Args",
    "Keyword Arguments",
    "Other Args",
    "Other Arguments",
    "Other Parameters",
)
_ENTRIES = "|".join(
    ("Args", "Arguments", "Parameters", "Params", *_ALSO_ENTRIES)
)  # headings of parameters
# In order of likelihood. A docstring may mix styles, so each style with a mark is read. Plain texts are searched first,
# because a regular expression takes ten times as long.
_MARKS = (
    (
        DocstringStyle.GOOGLE,
        (":\n",),
        re.compile(rf"^({_ENTRIES}|Attributes|Returns|Yields|Raises|Examples?):[ \t]*$", re.M),
    ),
    (DocstringStyle.NUMPYDOC, ("---",), re.compile(r"^[A-Z][\w ]+\n-{3,}[ \t]*$", re.M)),
    (
        DocstringStyle.REST,
        (":param", ":arg", ":key", ":type", ":return", ":raise"),
        re.compile(r"^:(param|parameter|arg|argument|key|keyword|type|returns?|raises?)\b", re.M),
    ),
    (DocstringStyle.EPYDOC, ("@",), re.compile(r"^@(param|type|return|rtype|raise)\b", re.M)),
)
_FIELDS = (DocstringStyle.REST, DocstringStyle.EPYDOC)
# Headings that are empty after the examples were removed.
_EMPTY_HEADING = re.compile(
    r"^(Examples?|Doctests?|Usage|Tests?)(:{0,2}[ \t]*|[ \t]*\n-{3,}[ \t]*)$", re.M | re.I
)
_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+\n?")
_LONGEST = 20_000
_MOST_PARTS = 100  # sections, or fields, that are read one by one
_GOOGLE = GoogleParser(  # shared: creating one takes a sixth of the time of a parse
    [*DEFAULT_SECTIONS, *(Section(title, "param", SectionType.MULTIPLE) for title in _ALSO_ENTRIES)]
)
_HEADING = re.compile(r"([A-Z]\w*(?: \w+){0,3}):[ \t]*")
_ABOVE_ENTRIES = re.compile(rf"^(?:{_ENTRIES}|Attributes):[ \t]*$", re.M)
_UNDERLINED = re.compile(r"^([A-Z]\w*(?: \w+){0,3}):?[ \t]*\n[-=~]{3,}[ \t]*$", re.M)
# An entry of a parameter: perhaps after a bullet, in marks, with a type, before a colon, a dash or an arrow.
_NAMES = r"[`*\\]{0,4}(\w+(?:,[ \t]*[`*\\]{0,4}\w+){0,20})[`*]{0,4}"
_ENTRY = re.compile(
    rf"(?:(?:[-*+•]|\d{{1,3}}[.)])[ \t]+)?{_NAMES}[ \t]*(?:([(\[{{].{{0,500}}?[)\]}}])[ \t]*)?[`*]{{0,4}}"
    r"(?::|(?:--?>?|–|—|=)(?=[ \t]))[`*]{0,4}(.*)"
)
_FIELD = re.compile(  # a field without its colon, as in other languages
    r"^([@:])(param|parameter|arg|argument|keyword)[ \t]+(?:\{[^}\n]*\}[ \t]*)?(\w+)[ \t]+(?:-+[ \t]+)?([^:\n]+)$",
    re.M,
)
_FIELD_KIND = re.compile(r"^[@:]\w+", re.M)
_WITHOUT_MARKS = str.maketrans("", "", "`*\\")
_UNDERLINE = re.compile(r"[-=~]{3,}[ \t]*")
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Described:
    """The contents of a docstring: the text before its sections, and the entries of the sections."""

    text: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)  # as in the docstring: advice, not a hint
    returns: str = ""
    return_type: str = ""
    raises: tuple[str, ...] = ()
    styles: tuple[str, ...] = ()


@lru_cache(
    maxsize=1024
)  # the functions of a module are read in turn: with fewer entries, none would be found again
def read(docstring: str | None) -> Described:
    """Return the contents of a docstring of any style. Parts that cannot be parsed are plain text."""
    if not docstring:
        return Described()
    has_examples = ">>>" in docstring
    text = cleandoc(
        without_examples(docstring[:_LONGEST]) if has_examples else docstring[:_LONGEST]
    )
    text = _in_known_forms(text)
    starts = {
        style: match.start()
        for style, texts, mark in _MARKS
        if any(sign in text for sign in texts) and (match := mark.search(text))
    }
    start = min(starts.values(), default=len(text))
    summary = _EMPTY_HEADING.sub("", text[:start]) if has_examples else text[:start]
    if "\n\n\n" in summary or has_examples:
        summary = _BLANK_LINES.sub("\n\n", summary)
    parameters, types = dict[str, str](), dict[str, str]()
    returns = return_type = ""
    raises: list[str] = []
    told: list[str] = []
    sections = text[start:]
    bare = (
        _EMPTY_HEADING.sub("", sections) if has_examples else sections
    )  # a field continues past an empty heading
    readings = [
        (each, style)
        for style in starts
        for each in _parsed(bare if style in _FIELDS else sections, style)
    ]
    for parsed, style in readings:
        for entry in parsed.params:
            names = entry.arg_name.replace(",", " ").translate(_WITHOUT_MARKS).split()
            if not all(map(str.isidentifier, names)):
                continue
            description, kind = " ".join((entry.description or "").split()), entry.type_name
            # A sentence in the place of a type.
            if kind and not description and (" " in kind.partition(",")[0] or kind.endswith(".")):
                description, kind = kind, None
            if not any(parameters.get(name) for name in names):
                parts = (
                    " ".join(entry.args[1:]),
                    f"{entry.arg_name} {kind or ''}{' optional' if entry.is_optional else ''}",
                )
                told += [f"{part} {description}" for part in parts]
            for name in names:
                parameters[name] = parameters.get(name) or description
                if kind:
                    types.setdefault(name, kind)
                    told.append(f"{name} {kind}")
        if parsed.returns:
            returns = returns or parsed.returns.description or ""
            return_type = return_type or parsed.returns.type_name or ""
            told.append(parsed.returns.type_name or "")
        raises += [error.type_name for error in parsed.raises if error.type_name]
        told += [_text_of(meta) for meta in parsed.meta if _is_taken(meta, style)]
    untold = _untold(sections, told) if starts else ""
    summary = f"{summary.strip()}\n\n{untold}" if untold else summary
    styles = tuple(style.name.lower() for style in starts)
    return Described(
        summary.strip(), parameters, types, returns, return_type, tuple(raises), styles
    )


def _in_known_forms(text: str) -> str:
    """Return the text with headings, entries and fields in the forms that the parsers take."""
    if "\n---" in text or "\n===" in text or "\n~~~" in text:
        text = _UNDERLINED.sub(lambda match: f"{match[1]}\n{'-' * len(match[1])}", text)
    if "@" in text or "\n:" in text or text[:1] == ":":
        text = _FIELD.sub(r"\1\2 \3: \4", text)
    if not _ABOVE_ENTRIES.search(text):
        return text
    lines = bare_lines(text)
    shown: list[str] = []
    at = 0
    while at < len(lines):
        shown.append(lines[at])
        at += 1
        if _ABOVE_ENTRIES.fullmatch(shown[-1]):
            end = _end_of_entries(lines, at)
            shown += _entries(lines[at:end])
            at = end
    return "\n".join(shown)


def _end_of_entries(lines: list[str], begin: int) -> int:
    """Return where the entries below a heading end: at a line without an indent, or, without one, at a blank line."""
    first = next((line for line in lines[begin:] if line.strip()), "")
    for at, line in enumerate(lines[begin:], begin):
        if (":" in line and _HEADING.fullmatch(line)) or (first[:1].isspace() and line[:1].strip()):
            return at
        if not first[:1].isspace() and not line.strip():
            return at
    return len(lines)


def _entries(lines: list[str]) -> list[str]:
    """Return entries of parameters in the form `name (type): words`, each with its further lines; then other lines."""
    first = next((line for line in lines if line.strip()), "")
    indent = len(first) - len(first.lstrip())
    shown: list[str] = []
    others: list[str] = []
    for line in lines:
        own = len(line) - len(line.lstrip())
        entry = _ENTRY.fullmatch(line.strip()) if own == indent else None
        if entry:
            kind = f" ({entry[2][1:-1]})" if entry[2] else ""
            names = entry[1].translate(_WITHOUT_MARKS)
            shown.append(f"    {names}{kind}: {entry[3].strip()}")
        elif shown:
            shown.append(f"        {line[min(own, indent) :]}".rstrip())
        else:
            others.append(line.strip())
    return [*shown, *others]


def _parsed(text: str, style: DocstringStyle) -> list[Docstring]:
    """Return what a parser makes of sections; a section or field that it does not take costs no other."""
    is_google, has_marks = style is DocstringStyle.GOOGLE, style is not DocstringStyle.NUMPYDOC
    marks = [*(_GOOGLE.titles_re if is_google else _FIELD_KIND).finditer(text)] if has_marks else []
    can_part = 1 < len(marks) < _MOST_PARTS
    # Of sections with one title, the parser reads the last.
    if not (is_google and can_part and len({mark[0] for mark in marks}) < len(marks)):
        try:
            # The line break keeps `cleandoc` from using the first section's indentation as the margin.
            return [_GOOGLE.parse(f"\n{text}") if is_google else parse_style(f"\n{text}", style)]
        except ParseError:
            if not can_part:
                return []
    starts = [mark.start() for mark in marks]
    parts = [text[begin:end] for begin, end in pairwise([*starts, len(text)])]
    return [parsed for part in parts for parsed in _parsed(part, style)]


def _is_taken(meta: DocstringMeta, style: DocstringStyle) -> bool:
    """Check whether a parser understood a part that is no parameter; of fields, it takes unknown ones, too."""
    is_other = type(meta) is DocstringMeta and style in _FIELDS
    return not isinstance(meta, DocstringParam) and not is_other


def _text_of(meta: DocstringMeta) -> str:
    name = meta.return_name if isinstance(meta, DocstringReturns) else None
    return " ".join([name or "", *meta.args[1:], meta.description or ""])


def _untold(sections: str, told: list[str]) -> str:
    """Return the lines of sections with words that no parser took, below their headings."""
    known = " | ".join([" ".join(_WORDS.findall(text)) for text in ("", *told, "")])
    kept: list[str] = []
    heading = above = ""
    for line, below in pairwise([*bare_lines(sections), ""]):
        words = _WORDS.findall(_FIELD_KIND.sub("", line) if line[:1] in ("@", ":") else line)
        if (":" in line and _HEADING.fullmatch(line)) or (words and _UNDERLINE.fullmatch(below)):
            heading = line
        elif words and f" {' '.join(words)} " not in known:
            is_below = heading and (line[:1].isspace() or above == heading or above.strip())
            kept += [heading, line] if is_below else [line]
            heading = ""
        above = line
    return cleandoc("\n".join(kept)) if kept else ""
