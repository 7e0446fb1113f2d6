"""Converts a model's arguments to a dictionary that matches the schema, or to a list of every reason why not.

The text is parsed and repaired. Values are coerced if nothing is lost ("3" → 3, "true" → true, a single value → a list
with it). The rest is reported as `path: expected …, got …`. Coercing twice gives the same result as once.

A key (re-cased, dotted, flattened out of a nested object, or wrapped in `arguments`) is only repaired if its object
does not have it and exactly one property without a value can be meant. A text only becomes a number, boolean, choice,
null or list if it cannot be anything else.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from agent_core.base.late import LateModule
from agent_core.base.matching import nearest
from agent_core.base.problem import Place, Problem
from agent_core.base.records import dataclass

from .validation import (
    LIMIT_CHARS,
    NAMES_PER_STEP,
    IdentityCache,
    NotJson,
    TooManySteps,
    counted,
    read_nested,
    read_object,
    shown,
    spend,
    validator_for,
    without_prose,
)

if TYPE_CHECKING:
    import referencing.exceptions as reference_errors
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

    from .typenames import Schema
else:
    reference_errors = LateModule("referencing.exceptions")


Path = tuple[str, ...]
Forms = Mapping[tuple[Callable[..., str], str], Sequence[Any]]
Resolve = Callable[[Any], Any]  # a schema → the one that its `$ref` refers to

_WRAPPERS = frozenset(
    {"arguments", "parameters", "args", "params", "kwargs", "input", "inputs", "properties"}
)
_LABELS = frozenset({"name", "function", "tool", "type", "id"})
_DEEPEST = 4
_MOST_PLACES = 300
_SIGNS = re.compile(r"[\W_]+")
_PARTS = re.compile(r"[.\[\]/]+")
_INTEGER = re.compile(r"[+-]?(?:0|[1-9][0-9]*)", re.ASCII)
_NUMBER = re.compile(
    r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII
)
# Unambiguous thousands separators: several of them, or a decimal point after one.
_LARGE = re.compile(r"-?[1-9]\d{0,2}(?:(?:,\d{3}){2,}(?:\.\d+)?|,\d{3}\.\d+)", re.ASCII)
_EXACT = 2**53
MAX_CHOICE_CHARS = 200  # of a choice that a message names
MAX_EXPLAINED = 100  # errors of one value; the others are counted
_FROM_WORKER_CHARS = 8 << 20  # more than a frame of a worker can hold, in whatever form
_DIGITS = 4_000
_WORDS = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False}
_NULLS = frozenset({"null", "none", "undefined"})
_QUOTES = "\"'`“”"
_MEMBER = re.compile(r"[A-Z]\w*\.([^\W\d]\w*)")  # a member of an enumeration with its class name
_BETWEEN = re.compile(r"(?<=[^\W\d_])[\s_-]+(?=[^\W\d_])")
_SEPARATORS = ",;|\n"
# One number with thousands separators or a decimal comma: possibly not several numbers.
_GROUPED = re.compile(r"\s*-?\d{1,3}(?:,\d{3})+(?:\.\d+)?\s*", re.ASCII)
_DECIMAL_COMMA = re.compile(r"\s*-?\d+,\d+\s*", re.ASCII)
_GROUPED_BY_SPACES = re.compile(r"\s*-?\d{1,3}(?:\s\d{3})+\s*", re.ASCII)


def plain(name: str) -> str:
    """Return a name without case and separators: `fileName`, `file_name` and `File-Name` are equal."""
    return _SIGNS.sub("", name).casefold()


def unwrapped(
    value: dict[str, Any], schema: "Schema", resolve: Resolve
) -> tuple[dict[str, Any], str]:  # Any: JSON
    """Return the object within `{"arguments": {…}}` and the key that wrapped it, or the value itself and ""."""
    properties = schema.get("properties", {})
    unknown = [key for key in value if key not in properties]
    wrappers = [key for key in unknown if key.casefold() in _WRAPPERS]
    if len(wrappers) != 1 or not _is_closed(schema):
        return value, ""
    if any(
        key not in _LABELS or not isinstance(value[key], str)
        for key in unknown
        if key not in wrappers
    ):
        return value, ""
    names = {plain(place[-1]) for place in islice(_free({}, schema, resolve, ()), _MOST_PLACES)}
    inner = value[wrappers[0]]
    inner = read_nested(inner, dict) if isinstance(inner, str) else inner
    outer = {key: item for key, item in value.items() if key in properties}
    if (
        not isinstance(inner, dict)
        or outer.keys() & (inner.keys() | _LABELS)
        or names & set(map(plain, unknown))
    ):
        return value, ""
    return {**inner, **outer}, wrappers[0]


def placed(
    value: dict[str, Any], schema: "Schema", resolve: Resolve
) -> tuple[dict[str, Any], dict[str, Path]]:
    """Return an object with each unknown key moved to the only place that it can mean, and the moves."""
    properties = schema.get("properties")
    if not properties or not _is_closed(schema) or value.keys() <= properties.keys():
        return value, {}
    places = [*islice(_free(value, schema, resolve, ()), _MOST_PLACES + 1)]
    unknown = [key for key in value if key not in properties]
    if max(len(places), len(unknown)) > _MOST_PLACES:
        return value, {}
    spend(len(places) * len(unknown) // NAMES_PER_STEP)
    meant = {key: _place_of_key(key, places) for key in unknown}
    counts = Counter(place for place in meant.values() if place)
    moves = {key: place for key, place in meant.items() if place and counts[place] == 1}
    result = {key: item for key, item in value.items() if key not in moves}
    for key, place in moves.items():
        inner = result
        for name in place[:-1]:
            inner[name] = dict(inner.get(name, {}))
            inner = inner[name]
        inner[place[-1]] = value[key]
    return result, moves


def _is_closed(schema: "Schema") -> bool:
    return schema.get("additionalProperties", False) is False and "patternProperties" not in schema


def _free(value: Any, schema: "Schema", resolve: Resolve, path: Path) -> Iterator[Path]:
    """Yield the place of each property without a value, including nested objects."""
    for name, inner in schema.get("properties", {}).items():
        place = (*path, name)
        if name not in value:
            yield place
        own = resolve(inner)
        item = value.get(name, {})
        if not (isinstance(own, dict) and isinstance(item, dict)) or len(place) >= _DEEPEST:
            continue
        options = [
            resolve(option)
            for keyword in ("anyOf", "oneOf", "allOf")
            for option in own.get(keyword, ())
        ]
        objects = [
            option
            for option in (own, *options)
            if isinstance(option, dict) and option.get("properties")
        ]
        if len(objects) == 1:
            yield from _free(item, objects[0], resolve, place)


def _place_of_key(key: str, places: list[Path]) -> Path | None:
    """Return the only place that a key can mean; None if there is none or several."""
    parts = tuple(plain(part) for part in _PARTS.split(key) if part)
    if len(parts) > 1:
        ends = [place for place in places if tuple(map(plain, place))[-len(parts) :] == parts]
        if ends:
            return ends[0] if len(ends) == 1 else None
    name = plain(key)
    matches = [
        place for place in places if name and name in (plain(place[-1]), plain("".join(place)))
    ]
    return matches[0] if len(matches) == 1 else None


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
    if _LARGE.fullmatch(text):
        text = text.replace(",", "")
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        number = float(text)
        return number if abs(number) != float("inf") else value
    return value


def _text(value: Any) -> Any:
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if is_integer and abs(value) < 10**_DIGITS else value


SCALARS: dict[str, Callable[[Any], Any]] = {  # Any: JSON
    "integer": _integer,
    "number": _number,
    "boolean": lambda value: (
        _WORDS.get(value.strip().lower(), value) if isinstance(value, str) else value
    ),
    "string": _text,
    "null": lambda value: None if is_null_word(value) else value,
}
"""JSON type → a lossless conversion to that type; values that it cannot convert are returned unchanged."""


def is_null_word(value: Any) -> bool:  # Any: JSON
    """Check whether a value is a word for null, such as "null" or "None"."""
    return isinstance(value, str) and value.strip().casefold() in _NULLS


def listed(value: Any, choices: list[Any]) -> Any:  # Any: JSON
    """Return the only choice that a text matches apart from case, separators or quotes; otherwise the value itself."""
    if isinstance(value, bool) and value not in choices:
        text = listed(str(value), choices)
        return text if isinstance(text, str) and text in choices else value
    if not isinstance(value, str) or value in choices:
        return value
    member = _MEMBER.fullmatch(value.strip())
    forms = _FORMS.get(choices)
    for text in (value, *(member.groups() if member else ())):
        for form in (_fold_case, _fold_words):
            matches = forms.get((form, form(text)), ())
            if matches:
                return matches[0] if len(matches) == 1 else value
    written = forms.get((json.dumps, value.strip()), ())
    return written[0] if len(written) == 1 else value


def _written_forms(choices: list[Any]) -> Forms:  # Any: JSON
    """Return which choices each written form means, by the function that makes the form and its text."""
    forms = defaultdict[tuple[Callable[..., str], str], list[Any]](list)
    for choice in choices:
        ways = (_fold_case, _fold_words) if isinstance(choice, str) else (json.dumps,)
        for way in ways:
            forms[way, way(choice)].append(choice)
    return dict(forms)


_FORMS: Final = IdentityCache(_written_forms)


def _fold_words(text: str) -> str:
    return _BETWEEN.sub("", _fold_case(text))


def _fold_case(text: str) -> str:
    return text.strip().strip(_QUOTES).strip().casefold()


def pieces(text: str, kind: Any) -> list[str] | None:  # Any: the JSON type of the items
    """Return the items of a text that is written as a list; None if it is not a list.

    An empty result means that it may be a list but cannot be split reliably, or may be one number with separators.
    """
    if text.lstrip().startswith("["):
        return []
    marks = [mark for mark in _SEPARATORS if mark in text.strip()]
    if not marks:
        items = text.split() if kind in ("integer", "number") else []
        if len(items) < 2:
            return None
        return [] if _GROUPED_BY_SPACES.fullmatch(text) else items
    items = [item.strip() for item in text.split(marks[0])]
    is_number = _GROUPED.fullmatch(text) or (kind != "integer" and _DECIMAL_COMMA.fullmatch(text))
    return [] if is_number or len(items) == 1 else items


def by_position(value: Any, schema: "Schema") -> list[dict[str, Any]]:  # Any: JSON
    """Return the objects that a value without keys can mean: items as properties in order, or the only property.

    Only properties with a type are considered, because any value fits the others.
    """
    properties, required = schema.get("properties", {}), schema.get("required", ())
    if not properties or not all(properties.values()):
        return []
    meant = []
    if isinstance(value, list) and len(required) <= len(value) <= len(properties):
        meant.append(dict(zip(properties, value, strict=False)))
    only = list(properties if len(properties) == 1 else required)
    if len(only) == 1:
        meant.append({only[0]: value})
    elif (
        isinstance(value, list)
        and not required
        and next(iter(properties.values())).get("type") == "array"
    ):
        meant.append({next(iter(properties)): value})  # for `*items`, the list itself
    return meant


# Explains what does not fit a schema, one `path: expected …, got …` per problem, in a form that a model can act on.

WHERE = Place("arguments")
_MOST = 20


def problems_of(value: dict[str, Any], schema: "Schema") -> tuple[Problem, ...]:  # Any: JSON
    """Return every distinct problem of a value under its schema; empty if it is valid."""
    validator = validator_for(schema)
    if validator.is_valid(value):
        return ()
    by_message: dict[str, Problem] = {}
    unexplained = 0
    for number, error in enumerate(_told_once(validator.iter_errors(value))):
        if number >= MAX_EXPLAINED:
            unexplained += 1
            continue
        for problem in _explain(error, schema, ()):
            by_message.setdefault(problem.message, problem)
    problems = sorted(by_message.values(), key=lambda problem: problem.message)
    left = max(len(problems) - _MOST, 0) + unexplained
    if left:
        more = Problem("arguments-invalid", f"and {left} more", WHERE)
        problems = [*problems[:_MOST], more]
    return tuple(problems)


def _told_once(errors: Iterable["ValidationError"]) -> Iterator["ValidationError"]:
    """Yield errors, of the missing names of one object only the first: it is explained with all of them."""
    told = set[tuple[Any, ...]]()
    for error in errors:
        place = (*error.absolute_path, id(error.schema))
        if error.validator == "required" and place in told:
            continue
        told.add(place)
        yield error


def _explain(error: "ValidationError", root: "Schema", base: tuple[Any, ...]) -> Iterator[Problem]:
    path = (*base, *error.relative_path)
    parent = error.schema if isinstance(error.schema, dict) else {}
    match error.validator:
        case "required":
            properties, instance = parent.get("properties", {}), error.instance
            for name in parent.get("required", ()):
                if isinstance(instance, dict) and name not in instance:
                    own = properties.get(name, {})
                    described = own.get("description") if isinstance(own, dict) else None
                    fix = f"add `{name}`: {described}" if described else f"add `{name}`"
                    yield _problem((*path, name), describe(own), "nothing", fix)
        case "additionalProperties":
            known_names = sorted(parent.get("properties", {}))
            name = str(path[-1])
            matches = nearest(name, known_names) or [
                known
                for known in known_names
                if known.replace("_", "").lower() == name.replace("_", "").lower()
            ]
            names = ", ".join(f"`{known}`" for known in known_names[:20]) or "none"
            fix = f"did you mean `{matches[0]}`?" if matches else f"known are: {names}"
            yield _unknown(path, fix)
        case "anyOf" | "oneOf":
            branches: dict[Any, list[ValidationError]] = {}
            for inner in error.context or ():
                branches.setdefault(inner.relative_schema_path[0], []).append(inner)
            kinds = ("type", "const", "enum", "anyOf", "oneOf")
            close = [
                errors
                for errors in branches.values()
                if all(inner.relative_path or inner.validator not in kinds for inner in errors)
            ]
            if len(close) == 1:  # the only branch with the value's type
                for inner in islice(_told_once(close[0]), MAX_EXPLAINED):
                    yield from _explain(inner, root, path)
            else:
                yield _problem(path, describe(error.schema, root), shown(error.instance))
        case _:
            expected, bound = describe(error.schema, root), _BOUNDS.get(str(error.validator))
            if bound is not None:
                kind, text = parent.get("type", ""), bound.format(error.validator_value)
                expected = (
                    f"{kind} with {text}"
                    if text.startswith("at ") and kind
                    else f"{kind} {text}".strip()
                )
            hint = _hint(error) if error.validator == "type" else None
            yield _problem(path, expected, shown(error.instance), hint)


def _hint(error: "ValidationError") -> str | None:
    """Return how to write a value that is close to its type."""
    kind, value = error.validator_value, error.instance
    if kind == "array" and isinstance(value, str):
        return 'send a list: ["…", "…"]'
    if kind == "boolean":
        return "send true or false"
    if (
        kind in ("integer", "number")
        and isinstance(value, str)
        and any(letter.isdecimal() for letter in value)
    ):
        return "send the number alone, without a unit, a sign of currency or separators"
    return None


def _unknown(path: tuple[Any, ...], fix: str) -> Problem:
    """Return what is said about an argument that there is not, or a key that a value in one cannot have."""
    *within, name = path
    what = f"{_place(within)}: there is no key" if within else "there is no argument"
    return Problem("arguments-invalid", f"{what} `{name}`", WHERE, fix)


def _problem(path: tuple[Any, ...], expected: str, got: str, fix: str | None = None) -> Problem:
    return Problem(
        "arguments-invalid", f"{_place(path)}: expected {expected}, got {got}", WHERE, fix
    )


def _place(path: Sequence[Any]) -> str:
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or "arguments"


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


def describe(schema: Any, root: "Schema | None" = None) -> str:  # Any: a schema may be a boolean
    """Return a short description of a schema, as messages use it for what is expected."""
    if not isinstance(schema, dict):
        return "nothing" if schema is False else "any value"
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        target = (root or {}).get("$defs", {}).get(name, {})
        return describe(target) if "$ref" not in target else name
    if "const" in schema:
        return _written(schema["const"])
    if "enum" in schema:
        shown_values = [_written(value) for value in schema["enum"][:20]]
        return f"one of {', '.join(shown_values)}{'…' if len(schema['enum']) > 20 else ''}"
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            return " or ".join(dict.fromkeys(describe(branch, root) for branch in schema[keyword]))
    return _described_type(schema, root)


def _written(choice: Any) -> str:  # Any: JSON
    text = json.dumps(choice, ensure_ascii=False)
    return text if len(text) <= MAX_CHOICE_CHARS else f"{text[:MAX_CHOICE_CHARS]}…"


def _described_type(schema: "Schema", root: "Schema | None") -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array" and schema.get("items"):
        return f"array of {describe(schema['items'], root)}"
    if kind == "string" and "format" in schema:
        return f"string ({schema['format']})"
    return str(kind or "a fitting value")


_MOST_HOPS = 50
_SINGLE = frozenset({*SCALARS, "object"})  # types whose only item may replace a list with one item


class Coercion:
    """One coercion under one root schema; run it within `checker.counted`."""

    def __init__(self, root: "Schema") -> None:
        self.root = root
        self.validator = validator_for(root)
        self._parts: dict[
            int, tuple[Any, Validator]
        ] = {}  # by ID, with the schema to keep the ID valid
        self._split: dict[int, tuple[Schema, list[Schema]]] = {}
        self.notes: list[str] = []
        """Descriptions of values that were read as something else."""
        self._path: list[str] = []

    def coerce(
        self, value: Any, schema: Any
    ) -> Any:  # Any: JSON in, JSON out; a schema may be a boolean
        """Return the value converted to the schema, as far as nothing is lost."""
        spend()
        if not isinstance(schema, dict):
            return value
        if "$ref" in schema:
            value = self.coerce(value, self._target(schema["$ref"]))
        for keyword in [keyword for keyword in ("anyOf", "oneOf") if keyword in schema]:
            value = self._union(value, schema[keyword])
        for part in schema.get("allOf", ()):
            value = self.coerce(value, part)
        kind = schema.get("type")
        if isinstance(value, list) and len(value) == 1 and kind in _SINGLE:
            value = self._only(value, schema)
        if isinstance(kind, list):
            entry = self._split.setdefault(
                id(schema), (schema, [{**schema, "type": type_name} for type_name in kind])
            )
            return self._union(value, entry[1])
        if kind == "array":
            value = self._array(value, schema)
        elif kind == "object":
            value = self._object(value, schema)
        # A year is not a date, and a number of seconds not a duration: numbers never become text with a format.
        elif kind in SCALARS and (kind != "string" or schema.get("format", "path") == "path"):
            value = SCALARS[kind](value)
        if "enum" not in schema and "const" not in schema:
            return value
        choice = listed(value, schema.get("enum", [schema.get("const")]))
        if choice is not value:
            self._note(
                f"{json.dumps(value, ensure_ascii=False)} was read as {json.dumps(choice, ensure_ascii=False)}"
            )
        return choice

    def _only(self, value: list[Any], schema: "Schema") -> Any:
        """Return the only item of a list if the item fits and the list does not."""
        before = len(self.notes)
        item = self.coerce(value[0], schema)
        if isinstance(value[0], list) or not self.fits(item, schema):
            del self.notes[before:]
            return value
        self._note("a list of one was read as its item")
        return item

    def _note(self, text: str) -> None:
        self.notes.append(f"{'.'.join(self._path) or 'arguments'}: {text}")

    def resolved(self, schema: Any) -> Any:
        """Return the schema that a reference points to; any other schema is returned unchanged."""
        for _hop in range(_MOST_HOPS):
            if not isinstance(schema, dict) or "$ref" not in schema:
                return schema
            schema = self._target(schema["$ref"])
        return {}

    def _target(self, reference: str) -> Any:
        if reference == "#":
            return self.root
        return self.root.get("$defs", {}).get(reference.removeprefix("#/$defs/"), {})

    def fits(self, value: Any, schema: Any) -> bool:
        """Check whether a value is valid without coercion."""
        spend()
        if (
            isinstance(schema, dict)
            and schema.keys() == {"type"}
            and isinstance(schema["type"], str)
        ):
            return self.validator.is_type(value, schema["type"])
        entry = self._parts.get(id(schema))
        if entry is None:
            entry = self._parts[id(schema)] = (schema, self.validator.evolve(schema=schema))
        return entry[1].is_valid(value)

    def _union(self, value: Any, branches: list[Any]) -> Any:
        """Return an exact match unchanged, otherwise the result of the first branch that coercion can reach.

        A branch that can only be reached by repairing keys counts if it is the only one.
        """
        for branch in branches:
            if self.fits(value, branch):
                return self.coerce(value, branch)
        repaired = []
        if is_null_word(value):  # try null before a list of this word
            branches = sorted(branches, key=lambda branch: not self.fits(None, branch))
        for branch in branches:
            before = len(self.notes)
            coerced = self.coerce(value, branch)
            notes = self.notes[before:]
            del self.notes[before:]
            if self.fits(coerced, branch):
                if not notes:
                    return coerced
                repaired.append((coerced, notes))
        if len(repaired) != 1:
            return value
        self.notes += repaired[0][1]
        return repaired[0][0]

    def _array(self, value: Any, schema: "Schema") -> Any:
        if isinstance(value, str):
            value = read_nested(value, list)
        if isinstance(value, list):
            return self._items(value, schema)
        if value is None:
            return value
        before = len(self.notes)
        wrapped = self._items([value], schema)
        is_one = self.fits(wrapped, schema)
        items = self.resolved(schema.get("items"))
        items = items if isinstance(items, dict) else {}
        several = pieces(value, items.get("type")) if isinstance(value, str) else None
        if several is None or (is_one and ("enum" in items or "const" in items)):
            return wrapped if is_one else value
        del self.notes[before:]
        parts = self._items(several, schema)
        if not several or self.fits(parts, schema) == is_one:  # not the only possible reading
            return value
        if is_one:
            return wrapped
        self._note(f"{json.dumps(value, ensure_ascii=False)} was read as a list of {len(parts)}")
        return parts

    def _items(self, value: list[Any], schema: "Schema") -> list[Any]:
        first = schema.get("prefixItems", [])
        extra = schema.get("items", {})
        items = [
            self.coerce(item, first[n] if n < len(first) else extra) for n, item in enumerate(value)
        ]
        if schema.get("uniqueItems") is not True:
            return items
        # A model's repetition has no meaning.
        return list({json.dumps(item, sort_keys=True): item for item in reversed(items)}.values())[
            ::-1
        ]

    def _object(self, value: Any, schema: "Schema") -> Any:
        if isinstance(value, str):
            value = read_nested(value, dict)
        if isinstance(value, list) and schema is not self.root:
            return self._read_as_object(value, schema)
        if not isinstance(value, dict):
            return value
        if schema is self.root:
            value, wrapper = unwrapped(value, schema, self.resolved)
            if wrapper:
                self._note(f"the arguments were taken out of `{wrapper}`")
        value, moves = placed(value, schema, self.resolved)
        for key, place in moves.items():
            self._note(f"`{key}` was read as `{'.'.join(place)}`")
        properties, required = schema.get("properties", {}), schema.get("required", ())
        extra = schema.get("additionalProperties", {})
        coerced = {}
        for name, item in value.items():
            own = properties.get(name, extra)
            is_optional = name in properties and name not in required
            if is_optional and self._stands_for_nothing(item, own):
                continue
            self._path.append(name)
            if (
                is_null_word(item)
                and (is_optional or self.fits(None, own))
                and self.fits(item, own)
            ):
                self._note(
                    f"was taken as the text {json.dumps(item)}; to leave it out, do not send it"
                )
            coerced[name] = self.coerce(item, own)
            self._path.pop()
        return coerced

    def _read_as_object(self, value: list[Any], schema: "Schema") -> Any:
        """Return a list as the object with these values in the order of its properties; the list if that is invalid."""
        for meant in by_position(value, schema)[:1]:
            before = len(self.notes)
            result = self._object(meant, schema)
            if self.fits(result, schema):
                self._note(f"a list was read as {', '.join(f'`{name}`' for name in meant)}")
                return result
            del self.notes[before:]
        return value

    def _stands_for_nothing(self, item: Any, own: Any) -> bool:
        """Check whether a value stands for the default: it is null or a word for it, and neither fits the schema."""
        if item is None:
            return not self.fits(None, own)
        if isinstance(item, str) and not item.strip():  # a blank is text
            return not self.fits(item, own) or (
                isinstance(own, dict) and own.get("format", "path") != "path"
            )
        if not is_null_word(item) or self.fits(item, own) or self.fits(None, own):
            return False
        before = len(self.notes)
        coerced = self.coerce(item, own)
        del self.notes[before:]
        return isinstance(coerced, list) or not self.fits(coerced, own)


def read(
    raw: str, schema: "Schema", *, limit_chars: int = LIMIT_CHARS, notes: list[str] | None = None
) -> dict[str, Any] | tuple[Problem, ...]:  # Any: JSON that fits the schema
    """Return the arguments in a model's text, coerced and valid, or all problems with them.

    `notes` gets a line for each repair that a model should know about: a value that was read as something else.
    """
    try:
        value, remark = _object_in(raw, limit_chars)
    except NotJson as error:
        placed = _without_keys(error.value, schema, len(raw))
        if placed is not None:
            if notes is not None:
                notes += placed.notes
            return placed.value
        fix = "send one JSON object with the parameters' names as keys"
        return (Problem("arguments-not-json", str(error), WHERE, fix),)
    result = _fit(value, schema, len(raw))
    if isinstance(result, tuple):
        return result
    if notes is not None:
        notes += [remark] * bool(remark) + result.notes
    return result.value


def read_with(
    raw: str, schema: "Schema", apart: Mapping[str, Any], *, notes: list[str] | None = None
) -> dict[str, Any] | tuple[Problem, ...]:  # Any: JSON that fits the schema
    """Return the arguments of a call by a worker: those in a text, as `read` does, and those that came `apart`.

    Only the names of the latter are checked here; the worker that gets them checks their types.
    """
    properties = schema.get("properties", {})
    if _is_closed(schema) and (unknown := sorted(apart.keys() - properties.keys())):
        names = ", ".join(f"`{name}`" for name in sorted(properties)[:20]) or "none"
        return (_unknown((unknown[0],), f"known are: {names}"),)
    rest = schema
    if apart:
        kept = {name: own for name, own in properties.items() if name not in apart}
        rest = {
            **schema,
            "properties": kept,
            "required": [n for n in schema.get("required", ()) if n not in apart],
        }
    arguments = read(raw, rest, limit_chars=_FROM_WORKER_CHARS, notes=notes)
    return {**arguments, **apart} if isinstance(arguments, dict) else arguments


def read_exactly(
    raw: str, schema: "Schema"
) -> dict[str, Any] | tuple[Problem, ...]:  # Any: JSON that fits the schema
    """Return the object in a model's text if it fits without coercion, or all problems with it."""
    try:
        value, _ = _object_in(raw, LIMIT_CHARS)
    except NotJson as error:
        return (Problem("arguments-not-json", str(error), WHERE, "send one JSON object"),)
    if raw.strip() in ("", "null"):
        return (
            Problem(
                "arguments-not-json",
                "expected a JSON object, got nothing",
                WHERE,
                "send one JSON object",
            ),
        )
    return misfits(value, schema, len(raw)) or value


