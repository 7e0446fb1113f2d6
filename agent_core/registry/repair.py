"""Repairs a model's arguments: keys with another spelling or place, and texts that stand for a value.

A key (re-cased, dotted, flattened out of a nested object, or wrapped in `arguments`) is only repaired if its object
does not have it and exactly one property without a value can be meant. A text only becomes a number, boolean, choice,
null or list if it cannot be anything else. Everything else is left unchanged, to be reported.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from .validation import read_nested

if TYPE_CHECKING:
    from .typenames import Schema

Path = tuple[str, ...]
Resolve = Callable[[Any], Any]  # a schema → the one that its `$ref` refers to

_WRAPPERS = frozenset({"arguments", "parameters", "args", "params", "kwargs", "input", "inputs", "properties"})
_LABELS = frozenset({"name", "function", "tool", "type", "id"})
_DEEPEST = 4
_MOST = 300
_SIGNS = re.compile(r"[\W_]+")
_PARTS = re.compile(r"[.\[\]/]+")
_INTEGER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
# Unambiguous thousands separators: several of them, or a decimal point after one.
_LARGE = re.compile(r"-?[1-9]\d{0,2}(?:(?:,\d{3}){2,}(?:\.\d+)?|,\d{3}\.\d+)", re.ASCII)
_EXACT = 2**53
_DIGITS = 4_000
_WORDS = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False}
_NULLS = frozenset({"null", "none", "undefined"})
_QUOTES = "\"'`“”"
_MEMBER = re.compile(r"[A-Z]\w*\.([^\W\d]\w*)")  # a member of an enumeration with its class name
_BETWEEN = re.compile(r"(?<=[^\W\d_])[\s_-]+(?=[^\W\d_])")
_SEPARATORS = ",;|\n"
# One number with thousands separators or a decimal comma: possibly not several numbers.
_GROUPED = re.compile(r"\s*-?\d{1,3}(?:,\d{3})+(?:\.\d+)?\s*", re.ASCII)
_DECIMAL_COMMA = re.compile(r"\s*-?\d+,\d+\s*", re.ASCII)
_GROUPED_BY_SPACES = re.compile(r"\s*-?\d{1,3}(?:\s\d{3})+\s*", re.ASCII)


def plain(name: str) -> str:
    """Return a name without case and separators: `fileName`, `file_name` and `File-Name` are equal."""
    return _SIGNS.sub("", name).casefold()


def unwrapped(value: dict[str, Any], schema: "Schema", resolve: Resolve) -> tuple[dict[str, Any], str]:  # Any: JSON
    """Return the object within `{"arguments": {…}}` and the key that wrapped it, or the value itself and ""."""
    properties = schema.get("properties", {})
    unknown = [key for key in value if key not in properties]
    wrappers = [key for key in unknown if key.casefold() in _WRAPPERS]
    if len(wrappers) != 1 or not _is_closed(schema):
        return value, ""
    if any(key not in _LABELS or not isinstance(value[key], str) for key in unknown if key not in wrappers):
        return value, ""
    names = {plain(place[-1]) for place in islice(_free({}, schema, resolve, ()), _MOST)}
    inner = value[wrappers[0]]
    inner = read_nested(inner, dict) if isinstance(inner, str) else inner
    outer = {key: item for key, item in value.items() if key in properties}
    if not isinstance(inner, dict) or outer.keys() & (inner.keys() | _LABELS) or names & set(map(plain, unknown)):
        return value, ""
    return {**inner, **outer}, wrappers[0]


def placed(value: dict[str, Any], schema: "Schema", resolve: Resolve) -> tuple[dict[str, Any], dict[str, Path]]:
    """Return an object with each unknown key moved to the only place that it can mean, and the moves."""
    properties = schema.get("properties")
    if not properties or not _is_closed(schema) or value.keys() <= properties.keys():
        return value, {}
    places = [*islice(_free(value, schema, resolve, ()), _MOST + 1)]
    if len(places) > _MOST:
        return value, {}
    meant = {key: _place_of_key(key, places) for key in value if key not in properties}
    counts = Counter(place for place in meant.values() if place)
    moves = {key: place for key, place in meant.items() if place and counts[place] == 1}
    result = {key: item for key, item in value.items() if key not in moves}
    for key, place in moves.items():
        inner = result
        for name in place[:-1]:
            inner[name] = dict(inner.get(name, {}))
            inner = inner[name]
        inner[place[-1]] = value[key]
    return result, moves


def _is_closed(schema: "Schema") -> bool:
    return schema.get("additionalProperties", False) is False and "patternProperties" not in schema


def _free(value: Any, schema: "Schema", resolve: Resolve, path: Path) -> Iterator[Path]:
    """Yield the place of each property without a value, including nested objects."""
    for name, inner in schema.get("properties", {}).items():
        place = (*path, name)
        if name not in value:
            yield place
        nested = _object_of(inner, resolve)
        item = value.get(name, {})
        if nested and isinstance(item, dict) and len(place) < _DEEPEST:
            yield from _free(item, nested, resolve, place)


def _object_of(schema: Any, resolve: Resolve) -> "Schema | None":
    """Return the schema of the only object type that a value can have, if it has properties."""
    schema = resolve(schema)
    if not isinstance(schema, dict):
        return None
    options = [resolve(option) for keyword in ("anyOf", "oneOf", "allOf") for option in schema.get(keyword, ())]
    objects = [option for option in (schema, *options) if isinstance(option, dict) and option.get("properties")]
    return objects[0] if len(objects) == 1 else None


def _place_of_key(key: str, places: list[Path]) -> Path | None:
    """Return the only place that a key can mean; None if there is none or several."""
    parts = tuple(plain(part) for part in _PARTS.split(key) if part)
    if len(parts) > 1:
        ends = [place for place in places if tuple(map(plain, place))[-len(parts) :] == parts]
        if ends:
            return ends[0] if len(ends) == 1 else None
    name = plain(key)
    matches = [place for place in places if name and name in (plain(place[-1]), plain("".join(place)))]
    return matches[0] if len(matches) == 1 else None


def _integer(value: Any) -> Any:
    if isinstance(value, str):
        value = _number(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    return value


def _number(value: Any) -> Any:
    if not isinstance(value, str) or len(value) > _DIGITS:
        return value
    text = value.strip()
    if _LARGE.fullmatch(text):
        text = text.replace(",", "")
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        number = float(text)
        return number if abs(number) != float("inf") else value
    return value


def _text(value: Any) -> Any:
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_integer and abs(value) < 10**_DIGITS else value


SCALARS: dict[str, Callable[[Any], Any]] = {  # Any: JSON
    "integer": _integer,
    "number": _number,
    "boolean": lambda value: _WORDS.get(value.strip().lower(), value) if isinstance(value, str) else value,
    "string": _text,
    "null": lambda value: None if is_null_word(value) else value,
}
"""JSON type → a lossless conversion to that type; values that it cannot convert are returned unchanged."""


def is_null_word(value: Any) -> bool:  # Any: JSON
    """Check whether a value is a word for null, such as "null" or "None"."""
    return isinstance(value, str) and value.strip().casefold() in _NULLS


def listed(value: Any, choices: list[Any]) -> Any:  # Any: JSON
    """Return the only choice that a text matches apart from case, separators or quotes; otherwise the value itself."""
    if isinstance(value, bool) and value not in choices:
        text = listed(str(value), choices)
        return text if isinstance(text, str) and text in choices else value
    if not isinstance(value, str) or value in choices:
        return value
    member = _MEMBER.fullmatch(value.strip())
    for text in (value, *(member.groups() if member else ())):
        for form in (_fold_case, lambda words: _BETWEEN.sub("", _fold_case(words))):
            matches = [choice for choice in choices if isinstance(choice, str) and form(choice) == form(text)]
            if matches:
                return matches[0] if len(matches) == 1 else value
    written = [choice for choice in choices if not isinstance(choice, str) and json.dumps(choice) == value.strip()]
    return written[0] if len(written) == 1 else value


def _fold_case(text: str) -> str:
    return text.strip().strip(_QUOTES).strip().casefold()


def pieces(text: str, kind: Any) -> list[str] | None:  # Any: the JSON type of the items
    """Return the items of a text that is written as a list; None if it is not a list.

    An empty result means that it may be a list but cannot be split reliably, or may be one number with separators.
    """
    if text.lstrip().startswith("["):
        return []
    marks = [mark for mark in _SEPARATORS if mark in text.strip()]
    if not marks:
        items = text.split() if kind in ("integer", "number") else []
        if len(items) < 2:
            return None
        return [] if _GROUPED_BY_SPACES.fullmatch(text) else items
    items = [item.strip() for item in text.split(marks[0])]
    is_number = _GROUPED.fullmatch(text) or (kind != "integer" and _DECIMAL_COMMA.fullmatch(text))
    return [] if is_number or len(items) == 1 else items


def by_position(value: Any, schema: "Schema") -> list[dict[str, Any]]:  # Any: JSON
    """Return the objects that a value without keys can mean: items as properties in order, or the only property.

    Only properties with a type are considered, because any value fits the others.
    """
    properties, required = schema.get("properties", {}), schema.get("required", ())
    if not properties or not all(properties.values()):
        return []
    meant = []
    if isinstance(value, list) and len(required) <= len(value) <= len(properties):
        meant.append(dict(zip(properties, value, strict=False)))
    only = list(properties if len(properties) == 1 else required)
    if len(only) == 1:
        meant.append({only[0]: value})
    elif isinstance(value, list) and not required and next(iter(properties.values())).get("type") == "array":
        meant.append({next(iter(properties)): value})  # for `*items`, the list itself
    return meant
