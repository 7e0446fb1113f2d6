"""Calls of a function that its author may not have thought of, from simple to odd.

Three sources: the examples' own arguments changed slightly, the edges of the declared types, and random values with
the types, sizes, ranges and characters of the examples. Pure: the same source gives the same calls.
"""

import ast
import datetime
import random
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain, islice
from pathlib import PurePosixPath
from typing import Any

from agent_core.base import syntax
from agent_core.registry.typenames import Schema

from ..tree import literal
from .boundary import boundary
from .domain import Domain
from .likeness import Likeness, Weight
from .schema_fit import fits
from .variants import Value, variants


def draw(likeness: Likeness, chance: random.Random) -> Value:
    """Return a random value like those that were seen."""
    model = likeness.seen[int(chance.random() * len(likeness.seen))]
    if chance.random() < 0.2:
        return model
    maker = _DRAWN.get(type(model))
    return maker(model, likeness, chance) if maker else model


def _draw_number(model: Value, likeness: Likeness, chance: random.Random) -> Value:
    if not likeness.numbers:
        return model
    low, high = min(likeness.numbers[0], 1), likeness.numbers[-1]
    if high < low:
        low = likeness.numbers[0]
    if isinstance(model, float):
        return round(chance.uniform(low, high), 3)
    return int(low) + int(chance.random() * (int(high) - int(low) + 1))


def _draw_text(model: str, likeness: Likeness, chance: random.Random) -> Value:
    return "".join(chance.choices(likeness.letters, k=_size(model, likeness, chance))) if likeness.letters else model


def _size(model: Any, likeness: Likeness, chance: random.Random) -> int:
    least, most = likeness.sizes[0], min(likeness.sizes[-1], len(model) + 8)
    return least + int(chance.random() * (most - least + 1)) if most > least else len(model)


def _draw_row(model: Any, likeness: Likeness, chance: random.Random) -> Value:
    if likeness.parts or not likeness.inside:
        return type(model)(draw(part, chance) for part in likeness.parts)
    row = [draw(likeness.inside, chance) for _ in range(_size(model, likeness, chance))]
    if "is uneven" in likeness.traits:
        row = _evened(row)
    if "repeats an item" in likeness.traits:
        row = [item for at, item in enumerate(row) if item not in row[:at]]
    return type(model)(_ordered(row) if "is not in order" in likeness.traits else row)


def _evened(row: list[Value]) -> list[Value]:
    """Return rows cut to the length of the shortest; items that are no rows (a dict may hold them) are dropped."""
    rows = [item for item in row if isinstance(item, list | tuple)]
    least = min(map(len, rows), default=0)
    return [item[:least] for item in rows]


def _ordered(row: list[Value]) -> list[Value]:
    try:
        return sorted(row)
    except (TypeError, ArithmeticError):
        return row


def _draw_set(model: Any, likeness: Likeness, chance: random.Random) -> Value:
    if not likeness.inside:
        return model
    items = (draw(likeness.inside, chance) for _ in range(_size(model, likeness, chance)))
    return type(model)(item for item in items if _is_hashable(item))


