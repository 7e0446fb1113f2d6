"""The JSON form of results, wherever JSON leaves the program: `--json`, events, files, another process.

A field's name is its key (without a trailing underscore), and the keys have the order of the fields. A value whose
published form differs from its fields defines `to_json`.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import NoneType
from typing import Any, Final

_PLAIN: Final = frozenset({str, int, float, bool, NoneType})
IF_SET: Final = {"if_set": True}
"""Metadata of a field that is omitted while empty."""


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
    items = ((field, getattr(value, field.name)) for field in fields(value))
    return {field.name.rstrip("_"): to_json(item) for field, item in items if item or not field.metadata.get("if_set")}
