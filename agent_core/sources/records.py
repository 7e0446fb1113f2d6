"""JSON: a list's records as lines of `name: value`, joined up to a good size; JSON Lines alike."""

import json
from collections.abc import Iterator
from typing import Any, Final

from sandbox.foreign import DEEPEST_ROW, Malformed, Strictness, read_json

from .parts import GOAL, Part, Parts, Unit
from .prose import plain

_DEEPEST: Final = 64
_RECORD: Final[Unit] = "record"
_AS_WRITTEN: Final = Strictness(unique=False, constants=False, finite=False, whole=False, numbers=False)


def records(text: str) -> Parts:
    """The records of a list, or the entries of an object."""
    try:
        return Parts(tuple(_parts(read_json(text, _AS_WRITTEN, deepest=DEEPEST_ROW))), GOAL)
    except Malformed:
        return _as_text(text)


def lines(text: str) -> Parts:
    """One record a line."""
    try:
        found = [read_json(line, _AS_WRITTEN, deepest=DEEPEST_ROW) for line in text.split("\n") if line.strip()]
        return Parts(tuple(_parts(found)), GOAL)
    except Malformed:
        return _as_text(text)


def _as_text(text: str) -> Parts:
    return Parts(plain(text).parts, GOAL * 3 // 4, ("It is no JSON that can be read; it was read as text.",))


def _parts(value: Any) -> Iterator[Part]:  # Any: JSON
    if isinstance(value, list):
        yield from _listed("", value)
    elif isinstance(value, dict):
        for key, held in value.items():
            if isinstance(held, list) and any(isinstance(one, dict | list) for one in held):
                yield from _listed(key, held)
            else:
                yield Part("\n".join(_flat(held, key, 0)), key)
    else:
        yield Part(_word(value))


def _listed(title: str, values: list[Any]) -> Iterator[Part]:  # Any: JSON
    for number, one in enumerate(values, 1):
        yield Part("; ".join(_flat(one, "", 0)), title, _RECORD, number, title)


def _flat(value: Any, path: str, depth: int) -> Iterator[str]:  # Any: JSON
    """Its leaves as `path: value`."""
    if depth >= _DEEPEST:
        yield f"{path}: {json.dumps(value, ensure_ascii=False)}"
    elif isinstance(value, dict) and value:
        for key, held in value.items():
            yield from _flat(held, f"{path}.{key}" if path else key, depth + 1)
    elif isinstance(value, list) and all(not isinstance(one, dict | list) for one in value):
        yield _said(path, ", ".join(map(_word, value)))
    elif isinstance(value, list):
        for number, one in enumerate(value, 1):
            yield from _flat(one, f"{path}[{number}]", depth + 1)
    else:
        yield _said(path, _word(value))


def _said(path: str, text: str) -> str:
    return f"{path}: {text}" if path else text


def _word(value: Any) -> str:  # Any: JSON
    return value if isinstance(value, str) else "" if value in ({}, []) else json.dumps(value)
