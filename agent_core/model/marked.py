"""Readers for calls between the marks of a model's template, by their structure: no form is tied to one family. Pure.

Whatever a family calls its marks, a call has one of few structures: an element with the function's name and elements
for its arguments; the name, and then marked keys and values; the name, and then an object; an object; Python.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

from agent_core.base.records import dataclass, field
from sandbox.wire.strict_json import LOOSE, MAX_VALUES, Malformed, read_json, read_next

MAX_PARTS: Final = 64
"""The calls of a text, and the arguments of each: a longer text is noise and must not cost time."""
_MAX_MARKS: Final = 4_000
_MAX_WORDS: Final = 8
_HEAD_CHARS: Final = 400  # before an object

Known: TypeAlias = Mapping[str, Sequence[str]]
Resolve: TypeAlias = Callable[[str], str | None]
Found: TypeAlias = tuple[str, Mapping[str, Any]]  # Any: JSON values


ELEMENT: Final = re.compile(
    r"<(?P<close>/?)(?:｜DSML｜|[\w.-]{1,30}:)?(?P<element>[A-Za-z][\w.-]{0,60})"
    r"(?:\s*+=\s*+[\"']?(?P<value>[^\"'<>\s][^\"'<>\n]{0,199}+)[\"']?|(?P<attributes>\s[^<>\n]{0,300}+)?)\s*+/?>"
)
"""A mark such as `<invoke name="f">`, `<function=f>`, `</parameter>`."""
SPECIAL: Final = re.compile(
    r"<\|[^<>|\n]{1,60}\|?>|<[A-Za-z_/][\w/]{0,40}\|>|<｜[^<>｜\n]{1,60}｜>"
)
"""A special token such as `<|call|>`, `<tool_call|>`, `<｜tool▁sep｜>`."""
_ANY_MARK: Final = rf"{SPECIAL.pattern}|{re.sub(r'[?]P<[a-z]+>', '?:', ELEMENT.pattern)}"
_NAME_ATTRIBUTE: Final = re.compile(r"\bname\s*=\s*[\"']([^\"'\n]{1,200})[\"']")
_FENCE: Final = re.compile(r"```\w*")
_PAIR: Final = re.compile(
    r"\s*+<(?P<key_mark>[\w.:-]*key)>(?P<key>[^<>]{1,200}+)</(?P=key_mark)>"
    r"\s*<(?P<value_mark>[\w.:-]*value)>(?P<value>.*?)(?:</(?P=value_mark)>|(?=<[\w.:-]*key>)|\Z)",
    re.DOTALL,
)
_CALL_WORD: Final = re.compile(r"[^\s<>｜|\[\](){}`\"',]+")
_QUOTES: Final = ('<|"|>', "<escape>")
_BARE_KEY: Final = re.compile(r"([{,]\s*)([A-Za-z_]\w*)\s*:")


@lru_cache(maxsize=4)
def mark_pattern(inner: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of a mark: one that shows it by its form, or one of `inner`."""
    return re.compile("|".join([_ANY_MARK, *map(re.escape, inner)]))


def name_in(mark: re.Match[str]) -> str:
    """Return the name that an element has as its value or its attribute."""
    named = _NAME_ATTRIBUTE.search(mark["attributes"] or "")
    return (mark["value"] or "").strip() or (named[1].strip() if named else "")


@dataclass(slots=True)
class _OpenElement:
    """A call that is an element: the name of the element and of the function, and the arguments so far."""

    element: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Parameter:
    element: str
    name: str
    start: int
    is_json: bool


class _NoCalls(Exception):
    """Raised when a text has something besides calls."""


