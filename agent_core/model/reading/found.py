"""One call that was found in a text, and which shown function a written name means."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from sandbox.foreign import LOOSE, Malformed, read_json

Shown: TypeAlias = Mapping[str, Sequence[str]]
"""The names of the functions of this step, each with the names of its parameters."""

_NOISE: Final = re.compile(r"<\|.*", re.DOTALL)  # special tokens that some servers leave behind a name
_JOINTS: Final = re.compile(r"[_\-\s]")


@dataclass(frozen=True, slots=True)
class Found:
    """A call: the name of a shown function, and its arguments as the JSON text of an object."""

    name: str
    arguments: str


def meant(name: str, shown: Shown) -> str | None:
    """The one shown function that a name clearly means: as it is, without a namespace, or in another case."""
    bare = _NOISE.sub("", name).strip()
    last = re.split(r"[.:/]", bare)[-1]
    exact = next((known for known in (name, bare, last) if known in shown), None)
    if exact is not None:
        return exact
    alike = [known for known in shown if _plain(known) in {_plain(bare), _plain(last)}]
    return alike[0] if len(alike) == 1 else None


def found(name: str, arguments: Mapping[str, Any]) -> Found | None:  # Any: JSON values
    """The call with these arguments, if they can be written as JSON at all."""
    try:
        return Found(name, json.dumps(arguments, ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError, RecursionError):
        return None


def unwrapped(arguments: str) -> str:
    """Arguments that were encoded twice or thrice, as the object that they are; anything else as it came."""
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
