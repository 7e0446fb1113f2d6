"""The arguments of calls: read from examples, written in the author's style, and recombined.

New calls are made in two ways: from the values of the examples in other combinations, and from edge values of the
declared types. Pure: the same function gives the same calls.
"""

import ast
import datetime
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain, islice, zip_longest
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeAlias

import jsonschema
import referencing
from jsonschema.protocols import Validator

from agent_core.registry.typenames import Schema

from .tree import expression, is_bare_call, is_call_of, literal

if TYPE_CHECKING:
    from agent_core.registry.function import Function

Value: TypeAlias = Any  # a value that can be sent to a worker
Arguments: TypeAlias = dict[str, Value]
_MOST_BITS = 10_000
_BASES, _MOST, _LONGEST = 3, 10, 2_000
_DAY = datetime.timedelta(days=1)
_DEEPEST = 5
_MADE: dict[str, type] = {
    "base64": bytes,
    "date": datetime.date,
    "date-time": datetime.datetime,
    "time": datetime.time,
    "duration": datetime.timedelta,
    "decimal": Decimal,
    "uuid": uuid.UUID,
    "path": PurePosixPath,
}


def _check_type(
    validator: Validator, rule: Any, value: Value, schema: Any
) -> Iterator[jsonschema.ValidationError]:
    """Yield an error for a value of another type; a string with a format must be the corresponding Python type."""
    made = _MADE.get(schema.get("format") or schema.get("contentEncoding"))
    kinds = [rule] if isinstance(rule, str) else rule
    is_made = made is not None and "string" in kinds
    if not (
        type(value) is made if is_made else any(validator.is_type(value, kind) for kind in kinds)
    ):
        yield jsonschema.ValidationError("another type")


def _check_names(
    _validator: Validator, rule: Any, value: Value, _schema: Any
) -> Iterator[jsonschema.ValidationError]:
    kind = int if "pattern" in rule else str  # a pattern on names means integer keys
    if isinstance(value, dict) and any(type(name) is not kind for name in value):
        yield jsonschema.ValidationError("another type")


def _check_nothing(*_given: object) -> Iterator[jsonschema.ValidationError]:
    yield jsonschema.ValidationError("a pattern, which is never run here")


_BASE = jsonschema.Draft202012Validator
_PythonValues = jsonschema.validators.extend(  # type: ignore[no-untyped-call] # the stubs leave it out
    _BASE,
    validators={
        "type": _check_type,
        "propertyNames": _check_names,
        **dict.fromkeys(("pattern", "patternProperties"), _check_nothing),
    },
    type_checker=_BASE.TYPE_CHECKER.redefine_many(
        {
            "integer": lambda _checker, value: type(value) is int,
            "array": lambda _checker, value: isinstance(value, list | tuple),
        }
    ),
)


def checker(schema: Schema) -> Validator:
    """Return the validator of a function's parameters, for Python values before they are sent to a worker."""
    validator: Validator = _PythonValues(
        schema, registry=referencing.Registry()
    )  # nothing is ever fetched
    return validator


def fits(value: Value, checker: Validator) -> bool:
    """Check whether a value is valid; tuples and sets count as arrays, and dates as their formats."""
    try:
        return checker.is_valid(_rows_of(value))
    except RecursionError:
        return False


def _rows_of(value: Value) -> Value:
    match value:
        case list() | tuple() | set() | frozenset():
            return [_rows_of(item) for item in value]
        case dict():
            return {name: _rows_of(item) for name, item in value.items()}
        case _:
            return value


def read_calls(calls: Sequence[str], function: "Function") -> list[Arguments]:
    """Return the arguments that examples pass to a function, if they are literal and valid."""
    names, rest, extra = [*function.parameters["properties"]], function.rest, function.extra
    placed = names[: names.index(rest)] if rest else names
    check, found = checker(function.parameters), list[Arguments]()
    for node in chain.from_iterable(ast.walk(expression(call) or ast.Pass()) for call in calls):
        if not is_call_of(node, function.name) or any(
            keyword.arg is None for keyword in node.keywords
        ):
            continue
        if len(node.args) > len(placed) and not rest:
            continue
        try:
            values = {
                name: _value(argument) for name, argument in zip(placed, node.args, strict=False)
            }
            named = {str(keyword.arg): _value(keyword.value) for keyword in node.keywords}
            more = [_value(argument) for argument in node.args[len(placed) :]]
        except (ValueError, TypeError, ArithmeticError, RecursionError):
            continue
        others = (
            {name: value for name, value in named.items() if name not in names} if extra else {}
        )
        values |= {name: value for name, value in named.items() if name not in others}
        arguments = values | ({rest: more} if more else {}) | ({extra: others} if others else {})
        if fits(arguments, check):
            found.append(arguments)
    return found