def _without_keys(value: Any, schema: "Schema", characters: int) -> "_Read | None":  # Any: JSON
    """Return the only possible arguments for a value without parameter names; None if there are none or several."""
    if value is None or (
        isinstance(value, str) and value.lstrip().startswith(("{", "["))
    ):  # malformed JSON
        return None
    results = [_fit(meant, schema, characters) for meant in by_position(value, schema)]
    read = [result for result in results if isinstance(result, _Read)]
    if not read or any(result.value != read[0].value for result in read):
        return None
    names = ", ".join(f"`{name}`" for name in read[0].value)
    return _Read(
        read[0].value, [f"arguments: what came without names was read as {names}", *read[0].notes]
    )


def _object_in(raw: str, limit_chars: int) -> tuple[dict[str, Any], str]:
    """Return the object in a text, and a note if there was other text around it."""
    try:
        return read_object(raw, limit_chars), ""
    except NotJson:
        inner = without_prose(raw) if len(raw) <= limit_chars else None
        if inner is None:
            raise
    return read_object(inner, limit_chars), "arguments: the text around the JSON was left out"


def renamed(raw: str, names: Mapping[str, str]) -> str:
    """Return the arguments with current names. Arguments that already have one, and unreadable text, are unchanged."""
    try:
        value, _ = _object_in(raw, LIMIT_CHARS)
    except NotJson:
        return raw
    if not names.keys() & value.keys():
        return raw
    older = {names[key]: item for key, item in value.items() if key in names}
    return json.dumps(
        {**older, **{key: item for key, item in value.items() if key not in names}},
        ensure_ascii=False,
    )


