"""Simplification of a function's result to a value that can be sent.

Dataclasses, named tuples, typed dictionaries and models become dictionaries; enums become their values; sequences and
the first items of an iterator become lists. Any other value raises an Unsendable that says what to return instead.
"""

import collections
import enum
import io
import pathlib
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import Any

from ..wire.caps import MOST_ITEMS
from ..wire.values import Unsendable

_BASES: tuple[Callable[[Any], Any], ...] = (int, float, str, bytes, list, tuple, frozenset, set, dict)
_NOT_ENDED = (types.AsyncGeneratorType, types.CoroutineType)


def simplify(value: Any) -> Any:  # any value that function code can make
    """Return the value one step closer to one that can be sent."""
    if isinstance(value, enum.Enum):
        return value.value
    fields = getattr(type(value), "__dataclass_fields__", None)
    if fields is not None:
        return {name: getattr(value, name) for name in fields}
    if hasattr(type(value), "model_dump") and not isinstance(value, type):
        return value.model_dump()
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value, strict=True))
    return _base(value)


def _base(value: Any) -> Any:  # as above
    for base in _BASES:
        if isinstance(base, type) and isinstance(value, base):
            return base(value)
    if isinstance(value, pathlib.PurePath):
        return pathlib.PurePosixPath(str(value))
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence | Set | collections.deque | collections.abc.ValuesView):
        return list(value)
    if is_iterator(value):
        return bounded(value)
    raise Unsendable(_advice(value))


def is_iterator(value: object) -> bool:
    """Return whether a value is sent as a list of its items: generators, `map`, `zip` and the like, but not files."""
    return isinstance(value, Iterator) and not isinstance(value, io.IOBase)


def bounded(items: Iterator[Any]) -> list[Any]:
    """Return the first items of an iterator as a list. If items are left out, print a note for the reader."""
    first = list(islice(items, MOST_ITEMS))
    if len(first) == MOST_ITEMS and next(items, first) is not first:
        sys.stdout.write(f"[only the first {MOST_ITEMS:,} items are returned]\n")
    return first


def _advice(value: object) -> str:
    name = type(value).__qualname__
    if isinstance(value, _NOT_ENDED):
        return f"a {name} cannot be sent as JSON: return a list, `list(…)` of what it yields"
    return f"a value of type {name} cannot be sent as JSON: return text, numbers, lists, dictionaries or a dataclass"
