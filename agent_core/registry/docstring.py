"""Reads docstrings of any style (Google, NumPy, reST and Epydoc) with `docstring-parser`.

Cheap marks identify the styles first, because trying all of them takes three times as long.
"""

import re
from functools import lru_cache
from inspect import cleandoc

from docstring_parser import DocstringStyle, ParseError
from docstring_parser import parse as parse_style
from docstring_parser.google import GoogleParser

from agent_core.base.records import dataclass, field

from .examples import without_examples

# In order of likelihood. A docstring may mix styles, so each style with a mark is read. Plain texts are searched first,
# because a regular expression takes ten times as long.
_MARKS = (
    (
        DocstringStyle.GOOGLE,
        (":\n",),
        re.compile(r"^(Args|Arguments|Parameters|Params|Attributes|Returns|Yields|Raises|Examples?):[ \t]*$", re.M),
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
_EMPTY_HEADING = re.compile(r"^(Examples?|Doctests?|Usage|Tests?)(:{0,2}[ \t]*|[ \t]*\n-{3,}[ \t]*)$", re.M | re.I)
_BLANK_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+\n?")
_LONGEST = 20_000
_GOOGLE = GoogleParser()  # shared: creating one takes a sixth of the time of a parse


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


@lru_cache(maxsize=1024)  # the functions of a module are read in turn: with fewer entries, none would be found again
def read(docstring: str | None) -> Described:
    """Return the contents of a docstring of any style. Parts that cannot be parsed are plain text."""
    if not docstring:
        return Described()
    has_examples = ">>>" in docstring
    text = cleandoc(without_examples(docstring[:_LONGEST]) if has_examples else docstring[:_LONGEST])
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
    for style in starts:
        # A field continues to the next one, past a heading whose examples were removed.
        section = _EMPTY_HEADING.sub("", text[start:]) if has_examples and style in _FIELDS else text[start:]
        # The line break keeps `cleandoc` from using the first section's indentation as the margin.
        section = f"\n{section}"
        try:
            parsed = _GOOGLE.parse(section) if style is DocstringStyle.GOOGLE else parse_style(section, style)
        except ParseError:
            continue
        for entry in parsed.params:
            description = " ".join((entry.description or "").split())
            for name in (word.lstrip("\\*") for word in entry.arg_name.replace(",", " ").split()):
                parameters[name] = parameters.get(name) or description
                if entry.type_name:
                    types.setdefault(name, entry.type_name)
        if parsed.returns:
            returns = returns or parsed.returns.description or ""
            return_type = return_type or parsed.returns.type_name or ""
        raises += [error.type_name for error in parsed.raises if error.type_name]
    styles = tuple(style.name.lower() for style in starts)
    return Described(summary.strip(), parameters, types, returns, return_type, tuple(raises), styles)