def read_cases(
    examples: Iterable[tuple[str, Value]], function: "Function"
) -> list[tuple[Arguments, Value]]:
    """Return the arguments and result of each example that is nothing but a call of the function."""
    bare = [(call, value) for call, value in examples if is_bare_call(call, function.name)]
    return [
        (arguments, value) for call, value in bare for arguments in read_calls([call], function)[:1]
    ]


def _value(node: ast.expr) -> Value:
    """Return the value of a literal, or of a call of one of a few constructors with literal arguments."""
    match node:
        case ast.Call(
            func=ast.Name(id=name) | ast.Attribute(attr=name), args=args, keywords=named
        ) if name in _MAKERS:
            constructed = _MAKERS[name](
                *map(_value, args), **{str(keyword.arg): _value(keyword.value) for keyword in named}
            )
            if (
                isinstance(constructed, Decimal) and constructed.is_snan()
            ):  # comparing it raises an error
                raise ValueError
            return constructed
        case ast.List(elts=parts):
            return [_value(part) for part in parts]
        case ast.Tuple(elts=parts):
            return tuple(_value(part) for part in parts)
    is_literal, value = literal(node)
    if not is_literal or (isinstance(value, int) and value.bit_length() > _MOST_BITS):
        raise ValueError
    return value


_MAKERS: dict[str, Callable[..., Value]] = {
    "date": datetime.date,
    "datetime": datetime.datetime,
    "time": datetime.time,
    "timedelta": datetime.timedelta,
    "Decimal": Decimal,
    "UUID": uuid.UUID,
    "Path": PurePosixPath,
    "frozenset": frozenset,
}


def write_call(function: "Function", arguments: Mapping[str, Value]) -> str:
    """Return the call in its author's style: positional until an argument is omitted."""
    parts, by_name = list[str](), False
    for parameter in function.parameters["properties"]:
        value = arguments.get(parameter)
        if parameter == function.rest:
            parts += [f"*{_source(value)}"] if by_name and value else map(_source, value or ())
        elif parameter == function.extra:
            parts += [f"{key}={_source(item)}" for key, item in (value or {}).items()]
        elif parameter in arguments:
            parts.append(f"{parameter}=" * by_name + _source(value))
        by_name = by_name or parameter not in arguments or parameter == function.rest
    return f"{function.name}({', '.join(parts)})"


def _source(value: Value) -> str:
    match value:
        case list():
            return f"[{', '.join(map(_source, value))}]"
        case tuple():
            return f"({', '.join(map(_source, value))}{',' * (len(value) == 1)})"
        case dict():
            return f"{{{', '.join(f'{_source(key)}: {_source(item)}' for key, item in value.items())}}}"
        case PurePosixPath():
            return f"Path({str(value)!r})"
        case _:
            return repr(value).removeprefix(f"{type(value).__module__}.")


def recombine(
    examples: Sequence[Arguments], schema: Schema, numbers: Sequence[float] = ()
) -> list[Arguments]:
    """Return the examples with one argument changed, then with all of them changed.

    `numbers` are from the code, where its behavior may change. Arguments that no example gives get values other than
    their defaults.
    """
    calls: list[Arguments] = []
    root, rules = checker(schema), schema["properties"]
    for base in examples[:_BASES]:
        made: dict[str, list[Value]] = {}
        for name, value in base.items():
            seen = [
                example[name]
                for example in examples
                if name in example and type(example[name]) is type(value)
            ]
            seen += (
                [type(value)(number) for number in numbers] if type(value) in (int, float) else []
            )
            # The values of other examples and variations of this value, alternating.
            pairs = zip_longest(
                [other for other in seen if other != value], _variations(value, seen)
            )
            made[name] = [
                *islice(
                    (new for pair in pairs for new in pair if new is not None and new != value),
                    _MOST,
                )
            ]
        for name, rule in rules.items():
            if name not in base and "default" in rule:
                choices = (
                    *rule.get("enum", ()),
                    *((True, False) if isinstance(rule["default"], bool) else ()),
                )
                made[name] = [choice for choice in choices if choice != rule["default"]]
        checks = {name: root.evolve(schema=rules[name]) for name in made}
        others = {
            name: [value for value in values if fits(value, checks[name])]
            for name, values in made.items()
        }
        columns = [[base | {name: value} for value in values] for name, values in others.items()]
        calls += (call for row in zip_longest(*columns) for call in row if call is not None)
        rows = islice(zip_longest(*others.values()), _MOST if len(others) > 1 else 0)
        calls += (
            base | {name: new for name, new in zip(others, row, strict=True) if new is not None}
            for row in rows
        )
    return [call for call in {repr(call): call for call in calls}.values() if call not in examples]


