"""Calls between tags, such as `<tool_call>…</tool_call>`, and the XML-like form that some models write."""

import re
from typing import Final

from .forms import MOST_PARTS, Tag, forms
from .found import ParsedCall, Shown, meant, parsed_call
from .objects import read_objects
from .python import read_python

_FUNCTION: Final = re.compile(r"<function=([^>\s]{1,80})>(.*?)</function>", re.DOTALL)
_PARAMETER: Final = re.compile(r"<parameter=([^>\s]{1,80})>\n?(.*?)\n?</parameter>", re.DOTALL)


def split_tagged(text: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the lead-in and the contents of the tags; None if the text does not end in tags that open a line."""
    starts = [(place, tag) for tag in forms().tags if (place := _opening(text, tag)) is not None]
    function = re.search(r"^[ \t]*<function=", text, re.MULTILINE)
    if function and all(function.start() < place for place, _ in starts):
        return text[: function.start()], (text[function.start() :],)
    if not starts:
        return None
    place, tag = min(starts, key=lambda start: start[0])
    parts = _between(text[place:], tag)
    return (text[:place], parts) if parts else None


def read_tagged(part: str, shown: Shown) -> tuple[ParsedCall, ...]:
    """Return the calls between two tags."""
    return _read_xml(part, shown) or read_objects(part, shown, marked=True) or read_python(part, shown)


def _opening(text: str, tag: Tag) -> int | None:
    """Return the position at which the tag first opens a line."""
    found_at = re.search(rf"^[ \t]*{re.escape(tag.open)}", text, 0 if tag.whole else re.MULTILINE)
    return found_at.start() if found_at else None


def _between(text: str, tag: Tag) -> tuple[str, ...]:
    """Return the contents of the tags if they hold the whole text; the last may be unclosed, as servers cut it off."""
    parts: list[str] = []
    remaining = text.strip()
    while remaining:
        if not remaining.startswith(tag.open) or len(parts) == MOST_PARTS:
            return ()
        inner, closed, remaining = _cut(remaining.removeprefix(tag.open), tag)
        parts.append(inner)
        remaining = remaining.strip() if closed else ""
    return tuple(parts)


def _cut(text: str, tag: Tag) -> tuple[str, str, str]:
    if tag.close:
        return text.partition(tag.close)
    inner, _, tail = text.partition(tag.open)
    return inner, tag.open if tail else "", tag.open + tail


def _read_xml(part: str, shown: Shown) -> tuple[ParsedCall, ...]:
    """Read `<function=f><parameter=x>1</parameter></function>`, or the same with a JSON object inside."""
    if not 0 < part.count("<function=") == part.count("</function>") <= MOST_PARTS:
        return ()
    calls = [_xml_call(name, inside, shown) for name, inside in _FUNCTION.findall(part)]
    whole = tuple(call for call in calls if call is not None)
    complete = len(whole) == len(calls) and not _FUNCTION.sub("", part).strip()
    return whole if complete else ()


def _xml_call(name: str, inside: str, shown: Shown) -> ParsedCall | None:
    function_name = meant(name, shown)
    if function_name is None:
        return None
    if not inside.count("<parameter=") == inside.count("</parameter>") <= MOST_PARTS:
        return None
    parameters = dict(_PARAMETER.findall(inside))
    if not _PARAMETER.sub("", inside).strip():
        return parsed_call(function_name, parameters)
    written = f'{{"name": "{function_name}", "arguments": {inside}}}'
    return next(iter(read_objects(written, shown, marked=True)), None)