_UNUSABLE = Problem(
    "arguments-invalid",
    "expected a schema that can be followed, got one that refers to nothing or to itself",
    WHERE,
)
_TOO_NESTED = Problem(
    "arguments-invalid",
    "expected a value that can be checked, got one too nested",
    WHERE,
    "send a smaller value",
)


@dataclass(frozen=True, slots=True)
class _Read:
    """Valid arguments, and what was repaired."""

    value: dict[str, Any]
    notes: list[str]


def misfits(
    value: dict[str, Any], schema: "Schema", characters: int
) -> tuple[Problem, ...]:  # Any: JSON
    """Return every problem of arguments without coercion; `characters` is the length of their text."""
    try:
        with counted(characters):
            return problems_of(value, schema)
    except TooManySteps:
        return (_TOO_NESTED,)
    except (RecursionError, reference_errors.Unresolvable):
        return (_UNUSABLE,)


def _fit(value: dict[str, Any], schema: "Schema", characters: int) -> _Read | tuple[Problem, ...]:
    coercion = Coercion(schema)
    try:
        with counted(characters):
            coerced: dict[str, Any] = coercion.coerce(value, schema)
            problems = problems_of(coerced, schema)
    except TooManySteps:
        return (_TOO_NESTED,)
    except reference_errors.Unresolvable:
        return (_UNUSABLE,)
    except RecursionError:
        return (
            Problem("arguments-invalid", "expected fewer levels of nesting, got too many", WHERE),
        )
    return problems or _Read(coerced, coercion.notes)
