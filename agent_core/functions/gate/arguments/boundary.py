"""Values at the edges of a JSON Schema, the simple ones first, and a check whether a value is valid.

Values are Python's as a worker takes them: a tuple for `prefixItems`, a set for unique items, a date for its
format. What a schema says in a keyword that is not known here is never claimed to be fulfilled. Pure.
"""

import datetime
import uuid
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from itertools import islice
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

from agent_core.registry.typenames import Schema

from .schema_fit import NUMBERED, fits, referred
from .variants import Value

_DEEPEST = 5
_MOST = 12  # values of one schema
_UTC = datetime.UTC

# What stands at the edge of each type.
_WHOLE = (0, 1, 2, -1, 10, 3, -7, 100, 2**31, -(2**63), 10**18)
_FRACTION = (0.0, 1.0, 0.5, -1.5, 2, 100.25, 1e-9, 1e12, -1e300)
_TEXT = ("", "a", "hello world", "Größe", "0", " ", "a,b", "A1", "x" * 50, "日本", "\n", "🙂", "-1", "None", '"')
_FORMATS: Mapping[str, tuple[Value, ...]] = MappingProxyType(
    {
        "date": tuple(datetime.date(*parts) for parts in ((2024, 5, 1), (2024, 2, 29), (2023, 12, 31), (1970, 1, 1))),
        "date-time": (
            datetime.datetime(2024, 5, 1, 12, 30),
            datetime.datetime(2024, 2, 29, 23, 59, 59, 999999, _UTC),
            datetime.datetime(1970, 1, 1, tzinfo=_UTC),
        ),
        "time": (datetime.time(12, 30), datetime.time(0, 0), datetime.time(23, 59, 59)),
        "duration": tuple(datetime.timedelta(seconds=seconds) for seconds in (3600, 0, 1, -86400, 0.5)),
        "decimal": tuple(map(Decimal, ("1", "0", "1.50", "-2.75", "100", "1E+6", "0.001"))),
        "uuid": (uuid.UUID(int=1), uuid.UUID("12345678-1234-5678-1234-567812345678")),
        "path": tuple(map(PurePosixPath, ("a.txt", ".", "/", "a/b.tar.gz"))),
    }
)
_BYTES = (b"", b"a", b"hello", b"\x00\xff")


def boundary(schema: Schema, root: Schema, like: tuple[Value, ...] = (), depth: int = 0) -> Iterator[Value]:
    """Yield valid values at the edges of a schema; `like` stands in if the schema does not say the type."""
    values = islice(_of(schema, root, like, depth), 2 * _MOST)
    return (value for value in values if fits(value, schema, root))


def _of(schema: Schema, root: Schema, like: tuple[Value, ...], depth: int) -> Iterator[Value]:
    if depth > _DEEPEST:
        return
    if "default" in schema:
        yield schema["default"]
    if "const" in schema or "enum" in schema:
        yield from schema.get("enum", [schema.get("const")])
    elif "$ref" in schema:
        yield from _of(referred(schema, root), root, like, depth + 1)
    elif members := schema.get("anyOf") or schema.get("oneOf"):
        yield from _in_turn([_of(member, root, like, depth + 1) for member in members])
    elif "format" in schema or "contentEncoding" in schema:
        yield from _FORMATS.get(schema.get("format", ""), _BYTES if "contentEncoding" in schema else ())
    elif isinstance(kind := schema.get("type"), str) and kind in _EDGES:
        yield from _EDGES[kind](schema, root, like, depth + 1)
    else:
        yield from like


def _in_turn(many: list[Iterator[Value]]) -> Iterator[Value]:
    while many:
        for iterator in list(many):
            try:
                yield next(iterator)
            except StopIteration:
                many.remove(iterator)


def _number(schema: Schema, *_args: Any) -> Iterator[Value]:
    is_whole = schema["type"] == "integer"
    step = schema.get("multipleOf", 1)
    for keyword, inward in (("minimum", 0), ("exclusiveMinimum", step), ("maximum", 0), ("exclusiveMaximum", -step)):
        if keyword in schema:
            at = schema[keyword] + inward
            yield from (at, at + step if "inimum" in keyword else at - step)
    yield from (factor * step for factor in (_WHOLE if is_whole else _FRACTION))


def _text(schema: Schema, *_args: Any) -> Iterator[Value]:
    for keyword in ("minLength", "maxLength"):
        if keyword in schema:
            yield ("ab" * min(schema[keyword], 500))[: schema[keyword]]
    yield from _TEXT


def _array(schema: Schema, root: Schema, like: tuple[Value, ...], depth: int) -> Iterator[Value]:
    if "prefixItems" in schema:
        parts = [list(islice(boundary(part, root, (), depth), 4)) for part in schema["prefixItems"]]
        if all(parts):
            yield from (tuple(part[min(at, len(part) - 1)] for part in parts) for at in range(4))
        return
    items = schema.get("items")
    if not items:
        yield from like
        return
    samples = list(islice(boundary(items, root, (), depth), _MOST))
    is_set = schema.get("uniqueItems", False)
    rows = [samples[:1], [], samples[:3], samples[:1] * 3, samples[::-1], samples, samples[:2] * 20]
    rows += [(samples * 20)[: schema[keyword]] for keyword in ("minItems", "maxItems") if keyword in schema]
    for row in rows:
        yield _as_set(row) if is_set else row


def _as_set(row: list[Value]) -> Value:
    try:
        return set(row)
    except TypeError:
        return [item for at, item in enumerate(row) if item not in row[:at]]


def _object(schema: Schema, root: Schema, like: tuple[Value, ...], depth: int) -> Iterator[Value]:
    if "properties" in schema:
        yield from _fields(schema, root, depth)
        return
    values = schema.get("additionalProperties")
    if not isinstance(values, dict) or not values:
        yield from like
        return
    keys = list(islice(_keys(schema.get("propertyNames", {})), 4))
    samples = list(islice(boundary(values, root, (), depth), 4))
    for size in (1, 0, 2, 4):
        yield dict(zip(keys[:size], samples, strict=False))


def _keys(names: Schema) -> Iterator[Value]:
    if "enum" in names:
        yield from names["enum"]
    elif names.get("pattern") == NUMBERED:
        yield from (1, 0, -5, 12)
    elif not names.keys() - {"minLength", "maxLength"}:
        yield from (name for name in ("a", "key", "Größe", "", "b c") if fits(name, {"type": "string"} | names, {}))


def _fields(schema: Schema, root: Schema, depth: int) -> Iterator[Value]:
    fields = {name: list(islice(boundary(part, root, (), depth), 4)) for name, part in schema["properties"].items()}
    required = set(schema.get("required", ()))
    filled = {name: values for name, values in fields.items() if values}
    if required - filled.keys():
        return
    for at in range(4):
        yield {name: values[min(at, len(values) - 1)] for name, values in filled.items()}
        if at == 0:
            yield {name: values[0] for name, values in filled.items() if name in required}


_EDGES: dict[str, Callable[..., Iterator[Value]]] = {
    "null": lambda *_args: iter((None,)),
    "boolean": lambda *_args: iter((True, False)),
    "integer": _number,
    "number": _number,
    "string": _text,
    "array": _array,
    "object": _object,
}
