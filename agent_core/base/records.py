"""Dataclasses of this program: defined quickly, and written as JSON.

The standard library compiles up to six methods when a dataclass is defined, which took a third of a short command's
time, for classes that are mostly not used by it. `dataclass` here compiles them at first use (ADR 0010). Type checkers
see the standard decorator, and the classes are dataclasses: `fields`, `replace`, `asdict`, patterns and pickles work.

`to_json` is used wherever JSON leaves the program: `--json`, events, files, another process. A field's name is its key
(without a trailing underscore), and the keys have the order of the fields. A value whose published form differs from
its fields defines `to_json`. `from_json` reads a published document again.
"""

from collections.abc import Mapping
from dataclasses import (
    MISSING,
    FrozenInstanceError,
    InitVar,
    asdict,
    field,
    fields,
    is_dataclass,
    make_dataclass,
    replace,
)
from dataclasses import dataclass as standard_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin, get_type_hints

__all__ = [
    "FLAT",
    "IF_SET",
    "IF_SET_STORED",
    "MISSING",
    "UNSTORED",
    "UNTOLD",
    "InitVar",
    "asdict",
    "dataclass",
    "field",
    "fields",
    "fields_to_json",
    "from_json",
    "published_as",
    "replace",
    "stored_as",
    "to_json",
]


def _refuse_change(_self: object, name: str, _value: object = None) -> None:
    raise FrozenInstanceError(f"cannot assign to or delete field {name!r}")


def _restore(self: object, state: tuple[object, dict[str, object]]) -> None:
    """Set the fields of a copy, or of what was pickled, from its slots."""
    for name, value in state[1].items():
        object.__setattr__(self, name, value)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen=False, eq=True, repr=True, order=False, **others):
        """Return a decorator with the parameters of the standard library's."""
        if order:
            return standard_dataclass(frozen=frozen, eq=eq, repr=repr, order=order, **others)
        compiled = ["__init__", *(["__repr__"] if repr else []), *(["__eq__"] if eq else [])]
        compiled += ["__hash__"] if eq and frozen else []
        shared = {"__setattr__": _refuse_change, "__delattr__": _refuse_change} if frozen else {}
        shared |= {"__setstate__": _restore} if frozen and others.get("slots") else {}
        shared |= {"__hash__": None} if eq and not frozen else {}

        def decorate(defined):
            own = vars(defined)
            # A class that defines `__eq__` alone has a `__hash__` that is None.
            wanted = [name for name in compiled if own.get(name) is None]
            for name, method in shared.items():
                if name not in own:
                    setattr(defined, name, method)
            defined.__doc__ = (
                defined.__doc__ or defined.__name__
            )  # instead of a signature, which takes long to find
            kind = standard_dataclass(init=False, repr=False, eq=False, **others)(defined)
            for name in wanted:
                setattr(kind, name, _late_method(kind, name, frozen=frozen))
            return kind

        return decorate


def _late_method(kind: type[Any], name: str, *, frozen: bool) -> Any:  # Any: a method
    """Return a method that has itself compiled for a dataclass, takes the result's place, and calls it."""

    def method(self: object, /, *args: Any, **named: Any) -> Any:
        # What only `__post_init__` takes is not among the fields.
        every = kind.__dataclass_fields__.values()
        taken = [
            (one.name, one.type, one)
            for one in every
            if one in fields(kind) or isinstance(one.type, InitVar)
        ]
        namespace = {"__doc__": kind.__doc__}
        if hasattr(kind, "__post_init__"):
            namespace["__post_init__"] = kind.__post_init__
        twin = make_dataclass(
            kind.__name__,
            taken,
            namespace=namespace,
            init=name == "__init__",
            repr=name == "__repr__",
            eq=name in ("__eq__", "__hash__"),
            frozen=frozen,
        )
        compiled = vars(twin)[name]
        compiled.__qualname__ = f"{kind.__qualname__}.{name}"
        setattr(kind, name, compiled)
        return compiled(self, *args, **named)

    return method


_PLAIN: Final[Mapping[type, tuple[type, ...]]] = {
    str: (str,),
    int: (int,),
    bool: (bool,),
    float: (float, int),
    NoneType: (NoneType,),
}
"""The types of plain values, with those that are read as such."""
IF_SET: Final = {"if_set": True}
"""Metadata of a field that is omitted while empty."""
IF_SET_STORED: Final = {"stored_if_set": True}
"""Metadata of a field that is omitted from an entry while it has its default, and published all the same."""
UNTOLD: Final = {"told": False}
"""Metadata of a field of an entry that is not published."""
UNSTORED: Final = {"stored": False}
"""Metadata of a published field that is no part of the entry."""
FLAT: Final = {"key": ""}
"""Metadata of a field whose own fields are published in its place, by the class's `to_json`."""


def published_as(key: str) -> dict[str, str]:
    """Return the metadata of a field that the class's `to_json` publishes under another key."""
    return {"key": key}


def stored_as(key: str) -> dict[str, str]:
    """Return the metadata of a field that has another key in an entry than where it is published."""
    return {"stored_as": key}


def to_json(value: object) -> Any:  # Any: values of JSON
    """Return the published JSON of a result."""
    if type(value) in _PLAIN:  # most parts of a large value
        return value
    if own := getattr(value, "to_json", None):
        return own()
    if is_dataclass(value):
        return fields_to_json(value)
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value


def fields_to_json(value: Any) -> dict[str, Any]:  # Any: a dataclass; values of JSON
    """Return the JSON of a dataclass by its fields."""
    published = (one for one in fields(value) if one.metadata.get("told", True))
    items = ((one, getattr(value, one.name)) for one in published)
    return {
        one.name.rstrip("_"): to_json(item)
        for one, item in items
        if item or not one.metadata.get("if_set")
    }


def from_json(kind: Any, value: Any) -> Any:  # Any: a type, and values of JSON
    """Return the value of a type that was published. Fields that are not published have their default, or are empty.

    Raises:
        KeyError, TypeError: it is no published value of this type.
    """
    if own := getattr(kind, "from_json", None):
        return own(value)
    if is_dataclass(kind):
        return _fields_from_json(kind, value)
    parts = get_args(kind)
    if isinstance(kind, UnionType):  # with None
        if value is None:
            return None
        return from_json(parts[0], value)
    if get_origin(kind) is tuple:
        return _items_from_json(parts, value)
    if kind in _PLAIN and not isinstance(value, _PLAIN[kind]):
        raise TypeError(f"{kind.__name__} expected, not {type(value).__name__}")
    return value


def _items_from_json(types: tuple[Any, ...], value: Any) -> tuple[Any, ...]:  # Any: as above
    if isinstance(value, Mapping):  # as which a few tuples are published
        value = [*value.values()]
    if types[1:] == (...,):
        return tuple([from_json(types[0], item) for item in value])
    return tuple(map(from_json, types, value))


_types_of: Final = cache(get_type_hints)  # a history has thousands of rows of a kind


def _fields_from_json(kind: Any, value: Any) -> Any:  # Any: a dataclass, and values of JSON
    if not isinstance(value, Mapping):
        raise TypeError(f"{kind.__name__} expected, not {type(value).__name__}")
    types = _types_of(kind)
    read: dict[str, Any] = {}
    for one in fields(kind):
        type_of = types[one.name]
        key = one.metadata.get("key", one.name.rstrip("_"))
        if not key:
            read[one.name] = from_json(type_of, value)
        elif key in value:
            read[one.name] = from_json(type_of, value[key])
        elif one.default is MISSING and one.default_factory is MISSING:
            read[one.name] = (get_origin(type_of) or type_of)()
    return kind(**read)
