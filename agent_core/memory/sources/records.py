"""JSON: the records of a list as lines of `name: value`, joined up to a good size; JSON Lines alike."""

import json
from collections.abc import Iterator
from typing import Any, Final

from sandbox.wire.foreign import DEEPEST_ROW, Malformed, Strictness, read_json

from .parts import GOAL, SourcePart, SourceParts, Unit
from .prose import plain

_DEEPEST: Final = 64
_RECORD: Final[Unit] = "record"
_AS_WRITTEN: Final = Strictness(unique=False, constants=False, finite=False, whole=False, numbers=False)


def records(text: str) -> SourceParts:
    """Return the records of a list, or the entries of an object."""
    try:
        return SourceParts(tuple(_parts(read_json(text, _AS_WRITTEN, deepest=DEEPEST_ROW))), GOAL)
    except Malformed:
        return _as_text(text)


def lines(text: str) -> SourceParts:
    """Return one record per line."""
    try:
        rows = [read_json(line, _AS_WRITTEN, deepest=DEEPEST_ROW) for line in text.split("\n") if line.strip()]
        return SourceParts(tuple(_parts(rows)), GOAL)
    except Malformed:
        return _as_text(text)


def _as_text(text: str) -> SourceParts:
    return SourceParts(plain(text).parts, GOAL * 3 // 4, ("It is not valid JSON; it was read as text.",))


def _parts(value: Any) -> Iterator[SourcePart]:  # Any: JSON
    if isinstance(value, list):
        yield from _listed("", value)
    elif isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, list) and any(isinstance(entry, dict | list) for entry in item):
                yield from _listed(key, item)
            else:
                yield SourcePart("\n".join(_flat(item, key, 0)), key)
    else:
        yield SourcePart(_word(value))


def _listed(title: str, values: list[Any]) -> Iterator[SourcePart]:  # Any: JSON
    for number, record in enumerate(values, 1):
        yield SourcePart("; ".join(_flat(record, "", 0)), title, _RECORD, number, title)


def _flat(value: Any, path: str, depth: int) -> Iterator[str]:  # Any: JSON
    """Yield the leaves of a value as `path: value`."""
    if depth >= _DEEPEST:
        yield f"{path}: {json.dumps(value, ensure_ascii=False)}"
    elif isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _flat(item, f"{path}.{key}" if path else key, depth + 1)
    elif isinstance(value, list) and all(not isinstance(element, dict | list) for element in value):
        yield _line(path, ", ".join(map(_word, value)))
    elif isinstance(value, list):
        for number, element in enumerate(value, 1):
            yield from _flat(element, f"{path}[{number}]", depth + 1)
    else:
        yield _line(path, _word(value))


def _line(path: str, text: str) -> str:
    return f"{path}: {text}" if path else text


def _word(value: Any) -> str:  # Any: JSON
    return value if isinstance(value, str) else "" if value in ({}, []) else json.dumps(value)
