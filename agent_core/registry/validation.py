"""A check of schemas from a worker: valid by the standard, within limits, and without references to anything
outside.
"""

from collections.abc import Iterator
from typing import Any

import jsonschema

from agent_core.base.problem import Place, Problem

from .typenames import Schema

_MOST_NODES = 5_000
_DEEPEST = 40
# `$schema` too: within a schema it would bring back the keywords that `checker` leaves out.
_FOREIGN = frozenset(
    {"$schema", "$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary"}
)
# Keywords with keys that the schema's author chose, not keywords; and those that hold plain values.
_NAMED = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
_VALUES = frozenset({"const", "enum", "default", "examples", "required", "dependentRequired"})


def check_schema(schema: Any, where: Place | None = None) -> Problem | None:  # Any: a worker's answer, not trusted
    """Return the problem that makes a schema from a worker unusable; None if it is usable.

    A `pattern` may stay in it, for the model and the worker: no validator of the host evaluates one.
    """
    reason = _why_not(schema)
    if reason is None:
        return None
    place = where or Place("schema")
    return Problem("bad-schema", f"the schema cannot be used: {reason}", place, "use a type that JSON can express")


def _why_not(schema: Any) -> str | None:
    if not isinstance(schema, dict):
        return "it is not an object"
    return _too_much(schema) or _reaches_out(schema) or _breaks_the_standard(schema)


def _reaches_out(schema: Schema) -> str | None:
    for node in _schemas(schema):
        for keyword in node.keys() & _FOREIGN:
            return f"`{keyword}` is not allowed"
        if "$ref" in node and not _is_local(node["$ref"], schema):
            return f"`$ref` has to be local and to exist, got {str(node['$ref'])[:80]!r}"
    return None


def _breaks_the_standard(schema: Schema) -> str | None:
    try:
        # No formats: the one of the meta-schema would compile every `pattern`.
        jsonschema.Draft202012Validator.check_schema(schema, format_checker=jsonschema.FormatChecker(formats=()))
    except jsonschema.SchemaError as error:
        return f"{error.json_path}: {error.message[:200]}"
    return "it refers to itself without end" if _has_empty_cycle(schema) else None


def _too_much(schema: Any) -> str | None:
    level, count = [schema], 0
    for _ in range(_DEEPEST):
        count += len(level)
        if count > _MOST_NODES:
            return f"it has more than {_MOST_NODES} parts"
        if any(isinstance(node, dict) and not all(isinstance(key, str) for key in node) for node in level):
            return "a key is not text"
        level = [
            inner
            for node in level
            if isinstance(node, list | dict)
            for inner in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return None
    return f"it is more than {_DEEPEST} levels deep"


def _schemas(schema: Any) -> Iterator[Schema]:
    """Yield every object in a schema that is a schema itself."""
    pending = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, list):
            pending += node
        elif isinstance(node, dict):
            yield node
            for keyword, value in node.items():
                if keyword in _NAMED and isinstance(value, dict):
                    pending += value.values()
                elif keyword not in _VALUES:
                    pending.append(value)


def _is_local(reference: Any, schema: Schema) -> bool:
    if reference == "#":
        return True
    if not isinstance(reference, str) or not reference.startswith("#/$defs/"):
        return False
    definitions = schema.get("$defs")
    return isinstance(definitions, dict) and reference.removeprefix("#/$defs/") in definitions


def _has_empty_cycle(schema: Schema) -> bool:
    """Check whether references lead back to themselves without entering a part of the value."""
    return any(_reaches(node, schema, set()) for node in _schemas(schema) if "$ref" in node)


def _reaches(node: Any, root: Schema, open_references: set[str]) -> bool:
    if not isinstance(node, dict):
        return False
    reference = node.get("$ref")
    if isinstance(reference, str):
        if reference in open_references:
            return True
        target = root if reference == "#" else root.get("$defs", {}).get(reference.removeprefix("#/$defs/"))
        if _reaches(target, root, open_references | {reference}):
            return True
    inner = [subschema for keyword in ("anyOf", "oneOf", "allOf") for subschema in node.get(keyword, ())]
    inner += [node[keyword] for keyword in ("not", "if", "then", "else") if keyword in node]
    return any(_reaches(subschema, root, open_references) for subschema in inner)
