"""Calls written as JSON objects, or as Python dictionaries: one, several in a row, or a list of them."""

import ast
import warnings
from collections.abc import Sequence
from typing import Any, Final

from sandbox.wire.foreign import LOOSE, Malformed, read_json, read_next

from .forms import forms
from .found import ParsedCall, Shown, meant, parsed_call

_MOST_LITERAL_CHARS: Final = 20_000


def read_objects(text: str, shown: Shown, *, marked: bool) -> tuple[ParsedCall, ...]:
    """Return the calls that make up the whole text; none if any part is something else.

    Where nothing marks the text as a call, an object must have a call's keys and no others.
    """
    values = _values(text)
    calls = [_call(value, shown, marked=marked) for value in _flat(values)]
    whole = tuple(call for call in calls if call is not None)
    return whole if len(whole) == len(calls) else ()


def _values(text: str) -> list[Any]:  # Any: foreign JSON
    """Return consecutive JSON values; none if the text holds anything else."""
    values, place, text = [], 0, text.strip()
    try:
        while place < len(text):
            value, place = read_next(text, place, LOOSE)
            values.append(value)
            while place < len(text) and text[place] in " \t\r\n,;":
                place += 1
    except Malformed:
        return _literal(text)
    return values


def _literal(text: str) -> list[Any]:
    """Return a Python dictionary or list: single quotes, True, None."""
    if len(text) > _MOST_LITERAL_CHARS or text[:1] not in {"{", "["}:
        return []
    try:
        with warnings.catch_warnings(action="ignore"):  # of odd escapes in somebody else's text
            return [ast.literal_eval(text)]
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return []


def _flat(values: Sequence[Any]) -> list[Any]:
    """Expand lists of calls, and objects that hold such a list, one level deep."""
    opened: list[Any] = []
    for value in values:
        inner = value
        if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in forms().several_keys:
            inner = next(iter(value.values()))
        opened += inner if isinstance(inner, list) else [inner]
    return opened


def _call(value: Any, shown: Shown, *, marked: bool) -> ParsedCall | None:
    if not isinstance(value, dict):
        return None
    if value.get("type", "function") == "function" and isinstance(inner := value.get("function"), dict):
        return _call(inner, shown, marked=marked) if value.keys() <= {"function", *forms().idle_keys} else None
    key, name = _named(value, shown)
    if name is None:
        return None
    fields = {field: inner for field, inner in value.items() if field != key}
    arguments = _inside(fields, marked=marked) or _adjacent_arguments(fields, shown[name], marked=marked)
    return parsed_call(name, arguments[0]) if arguments else None


def _named(value: dict[Any, Any], shown: Shown) -> tuple[str, str | None]:
    """Return the key under which a shown function is named, and the function."""
    names = [(key, value[key]) for key in forms().name_keys if isinstance(value.get(key), str)]
    return next(((key, name) for key, text in names if (name := meant(text, shown))), ("", None))


def _inside(fields: dict[Any, Any], *, marked: bool) -> tuple[dict[str, Any]] | None:
    """Return arguments that are under a key of their own, possibly encoded once more."""
    key = next((key for key in forms().argument_keys if key in fields), None)
    if key is None or not (marked or fields.keys() <= {key, *forms().idle_keys}):
        return None
    value = fields[key]
    for _ in range(2):
        if isinstance(value, str):
            try:
                value = read_json(value.strip() or "{}", LOOSE)
            except Malformed:
                return None
    value = {} if value is None else value
    return (value,) if isinstance(value, dict) and all(isinstance(name, str) for name in value) else None


def _adjacent_arguments(
    fields: dict[Any, Any], parameters: Sequence[str], *, marked: bool
) -> tuple[dict[str, Any]] | None:
    """Return arguments that are next to the name: every one a parameter of the function."""
    arguments = {key: value for key, value in fields.items() if key in parameters or key not in forms().idle_keys}
    if any(key not in parameters for key in arguments) or not (arguments or marked):
        return None
    return (arguments,)
