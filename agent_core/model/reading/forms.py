"""The forms in which models write calls: the data of `reading.toml`, read once, and one call that was parsed.

Streamed text that may become a call is held back, so that nobody reads a call as text and then sees it run.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final, TypeAlias

from sandbox.wire.foreign import LOOSE, Malformed, read_json, read_toml
from sandbox.wire.lines import lines_of

MOST_PARTS: Final = 64
"""Longest row of tags or fences that is read: a reply beyond is noise, and must not cost time."""


@dataclass(frozen=True, slots=True)
class Tag:
    """Marks around calls; `whole` accepts them only at the beginning of the text."""

    open: str
    close: str
    whole: bool = False


@dataclass(frozen=True, slots=True)
class ReplyForms:
    """All data of `reading.toml`."""

    name_keys: tuple[str, ...]
    argument_keys: tuple[str, ...]
    several_keys: tuple[str, ...]
    idle_keys: frozenset[str]
    namespaces: frozenset[str]
    tags: tuple[Tag, ...]
    object_fences: frozenset[str]
    python_fences: frozenset[str]
    lead_in_chars: int
    explains: re.Pattern[str]
    announces: re.Pattern[str]


@cache
def forms() -> ReplyForms:
    """Return the forms that this version knows."""
    data = read_toml(resources.files("agent_core.model").joinpath("reading.toml").read_text(encoding="utf-8"))
    keys, lead_in = data["keys"], data["lead_in"]
    return ReplyForms(
        name_keys=tuple(keys["name"]),
        argument_keys=tuple(keys["arguments"]),
        several_keys=tuple(keys["several"]),
        idle_keys=frozenset(keys["beside"]),
        namespaces=frozenset(data["python"]["namespaces"]),
        tags=tuple(Tag(**tag) for tag in data["tags"]),
        object_fences=frozenset(data["fences"]["objects"]),
        python_fences=frozenset(data["fences"]["python"]),
        lead_in_chars=lead_in["most_chars"],
        explains=_pattern(lead_in["explains"]),
        announces=_pattern(lead_in["announces"]),
    )


def announces(lead_in: str) -> bool:
    """Check whether a fence after this lead-in may hold a call."""
    return not lead_in or bool(forms().announces.search(lead_in) and not forms().explains.search(lead_in))


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text.replace("\\\n", ""), re.IGNORECASE)


Shown: TypeAlias = Mapping[str, Sequence[str]]
"""The names of the functions of this step, each with the names of its parameters."""

_NOISE: Final = re.compile(r"<\|.*", re.DOTALL)  # special tokens that some servers leave behind a name
_JOINTS: Final = re.compile(r"[_\-\s]")


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """A call: the name of a shown function, and its arguments as the JSON text of an object."""

    name: str
    arguments: str


def meant(name: str, shown: Shown) -> str | None:
    """Return the only shown function that a name can mean: exactly, without a namespace, or in another case."""
    bare = _NOISE.sub("", name).strip()
    last = re.split(r"[.:/]", bare)[-1]
    exact = next((candidate for candidate in (name, bare, last) if candidate in shown), None)
    if exact is not None:
        return exact
    alike = [shown_name for shown_name in shown if _plain(shown_name) in {_plain(bare), _plain(last)}]
    return alike[0] if len(alike) == 1 else None


def parsed_call(name: str, arguments: Mapping[str, Any]) -> ParsedCall | None:  # Any: JSON values
    """Return the call with these arguments; None if they cannot be written as JSON."""
    try:
        return ParsedCall(name, json.dumps(arguments, ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return None


def unwrapped(arguments: str) -> str:
    """Return arguments that were encoded two or more times as the object that they are; anything else unchanged."""
    inner: Any = arguments
    try:
        while isinstance(inner, str) and inner.lstrip()[:1] == '"':
            inner = read_json(inner, LOOSE)
        is_object = isinstance(inner, str) and isinstance(read_json(inner, LOOSE), dict)
    except Malformed:
        return arguments
    return inner if is_object else arguments


def _plain(name: str) -> str:
    return _JOINTS.sub("", name.lower())


_OBJECT: Final = re.compile(r"[\[{]\s*(?:$|[\[{\"'])")
_PYTHON: Final = re.compile(r"\[?\s*([A-Za-z_][\w.]*)?\s*(\(|$)")
_FENCE: Final = re.compile(r"```[ \t]*(\w*)(\s*)")
_DECIDED_CHARS: Final = 600


class Holder:
    """A filter that passes text on as soon as it can no longer be a call; text before a call is its lead-in."""

    def __init__(self, shown: Shown) -> None:
        self._names = [name.lower().replace("_", "") for name in shown]
        self._held = ""
        self._passed = ""  # the lead-in so far
        self._open = not shown

    def feed(self, text: str) -> str:
        """Return the text that can be shown now."""
        if self._open:
            return text
        self._held += text
        if len(self._held) > _DECIDED_CHARS:
            return ""  # what its beginning did not rule out is known at its end
        place = self._first_opening()
        ready, self._held = self._held[:place], self._held[place:]
        self._passed += ready
        if len(self._passed.strip()) > forms().lead_in_chars:
            self._open = True
            ready += self.rest()
        return ready

    def rest(self) -> str:
        """Return the text still held back at the end of the stream."""
        buffered, self._held = self._held, ""
        return buffered

    def _first_opening(self) -> int:
        """Return the position of the first line that may open a call, or the end."""
        place = 0
        for line in lines_of(self._held):
            before = self._passed + self._held[:place]
            begins = not before or before.endswith("\n")
            if begins and self._may_open(self._held[place:].lstrip(), before.strip()):
                return place
            place += len(line)
        return place

    def _may_open(self, start: str, lead_in: str) -> bool:
        marks = [tag.open for tag in forms().tags if not (tag.whole and lead_in)] + ["<function="]
        if any(mark.startswith(start[: len(mark)]) for mark in marks):
            return True
        if "```".startswith(start[:3]):
            return self._may_open_fence(start, lead_in)
        return not lead_in and (bool(_OBJECT.match(start)) or self._may_open_python(start))

    def _may_open_python(self, start: str) -> bool:
        match = _PYTHON.match(start)
        if match is None:
            return False
        written = (match[1] or "").lower().replace("_", "")
        last = written.rpartition(".")[2]
        if match[2]:
            return bool({written, last} & {*self._names})
        return any(name.startswith(last) for name in self._names) or self._may_be_namespace(match[1])

    def _may_be_namespace(self, written: str) -> bool:
        return any(space.startswith(written) or written == f"{space}." for space in forms().namespaces)

    def _may_open_fence(self, start: str, lead_in: str) -> bool:
        if lead_in and not announces(lead_in):
            return False
        fence = _FENCE.match(start)
        if fence is None or fence.end() == len(start):
            return True
        language, inside = fence[1].lower(), start[fence.end() :]
        if language in forms().object_fences and _OBJECT.match(inside):
            return True
        is_python = language in forms().python_fences or not language
        return is_python and not lead_in and self._may_open_python(inside)
