"""Puts JSON Schemas that have definitions of their own into one document."""

import itertools
from typing import Any


def with_definitions(
    schema: dict[str, Any], definitions: dict[str, Any]
) -> dict[str, Any]:  # Any: JSON Schema
    """Return a schema without its `$defs`, which are added to `definitions`; other names are used if one is taken."""
    own = schema.get("$defs", {})
    if any(definitions.get(name, each) != each for name, each in own.items()):
        free = (
            number
            for number in itertools.count(2)
            if definitions.keys().isdisjoint(_numbered(own, number))
        )
        schema = _rename(
            schema, next(free)
        )  # found at the latest after as many numbers as there are definitions
    definitions.update(schema.get("$defs", {}))
    return {key: value for key, value in schema.items() if key != "$defs"}


def _numbered(names: dict[str, Any], number: int) -> list[str]:
    return [f"{name}_{number}" for name in names]


def _rename(schema: dict[str, Any], number: int) -> dict[str, Any]:
    names = dict(zip(schema["$defs"], _numbered(schema["$defs"], number), strict=True))
    references = {f"#/$defs/{name}": f"#/$defs/{new}" for name, new in names.items()}

    def put(node: Any) -> Any:
        if isinstance(node, list):
            return [put(part) for part in node]
        if isinstance(node, dict):  # also the `mapping` of a discriminator
            return {key: put(part) for key, part in node.items()}
        return references.get(node, node) if isinstance(node, str) else node

    renamed: dict[str, Any] = put(schema)
    return renamed | {"$defs": {new: renamed["$defs"][name] for name, new in names.items()}}
