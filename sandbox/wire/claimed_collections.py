"""Sets and mappings as a worker claims them, stored in order and never in a hash table.

An attacker who chooses values also chooses their hashes, and colliding values are compared pairwise: a set of 30,000
numbers can take a minute to build. Comparisons here use a canonical text, whose hash no one can choose.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

Value = Any  # any value of `values`


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Members:
    """A set or frozenset in its original order. `digest` is computed from the hashes of its items."""

    kind: Literal["set", "frozenset"]
    items: tuple[Value, ...]
    digest: int = 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Members | set | frozenset):
            return NotImplemented
        return canonical(self) == canonical(other)

    def __hash__(self) -> int:
        if self.kind == "set":
            raise TypeError("unhashable type: 'set'")
        return self.digest

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        inside = f"{{{', '.join(map(repr, self.items))}}}" if self.items else ""
        return f"frozenset({inside})" if self.kind == "frozenset" else inside or "set()"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pairs:
    """A dictionary in its original order, with some keys that are not text."""

    items: tuple[tuple[Value, Value], ...]

    def __eq__(self, other: object) -> bool:
        return canonical(self) == canonical(other) if isinstance(other, Pairs | dict) else NotImplemented

    __hash__ = None  # type: ignore[assignment] # like a dictionary

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{key!r}: {value!r}' for key, value in self.items)}}}"

    def as_object(self) -> dict[str, Value]:
        """Return the JSON object of the dictionary.

        Raises:
            TypeError: JSON cannot write the type of a key as text.
        """
        return {_as_key(key): value for key, value in self.items}


def _as_key(key: Value) -> str:
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, bool | int | float):
        return json.dumps(key)
    raise TypeError(f"keys must be str, int, float, bool or None, not {type(key).__name__}")


def canonical(value: Value) -> str:
    """Return the same text for values that are equal in Python, in any order; 2 equals 2.0."""
    return json.dumps(_form(value), separators=(",", ":"))


def by_text(mapping: dict[Value, Value] | Pairs) -> dict[str, Value]:
    """Return the values of a mapping by the canonical texts of their keys."""
    return {canonical(key): value for key, value in _items(mapping)}


def _form(value: Value) -> Any:  # Any: JSON
    match value:
        case None | str():
            return value
        case int() | float():
            is_whole = isinstance(value, int) or value.is_integer()
            return ["number", str(int(value)) if is_whole else repr(value)]
        case list() | tuple():
            return [type(value).__name__, *map(_form, value)]
        case set() | frozenset() | Members():
            items = value.items if isinstance(value, Members) else value
            return ["members", *sorted(set(map(_digest, items)))]
        case dict() | Pairs():
            return ["mapping", *sorted({_digest(key): _digest(entry) for key, entry in _items(value)}.items())]
        case _:
            return [type(value).__name__, str(value)]


def _items(mapping: dict[Value, Value] | Pairs) -> Iterable[tuple[Value, Value]]:
    return mapping.items if isinstance(mapping, Pairs) else mapping.items()


def _digest(value: Value) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()
