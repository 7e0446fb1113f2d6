"""What JSON holds, as the fields of a class: for the entries of a journal and the events of an inbox.

A field's name is its key, without a trailing underscore, unless it is `stored_as` another. Fields that are `UNSTORED`
are no part of the JSON, and `IF_SET` fields are left out while they have their default.
"""

from collections.abc import Mapping
from dataclasses import Field
from types import UnionType
from typing import Any, Final, TypeAlias, TypeVar, get_args, get_origin

from agent_core.base.records import MISSING, dataclass, fields, to_json

T = TypeVar("T")
Json: TypeAlias = dict[str, Any]  # Any: JSON

_SHAPES: Final[dict[object, "_Shape"]] = {}  # of a class, filled when it is first needed


@dataclass(frozen=True, slots=True)
class _Part:
    """A field of a class: its key, the types of JSON that it takes as they are, and the class of a tuple's items."""

    name: str
    key: str
    default: object
    is_needed: bool
    is_left_out: bool
    types: tuple[object, ...]
    items: Any  # Any: a class

    @classmethod
    def of(cls, one: Field[Any]) -> "_Part":
        """Return the part for a field."""
        types = tuple(get_origin(kind) or kind for kind in _types_of(one.type))
        items = None
        if types == (tuple,):
            types = ()
            items = get_args(one.type)[0]
        elif float in types:
            types = (*types, int)
        is_needed = one.default is MISSING and one.default_factory is MISSING
        is_left_out = bool(one.metadata.get("if_set") or one.metadata.get("stored_if_set"))
        key = one.metadata.get("stored_as", one.name.rstrip("_"))
        items = get_origin(items) or items
        return cls(one.name, key, one.default, is_needed, is_left_out, types, items)

    def items_in(self, value: object, *, is_lenient: bool) -> tuple[object, ...] | None:
        """Return the items of a tuple; None if this is none, or an item is of another class.

        If this `is_lenient`, such items are left out.
        """
        if self.items is None or not isinstance(value, list):
            return None
        items: list[object] = []
        for item in value:
            read = _item_of(self.items, item, is_lenient=is_lenient)
            if read is not None:
                items.append(read)
            elif not is_lenient:
                return None
        return tuple(items)


@dataclass(frozen=True, slots=True)
class _Shape:
    """The fields of a class, by key, and the names of those that JSON must have."""

    parts: Mapping[str, _Part]
    needed: tuple[str, ...]


def value_of(kind: type[T], payload: Json, *, is_lenient: bool = False) -> T | None:
    """Return the value of a class in JSON; None if that has another shape.

    Keys that the class does not know are left alone. If this `is_lenient`, what is of another type has its default.
    """
    shape = _SHAPES.get(kind) or _shape_of(kind)
    values: Json = {}
    for key, value in payload.items():
        part = shape.parts.get(key)
        if part is None or value is None:
            continue
        if type(value) not in part.types:
            value = part.items_in(value, is_lenient=is_lenient)
            if value is None:
                if is_lenient:
                    continue
                return None
        values[part.name] = value
    for name in shape.needed:
        if name not in values:
            return None
    return kind(**values)


def payload_of(holder: object) -> Json:
    """Return the JSON of a value."""
    kind = type(holder)
    payload: Json = {}
    for part in (_SHAPES.get(kind) or _shape_of(kind)).parts.values():
        value = getattr(holder, part.name)
        if not part.is_left_out or value != part.default:
            payload[part.key] = value if part.items is None else to_json(value)
    return payload


def _item_of(kind: Any, item: object, *, is_lenient: bool) -> object | None:  # Any: a class
    if kind in (str, dict):
        return item if type(item) is kind else None
    return value_of(kind, item, is_lenient=is_lenient) if isinstance(item, dict) else None


def _shape_of(kind: Any) -> _Shape:  # Any: a class with fields
    stored = [one for one in fields(kind) if one.metadata.get("stored", True)]
    parts = [_Part.of(one) for one in stored]
    needed = tuple(part.name for part in parts if part.is_needed)
    shape = _SHAPES[kind] = _Shape({part.key: part for part in parts}, needed)
    return shape


def _types_of(kind: Any) -> tuple[Any, ...]:  # Any: a type
    return get_args(kind) if isinstance(kind, UnionType) else (kind,)
