"""Explanation of what does not fit a schema, one `path: expected …, got …` per problem, made for a model to act on."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jsonschema.exceptions import ValidationError

from agent_core.base.matching import nearest
from agent_core.base.problem import Place, Problem

from .validation import shown, validator_for

if TYPE_CHECKING:
    from .typenames import Schema

WHERE = Place("arguments")
_MOST = 20


def problems_of(value: dict[str, Any], schema: "Schema") -> tuple[Problem, ...]:  # Any: JSON
    """Return every problem of a value under its schema, each once; none if it is valid."""
    validator = validator_for(schema)
    if validator.is_valid(value):
        return ()
    by_message: dict[str, Problem] = {}
    for error in validator.iter_errors(value):
        for problem in _explain(error, schema, ()):
            by_message.setdefault(problem.message, problem)
    problems = sorted(by_message.values(), key=lambda problem: problem.message)
    if len(problems) > _MOST:
        more = Problem("arguments-invalid", f"and {len(problems) - _MOST} more", WHERE)
        problems = [*problems[:_MOST], more]
    return tuple(problems)


def _explain(error: ValidationError, root: "Schema", base: tuple[Any, ...]) -> Iterator[Problem]:
    path = (*base, *error.relative_path)
    match error.validator:
        case "required":
            yield from _missing(error, path)
        case "additionalProperties":
            yield _unknown(error, path)
        case "anyOf" | "oneOf":
            yield from _no_branch(error, root, path)
        case "type" if error.validator_value == "array" and isinstance(error.instance, str):
            yield _problem(path, _expected(error, root), shown(error.instance), 'send a list: ["…", "…"]')
        case "type":
            yield _problem(path, _expected(error, root), shown(error.instance), _hint(error))
        case _:
            yield _problem(path, _expected(error, root), shown(error.instance))


def _hint(error: ValidationError) -> str | None:
    """Return how to write a value that is nearly of its type."""
    kind, value = error.validator_value, error.instance
    if kind == "boolean":
        return "send true or false"
    if kind in ("integer", "number") and isinstance(value, str) and any(letter.isdecimal() for letter in value):
        return "send the number alone, without a unit, a sign of currency or separators"
    return None


def _problem(path: tuple[Any, ...], expected: str, got: str, fix: str | None = None) -> Problem:
    return Problem("arguments-invalid", f"{_dotted(path)}: expected {expected}, got {got}", WHERE, fix)


def _dotted(path: tuple[Any, ...]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or "arguments"


def _missing(error: ValidationError, path: tuple[Any, ...]) -> Iterator[Problem]:
    parent = error.schema if isinstance(error.schema, dict) else {}
    properties, instance = parent.get("properties", {}), error.instance
    for name in parent.get("required", ()):
        if isinstance(instance, dict) and name not in instance:
            own = properties.get(name, {})
            described = own.get("description") if isinstance(own, dict) else None
            fix = f"add `{name}`: {described}" if described else f"add `{name}`"
            yield _problem((*path, name), describe(own), "nothing", fix)


def _unknown(error: ValidationError, path: tuple[Any, ...]) -> Problem:
    parent = error.schema if isinstance(error.schema, dict) else {}
    known_names = sorted(parent.get("properties", {}))
    name = str(path[-1])
    matches = nearest(name, known_names) or [
        candidate for candidate in known_names if candidate.replace("_", "").lower() == name.replace("_", "").lower()
    ]
    names = ", ".join(f"`{candidate}`" for candidate in known_names[:20]) or "no parameters"
    fix = f"did you mean `{matches[0]}`?" if matches else f"known are: {names}"
    return _problem(path, "no such key", shown(error.instance), fix)


def _no_branch(error: ValidationError, root: "Schema", path: tuple[Any, ...]) -> Iterator[Problem]:
    """Yield the problems within the only branch of the value's type, or else a problem that lists the branches."""
    branches: dict[Any, list[ValidationError]] = {}
    for inner in error.context or ():
        branches.setdefault(inner.relative_schema_path[0], []).append(inner)
    close = [errors for errors in branches.values() if not any(_is_other_kind(error) for error in errors)]
    if len(close) == 1:
        for inner in close[0]:
            yield from _explain(inner, root, path)
    else:
        yield _problem(path, describe(error.schema, root), shown(error.instance))


def _is_other_kind(error: ValidationError) -> bool:
    return not error.relative_path and error.validator in ("type", "const", "enum", "anyOf", "oneOf")


_BOUNDS = {
    "minimum": "≥ {}",
    "maximum": "≤ {}",
    "exclusiveMinimum": "> {}",
    "exclusiveMaximum": "< {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} keys",
    "maxProperties": "at most {} keys",
}


def _expected(error: ValidationError, root: "Schema") -> str:
    bound = _BOUNDS.get(str(error.validator))
    if bound is None:
        return describe(error.schema, root)
    kind = error.schema.get("type", "") if isinstance(error.schema, dict) else ""
    text = bound.format(error.validator_value)
    return f"{kind} with {text}" if text.startswith("at ") and kind else f"{kind} {text}".strip()


def describe(schema: Any, root: "Schema | None" = None) -> str:  # Any: a schema may be a boolean
    """Return a schema in a few words, as messages describe what is expected."""
    if not isinstance(schema, dict):
        return "nothing" if schema is False else "any value"
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        target = (root or {}).get("$defs", {}).get(name, {})
        return describe(target) if "$ref" not in target else name
    if "const" in schema:
        return json.dumps(schema["const"], ensure_ascii=False)
    if "enum" in schema:
        shown_values = [json.dumps(value, ensure_ascii=False) for value in schema["enum"][:20]]
        return f"one of {', '.join(shown_values)}{'…' if len(schema['enum']) > 20 else ''}"
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            return " or ".join(dict.fromkeys(describe(branch, root) for branch in schema[keyword]))
    return _described_type(schema, root)


def _described_type(schema: "Schema", root: "Schema | None") -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array" and schema.get("items"):
        return f"array of {describe(schema['items'], root)}"
    if kind == "string" and "format" in schema:
        return f"string ({schema['format']})"
    return str(kind or "a fitting value")