def _variations(value: Value, seen: Sequence[Value]) -> Iterator[Value]:
    match value:
        case bool():
            yield not value
        case int() | float():
            yield from (value + 1, value * 2, value - 1, *(value + other for other in seen[:2]))
        case str() if len(value) <= _LONGEST:
            between = next((mark for mark in ("\n", " ") if mark in value.strip()), "")
            if between:  # the same lines or words, and those of the examples
                pieces = value.split(between)
                others = [
                    piece for other in seen for piece in other.split(between) if piece not in pieces
                ]
                yield from (between.join(row) for row in _rows(pieces, [others[:2]]))
            else:
                yield from (value[:-1], value + value, value[::-1], value + value[:1])
        case list() | tuple():
            yield from map(type(value), _rows([*value], seen))
        case dict() if value:
            # Without a key, with the values of another one, and with one value changed.
            yield from (
                {key: part for key, part in value.items() if key != left} for left in [*value][:2]
            )
            yield from (value | other for other in seen)
            for key in [*value][:3]:
                parts = [other[key] for other in seen if key in other]
                yield from (
                    {**value, key: new} for new in islice(_variations(value[key], parts), 2)
                )
        case datetime.date():
            yield from (value + _DAY, value - _DAY, value + 30 * _DAY)


def _rows(row: list[Any], seen: Sequence[Any]) -> Iterator[list[Any]]:
    """Yield variations of a list: shortened, reversed, with an item repeated, and joined with another list."""
    kinds = {*map(type, row)}
    more = next(
        ([*other] for other in seen if [*other] != row and kinds == {*map(type, other)}), []
    )
    yield from (row[1:], row[::-1], [*row, *row[:1]], [*row, *more], row[:-1], [*more, *row[:1]])


# Edge values of each type, and of each string format.
_EDGES: dict[str, tuple[Value, ...]] = {
    "null": (None,),
    "boolean": (True, False),
    "integer": (0, 1, -1, 2, 10),
    "number": (0.0, 1.0, -1.5, 2, 100.25),
    "string": ("", "a", " ", "Größe", "0", "a b"),
    "date": (datetime.date(2024, 2, 29), datetime.date(1970, 1, 1)),
    "date-time": (
        datetime.datetime(2024, 2, 29, 12, 30),
        datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC),
    ),
    "time": (datetime.time(12, 30), datetime.time(0, 0)),
    "duration": (datetime.timedelta(hours=1), datetime.timedelta(0)),
    "decimal": (Decimal("1.50"), Decimal(0), Decimal(-2)),
    "uuid": (uuid.UUID(int=1),),
    "path": (PurePosixPath("a.txt"), PurePosixPath("a/b.tar.gz")),
    "base64": (b"", b"a"),
}

_KINDS: dict[type, str] = {int: "integer", float: "number", str: "string"}


def edge_calls(parameters: Schema, examples: Sequence[Arguments]) -> Iterator[Arguments]:
    """Yield valid calls with edge values.

    First, arguments with defaults are left out; then one argument is set to an edge value of its type, with the others
    as in the first example or, without examples, at edge values too.
    """
    required = set(parameters.get("required", ()))
    for example in examples:
        yield from (
            {key: value for key, value in example.items() if key != name}
            for name in example.keys() - required
        )
    check = checker(parameters)
    edges = {
        name: [*edge_values(schema, check)] for name, schema in parameters["properties"].items()
    }
    for name in [
        name
        for name, values in edges.items()
        if not values and any(name in example for example in examples)
    ]:
        kind = type(next(example[name] for example in examples if name in example))
        edges[name] = [
            *_EDGES.get(_KINDS.get(kind, ""), ())
        ]  # without a declared type, use the type in the examples
    base = (
        examples[0] if examples else {name: edges[name][0] for name in required if edges.get(name)}
    )
    if base.keys() >= required:
        for row in zip_longest(*edges.values(), fillvalue=_NOTHING):
            yield from (
                base | {name: value}
                for name, value in zip(edges, row, strict=True)
                if value is not _NOTHING
            )


