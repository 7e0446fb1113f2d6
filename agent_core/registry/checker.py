"""Compiled validators for arguments, which neither run for long nor look outside.

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
_left: ContextVar[list[int]] = ContextVar("steps that are left")

Keyword = Callable[[Validator, Any, Any, Schema], Iterator[ValidationError] | None]  # Any: a rule, and JSON


class TooManySteps(Exception):
    """A value could not be checked within the steps that its size allows. Never leaves the room."""


@contextmanager
def counted(characters: int) -> Iterator[None]:
    """Lets coercion and validation take a number of steps that grows with the size of the text."""
    token = _left.set([_STEPS + _STEPS_PER_CHARACTER * characters])
    try:
        yield
    finally:
        _left.reset(token)


def spend() -> None:
    """Take one step.

    Raises:
        TooManySteps: none is left.
    """
    left = _left.get()
    left[0] -= 1
    if left[0] < 0:
        raise TooManySteps


def _spending(keyword: Keyword) -> Keyword:
    def spending(validator: Validator, rule: Any, instance: Any, schema: Schema) -> Iterator[ValidationError] | None:
        spend()
        return keyword(validator, rule, instance, schema)

    return spending


def _additional(validator: Validator, rule: Any, instance: Any, schema: Schema) -> Iterator[ValidationError]:
    """`additionalProperties` without `patternProperties`, whose patterns the host does not run."""
    if not isinstance(instance, dict) or "patternProperties" in schema:
        return
    for name in instance.keys() - schema.get("properties", {}).keys():
        if rule is False:
            yield ValidationError("unknown", validator="additionalProperties", path=[name], instance=instance[name])
        elif isinstance(rule, dict):
            yield from validator.descend(instance[name], rule, path=name)  # type: ignore[attr-defined] # not in the protocol


def _ignored(_validator: Validator, _rule: Any, _instance: Any, _schema: Schema) -> None:
    """A keyword that the worker looks after, or that coercion has."""


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
    """The validator of a schema, compiled once for as long as the schema object is the same one."""
    kept = _compiled.get(id(schema))
    if kept is not None and kept[0] is schema:
        return kept[1]
    while len(_compiled) >= _KEPT:
        _compiled.pop(next(iter(_compiled)), None)
    # An empty registry of its own: nothing is ever fetched for a reference.
    validator: Validator = _Checker(schema, registry=referencing.Registry())
    _compiled[id(schema)] = (schema, validator)
    return validator