def _is_hashable(value: Value) -> bool:
    """Check whether a set or a mapping can hold a value: next to a row of rows, a set is drawn of rows, too."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _draw_mapping(model: Any, likeness: Likeness, chance: random.Random) -> Value:
    if not likeness.keys or not likeness.inside:
        return model
    if len(likeness.sizes) == 1 and chance.random() < 0.5:
        return {key: draw(likeness.inside, chance) for key in model}
    pairs = (
        (draw(likeness.keys, chance), draw(likeness.inside, chance)) for _ in range(_size(model, likeness, chance))
    )
    return {key: value for key, value in pairs if _is_hashable(key)}


_DRAWN: dict[type, Callable[[Any, Likeness, random.Random], Value]] = {
    bool: lambda _model, _likeness, chance: chance.random() < 0.5,
    int: _draw_number,
    float: _draw_number,
    str: _draw_text,
    list: _draw_row,
    tuple: _draw_row,
    set: _draw_set,
    frozenset: _draw_set,
    dict: _draw_mapping,
}


Arguments = dict[str, Value]
_LARGEST = 20_000  # characters of one call
_MOST_BITS = 10_000
_DRAWS = 250
_PATIENCE = 3  # draws for one call in which everything holds that held in the examples


def shown(calls: Sequence[str], name: str, parameters: Schema, rest: str = "", extra: str = "") -> list[Arguments]:
    """Return the arguments that examples pass to a function, if they are literal and valid.

    `rest` and `extra` are the names of its `*args` and `**kwargs`.
    """
    nodes = chain.from_iterable(_calls_in(call, name) for call in calls)
    read = (_arguments(node, list(parameters["properties"]), rest, extra) for node in nodes)
    return [arguments for arguments in read if arguments is not None and fits(arguments, parameters, parameters)]


def _calls_in(text: str, name: str) -> Iterator[ast.Call]:
    try:
        tree = syntax.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node


def _arguments(node: ast.Call, names: list[str], rest: str, extra: str) -> Arguments | None:
    placed = names[: names.index(rest)] if rest else names
    if (len(node.args) > len(placed) and not rest) or any(keyword.arg is None for keyword in node.keywords):
        return None
    try:
        values = {name: _value(argument) for name, argument in zip(placed, node.args, strict=False)}
        named = {str(keyword.arg): _value(keyword.value) for keyword in node.keywords}
        more = [_value(argument) for argument in node.args[len(placed) :]]
    except (ValueError, TypeError, ArithmeticError, RecursionError):
        return None
    others = {name: value for name, value in named.items() if name not in names} if extra else {}
    values |= {name: value for name, value in named.items() if name not in others}
    return values | ({rest: more} if more else {}) | ({extra: others} if others else {})


def _value(node: ast.expr) -> Value:
    """Return the value of a literal, or of one of the few constructors that are as good as one."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args, keywords=named) if name in _MAKERS:
            constructed = _MAKERS[name](
                *map(_value, args), **{str(keyword.arg): _value(keyword.value) for keyword in named}
            )
            if isinstance(constructed, Decimal) and constructed.is_snan():  # it cannot even be compared
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


