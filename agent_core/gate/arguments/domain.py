"""The domain that examples show: what their calls have in common, each argument by itself and in pairs. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, permutations

from ...registry.typenames import Schema
from .likeness import Difference, Likeness, Weight, differences, likeness
from .vary import Value

_MOST = 6  # parameters that are compared with each other
Relation = tuple[str, str, str]  # parameter, parameter, what holds between them


@dataclass(frozen=True, slots=True)
class Domain:
    """What all the calls of the examples have in common."""

    arguments: Mapping[str, Likeness]
    relations: tuple[Relation, ...]
    typed: frozenset[str] = frozenset()  # parameters whose type is declared to the last item

    def outside(self, call: Mapping[str, Value]) -> list[Difference]:
        """The ways in which a call is unlike every example that can be read, the weightiest first."""
        found = [
            Difference(f"`{name}` {one.words}", one.weight)
            for name, value in call.items()
            if name in self.arguments
            for one in differences(value, self.arguments[name], typed=name in self.typed)
        ]
        found += [Difference(f"`{name}` is given", Weight.SUPPOSED) for name in call if name not in self.arguments]
        for one, other, kind in self.broken(call):
            _check, words, weight = _RELATIONS[kind]
            found.append(Difference(f"`{one}` {words} `{other}`", weight))
        return sorted(found, key=lambda difference: -difference.weight)

    def broken(self, call: Mapping[str, Value]) -> list[Relation]:
        """The relations that do not hold in a call."""
        return [
            (one, other, kind)
            for one, other, kind in self.relations
            if one in call and other in call and not _holds(kind, call[one], call[other])
        ]


def domain(calls: Sequence[Mapping[str, Value]], properties: Mapping[str, Schema]) -> Domain:
    """The domain that these calls show, of a function with these parameters."""
    names = list(dict.fromkeys(chain.from_iterable(calls)))
    arguments = {name: likeness([call[name] for call in calls if name in call]) for name in names}
    pairs = permutations(names, 2) if len(names) <= _MOST else iter(())
    relations = tuple(found for one, other in pairs for found in _between(one, other, calls))
    return Domain(arguments, relations, frozenset(name for name, one in properties.items() if _is_whole(one)))


def _is_whole(schema: Schema) -> bool:
    """The schema says of what kind everything in a value is."""
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


def _between(one: str, other: str, calls: Sequence[Mapping[str, Value]]) -> list[Relation]:
    """The strongest relation of each group that holds in every call."""
    if not all(one in call and other in call for call in calls):
        return []
    holding = (
        next((kind for kind in group if all(_holds(kind, call[one], call[other]) for call in calls)), "")
        for group in _GROUPS
    )
    return [(one, other, kind) for kind in holding if kind]


def _holds(kind: str, one: Value, other: Value) -> bool:
    try:
        return bool(_RELATIONS[kind][0](one, other))
    except (TypeError, LookupError, ArithmeticError):
        return False


def _numbers(*values: Value) -> bool:
    return all(isinstance(one, int | float) and not isinstance(one, bool) for one in values)


_GROUPS = (("length", "index", "within"), ("width", "column"), ("below", "at most"), ("as long",), ("inside",))
# What may hold between two arguments, and the words and their weight where it does not.
_RELATIONS: dict[str, tuple[Callable[[Value, Value], bool], str, Weight]] = {
    "length": (lambda one, other: _numbers(one) and one == len(other), "is not the length of", Weight.FOREIGN),
    "index": (lambda one, other: _numbers(one) and one < len(other), "is not below the length of", Weight.SUPPOSED),
    "within": (lambda one, other: _numbers(one) and one <= len(other), "is above the length of", Weight.SUPPOSED),
    "width": (lambda one, other: _numbers(one) and one == len(other[0]), "is not the width of", Weight.FOREIGN),
    "column": (lambda one, other: _numbers(one) and one < len(other[0]), "is no column of", Weight.SUPPOSED),
    "below": (lambda one, other: _numbers(one, other) and one < other, "is not below", Weight.SLIGHT),
    "at most": (lambda one, other: _numbers(one, other) and one <= other, "is above", Weight.SLIGHT),
    "as long": (lambda one, other: len(one) == len(other), "is not as long as", Weight.SUPPOSED),
    "inside": (lambda one, other: one in other, "is not in", Weight.SLIGHT),
}
