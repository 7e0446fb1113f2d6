"""Recurring requests of everyday work: three domains, five families each, forty requests in a fixed order.

A domain is a module of functions that a person wrote; a seed decides its data. A family computes one value for each
row, from three calls for each of three rows to six for each of forty, and asks for one figure over all of them. It
recurs eight times, with other rows, other wording and a twist. The text of its rule, the calls and the expected answer
all come from the same lines of Python.
"""

import random
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

Call: TypeAlias = tuple[str, dict[str, Any]]  # Any: JSON

ROUNDS: Final = 8
_SIZES: Final = (3, 3, 8, 16, 40)
_TWISTS: Final = ("total", "total", "largest", "total", "above", "count", "smallest", "above")
_ASKED: Final = {
    "total": ("What do they come to in all?", "I need the sum of all of them."),
    "largest": ("Which value is the largest of them?", "Give me the highest of these values."),
    "smallest": ("What is the smallest of these values?", "I need the lowest value."),
    "above": ("What is the sum of those that are more than {above}?", "Add up only the ones above {above}."),
    "count": ("How many of them are more than {above}?", "Count those above {above}."),
}
_HEAD: Final = '''\
"""{about}"""

import hashlib
import json

_SEED = {seed}


def _drawn(most: int, *parts: object) -> int:
    text = repr((_SEED, *parts)).encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:4]) % most


'''


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of request. `lines` compute `value` from `row`; `rule` says the same in prose."""

    name: str
    rows: str  # the word for several rows
    rule: str
    lines: str


@dataclass(frozen=True, slots=True)
class DomainFunction:
    """A function that a person wrote, with one typed parameter; `words` complete "Return …"."""

    parameter: str
    returns: str
    words: str
    result: str  # an expression


@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """A module of functions, and the families of requests that need them, from easy to hard."""

    name: str
    about: str
    functions: dict[str, DomainFunction]
    families: tuple[Family, ...]

    def module(self, seed: int) -> str:
        """Return the source of the module with the data of this seed."""
        parts = [
            f"def {name}({function.parameter}) -> {function.returns}:\n"
            f'    """Return {function.words}.\n\n    Args:\n'
            f"        {function.parameter.partition(':')[0]}: As another function or the user says it.\n"
            f'    """\n    return {function.result}\n'
            for name, function in self.functions.items()
        ]
        return _HEAD.format(about=self.about, seed=seed) + "\n\n".join(parts)


@dataclass(frozen=True, slots=True)
class Requested:
    """One request: its text and the expected value; `calls` are those of each row, in order."""

    number: int
    domain: Domain
    family: Family
    text: str
    rows: list[int]
    twist: str
    above: float
    expected: float
    calls: list[list[Call]] = field(compare=False)

    @property
    def key(self) -> str:
        """The key of the answer in the result of the family's function."""
        return "total" if self.twist == "above" else self.twist

    @property
    def arguments(self) -> dict[str, Any]:  # Any: JSON
        """The arguments for the function of the family."""
        return {"numbers": self.rows, **({"above": self.above} if self.above >= 0 else {})}


def definition(domain: Domain, family: Family, docstring: str = "", *, is_apart: bool = False) -> str:
    """Return the right function of a family; one with `is_apart` imports what it calls."""
    used = [name for name in domain.functions if name in family.lines]
    imports = "import json\n\n" + (f"from functions.{domain.name} import {', '.join(used)}\n\n\n" if is_apart else "")
    lines = "".join(f"        {line}\n" for line in family.lines.splitlines())
    return (
        f"{imports}def {family.name}(numbers: list[int], above: float = -1.0) -> dict[str, float]:\n"
        f"{docstring}    values = []\n    for row in numbers:\n{lines}        if value > above:\n"
        "            values.append(value)\n    figures = {'total': round(sum(values), 2), 'count': len(values)}\n"
        "    return figures | {'largest': max(values, default=0), 'smallest': min(values, default=0)}\n"
    )