class ElementReader:
    """A reader of calls that are elements: `<invoke name="f"><parameter name="a">1</parameter></invoke>` and its kin.

    An argument that is not closed ends where the next one begins, or with the call.
    """

    def __init__(self, text: str, known: Known, resolve: Resolve, marks: re.Pattern[str]) -> None:
        self._text = text
        self._marks = marks
        self._known = known
        self._resolve = resolve
        self._place = 0
        self._call: _OpenElement | None = None
        self._parameter: _Parameter | None = None
        self._found: list[Found] = []

    def read(self) -> list[Found]:
        """Return the calls that make up the text; an empty list if there is anything else."""
        try:
            for n, mark in enumerate(ELEMENT.finditer(self._text)):
                if n > _MAX_MARKS:
                    return []
                self._take(mark)
            if self._parameter is not None:
                self._finish_parameter(len(self._text))
                self._place = len(self._text)
            if self._call is not None:
                self._finish_call(len(self._text))
            self._check_blank(self._text[self._place :])
        except _NoCalls:
            return []
        return self._found

    def _take(self, mark: re.Match[str]) -> None:
        call, parameter, element = self._call, self._parameter, mark["element"]
        if parameter is not None and call is not None:
            is_next = (
                not mark["close"] and name_in(mark) and element in (parameter.element, call.element)
            )
            if not is_next and not (mark["close"] and element in (parameter.element, call.element)):
                return  # a part of the value
            self._finish_parameter(mark.start())
            self._place = mark.start() if element == call.element or is_next else mark.end()
            if self._place == mark.end():
                return
        if call is not None and self._begins_parameter(mark, call):
            self._check_blank(self._text[self._place : mark.start()])
            name = name_in(mark) or element
            is_json = 'string="false"' in (mark["attributes"] or "")
            self._parameter = _Parameter(element, name, mark.end(), is_json)
        elif call is not None:
            is_within = element != call.element and not call.arguments
            if (
                is_within
                and skip_marks(self._text, self._place, self._marks, mark.start()) < mark.start()
            ):
                return  # a part of an object
            self._finish_call(mark.start())
            if not mark["close"]:
                self._begin_call(mark)
        else:
            self._check_blank(self._text[self._place : mark.start()])
            if not mark["close"]:
                self._begin_call(mark)
        self._place = mark.end()

    def _begins_parameter(self, mark: re.Match[str], call: _OpenElement) -> bool:
        if mark["close"] or mark["element"] == call.element:
            return False
        is_parameter = (
            mark["element"] in self._known.get(call.name, ()) and call.element == call.name
        )
        return bool(name_in(mark)) or is_parameter

    def _begin_call(self, mark: re.Match[str]) -> None:
        name, element = name_in(mark), mark["element"]
        if name:
            function = self._resolve(name)
            if function is None:
                raise _NoCalls
            self._call = _OpenElement(element, function)
        elif self._known.get(element):
            self._call = _OpenElement(element, element)
        if len(self._found) > MAX_PARTS:
            raise _NoCalls

    def _finish_parameter(self, end: int) -> None:
        assert self._call is not None, "it was begun"
        assert self._parameter is not None, "it was begun"
        parameter, self._parameter = self._parameter, None
        text = self._text[parameter.start : end].removeprefix("\n").removesuffix("\n")
        value: Any = text
        if parameter.is_json:
            try:
                value = read_json(text.strip(), LOOSE, most_values=MAX_VALUES)
            except Malformed:
                value = text
        if parameter.name in self._call.arguments or len(self._call.arguments) >= MAX_PARTS:
            raise _NoCalls
        self._call.arguments[parameter.name] = value

    def _finish_call(self, end: int) -> None:
        """Take the call, with the object between its marks if it has no elements for arguments."""
        assert self._call is not None, "it was begun"
        call, self._call = self._call, None
        arguments: Any = call.arguments
        place = skip_marks(self._text, self._place, self._marks, end)
        if place < end and self._text[place] == "{" and not arguments:
            try:
                arguments, self._place = read_next(self._text, place, LOOSE, most_values=MAX_VALUES)
            except Malformed as error:
                raise _NoCalls from error
            fence = _FENCE.match(self._text, _blank_end(self._text, self._place))
            self._place = fence.end() if fence else self._place
        if call.element == call.name and not arguments:
            raise _NoCalls  # a word like any other
        self._check_blank(self._text[self._place : end])
        self._found.append((call.name, arguments))

    def _check_blank(self, text: str) -> None:
        place = _blank_end(text, 0)
        while place < len(text):
            mark = self._marks.match(text, place)
            if mark is None:
                raise _NoCalls
            place = _blank_end(text, mark.end())


def read_pairs(text: str, resolve: Resolve, marks: re.Pattern[str]) -> list[Found]:
    """Return the calls of a text that has a name, and then marked keys and values, for each; empty if it has more."""
    found: list[Found] = []
    place = 0
    while len(found) <= MAX_PARTS:
        place = skip_marks(text, place, marks)
        word = _CALL_WORD.match(text, place)
        name = resolve(word[0]) if word else None
        if word is None or name is None:
            return found if place >= len(text) else []
        place = word.end()
        arguments: dict[str, Any] = {}
        while len(arguments) < MAX_PARTS and (pair := _PAIR.match(text, place)):
            arguments[pair["key"].strip()] = pair["value"].removeprefix("\n").removesuffix("\n")
            place = pair.end()
        found.append((name, arguments))
        if place < len(text) and not marks.match(text, _blank_end(text, place)):
            return []
    return []


