"""JSON Schemas at work: checking a schema itself, and compiled validators for arguments.

`pattern` and `format` are never evaluated in the host (a pattern can run for years), and a `$ref`
is local only; the worker, which has its own clock, does the rest.
"""

from collections.abc import Iterator
from typing import Any

import jsonschema
import referencing
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator

from ..problem import Place, Problem
from .typenames import Schema

_MOST_NODES = 5_000
_DEEPEST = 40
_KEPT = 4_096
# `$schema` too: within a schema it would bring back the keywords that `_Checker` leaves out.
_FOREIGN = frozenset(
    {"$schema", "$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary"}
)
# Keywords whose keys are names that the schema's author chose, not keywords; and those that hold plain values.
_NAMED = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
_VALUES = frozenset({"const", "enum", "default", "examples", "required", "dependentRequired"})


def _additional(validator: Validator, rule: Any, instance: Any, schema: Schema) -> Iterator[ValidationError]:
    """`additionalProperties` without `patternProperties`, whose patterns the host does not run."""
    if not isinstance(instance, dict) or "patternProperties" in schema:
        return
    for name in instance.keys() - schema.get("properties", {}).keys():
        if rule is False:
            yield ValidationError("unknown", validator="additionalProperties", path=[name], instance=instance[name])
        elif isinstance(rule, dict):
            yield from validator.descend(instance[name], rule, path=name)  # type: ignore[attr-defined] # not in the protocol


def _ignored(_validator: Validator, _rule: Any, _instance: Any, _schema: Schema) -> Iterator[ValidationError]:
    """A keyword that the worker looks after, or that coercion has: nothing is found."""
    return iter(())


def _is_integer(_checker: object, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_Draft = jsonschema.Draft202012Validator
_Checker = jsonschema.validators.extend(  # type: ignore[no-untyped-call] # the stubs leave it out
    _Draft,
    validators={
        "additionalProperties": _additional,
        **dict.fromkeys(("pattern", "patternProperties", "format", "unevaluatedProperties", "uniqueItems"), _ignored),
    },
    type_checker=_Draft.TYPE_CHECKER.redefine("integer", _is_integer),
)
_compiled: dict[int, tuple[Schema, Validator]] = {}


def validator_for(schema: Schema) -> Validator:
    """The validator of a schema, compiled once for as long as the schema object is the same one."""
    kept = _compiled.get(id(schema))
    if kept is not None and kept[0] is schema:
        return kept[1]
    while len(_compiled) >= _KEPT:
        _compiled.pop(next(iter(_compiled)))
    # An empty registry of its own: nothing is ever fetched for a reference.
    validator: Validator = _Checker(schema, registry=referencing.Registry())
    _compiled[id(schema)] = (schema, validator)
    return validator


def check_schema(schema: Any, where: Place | None = None) -> Problem | None:  # Any: a worker's answer, not trusted
    """Why a schema that a worker gave cannot be used; None if it can.

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
        _Draft.check_schema(schema, format_checker=jsonschema.FormatChecker(formats=()))
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
    """Every object in a schema that is a schema itself."""
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
    """Whether references lead back to themselves without going into a part of the value."""
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
    inner = [one for keyword in ("anyOf", "oneOf", "allOf") for one in node.get(keyword, ())]
    inner += [node[keyword] for keyword in ("not", "if", "then", "else") if keyword in node]
    return any(_reaches(one, root, open_references) for one in inner)
