"""Conversion of a model's arguments to a dictionary that matches the schema, or to every reason why not.

The text is parsed and fixed, values are coerced if that loses nothing ("3" → 3, "true" → true, one value → a list of
one), and the rest is reported as `path: expected …, got …`. Coercing twice gives the same as once.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator

from agent_core.base.matching import nearest
from agent_core.base.problem import Place, Problem

from .typenames import Schema
from .validation import (
    LIMIT_CHARS,
    NotJson,
    TooManySteps,
    counted,
    read_nested,
    read_object,
    shown,
    spend,
    validator_for,
)

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", re.ASCII)
_EXACT = 2**53
_DIGITS = 4_000


class Coercion:
    """One coercion under one root schema, within `checker.counted`."""

    def __init__(self, root: Schema) -> None:
        self.root = root
        self.validator = validator_for(root)
        self._parts: dict[int, tuple[Any, Validator]] = {}  # by identity, each with what it must stay identical to
        self._split: dict[int, tuple[Schema, list[Schema]]] = {}

    def coerce(self, value: Any, schema: Any) -> Any:  # Any: JSON in, JSON out; a schema may be a boolean
        """Return the value as the schema requires it, as far as nothing is lost."""
        spend()
        if not isinstance(schema, dict):
            return value
        if "$ref" in schema:
            value = self.coerce(value, self._target(schema["$ref"]))
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                value = self._union(value, schema[keyword])
        for part in schema.get("allOf", ()):
            value = self.coerce(value, part)
        kind = schema.get("type")
        if isinstance(kind, list):
            entry = self._split.setdefault(id(schema), (schema, [{**schema, "type": type_name} for type_name in kind]))
            return self._union(value, entry[1])
        return self._typed(value, schema, kind)

    def _target(self, reference: str) -> Any:
        if reference == "#":
            return self.root
        return self.root.get("$defs", {}).get(reference.removeprefix("#/$defs/"), {})

    def fits(self, value: Any, schema: Any) -> bool:
        """Check whether a value is valid as it is."""
        spend()
        if isinstance(schema, dict) and schema.keys() == {"type"} and isinstance(schema["type"], str):
            return self.validator.is_type(value, schema["type"])
        entry = self._parts.get(id(schema))
        if entry is None:
            entry = self._parts[id(schema)] = (schema, self.validator.evolve(schema=schema))
        return entry[1].is_valid(value)

    def _union(self, value: Any, branches: list[Any]) -> Any:
        """Return an exact match unchanged, else the result of the first branch that a coercion reaches."""
        for branch in branches:
            if self.fits(value, branch):
                return self.coerce(value, branch)
        for branch in branches:
            coerced = self.coerce(value, branch)
            if self.fits(coerced, branch):
                return coerced
        return value

    def _typed(self, value: Any, schema: Schema, kind: Any) -> Any:
        if kind == "array":
            return self._array(value, schema)
        if kind == "object":
            return self._object(value, schema)
        # A year is no date, and a number of seconds no duration: text with a format is never made of a number.
        if kind not in _SCALARS or (kind == "string" and schema.get("format", "path") != "path"):
            return value
        return _SCALARS[kind](value)

    def _array(self, value: Any, schema: Schema) -> Any:
        if isinstance(value, str):
            value = read_nested(value, list)
        if isinstance(value, list):
            return self._items(value, schema)
        if value is None:
            return value
        wrapped = self._items([value], schema)
        return wrapped if self.fits(wrapped, schema) else value

    def _items(self, value: list[Any], schema: Schema) -> list[Any]:
        first = schema.get("prefixItems", [])
        extra = schema.get("items", {})
        items = [self.coerce(item, first[n] if n < len(first) else extra) for n, item in enumerate(value)]
        return _distinct(items) if schema.get("uniqueItems") is True else items

    def _object(self, value: Any, schema: Schema) -> Any:
        if isinstance(value, str):
            value = read_nested(value, dict)
        if not isinstance(value, dict):
            return value
        properties, required = schema.get("properties", {}), schema.get("required", ())
        extra = schema.get("additionalProperties", {})
        coerced = {}
        for name, item in value.items():
            own = properties.get(name, extra)
            if item is None and name in properties and name not in required and not self.fits(None, own):
                continue  # null for what has a default means the default
            coerced[name] = self.coerce(item, own)
        return coerced


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _integer(value: Any) -> Any:
    if isinstance(value, str):
        value = _number(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    return value


def _number(value: Any) -> Any:
    if not isinstance(value, str) or len(value) > _DIGITS:
        return value
    text = value.strip()
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        number = float(text)
        return number if abs(number) != float("inf") else value
    return value


def _boolean(value: Any) -> Any:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower(), value)
    return value


def _string(value: Any) -> Any:
    return str(value) if _is_integer(value) and abs(value) < 10**_DIGITS else value


_SCALARS = {"integer": _integer, "number": _number, "boolean": _boolean, "string": _string}


def _distinct(items: list[Any]) -> list[Any]:
    """Return the items of a set once each: a model's repetition means nothing."""
    return list({json.dumps(item, sort_keys=True): item for item in reversed(items)}.values())[::-1]


