"""Parses the JSON of a call's arguments and validates it by JSON Schema; checks schemas and compiles validators.

A schema must be valid by the standard, within limits, and without external references. `pattern` and `format` are never
evaluated in the host, because a pattern can run for years, and steps are counted: a type that contains itself twice is
tried in 2ⁿ ways at depth n. The worker, which has its own time limit, checks the rest.
"""

import json
import math
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar

from agent_core.base.fences import without_fence
from agent_core.base.late import LateModule
from agent_core.base.problem import Place, Problem
from agent_core.base.untrusted import one_line
from sandbox.wire.strict_json import (
    MAX_VALUES,
    Malformed,
    Strictness,
    read_json,
    read_next,
    with_plain_escapes,
)

from .typenames import Schema

if TYPE_CHECKING:
    import jsonschema
    import referencing
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator
else:
    jsonschema = LateModule("jsonschema")
    referencing = LateModule("referencing")

_MOST_NODES = 5_000
_POINTER = re.compile("#(/|$)")
_DEEPEST = 40
# Including `$schema`, which inside of a schema would restore the keywords that `_checker` leaves out.
_FOREIGN = frozenset(
    {
        "$schema",
        "$id",
        "$anchor",
        "$dynamicRef",
        "$dynamicAnchor",
        "$recursiveRef",
        "$recursiveAnchor",
        "$vocabulary",
    }
)
# Keywords whose keys are chosen by the schema's author, and keywords with plain values.
_NAMED = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
_VALUES = frozenset({"const", "enum", "default", "examples", "required", "dependentRequired"})


def check_schema(
    schema: Any, known_place: Place | None = None
) -> Problem | None:  # Any: a worker's answer, not trusted
    """Return the problem that makes a schema from a worker unusable; None if it is usable.

    It may contain a `pattern`, for the model and the worker; the host never evaluates one.
    """
    if isinstance(schema, dict):
        reason = _too_much(schema) or _reaches_out(schema) or _breaks_the_standard(schema)
    else:
        reason = "it is not an object"
    if reason is None:
        return None
    place = known_place or Place("schema")
    return Problem(
        "bad-schema",
        f"the schema cannot be used: {reason}",
        place,
        "use a type that JSON can express",
    )


def _reaches_out(schema: Schema) -> str | None:
    definitions = schema.get("$defs")
    local = {
        "#",
        *(f"#/$defs/{name}" for name in (definitions if isinstance(definitions, dict) else ())),
    }
    for node in schemas_in(schema):
        for keyword in node.keys() & _FOREIGN:
            return f"`{keyword}` is not allowed"
        if "$ref" in node and not (isinstance(node["$ref"], str) and node["$ref"] in local):
            return f"`$ref` has to be local and to exist, got {str(node['$ref'])[:80]!r}"
    return None


def _breaks_the_standard(schema: Schema) -> str | None:
    try:
        # Without formats: the meta-schema's would compile every `pattern`.
        jsonschema.Draft202012Validator.check_schema(
            schema, format_checker=jsonschema.FormatChecker(formats=())
        )
    except jsonschema.SchemaError as error:
        return f"{error.json_path}: {error.message[:200]}"
    return (
        "it refers to itself without end" if _has_empty_cycle(schemas_in(schema), schema) else None
    )


def _too_much(schema: Any) -> str | None:
    level, count = [schema], 0
    for _ in range(_DEEPEST):
        count += len(level)
        if count > _MOST_NODES:
            return f"it has more than {_MOST_NODES} parts"
        if any(
            isinstance(node, dict) and not all(isinstance(key, str) for key in node)
            for node in level
        ):
            return "a key is not text"
        leaves = [node for node in level if node is not None and not isinstance(node, list | dict)]
        unplain = [leaf for leaf in leaves if type(leaf) not in (str, int, bool)]
        if odd := next(
            (leaf for leaf in unplain if not (type(leaf) is float and math.isfinite(leaf))), None
        ):
            return f"JSON has no {type(odd).__name__} like {one_line(repr(odd), 60)}"
        level = [
            inner
            for node in level
            if isinstance(node, list | dict)
            for inner in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return None
    return f"it is more than {_DEEPEST} levels deep"


def schemas_in(schema: Any) -> Iterator[Schema]:
    """Yield every object in a schema that is itself a schema."""
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


def _target(reference: str, root: Schema) -> Any:  # Any: a schema, or None
    """Return the target of a reference if it can be a schema, otherwise None."""
    found: Any = root  # Any: JSON
    if not _POINTER.match(reference):
        return None
    for step in reference.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict | bool) else None


