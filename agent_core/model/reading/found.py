"""One call found in a text, and the mapping of a written name to a shown function."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from sandbox.wire.foreign import LOOSE, Malformed, read_json

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