def generate(
    parameters: Schema, examples: Sequence[Arguments], domain: Domain, seed: str, most: int
) -> Iterator[Arguments]:
    """Yield up to `most` different calls that are valid under the schema."""
    seen = set(map(repr, examples))
    sources = (
        islice(_left_out(parameters, examples), most // 10),
        islice(_varied(parameters, examples), most * 4 // 10),
        islice(_at_edges(parameters, examples, domain), most * 3 // 10),
        _drawn(parameters, examples, domain, random.Random(seed)),  # noqa: S311 - the same again, not a secret
    )
    return islice(_new(chain.from_iterable(sources), seen, domain), most)


def _new(calls: Iterator[Arguments], seen: set[str], domain: Domain) -> Iterator[Arguments]:
    for call in calls:
        text = repr(call)
        if text not in seen and len(text) <= _LARGEST:
            seen.add(text)
            if not any(difference.weight == Weight.FOREIGN for difference in domain.outside(call)):
                yield call


def _left_out(parameters: Schema, examples: Sequence[Arguments]) -> Iterator[Arguments]:
    """Yield the examples without the arguments that have a default."""
    required = parameters.get("required", ())
    for example in examples:
        for name in example:
            if name not in required:
                yield {key: value for key, value in example.items() if key != name}


def _varied(parameters: Schema, examples: Sequence[Arguments]) -> Iterator[Arguments]:
    """Yield the examples with one argument changed, each example and argument in turn."""
    properties = parameters["properties"]
    waiting = [(example, name, variants(example[name])) for example in examples for name in example]
    while waiting:
        remaining = []
        for example, name, changes in waiting:
            change = next((variant for variant in changes if fits(variant, properties[name], parameters)), _NOTHING)
            if change is not _NOTHING:
                remaining.append((example, name, changes))
                yield example | {name: change}
        waiting = remaining


_NOTHING = object()


def _at_edges(parameters: Schema, examples: Sequence[Arguments], domain: Domain) -> Iterator[Arguments]:
    """Yield calls with one argument at an edge of its type, the others as in an example, or at an edge themselves."""
    edges = {name: list(_edges(name, parameters, domain)) for name in parameters["properties"]}
    simple = {name: values[0] for name, values in edges.items() if values}
    base = examples[0] if examples else {name: simple[name] for name in parameters["required"] if name in simple}
    for at in range(max(map(len, edges.values()), default=0)):
        for name, values in edges.items():
            call = base | {name: values[at]} if at < len(values) else {}
            if call.keys() >= set(parameters["required"]):
                yield call


def _edges(name: str, parameters: Schema, domain: Domain) -> Iterator[Value]:
    likeness = domain.arguments.get(name)
    values = boundary(parameters["properties"][name], parameters, likeness.seen if likeness else ())
    return (_as_seen(value, likeness) for value in values) if likeness else values


def _as_seen(value: Value, likeness: Likeness) -> Value:
    """Return the value with tuples where the examples have tuples: the schema's array may be either."""
    if not isinstance(value, list):
        return value
    row = [_as_seen(item, likeness.inside) for item in value] if likeness.inside else value
    return tuple(row) if tuple in likeness.kinds and list not in likeness.kinds else row


def _drawn(
    parameters: Schema, examples: Sequence[Arguments], domain: Domain, chance: random.Random
) -> Iterator[Arguments]:
    """Yield arguments like those of the examples, as long as they differ; at the edges if there are no examples."""
    if not examples:
        yield from _mixed(parameters, domain, chance)
        return
    properties = parameters["properties"]
    for _ in range(_DRAWS):
        base = chance.choice(examples)
        for _ in range(_PATIENCE):
            call = {name: draw(domain.arguments[name], chance) for name in base}
            if not domain.broken(call):
                break
        if all(fits(value, properties[name], parameters) for name, value in call.items()):
            yield call


def _mixed(parameters: Schema, domain: Domain, chance: random.Random) -> Iterator[Arguments]:
    edges = {name: list(_edges(name, parameters, domain)) for name in parameters["properties"]}
    if not edges or not all(edges[name] for name in parameters["required"]):
        return
    for _ in range(_DRAWS):
        yield {name: chance.choice(values) for name, values in edges.items() if values}


def written(
    name: str, arguments: Mapping[str, Value], parameters: Sequence[str], rest: str = "", extra: str = ""
) -> str:
    """Return the call as its author would write it: positional until an argument is omitted."""
    parts, by_name = list[str](), False
    for parameter in parameters:
        value = arguments.get(parameter)
        if parameter == rest:
            parts += [f"*{_shown(value)}"] if by_name and value else map(_shown, value or ())
        elif parameter == extra:
            parts += [f"{key}={_shown(item)}" for key, item in (value or {}).items()]
        elif parameter in arguments:
            parts.append(f"{parameter}=" * by_name + _shown(value))
        by_name = by_name or parameter not in arguments or parameter == rest
    return f"{name}({', '.join(parts)})"


def _shown(value: Value) -> str:
    match value:
        case list():
            return f"[{', '.join(map(_shown, value))}]"
        case tuple():
            return f"({', '.join(map(_shown, value))}{',' * (len(value) == 1)})"
        case dict():
            return f"{{{', '.join(f'{_shown(key)}: {_shown(item)}' for key, item in value.items())}}}"
        case PurePosixPath():
            return f"Path({str(value)!r})"
        case _:
            return repr(value).removeprefix(f"{type(value).__module__}.")
