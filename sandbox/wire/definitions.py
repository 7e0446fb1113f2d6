"""Puts JSON Schemas that have definitions of their own into one document."""

import itertools
from typing import Any


def with_definitions(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:  # Any: JSON Schema
    """Return a schema without its `$defs`, which are added to `definitions`; other names are used if one is taken."""
    for number in itertools.count(1):
        named = _renamed(schema, f"_{number}" if number > 1 else "")
        own = named.pop("$defs", {})
        if all(definitions.get(name, each) == each for name, each in own.items()):
            definitions.update(own)
            return named
    raise AssertionError("some number is free")


def _renamed(schema: dict[str, Any], suffix: str) -> dict[str, Any]:
    references = {f"#/$defs/{name}": f"#/$defs/{name}{suffix}" for name in schema.get("$defs", {})}

    def put(node: Any) -> Any:
        if isinstance(node, list):
            return [put(part) for part in node]
        if isinstance(node, dict):  # also the `mapping` of a discriminator
            return {key: put(part) for key, part in node.items()}
        return references.get(node, node) if isinstance(node, str) else node

    named: dict[str, Any] = put(schema)
    if references:
        named["$defs"] = {f"{name}{suffix}": each for name, each in named["$defs"].items()}
    return named