def _has_empty_cycle(nodes: Iterable[Any], root: Schema) -> bool:  # Any: JSON
    """Check whether references form a cycle that does not enter a part of the value; each node is visited once."""
    entered, left = set[int](), set[int]()
    for start in nodes:
        waiting = [(start, False)]
        while waiting:
            node, is_done = waiting.pop()
            if is_done:
                left.add(id(node))
            elif id(node) in entered and id(node) not in left:
                return True
            elif id(node) not in entered:
                entered.add(id(node))
                waiting.append((node, True))
                # The schemas that apply to the same part of a value.
                reference, lists = (
                    node.get("$ref"),
                    [node.get(keyword) for keyword in ("anyOf", "oneOf", "allOf")],
                )
                inner = [node.get(keyword) for keyword in ("not", "if", "then", "else")]
                inner += [_target(reference, root)] if isinstance(reference, str) else []
                inner += [
                    branch
                    for branches in lists
                    if isinstance(branches, list)
                    for branch in branches
                ]
                waiting += [(schema, False) for schema in inner if isinstance(schema, dict)]
    return False


_PART_LIMIT = 100_000
_TEXT_BITS = 9  # a text of 512 characters counts as a part
_STEPS = 5_000
_STEPS_PER_CHARACTER = 4
Given = TypeVar("Given")
Made = TypeVar("Made")
_steps_left: ContextVar[list[int]] = ContextVar("steps that are left")

Keyword: TypeAlias = (
    "Callable[[Validator, Any, Any, Schema], Iterator[ValidationError] | "
    "None]"
)  # Any: a rule, and JSON


class IdentityCache(Generic[Given, Made]):
    """A cache of what is made from JSON, by identity: equal objects have an entry each.

    The newest are kept, up to a number of parts in all: a schema may come from a stranger, and is kept with its entry.
    """

    def __init__(self, make: Callable[[Given], Made]) -> None:
        self._make = make
        self._kept: dict[int, tuple[Given, Made, int]] = {}
        self._parts = 0
        self._changing = threading.Lock()

    def get(self, given: Given) -> Made:
        """Return what was made from this object, or make it now."""
        entry = self._kept.get(id(given))
        if entry is not None and entry[0] is given:
            return entry[1]
        made = self._make(given)
        parts = _count_parts(given)
        if parts > _PART_LIMIT:
            return made
        with self._changing:
            _, _, replaced = self._kept.pop(id(given), (None, None, 0))
            self._kept[id(given)] = (given, made, parts)
            self._parts += parts - replaced
            while self._parts > _PART_LIMIT:
                _, _, dropped = self._kept.pop(next(iter(self._kept)))
                self._parts -= dropped
        return made


def _count_parts(value: object) -> int:
    """Return the number of values in JSON; a text counts more, the longer it is."""
    count = 0
    waiting = [value]
    while waiting:
        part = waiting.pop()
        count += 1
        if isinstance(part, dict):
            waiting.extend(part.keys())
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
        elif isinstance(part, str):
            count += len(part) >> _TEXT_BITS
    return count


class TooManySteps(Exception):
    """Raised when a value cannot be checked within the steps that its size allows. Internal to the package."""


@contextmanager
def counted(characters: int) -> Iterator[None]:
    """Limit coercion and validation in the block to a number of steps that grows with the size of the text."""
    token = _steps_left.set([_STEPS + _STEPS_PER_CHARACTER * characters])
    try:
        yield
    finally:
        _steps_left.reset(token)


def spend(count: int = 1) -> None:
    """Use steps; outside of a `counted` block they are not limited.

    Raises:
        TooManySteps: none is left.
    """
    steps = _steps_left.get(None)
    if steps is None:
        return
    steps[0] -= count
    if steps[0] < 0:
        raise TooManySteps