_NOTHING = object()
_MOST_OF_ENUM = 40


def edge_values(schema: Schema, root: Validator, depth: int = 0) -> Iterator[Value]:
    """Yield valid edge values of a schema; none if it does not declare a type."""
    yield from (
        value for value in _edges(schema, root, depth) if fits(value, root.evolve(schema=schema))
    )


def _edges(schema: Schema, root: Validator, depth: int) -> Iterator[Value]:
    if depth > _DEEPEST:
        return
    yield from (schema[key] for key in ("default", "const") if key in schema)
    match schema:
        case {"enum": list(values)}:
            yield from values[:_MOST_OF_ENUM]
        case {"$ref": str(reference)}:
            definitions = root.schema["$defs"]  # type: ignore[index] # no schema is a boolean here
            yield from _edges(
                definitions.get(reference.removeprefix("#/$defs/"), {}), root, depth + 1
            )
        case {"anyOf": list(members)}:
            columns = [edge_values(member, root, depth + 1) for member in members]
            yield from (
                value
                for row in zip_longest(*columns, fillvalue=_NOTHING)
                for value in row
                if value is not _NOTHING
            )
        case {"type": "array", "prefixItems": list(parts)}:
            yield from zip(*(edge_values(part, root, depth + 1) for part in parts), strict=False)
        case {"type": "array", "items": dict(items)}:
            row = [*islice(edge_values(items, root, depth + 1), 3)]
            kind = _as_set if schema.get("uniqueItems") else list
            yield from map(kind, ([], row[:1], row, row * 2))
        case {"type": "object", "properties": dict(fields)}:
            filled = {
                name: next(edge_values(part, root, depth + 1), _NOTHING)
                for name, part in fields.items()
            }
            yield {name: value for name, value in filled.items() if value is not _NOTHING}
        case {"type": "object", "additionalProperties": dict(values)}:
            yield from (
                {},
                *({"a": value} for value in islice(edge_values(values, root, depth + 1), 3)),
            )
        case _:
            kind_of = schema.get("format") or schema.get("contentEncoding") or schema.get("type")
            yield from _EDGES.get(str(kind_of), ())
    if isinstance(schema.get("minimum"), int):
        yield from (schema["minimum"], schema["minimum"] + 1)


def _as_set(row: list[Value]) -> Value:
    try:
        return set(row)
    except TypeError:
        return []


def unseen(arguments: Arguments, examples: Sequence[Arguments]) -> list[str]:
    """Return the parameters with values unlike those of all examples; the author answers for the others."""
    seen = {name: [example[name] for example in examples if name in example] for name in arguments}
    return [name for name, value in arguments.items() if not _is_within(value, seen[name])]


def _is_within(value: Value, seen: Sequence[Value]) -> bool:
    """Check whether a value is within the types, sizes and ranges of the seen values.

    A text with words that were not seen, or a blank one, may have another format.
    """
    same = [other for other in seen if type(other) is type(value)]
    match value:
        case bool():
            return bool(same)
        case str() if value:
            words, rows = value.split(), [other.split() for other in same]
            return any(len(words) <= len(row) for row in rows) and {*words} <= {
                *chain.from_iterable(rows)
            }
        case int() | float():
            return bool(same) and min(same) <= value <= max(same)
        case list() | tuple() | set() | frozenset():
            inner = [item for other in same for item in other]
            return _is_of_size(value, same) and all(_is_within(item, inner) for item in value)
        case dict():
            parts = {key: [other[key] for other in same if key in other] for key in value}
            anywhere = [item for other in same for item in other.values()]
            is_known = all(key in other for other in same for key in value)
            return _is_of_size(value, same) and all(
                _is_within(item, parts[key] if is_known else anywhere)
                for key, item in value.items()
            )
        case _:
            return value in same


def _is_of_size(value: Value, same: Sequence[Value]) -> bool:
    sizes = [len(other) for other in same]
    return bool(sizes) and (len(value) in sizes or 0 < len(value) < max(sizes))
