"""The calls in a reply that consists of calls: the readers, tried one after another.

Calls in a code fence that ends the text.

Calls between tags, such as `<tool_call>…</tool_call>`, and the XML-like form that some models write.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from .forms import MOST_PARTS, Tag, announces, forms
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


_OPEN: Final = re.compile(r"^[ \t]*```", re.MULTILINE)
_CLOSE: Final = re.compile(r"```[ \t]*$", re.MULTILINE)
_LANGUAGE: Final = re.compile(r"[ \t]*(\w*)[ \t]*\n?")


@dataclass(frozen=True, slots=True)
class Fence:
    """A block of code, and the language that it declares."""

    language: str
    text: str


def split_fenced(text: str) -> tuple[str, tuple[Fence, ...]] | None:
    """Return the lead-in and the fences, if nothing stands between or after them."""
    opening = _OPEN.search(text)
    fences: list[Fence] = []
    remaining = text[opening.start() :].strip() if opening else ""
    while remaining:
        closing = _CLOSE.search(remaining, 3)
        if closing is None or not remaining.startswith("```") or len(fences) == MOST_PARTS:
            return None
        head = _LANGUAGE.match(remaining, 3, closing.start())
        begins = head.end() if head else 3
        fences.append(Fence(head[1].lower() if head else "", remaining[begins : closing.start()]))
        remaining = remaining[closing.end() :].strip()
    return (text[: opening.start()], tuple(fences)) if opening and fences else None


def read_fence(fence: Fence, shown: Shown, *, alone: bool) -> tuple[ParsedCall, ...]:
    """Return the calls in a fence; Python after a lead-in is taken for an example."""
    if fence.language in forms().object_fences:
        calls = read_objects(fence.text, shown, marked=False)
        return calls or (read_python(fence.text, shown) if alone and not fence.language else ())
    return read_python(fence.text, shown) if alone and fence.language in forms().python_fences else ()


@dataclass(frozen=True, slots=True)
class ReadText:
    """The result of reading a text: its lead-in, which stays text, and the calls after it."""

    lead_in: str
    calls: tuple[ParsedCall, ...]


def read_text(text: str, shown: Shown) -> ReadText | None:
    """Return the calls in the text; None if it is anything else, or names a function that is not shown."""
    if not shown or not text.strip():
        return None
    bare = read_objects(text, shown, marked=False) or read_python(text, shown)
    return ReadText("", bare) if bare else _tagged(text, shown) or _fenced(text, shown)


def _tagged(text: str, shown: Shown) -> ReadText | None:
    split = split_tagged(text)
    if split is None or not _is_short(split[0]) or forms().explains.search(split[0].strip()):
        return None
    return _all(split[0], [read_tagged(part, shown) for part in split[1]])


def _fenced(text: str, shown: Shown) -> ReadText | None:
    split = split_fenced(text)
    if split is None or not (_is_short(split[0]) and announces(split[0].strip())):
        return None
    alone = not split[0].strip()
    return _all(split[0], [read_fence(fence, shown, alone=alone) for fence in split[1]])


def _all(lead_in: str, parts: Sequence[tuple[ParsedCall, ...]]) -> ReadText | None:
    """Return the calls of all parts; None if any part is not calls."""
    return ReadText(lead_in.strip(), tuple(call for part in parts for call in part)) if parts and all(parts) else None


def _is_short(lead_in: str) -> bool:
    return len(lead_in.strip()) <= forms().lead_in_chars and not re.search(r"\n\s*\n\s*\S", lead_in.strip())
