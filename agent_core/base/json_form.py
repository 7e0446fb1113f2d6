"""The JSON form of results, for the doors where JSON leaves: `--json`, events, files, another process.

A field's name is its key (without a trailing underscore), and the order of the fields is the order of the keys. A value
whose published shape differs from its fields has a `to_json` of its own.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import NoneType
from typing import Any, Final

_PLAIN: Final = frozenset({str, int, float, bool, NoneType})
IF_SET: Final = {"if_set": True}
"""Metadata of a field that is left out while it is empty."""


def to_json(value: object) -> Any:  # Any: values of JSON
    """Return the published JSON of a result."""
    if type(value) in _PLAIN:  # most of a large value
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
    items = ((field, getattr(value, field.name)) for field in fields(value))
    return {field.name.rstrip("_"): to_json(item) for field, item in items if item or not field.metadata.get("if_set")}