def read_sequence(
    text: str, resolve: Resolve, marks: re.Pattern[str], calls_of: Callable[[Any], list[Found]]
) -> list[Found]:
    """Return the calls of a text that has objects, each a call itself or after the name of a function and marks.

    `calls_of` reads an object that is a call.
    """
    found: list[Found] = []
    place = 0
    while len(found) <= MAX_PARTS:
        place = skip_marks(text, place, marks)
        if place >= len(text):
            return found
        head = marks.sub(lambda mark: " " * len(mark[0]), text[place : place + _HEAD_CHARS])
        start = next((place + at for at, char in enumerate(head) if char in "{["), -1)
        if start < 0:
            return []
        words = _CALL_WORD.findall(_FENCE.sub(" ", head[: start - place]))
        addressed = [word for word in words if word.startswith("to=")]
        names = [name for word in addressed or words if (name := resolve(word))]
        if words and (not names or len(words) > _MAX_WORDS or text[start] == "["):
            return []
        value, place = _object_at(text, start)
        calls: list[Found] = calls_of(value) if not words else []
        if words and isinstance(value, dict):
            calls.append((names[-1], value))
        if not calls:
            return []
        found += calls
    return []


def _object_at(text: str, start: int) -> tuple[Any, int]:
    """Return the value at a place and its end: JSON, or an object with bare keys and marked strings, as Gemma's."""
    try:
        return read_next(text, start, LOOSE, most_values=MAX_VALUES)
    except Malformed:
        pass
    end = text.find("}", start)
    quote = next((quote for quote in _QUOTES if quote in text), "")
    if quote:  # brackets within strings do not count
        place, is_inside = start, False
        while place < len(text) and (is_inside or text[place] != "}"):
            is_quote = text.startswith(quote, place)
            is_inside ^= is_quote
            place += len(quote) if is_quote else 1
        end = place
    parts = text[start : end + 1].split(quote) if quote else [text[start : end + 1]]
    written = "".join(
        json.dumps(part) if n % 2 else _BARE_KEY.sub(r'\1"\2":', part)
        for n, part in enumerate(parts)
    )
    try:
        return read_json(written, LOOSE, most_values=MAX_VALUES), end + 1
    except Malformed:
        return None, len(text)


def skip_marks(text: str, place: int, marks: re.Pattern[str], end: int | None = None) -> int:
    """Return the place of the next character that belongs to no mark, fence or blank, or a place after the end."""
    end = len(text) if end is None else end
    for _ in range(_MAX_MARKS):
        place = _blank_end(text, place)
        mark = marks.match(text, place) or _FENCE.match(text, place)
        if mark is None or place >= end:
            break
        place = mark.end()
    return place


def _blank_end(text: str, place: int) -> int:
    while place < len(text) and text[place] in " \t\r\n;,":
        place += 1
    return place


_CODE: Final = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_NEXT_WORD: Final = re.compile(
    r"[\s\"'\[{(]*+(?:(?:name|tool|tool_name|function)[\"']?\s*+[:=]\s*+[\"']?|call:|to=)?\s*+([\w.\-:/]+)"
)
_LAST_WORD: Final = re.compile(r"(?<![\w.\-:/=])([\w.\-:/=]++)\s*+$")
_NEAR_CHARS: Final = 200


def marked_name(text: str, exact: Resolve, marks: re.Pattern[str], words: Sequence[str]) -> str:
    """Return the function whose name stands between marks of a template anywhere in a text; "" if there is none.

    Code is left out: it shows marks. An element counts if its own name has one of the `words`.
    """
    plain = _CODE.sub(lambda code: " " * len(code[0]), text)
    for n, mark in enumerate(marks.finditer(plain)):
        if n > _MAX_MARKS:
            break
        for word in _words_at(plain, mark, words):
            if name := exact(word):
                return name
    return ""


def _words_at(text: str, mark: re.Match[str], words: Sequence[str]) -> Iterator[str]:
    """Yield the words that a mark gives as a name, or that stand next to it."""
    element = ELEMENT.fullmatch(mark[0])
    is_special = element is None
    if element is not None and not any(word in element["element"].lower() for word in words):
        return
    if element is not None and name_in(element):
        yield name_in(element)
    after = _NEXT_WORD.match(text[mark.end() : mark.end() + _NEAR_CHARS])
    if after and not mark[0].startswith("</"):
        yield after[1]
    if is_special and (
        before := _LAST_WORD.search(text[max(0, mark.start() - _NEAR_CHARS) : mark.start()])
    ):
        yield before[1]
