"""Parameters that change nothing: calls that differ in one argument alone tell whether a result depends on it.

Pure. A parameter matters if two such calls return different results, or if an argument that is taken elsewhere is
refused beside others: then it is compared with them. What is refused or taken for itself alone is only checked.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

from sandbox import Outcome, Raised, Returned

from .call_arguments import Arguments
from .schema_fit import Value

EndedCall: TypeAlias = tuple[Arguments, Outcome | None]
_PAIRS, _RESULTS, _KINDS = 10, 2, 2
_BASES, _VALUES = 14, 6
_REACHED = 0.9  # of the calls
_REFUSED = ""


@dataclass(frozen=True, slots=True)
class _Compared:
    """The answers to calls that differ in one parameter: per set of other arguments, the answer for each value."""

    rows: tuple[dict[str, str], ...]

    @property
    def matters(self) -> bool:
        """True if the parameter changes a result, or is refused beside other arguments only."""
        taken = {value for row in self.rows for value, answer in row.items() if answer != _REFUSED}
        return any(
            len({answer for answer in row.values() if answer != _REFUSED}) > 1
            or (any(row.values()) and any(not row[value] for value in taken & row.keys()))
            for row in self.rows
        )

    @property
    def is_enough(self) -> bool:
        """True if so many pairs returned, of several values and with several results, that no difference is telling."""
        returned = [{value: answer for value, answer in row.items() if answer != _REFUSED} for row in self.rows]
        pairs = [row for row in returned if len(row) > 1]
        results = {answer for row in pairs for answer in row.values()}
        count = sum(len(row) - 1 for row in pairs)
        return count >= _PAIRS and len(set().union(*pairs)) >= _KINDS and len(results) >= _RESULTS


def _compared(calls: Sequence[EndedCall], name: str) -> _Compared:
    rows: dict[str, dict[str, str]] = {}
    for arguments, outcome in calls:
        if name in arguments and isinstance(outcome, Returned | Raised):
            others = repr(sorted((key, repr(value)) for key, value in arguments.items() if key != name))
            answer = repr(outcome.value) if isinstance(outcome, Returned) else _REFUSED
            rows.setdefault(others, {})[repr(arguments[name])] = answer
    return _Compared(tuple(rows.values()))


def without_effect(calls: Sequence[EndedCall], names: Sequence[str]) -> list[str]:
    """Return the parameters of which no call shows that they matter."""
    return [name for name in names if not _compared(calls, name).matters]


def is_idle(calls: Sequence[EndedCall], name: str) -> bool:
    """Check whether calls show that a parameter changes nothing; those that were not reached might differ."""
    compared = _compared(calls, name)
    is_reached = sum(outcome is not None for _arguments, outcome in calls) >= _REACHED * len(calls)
    return is_reached and compared.is_enough and not compared.matters


def variations(calls: Sequence[EndedCall], name: str, values: Sequence[Any]) -> Iterator[Arguments]:
    """Yield calls that returned, of many results, with other values of a parameter: `values` first, then those seen."""
    returned = [(arguments, outcome) for arguments, outcome in calls if isinstance(outcome, Returned)]
    seen: dict[str, Value] = {}
    for arguments, _outcome in returned:
        if name in arguments:
            seen.setdefault(repr(arguments[name]), arguments[name])
    kinds = {type(value) for value in seen.values()}
    wanted = {
        repr(value): value for value in (*values, *((True, False) if bool in kinds else ())) if type(value) in kinds
    }
    pool = [*islice((wanted | seen).values(), _VALUES)]
    bases = {repr(outcome.value): arguments for arguments, outcome in reversed(returned) if name in arguments}
    for base in islice(reversed(bases.values()), _BASES):
        yield from (base | {name: value} for value in pool if repr(value) != repr(base[name]))