def right_function(domain: Domain, family: Family, seed: int) -> str:
    """Return the whole source that a strong maker writes for a family."""
    examples = "".join(
        f"    >>> {family.name}({rows}, above={above})\n    {_figures(domain, family, seed, rows, above)}\n"
        for rows, above in (([1, 2, 3], -1.0), ([4, 9], 5.0))
    )
    words = (
        f'    """Work out one value for each of these {family.rows}: total, count, largest and smallest.\n\n'
        f"    {family.rule}\n\n    Args:\n        numbers: The numbers of the {family.rows}.\n"
        f'        above: Only values that are more than this count.\n\n{examples}    """\n'
    )
    return definition(domain, family, words, is_apart=True)


def requests(domain: Domain, seed: int, day: int) -> Iterator[Requested]:
    """Yield the forty requests of a day in order: each quarter has two of each family."""
    chance = random.Random(f"{domain.name} {seed} {day}")
    for number in range(ROUNDS * len(domain.families)):
        round_, place = divmod(number, len(domain.families))
        family, size, twist = domain.families[place], _SIZES[place], _TWISTS[(round_ + place) % ROUNDS]
        twist = "total" if not round_ else twist
        first = chance.randrange(100, 900)
        rows = [*range(first, first + size)] if size > ROUNDS else sorted(chance.sample(range(100, 900), size))
        every = _figures(domain, family, seed, rows, -1.0)
        above = float(round((every["largest"] + every["smallest"]) / 2)) if twist in ("above", "count") else -1.0
        calls: list[list[Call]] = []
        figures = _figures(domain, family, seed, rows, above, calls)
        shown = f"{rows[0]} to {rows[-1]}" if size > ROUNDS else f"{', '.join(map(str, rows[:-1]))} and {rows[-1]}"
        asked = _ASKED[twist][round_ % 2].format(above=f"{above:g}")
        beginning = (f"Take the {family.rows} {shown}.", f"About the {family.rows} numbered {shown}:")[round_ % 2]
        text = f"{beginning} {family.rule} {asked} Answer with the number alone."
        expected = figures["total" if twist == "above" else twist]
        yield Requested(number, domain, family, text, rows, twist, above, expected, calls)


def is_answer(requested: Requested, reply: str) -> bool:
    """Check whether the last number of a reply that the request does not contain is the expected value."""
    said = [float(number.replace(",", "")) for number in re.findall(r"-?\d[\d,]*\.?\d*", reply)]
    given = {float(number) for number in re.findall(r"\d+\.?\d*", requested.text)}
    own = [number for number in said if number not in given or _is_same(number, requested.expected)]
    return bool(own) and _is_same(own[-1], requested.expected)


def _is_same(one: float, other: float) -> bool:
    return abs(one - other) < 0.006


@cache
def _world(domain: Domain, seed: int) -> dict[str, Any]:  # Any: what a module holds
    names: dict[str, Any] = {}
    exec(domain.module(seed), names)
    return names


def _figures(
    domain: Domain, family: Family, seed: int, rows: list[int], above: float, calls: list[list[Call]] | None = None
) -> dict[str, float]:
    """Return the result of the right function; the calls of each row are added to `calls`."""
    made: list[Call] = []
    names = dict(_world(domain, seed))
    for name, function in domain.functions.items():
        names[name] = _noted(name, function.parameter.partition(":")[0], names[name], made)
    exec(definition(domain, family), names)
    figures: dict[str, float] = names[family.name](rows, above)
    if calls is not None:
        count = len(made) // len(rows)
        calls += [made[start : start + count] for start in range(0, len(made), count)]
    return figures


def _noted(name: str, parameter: str, function: Callable[[Any], Any], made: list[Call]) -> Callable[[Any], Any]:
    def call(value: Any) -> Any:  # Any: JSON
        made.append((name, {parameter: value}))
        return function(value)

    return call


def _domains() -> Iterator[Domain]:
    for name, table in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")).items():
        functions = {each: DomainFunction(**given) for each, given in table["functions"].items()}
        yield Domain(name, table["about"], functions, tuple(Family(**given) for given in table["families"]))


DOMAINS: Final = {domain.name: domain for domain in _domains()}
