"""JSON Schemas of annotations with only the standard library, for when pydantic cannot be imported.

It covers the types that `build` converts, in the form that pydantic generates.
"""

import collections
import collections.abc
import dataclasses
import datetime
import decimal
import enum
import pathlib
import re
import typing
import uuid
from collections.abc import Callable
from typing import Any, Final

from .build import Unfit
from .hints import NOTHING_TO_CHECK, Hint, is_union, of_class, origin_of, peel, required_keys, words

Schema = dict[str, Any]

_SCALARS: Final[dict[Any, Schema]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    complex: {"type": "string"},
    bytes: {"type": "string", "format": "binary"},
    type(None): {"type": "null"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.time: {"type": "string", "format": "time"},
    datetime.timedelta: {"type": "string", "format": "duration"},
    uuid.UUID: {"type": "string", "format": "uuid"},
    **{
        kind: {"type": "string", "format": "path"}
        for kind in (pathlib.Path, pathlib.PurePath, pathlib.PosixPath, pathlib.PurePosixPath)
    },
}
_SETS: Final = frozenset({set, frozenset, collections.abc.Set, collections.abc.MutableSet})
_LISTS: Final = frozenset({
    list, collections.deque, collections.abc.Sequence, collections.abc.MutableSequence, collections.abc.Iterable,
    collections.abc.Iterator, collections.abc.Container, collections.abc.Collection,
})  # fmt: skip
_OBJECTS: Final = frozenset({
    dict, collections.abc.Mapping, collections.abc.MutableMapping, collections.defaultdict, collections.OrderedDict,
    collections.Counter,
})  # fmt: skip
_BOUNDS: Final = {"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum"}


def schema(hint: Hint, *, is_result: bool = False) -> Schema:
    """Return the schema of a parameter, or of a result in its sent form. Raise Unfit if there is none."""
    writer = _Writer(is_result=is_result)
    written = writer.of(hint)
    return written | ({"$defs": writer.definitions} if writer.definitions else {})


class _Writer:
    def __init__(self, *, is_result: bool) -> None:
        self._is_result = is_result
        self.definitions: dict[str, Schema] = {}

    def of(self, hint: Hint) -> Schema:
        """Return the schema of one annotation."""
        if origin_of(hint) is typing.Annotated:
            inner, *marks = typing.get_args(hint)
            return self.of(inner) | _mark_schema(marks)
        hint = peel(hint)
        if hint in NOTHING_TO_CHECK:
            return {}
        if hint is decimal.Decimal:
            text = {"type": "string"}
            return text if self._is_result else {"anyOf": [{"type": "number"}, text]}
        origin, inner = origin_of(hint), typing.get_args(hint)
        if is_union(origin):
            return {"anyOf": [self.of(member) for member in inner]}
        if origin is typing.Literal:
            return _enum_schema([each.value if isinstance(each, enum.Enum) else each for each in inner])
        try:
            return dict(_SCALARS[hint]) if hint in _SCALARS else self._container(origin, inner, hint)
        except TypeError as error:  # not hashable
            raise Unfit(f"{words(hint)} has no schema") from error

    def _container(self, origin: Any, inner: tuple[Hint, ...], hint: Hint) -> Schema:
        if origin in _SETS:
            return {"type": "array", "items": self.of(inner[0] if inner else Any), "uniqueItems": True}
        if origin in _LISTS:
            return {"type": "array", "items": self.of(inner[0] if inner else Any)}
        if origin is tuple:
            if not inner or inner[-1] is Ellipsis:
                return {"type": "array", "items": self.of(inner[0] if inner else Any)}
            items = [self.of(member) for member in inner]
            return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
        if origin in _OBJECTS:
            value = int if origin is collections.Counter else inner[1] if len(inner) > 1 else Any
            values = self.of(value)
            return {"type": "object", "additionalProperties": values or True}
        if isinstance(origin, type):
            return self._class(origin)
        raise Unfit(f"{words(hint)} has no schema")

    def _class(self, kind: type) -> Schema:
        if issubclass(kind, enum.Enum):
            return self._define(
                kind, lambda: _enum_schema([member.value for member in kind]) | {"title": kind.__name__}
            )
        if dataclasses.is_dataclass(kind):
            fields = [field for field in dataclasses.fields(kind) if field.init or self._is_result]
            absent = dataclasses.MISSING
            needed = [field.name for field in fields if field.default is absent and field.default_factory is absent]
            return self._define(kind, lambda: self._object(kind, [field.name for field in fields], needed))
        if typing.is_typeddict(kind):
            return self._define(kind, lambda: self._object(kind, [*of_class(kind)], required_keys(kind)))
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            hints = of_class(kind)
            items = [self.of(hints.get(name, Any)) for name in kind._fields]
            least = len(items) - len(getattr(kind, "_field_defaults", ()))
            return {"type": "array", "prefixItems": items, "minItems": least, "maxItems": len(items)}
        raise Unfit(f"{kind.__qualname__} has no schema without pydantic, which functions cannot import here")

    def _object(self, kind: type, names: list[str], needed: list[str]) -> Schema:
        hints = of_class(kind)
        properties = {name: self.of(hints[name]) for name in names}
        required = {"required": [name for name in names if name in needed]} if needed else {}
        return {"type": "object", "title": kind.__name__, "properties": properties} | required

    def _define(self, kind: type, write: Callable[[], Schema]) -> Schema:
        """Return a reference to the schema of a class, which may be recursive."""
        name = re.sub(r"\W", "_", kind.__name__)
        if name not in self.definitions:
            self.definitions[name] = {}
            self.definitions[name] = write()
        return {"$ref": f"#/$defs/{name}"}


def _enum_schema(values: list[Any]) -> Schema:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
    if len(values) == 1:
        return {"const": values[0]} | ({"type": kinds[type(values[0])]} if type(values[0]) in kinds else {})
    found = {kinds.get(type(value)) for value in values}
    only = found.pop() if len(found) == 1 else None
    return {"enum": values} | ({"type": only} if only else {})


def _mark_schema(marks: list[Any]) -> Schema:
    """Return the schema keywords of an annotation's metadata: a description, or bounds as in `annotated_types`."""
    schema: Schema = {}
    for mark in marks:
        if isinstance(mark, str):
            schema["description"] = mark
        schema |= {
            key: value for name, key in _BOUNDS.items() if isinstance(value := getattr(mark, name, None), int | float)
        }
    return schema
