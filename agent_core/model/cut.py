"""Calls that were cut off at the length limit: which argument of which call. Pure."""

import re
from collections.abc import Iterable
from typing import Final

from sandbox.wire.foreign import LOOSE, Malformed, read_json

_MARK: Final = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\]:,]', re.DOTALL)


def cut_call(name: str, arguments: str) -> str:
    """Return a phrase that names the call and the argument at which its JSON text breaks off."""
    argument = cut_argument(arguments)
    return f"the argument `{argument}` of a call of `{name}`" if argument else f"a call of `{name}`"


def cut_argument(arguments: str) -> str:
    """Return the name of the argument in which a truncated JSON text ends; empty if no argument has begun."""
    depth, key, last = 0, "", ""
    for match in _MARK.finditer(arguments):
        mark = match[0]
        if mark in "{[":
            depth += 1
        elif mark in "}]":
            depth -= 1
        elif depth == 1 and mark == ":":
            key = last
        elif depth == 1 and mark == ",":
            key = ""
        last = mark
    return _read(key)


def note_on(cut: Iterable[str]) -> str:
    """Return the note for the user about calls that were cut off."""
    where = " and ".join(cut)
    return (
        f"The reply was cut off at its length limit, in {where}: that was not called. `model.max_tokens` "
        "sets the limit."
    )


def _read(text: str) -> str:
    try:
        return str(read_json(text, LOOSE)) if text else ""
    except Malformed:
        return ""
