"""Compiled validators for arguments, which are limited in time and look up nothing outside.

`pattern` and `format` are never evaluated in the host (a pattern can run for years), a `$ref` is local
only, and steps are counted: a type that contains itself twice is tried in 2ⁿ ways at depth n. The
worker, which has its own clock, does the rest.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import jsonschema
import referencing
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator

from .typenames import Schema

_KEPT = 4_096
_STEPS = 5_000
_STEPS_PER_CHARACTER = 4
_steps_left: ContextVar[list[int]] = ContextVar("steps that are left")

Keyword = Callable[[Validator, Any, Any, Schema], Iterator[ValidationError] | None]  # Any: a rule, and JSON


class TooManySteps(Exception):
    """Error raised when a value cannot be checked within the steps that its size allows. Internal to the package."""


@contextmanager
def counted(characters: int) -> Iterator[None]:
    """Allow coercion and validation a number of steps that grows with the size of the text."""
    token = _steps_left.set([_STEPS + _STEPS_PER_CHARACTER * characters])
    try:
        yield
    finally:
        _steps_left.reset(token)


def spend() -> None:
    """Take one step.

    Raises:
        TooManySteps: none is left.
    """
    steps = _steps_left.get()
    steps[0] -= 1
    if steps[0] < 0:
        raise TooManySteps


def _spending(keyword: Keyword) -> Keyword:
    def spending(validator: Validator, rule: Any, instance: Any, schema: Schema) -> Iterator[ValidationError] | None:
        spend()
        return keyword(validator, rule, instance, schema)

    return spending


def _additional(validator: Validator, rule: Any, instance: Any, schema: Schema) -> Iterator[ValidationError]:
    """Check `additionalProperties` without `patternProperties`, which hold patterns that the host does not run."""
    if not isinstance(instance, dict) or "patternProperties" in schema:
        return
    for name in instance.keys() - schema.get("properties", {}).keys():
        if rule is False:
            yield ValidationError("unknown", validator="additionalProperties", path=[name], instance=instance[name])
        elif isinstance(rule, dict):
            yield from validator.descend(instance[name], rule, path=name)  # type: ignore[attr-defined] # not in the protocol


def _ignored(_validator: Validator, _rule: Any, _instance: Any, _schema: Schema) -> None:
    """Ignore a keyword that the worker checks, or that coercion handles."""


def _is_integer(_checker: object, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_Draft = jsonschema.Draft202012Validator
_BRANCHING = ("$ref", "anyOf", "oneOf", "allOf", "not", "if", "contains")
_Checker = jsonschema.validators.extend(  # type: ignore[no-untyped-call] # the stubs leave it out
    _Draft,
    validators={
        **{name: _spending(_Draft.VALIDATORS[name]) for name in _BRANCHING},
        **dict.fromkeys(("pattern", "patternProperties", "format", "unevaluatedProperties", "uniqueItems"), _ignored),
        "additionalProperties": _additional,
    },
    type_checker=_Draft.TYPE_CHECKER.redefine("integer", _is_integer),
)
_compiled: dict[int, tuple[Schema, Validator]] = {}


def validator_for(schema: Schema) -> Validator:
    """Return the validator of a schema, compiled once as long as the schema object is the same one."""
    entry = _compiled.get(id(schema))
    if entry is not None and entry[0] is schema:
        return entry[1]
    while len(_compiled) >= _KEPT:
        _compiled.pop(next(iter(_compiled)), None)
    # An empty registry of its own: nothing is ever fetched for a reference.
    validator: Validator = _Checker(schema, registry=referencing.Registry())
    _compiled[id(schema)] = (schema, validator)
    return validator