def _spend_on(
    keyword: Keyword, validator: "Validator", rule: Any, instance: Any, schema: Schema
) -> "Iterator[ValidationError] | None":
    spend(1 + len(rule) // NAMES_PER_STEP if isinstance(rule, dict | list) else 1)
    return keyword(validator, rule, instance, schema)


def _one_of(
    validator: "Validator", choices: Any, instance: Any, schema: Schema
) -> "Iterator[ValidationError] | None":
    """Check `enum`: a scalar is looked up, so that many items with many choices cost no product of both."""
    if isinstance(instance, dict | list):
        spend(len(choices))
        keyword: Keyword = jsonschema.Draft202012Validator.VALIDATORS["enum"]
        return keyword(validator, choices, instance, schema)
    if _scalar_key(instance) in _SCALARS.get(choices):
        return None
    return iter([jsonschema.ValidationError("not one of the choices")])


def _scalar_keys(choices: list[Any]) -> frozenset[tuple[bool, Any]]:  # Any: JSON
    return frozenset(
        _scalar_key(choice) for choice in choices if not isinstance(choice, dict | list)
    )


def _scalar_key(value: Any) -> tuple[bool, Any]:  # Any: a scalar of JSON
    """Return what tells a scalar from all others: 1 is 1.0, and not true."""
    return isinstance(value, bool), value


def _additional(
    validator: "Validator", rule: Any, instance: Any, schema: Schema
) -> "Iterator[ValidationError]":
    """Check `additionalProperties`; skip it with `patternProperties`, whose patterns the host does not run."""
    if not isinstance(instance, dict) or "patternProperties" in schema:
        return
    for name in instance.keys() - schema.get("properties", {}).keys():
        if rule is False:
            value, keyword = instance[name], "additionalProperties"
            yield jsonschema.ValidationError(
                "unknown", validator=keyword, path=[name], instance=value
            )
        elif isinstance(rule, dict):
            yield from validator.descend(instance[name], rule, path=name)  # type: ignore[attr-defined] # not in the protocol


_BRANCHING = ("$ref", "anyOf", "oneOf", "allOf", "not", "if", "contains")
_NAMING = ("required", "properties", "dependentRequired", "dependentSchemas")
"""Keywords that go over their names for each object, also one that has none of them."""
NAMES_PER_STEP = 8
# Keywords that the worker checks, or that coercion handles.
_LEFT_OUT = ("pattern", "patternProperties", "format", "unevaluatedProperties", "uniqueItems")


def _is_number(_checker: object, value: object) -> bool:
    """Check for a number that `float` can hold: an integer may have more digits."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max


@cache
def _checker() -> "type[Validator]":
    draft = jsonschema.Draft202012Validator
    checker: type[Validator] = jsonschema.validators.extend(  # type: ignore[no-untyped-call] # the stubs leave it out
        draft,
        validators={
            **{
                name: partial(_spend_on, draft.VALIDATORS[name]) for name in (*_BRANCHING, *_NAMING)
            },
            **dict.fromkeys(_LEFT_OUT, lambda *_: None),
            "additionalProperties": _additional,
            "enum": _one_of,
        },
        type_checker=draft.TYPE_CHECKER.redefine_many(
            {
                "integer": lambda _, value: isinstance(value, int) and not isinstance(value, bool),
                "number": _is_number,
            }
        ),
    )
    return checker


def validator_for(schema: Schema) -> "Validator":
    """Return the validator of a schema, compiled once per schema object."""
    return _VALIDATORS.get(schema)


def _compile(schema: Schema) -> "Validator":
    # With an empty registry, so that references are never fetched.
    return _checker()(schema, registry=referencing.Registry())


_VALIDATORS: Final = IdentityCache(_compile)
_SCALARS: Final = IdentityCache(_scalar_keys)


LIMIT_CHARS = 1_000_000

_WITH_LINE_BREAKS = Strictness(bare=True)
_PART_OF_JSON = re.compile(r'[\[\]{}"=]')
_A_KEY = re.compile(r"[\w.-]+\s*:")  # as in YAML, where a value would follow
_LEAD_IN = re.compile(
    r"(?:json|arguments?|parameters?|args|params|input|output|answer|result|call)\s*:",
    re.IGNORECASE,
)

_NAMES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}


class NotJson(Exception):
    """Raised when a text is not the JSON of an object; the message says why. Internal to the package.

    `value` is the parsed value if it is valid JSON of another type.
    """

    def __init__(self, message: str, value: Any = None) -> None:  # Any: JSON
        super().__init__(message)
        self.value = value


def read_object(raw: str, limit_chars: int = LIMIT_CHARS) -> dict[str, Any]:  # Any: JSON
    """Return the object in a text; an empty text and `null` mean the empty object.

    Raises:
        NotJson: there is no object, a key is repeated, a number is not JSON, or it is too large or too deep.
    """
    if len(raw) > limit_chars:
        raise NotJson(f"expected at most {limit_chars} characters of JSON, got {len(raw)}")
    text = _remove_fence(raw)
    value = _load(text) if text else None
    if isinstance(value, str):
        try:
            value = _load(_remove_fence(value)) if value.strip() else None
        except NotJson as error:
            raise NotJson(str(error), value) from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise NotJson(f"expected a JSON object, got {shown(value)}", value)
    return value


def without_prose(raw: str) -> str | None:
    """Return the only object in a text with prose around it; None if the prose may be part of the JSON."""
    text = _remove_fence(raw)
    begin, end = text.find("{"), text.rfind("}")
    if begin < 1 and end == len(text) - 1:
        return None
    before, after = text[:begin], text[end + 1 :]
    if begin < 0 or end < begin or _PART_OF_JSON.search(before) or _PART_OF_JSON.search(after):
        return None
    last_line = before.rstrip().rpartition("\n")[2].strip()
    if before.rstrip().endswith(",") or (
        _A_KEY.fullmatch(last_line) and not _LEAD_IN.fullmatch(last_line)
    ):
        return None
    return text[begin : end + 1]


def read_nested(text: str, kind: type) -> Any:  # Any: JSON
    """Return the object or list in a string if it holds one of this kind; otherwise return the string."""
    stripped = text.strip()
    if len(stripped) > LIMIT_CHARS or not stripped.startswith("{" if kind is dict else "["):
        return text
    try:
        value = _load(stripped)
    except NotJson:
        return text
    return value if isinstance(value, kind) else text


def shown(value: Any) -> str:  # Any: JSON
    """Return a value as messages show it: short, with its JSON type."""
    text = json.dumps(value, ensure_ascii=False, default=str) if _is_small(value) else "…"
    text = text if len(text) <= 60 else f"{text[:57]}…"
    return "null" if value is None else f"{text} ({_NAMES.get(type(value), 'object')})"


def _is_small(value: Any) -> bool:
    if isinstance(value, int):
        return -(10**40) < value < 10**40
    if isinstance(value, list | dict):
        return len(value) <= 10 and all(
            _is_small(item) for item in (value.values() if isinstance(value, dict) else value)
        )
    return True


def _remove_fence(raw: str) -> str:
    return without_fence(raw.strip().removeprefix("\ufeff"))


def _load(text: str) -> Any:  # Any: JSON
    try:
        return read_json(text, most_values=MAX_VALUES if len(text) <= LIMIT_CHARS else 0)
    except Malformed as error:
        if error.code != "syntax":
            raise _unreadable(text, error) from error
    fixed = nearly_json(text)
    try:
        value, end = read_next(fixed, 0, _WITH_LINE_BREAKS)
        # Surplus closing brackets are ignored; any other remaining text is an error.
        return value if not fixed[end:].strip("}] \t\r\n") else read_json(fixed, _WITH_LINE_BREAKS)
    except Malformed as error:
        raise _unreadable(fixed, error) from error


def _unreadable(text: str, error: Malformed) -> NotJson:
    if error.code != "syntax":
        return NotJson(str(error))
    around = text[max(error.position - 20, 0) : error.position + 20].replace("\n", " ")
    ends = " (the text ends too early)" if error.position >= len(text.rstrip()) else ""
    return NotJson(f"expected JSON, got a mistake: {error}{ends}, near `{around}`")


# Texts that are nearly JSON: in Python or JavaScript syntax, with comments, or with a surplus comma or bracket. Only
# unambiguous parts are converted; the reader decides whether the result is JSON.

# Strings come first, so that nothing inside of them changes; unclosed ones extend to the end.
# Before Python 3.11.5, `*+` around a lookahead ends too early.
_TOKEN: Final = re.compile(
    r"""
    (?P<double>"(?:[^"\\]++|\\.)*+"?)
    |(?P<single>'(?:[^'\\\n]++|\\.)*+'?)
    |(?P<curly>“[^“”"\\]*+”?)
    |(?P<comment>(?://|\#)[^\n]*+|/\*(?:[^*]++|\*(?!/))*(?:\*/)?)
    |(?P<name>[^\W\d][\w-]*+)(?P<colon>\s*+:)?
    |\w++
    """,
    re.DOTALL | re.VERBOSE,
)
_TRAILING_COMMA: Final = re.compile(r'("(?:[^"\\]++|\\.)*+"?)|,(?=\s*+[}\]])', re.DOTALL)
_PART: Final = re.compile(r'\\x(?P<code>[0-9a-fA-F]{2})|\\(?P<escaped>.)|"', re.DOTALL)
_WORDS: Final = {"True": "true", "False": "false", "None": "null", "undefined": "null"}
_NO_ESCAPES_OF_JSON: Final = frozenset("avNU01234567\n")


def nearly_json(text: str) -> str:
    """Return a text in Python or JavaScript syntax as JSON; for other texts, the result may not be JSON."""
    text = _TOKEN.sub(_as_json, text)
    return with_plain_escapes(_TRAILING_COMMA.sub(lambda match: match[1] or "", text)).strip()


def _as_json(match: re.Match[str]) -> str:
    token = match[0]
    match match.lastgroup:
        case "single" if len(token) > 1 and token.endswith("'"):
            escapes = [part["escaped"] for part in _PART.finditer(token) if part["escaped"]]
            return (
                token
                if _NO_ESCAPES_OF_JSON.intersection(escapes)
                else f'"{_PART.sub(_part, token[1:-1])}"'
            )
        case "curly" if token.endswith("”"):
            return f'"{token[1:-1]}"'
        case "comment":
            return " "
        case "colon":
            return f'"{match["name"]}"{match["colon"]}'
        case "name":
            return _WORDS.get(token, token)
    return token


def _part(part: re.Match[str]) -> str:
    if part["code"]:
        return f"\\u00{part['code']}"
    if part["escaped"]:
        return "'" if part["escaped"] == "'" else part[0]
    return '\\"'
