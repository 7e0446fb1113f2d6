"""The domain that examples show: what their calls share, each argument alone and in pairs. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, permutations

from agent_core.registry.typenames import Schema

from .likeness import CallDifference, Likeness, Weight, differences, likeness
from .variants import Value

_MOST = 6  # parameters that are compared with each other
Relation = tuple[str, str, str]  # parameter, parameter, what holds between them


@dataclass(frozen=True, slots=True)
class Domain:
    """The properties that all calls of the examples share."""

    arguments: Mapping[str, Likeness]
    relations: tuple[Relation, ...]
    typed: frozenset[str] = frozenset()  # parameters with a type that is declared to the last item

    def outside(self, call: Mapping[str, Value]) -> list[CallDifference]:
        """Return how a call differs from every readable example, the most serious differences first."""
        deviations = [
            CallDifference(f"`{name}` {difference.words}", difference.weight)
            for name, value in call.items()
            if name in self.arguments
            for difference in differences(value, self.arguments[name], typed=name in self.typed)
        ]
        deviations += [
            CallDifference(f"`{name}` is given", Weight.SUPPOSED) for name in call if name not in self.arguments
        ]
        for first, second, kind in self.broken(call):
            _check, words, weight = _RELATIONS[kind]
            deviations.append(CallDifference(f"`{first}` {words} `{second}`", weight))
        return sorted(deviations, key=lambda difference: -difference.weight)

    def broken(self, call: Mapping[str, Value]) -> list[Relation]:
        """Return the relations that do not hold in a call."""
        return [
            (first, second, kind)
            for first, second, kind in self.relations
            if first in call and second in call and not _holds(kind, call[first], call[second])
        ]


def domain(calls: Sequence[Mapping[str, Value]], properties: Mapping[str, Schema]) -> Domain:
    """Return the domain that these calls of a function with these parameters show."""
    names = list(dict.fromkeys(chain.from_iterable(calls)))
    arguments = {name: likeness([call[name] for call in calls if name in call]) for name in names}
    pairs = permutations(names, 2) if len(names) <= _MOST else iter(())
    relations = tuple(relation for first, second in pairs for relation in _between(first, second, calls))
    return Domain(arguments, relations, frozenset(name for name, schema in properties.items() if _is_whole(schema)))


def _is_whole(schema: Schema) -> bool:
    """Check whether the schema gives the type of everything in a value."""
    match schema:
        case {"anyOf": list(members)}:
            return all(map(_is_whole, members))
        case {"type": "array"}:
            parts = [*schema.get("prefixItems", ()), *(schema[key] for key in ("items",) if key in schema)]
            return bool(parts) and all(map(_is_whole, parts))
        case {"type": "object"}:
            values = schema.get("additionalProperties")
            parts = [*schema.get("properties", {}).values(), *([values] if isinstance(values, dict) else [])]
            return bool(parts) and all(map(_is_whole, parts))
        case _:
            return bool(schema.keys() & {"type", "enum", "const"})


def _between(first: str, second: str, calls: Sequence[Mapping[str, Value]]) -> list[Relation]:
    """Return the strongest relation of each group that holds in every call."""
    if not all(first in call and second in call for call in calls):
        return []
    holding = (
        next((kind for kind in group if all(_holds(kind, call[first], call[second]) for call in calls)), "")
        for group in _GROUPS
    )
    return [(first, second, kind) for kind in holding if kind]


def _holds(kind: str, first: Value, second: Value) -> bool:
    try:
        return bool(_RELATIONS[kind][0](first, second))
    except (TypeError, LookupError, ArithmeticError):
        return False


def _numbers(*values: Value) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


_GROUPS = (("length", "index", "within"), ("width", "column"), ("below", "at most"), ("as long",), ("inside",))
# What may hold between two arguments, and the words and their weight where it does not.
_RELATIONS: dict[str, tuple[Callable[[Value, Value], bool], str, Weight]] = {
    "length": (lambda first, second: _numbers(first) and first == len(second), "is not the length of", Weight.FOREIGN),
    "index": (
        lambda first, second: _numbers(first) and first < len(second),
        "is not below the length of",
        Weight.SUPPOSED,
    ),
    "within": (
        lambda first, second: _numbers(first) and first <= len(second),
        "is above the length of",
        Weight.SUPPOSED,
    ),
    "width": (lambda first, second: _numbers(first) and first == len(second[0]), "is not the width of", Weight.FOREIGN),
    "column": (lambda first, second: _numbers(first) and first < len(second[0]), "is no column of", Weight.SUPPOSED),
    "below": (lambda first, second: _numbers(first, second) and first < second, "is not below", Weight.SLIGHT),
    "at most": (lambda first, second: _numbers(first, second) and first <= second, "is above", Weight.SLIGHT),
    "as long": (lambda first, second: len(first) == len(second), "is not as long as", Weight.SUPPOSED),
    "inside": (lambda first, second: first in second, "is not in", Weight.SLIGHT),
}


def unlike(call: Mapping[str, Value], examples: Sequence[Mapping[str, Value]]) -> list[CallDifference]:
    """Return the keys of records that hold another kind of value than in every example."""
    seen: dict[tuple[str, ...], set[str]] = {}
    for example in examples:
        for place, kind in _records(dict(example), ()):
            seen.setdefault(place, set()).add(kind)
    others = {place for place, kind in _records(dict(call), ()) if kind not in seen.get(place, {kind})}
    return [
        CallDifference(f"`{place[0]}` holds another type at `{place[-1]}`", Weight.FOREIGN) for place in sorted(others)
    ]


def _records(value: Value, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the kinds of values in records below the parameters, each with its place."""
    if isinstance(value, dict | list | tuple) and len(place) > 1 and place[-1] != "*":
        yield place, type(value).__name__
    match value:
        case dict() if len(place) < _DEEPEST:
            for key, part in value.items():
                yield from _records(part, (*place, str(key)))
        case list() | tuple() if len(place) < _DEEPEST:
            for part in value:
                yield from _records(part, (*place, "*") if place else place)
        case _ if len(place) > 1 and place[-1] != "*":
            yield place, "number" if type(value) in (int, float) else type(value).__name__


_DEEPEST = 5
