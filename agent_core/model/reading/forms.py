"""The forms in which models write calls: the data of `reading.toml`, read once, and one call that was parsed."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final, TypeAlias

from sandbox.wire.foreign import LOOSE, Malformed, read_json, read_toml

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
