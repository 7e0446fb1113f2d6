"""What holds between the arguments and the result of every example, such as that shares add up to what is shared out.

Pure. It may hold by accident, so a call that breaks it is no proof: its author is asked.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from .probes import leaves_of
from .reach import ShownCase

Measure: TypeAlias = Literal["sum", "length", "members"]
_LEAST, _CLOSE = 2, 1e-6
# What of a result is compared with what of a parameter.
_COMPARED: Mapping[str, Sequence[str]] = {
    "": ("sum",),
    "sum": ("sum",),
    "length": ("sum",),
    "members": ("members",),
}


@dataclass(frozen=True, slots=True)
class Invariant:
    """What of a result is always what of a parameter; nothing for a parameter that is itself a number."""

    of: Measure
    parameter: str
    by: Measure | Literal[""]

    @property
    def shown(self) -> str:
        """The invariant in words."""
        named = {"": "`{}`", "sum": "the sum of `{}`", "length": "the length of `{}`", "members": "those of `{}`"}
        return f"the {self.of} of the result {'are' if self.of == 'members' else 'is'} {named[self.by]}".format(
            self.parameter
        )

    def holds(self, arguments: Mapping[str, Any], value: Any) -> bool | None:  # Any: values that crossed
        """Check whether it holds for a call; None if a call has nothing to compare."""
        first, second = dict(_measures(value)).get(self.of), dict(_measures(arguments.get(self.parameter)))
        if first is None or self.by not in second:
            return None
        return _is_same(first, second[self.by])


def invariants(cases: Sequence[ShownCase]) -> list[Invariant]:
    """Return what holds in every example, at least two of them, whose results are more than one member."""
    rows = [case for case in cases if isinstance(case.value, list | tuple | dict) and len(case.value) >= _LEAST]
    if len({repr(case.value) for case in rows}) < _LEAST or any(_is_back(case) for case in rows):
        return []
    found = [
        Invariant(of, name, by)
        for name, argument in rows[0].arguments.items()
        for of, _size in _measures(rows[0].value)
        for by, _number in _measures(argument)
        if of and of in _COMPARED.get(by, ())
    ]
    return [
        one
        for one in found
        if all(one.holds(case.arguments, case.value) for case in rows)
        and all(one.holds(case.arguments, case.value) is not False for case in cases)
        and len({repr(dict(_measures(case.arguments[one.parameter]))[one.by]) for case in rows}) >= _LEAST
    ]


def _is_back(case: ShownCase) -> bool:
    return case.value in list(case.arguments.values())


def _measures(value: Any) -> Iterator[tuple[Any, Any]]:  # Any: whatever an argument or result is
    """Yield what of a value can be compared, with its size."""
    match value:
        case bool() | str():
            return
        case int() | float():
            yield "", value
        case list() | tuple() | dict():
            members = [*value.values()] if isinstance(value, dict) else [*value]
            yield "length", len(members)
            if members and all(isinstance(one, int | float) and not isinstance(one, bool) for one in members):
                yield "sum", sum(leaves_of(value))
            if not isinstance(value, dict):
                yield "members", sorted(map(repr, members))


def _is_same(first: Any, second: Any) -> bool:  # Any: sizes, or members
    if isinstance(first, int | float) and isinstance(second, int | float):
        return abs(first - second) <= _CLOSE * max(1.0, abs(first))
    return bool(first == second)
