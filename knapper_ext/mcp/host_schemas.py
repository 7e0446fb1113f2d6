"""Schemas of functions as the strictest common hosts take them, and arguments under the function's own names again.

One array without `items`, or one key with other letters, makes some hosts refuse the whole conversation.
"""

import hashlib
import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from agent_core.registry.function import Function

_KEY: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NO_LETTER: Final = re.compile(r"[^A-Za-z0-9_-]+")
_MAX_BEGINNING: Final = 50
_VALUES: Final = frozenset({"const", "enum", "default", "examples"})


def host_schema(function: Function) -> dict[str, Any]:  # Any: JSON Schema
    """Return the schema of a function's arguments for other programs."""
    return dict(_for_hosts(function.parameters))


def own_arguments(function: Function, arguments: Mapping[str, Any]) -> dict[str, Any]:  # Any: JSON
    """Return arguments that fit the schema for other programs, under the names of the function's own."""
    names: dict[str, str] = {}
    _collect(function.parameters, names)
    return dict(_renamed(arguments, names)) if names else dict(arguments)


def _for_hosts(schema: Any) -> Any:  # Any: JSON Schema
    if isinstance(schema, list):
        return [_for_hosts(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    result: dict[str, Any] = {}  # Any: JSON Schema
    for keyword, value in schema.items():
        if keyword in _VALUES:
            result[keyword] = value
        elif keyword == "properties" and isinstance(value, Mapping):
            result[keyword] = {_key(name): _for_hosts(part) for name, part in value.items()}
        elif keyword == "required" and isinstance(value, list):
            result[keyword] = [_key(name) for name in value]
        elif keyword == "$defs" and isinstance(value, Mapping):
            result[keyword] = {name: _for_hosts(part) for name, part in value.items()}
        else:
            result[keyword] = _for_hosts(value)
    kinds = schema.get("type")
    if kinds == "array" or (isinstance(kinds, list) and "array" in kinds):
        result.setdefault("items", {})
    return result


def _collect(schema: Any, names: dict[str, str]) -> None:  # Any: JSON Schema
    """Add the keys that are sent under another name, by that name."""
    if isinstance(schema, list):
        for part in schema:
            _collect(part, names)
    elif isinstance(schema, Mapping):
        properties = schema.get("properties")
        for name in properties if isinstance(properties, Mapping) else ():
            if _key(name) != name:
                names[_key(name)] = name
        for keyword, value in schema.items():
            if keyword not in _VALUES:
                _collect(value, names)


def _renamed(value: Any, names: Mapping[str, str]) -> Any:  # Any: JSON
    inner = partial(_renamed, names=names)
    if isinstance(value, Mapping):
        return {names.get(key, key): inner(part) for key, part in value.items()}
    return [inner(part) for part in value] if isinstance(value, list) else value


def _key(name: str) -> str:
    if _KEY.fullmatch(name):
        return name
    short = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{_NO_LETTER.sub('_', name)[:_MAX_BEGINNING]}_{short}"
