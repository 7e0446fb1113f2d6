"""Descriptions from any docstring style: Google, NumPy, reST and Epydoc, through `docstring-parser`.

The styles are told apart by cheap marks first, because trying all of them costs three times as much.
"""

import re
from dataclasses import dataclass, field
from inspect import cleandoc

from docstring_parser import Docstring, DocstringStyle, ParseError
from docstring_parser import parse as parse_style

from .examples import without_examples

# In order of likelihood. A docstring may mix styles, so each style whose mark shows is read.
_MARKS = (
    (
        DocstringStyle.GOOGLE,
        re.compile(r"^(Args|Arguments|Parameters|Params|Attributes|Returns|Yields|Raises|Examples?):[ \t]*$", re.M),
    ),
    (DocstringStyle.NUMPYDOC, re.compile(r"^[A-Z][\w ]+\n-{3,}[ \t]*$", re.M)),
    (DocstringStyle.REST, re.compile(r"^:(param|parameter|arg|argument|key|keyword|type|returns?|raises?)\b", re.M)),
    (DocstringStyle.EPYDOC, re.compile(r"^@(param|type|return|rtype|raise)\b", re.M)),
)
# Headings that are left without content when the examples are taken out.
_EMPTY_HEADING = re.compile(r"^(Examples?|Doctests?|Usage|Tests?)(:{0,2}[ \t]*|[ \t]*\n-{3,}[ \t]*)$", re.M | re.I)
_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+\n?")
_LONGEST = 20_000


@dataclass(frozen=True, slots=True)
class Described:
    """What a docstring tells: the text before its sections, and the entries of the sections."""

    text: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)  # as the docstring names them: advice, never a hint
    returns: str = ""
    raises: tuple[str, ...] = ()
    styles: tuple[str, ...] = ()


def read(docstring: str | None) -> Described:
    """What a docstring says, whichever style it is written in; what cannot be parsed is plain text."""
    if not docstring:
        return Described()
    text = cleandoc(without_examples(docstring[:_LONGEST]))
    styles = [(style, mark) for style, mark in _MARKS if mark.search(text)]
    if not styles:
        return Described(_tidy(text))
    start = min(found.start() for _, mark in styles if (found := mark.search(text)))
    described = Described(_tidy(text[:start]), styles=tuple(style.name.lower() for style, _ in styles))
    for style, _ in styles:
        described = _merge(described, _parsed(text, style))
    return described


def _parsed(text: str, style: DocstringStyle) -> Docstring:
    try:
        return parse_style(text, style)
    except ParseError:
        return Docstring()


def _merge(known: Described, parsed: Docstring) -> Described:
    parameters, types = dict(known.parameters), dict(known.types)
    for entry in parsed.params:
        for name in entry.arg_name.replace(",", " ").split():
            described = " ".join((entry.description or "").split())
            parameters[name] = parameters.get(name) or described
            if entry.type_name:
                types.setdefault(name, entry.type_name)
    returns = known.returns or (parsed.returns.description if parsed.returns else None) or ""
    raises = tuple(one.type_name for one in parsed.raises if one.type_name)
    return Described(known.text, parameters, types, returns, (*known.raises, *raises), known.styles)


def _tidy(text: str) -> str:
    return _BLANK_LINES.sub("\n\n", _EMPTY_HEADING.sub("", text)).strip()