_WHERE = Place("arguments")
_MOST = 20


def read(
    raw: str, schema: Schema, *, limit_chars: int = LIMIT_CHARS
) -> dict[str, Any] | tuple[Problem, ...]:  # Any: JSON that fits the schema
    """Return the arguments in a model's text, coerced and valid; or all problems with them."""
    try:
        value = read_object(raw, limit_chars)
    except NotJson as error:
        fix = "send one JSON object with the parameters' names as keys"
        return (Problem("arguments-not-json", str(error), _WHERE, fix),)
    return _fitted(value, schema, len(raw))


def renamed(raw: str, names: Mapping[str, str]) -> str:
    """Return the arguments under their newer names; one given under its own name stays, and so does unreadable text."""
    try:
        value = read_object(raw)
    except NotJson:
        return raw
    if not names.keys() & value.keys():
        return raw
    older = {names[key]: item for key, item in value.items() if key in names}
    return json.dumps({**older, **{key: item for key, item in value.items() if key not in names}}, ensure_ascii=False)


def _fitted(value: dict[str, Any], schema: Schema, characters: int) -> dict[str, Any] | tuple[Problem, ...]:
    try:
        with counted(characters):
            coerced: dict[str, Any] = Coercion(schema).coerce(value, schema)
            problems = _problems(coerced, schema)
    except TooManySteps:
        fix = "send a smaller value"
        return (Problem("arguments-invalid", "expected a value that can be checked, got one too nested", _WHERE, fix),)
    except RecursionError:
        return (Problem("arguments-invalid", "expected fewer levels of nesting, got too many", _WHERE),)
    return problems or coerced


def _problems(value: dict[str, Any], schema: Schema) -> tuple[Problem, ...]:
    validator = validator_for(schema)
    if validator.is_valid(value):
        return ()
    by_message: dict[str, Problem] = {}
    for error in validator.iter_errors(value):
        for problem in _explain(error, schema, ()):
            by_message.setdefault(problem.message, problem)
    problems = sorted(by_message.values(), key=lambda problem: problem.message)
    if len(problems) > _MOST:
        more = Problem("arguments-invalid", f"and {len(problems) - _MOST} more", _WHERE)
        problems = [*problems[:_MOST], more]
    return tuple(problems)


def _explain(error: ValidationError, root: Schema, base: tuple[Any, ...]) -> Iterator[Problem]:
    path = (*base, *error.relative_path)
    match error.validator:
        case "required":
            yield from _missing(error, path)
        case "additionalProperties":
            yield _unknown(error, path)
        case "anyOf" | "oneOf":
            yield from _no_branch(error, root, path)
        case _:
            yield _problem(path, _expected(error, root), shown(error.instance))


def _problem(path: tuple[Any, ...], expected: str, got: str, fix: str | None = None) -> Problem:
    return Problem("arguments-invalid", f"{_dotted(path)}: expected {expected}, got {got}", _WHERE, fix)


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


def _no_branch(error: ValidationError, root: Schema, path: tuple[Any, ...]) -> Iterator[Problem]:
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


def _expected(error: ValidationError, root: Schema) -> str:
    bound = _BOUNDS.get(str(error.validator))
    if bound is None:
        return describe(error.schema, root)
    kind = error.schema.get("type", "") if isinstance(error.schema, dict) else ""
    text = bound.format(error.validator_value)
    return f"{kind} with {text}" if text.startswith("at ") and kind else f"{kind} {text}".strip()


def describe(schema: Any, root: Schema | None = None) -> str:  # Any: a schema may be a boolean
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


def _described_type(schema: Schema, root: Schema | None) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array" and schema.get("items"):
        return f"array of {describe(schema['items'], root)}"
    if kind == "string" and "format" in schema:
        return f"string ({schema['format']})"
    return str(kind or "a fitting value")
