"""Recurring requests of everyday work: three domains, five families each, forty requests in a fixed order.

A domain is a module of functions that a person wrote; a seed decides its data, and draws the rule of each family from
clauses. A family computes one value for each row, from two clauses for each of three rows to four for each of forty,
and asks for one figure over all of them. It recurs eight times, with other rows, other wording and a twist. The words
of its rule, the calls and the expected answer all come from the same clauses.
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
_CLAUSES: Final = (1, 1, 2, 2, 3)  # after the start
FAMILIES: Final = len(_SIZES)
_FEWEST_USED: Final = 3  # functions that a rule needs
_TWISTS: Final = ("total", "total", "largest", "total", "above", "count", "smallest", "above")
_ASKED: Final = {
    "total": ("What do they come to in all?", "I need the sum of all of them."),
    "largest": ("Which value is the largest of them?", "Give me the highest of these values."),
    "smallest": ("What is the smallest of these values?", "I need the lowest value."),
    "above": (
        "What is the sum of those that are more than {above}?",
        "Add up only the ones above {above}.",
    ),
    "count": ("How many of them are more than {above}?", "Count those above {above}."),
}
_BEGINNINGS: Final = (
    "Take the {rows} {shown}.",
    "About the {rows} numbered {shown}:",
    "I have a question about the {rows} {shown}.",
    "Look at the {rows} with the numbers {shown}.",
)
PHRASINGS: Final = (
    "The value of {row} is {start}, {rest}, rounded to two decimals.",
    "For each of them, start with {start}, {rest}; round that to two decimals.",
    "Work out {start}, {rest}. That is the value of {row}, to two decimals.",
    "As the value of {row} we take {start}, {rest}, always with two decimals.",
    "Each has a value of two decimals: {start}, {rest}.",
)
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
class Clause:
    """A part of a rule: the `line` works on `value`; the `words` say the same."""

    name: str
    words: str
    line: str

    def drawn(self, chance: random.Random) -> "Clause":
        """Return the clause with numbers of its own."""
        words, line = self.words, self.line
        while "{number}" in words:
            number = str(chance.randrange(2, 8))
            words, line = words.replace("{number}", number, 1), line.replace("{number}", number, 1)
        return Clause(self.name, words, line)


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of request. `lines` compute `value` from `row`, clause by clause."""

    domain: "Domain"
    clauses: tuple[Clause, ...]

    @property
    def name(self) -> str:
        """The name of the function that would do it."""
        return f"{'_'.join(clause.name for clause in self.clauses)}_of_{self.domain.rows.replace(' ', '_')}"

    @property
    def lines(self) -> str:
        """The lines of the function, for one row."""
        lines = (clause.line for clause in self.clauses)
        return "\n".join([self.domain.read, *lines, "value = round(value, 2)"])

    @property
    def used(self) -> list[str]:
        """The functions that the lines call."""
        return [name for name in self.domain.functions if name in self.lines]

    def rule(self, phrasing: str = PHRASINGS[0]) -> str:
        """Return the rule in prose."""
        start, *rest = (clause.words for clause in self.clauses)
        return phrasing.format(row=self.domain.row, start=start, rest=", then ".join(rest))


@dataclass(frozen=True, slots=True)
class DomainFunction:
    """A function that a person wrote, with one typed parameter; `words` complete "Return …".

    It raises for a value that is not one of its `keys`, and says in which `form` it is right.
    """

    parameter: str
    returns: str
    words: str
    keys: str  # an expression
    form: str
    result: str  # an expression


@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """A module of functions, and the clauses of the rules that need them; `read` reads a row."""

    name: str
    about: str
    rows: str  # the word for several rows
    row: str
    read: str
    functions: dict[str, DomainFunction]
    starts: tuple[Clause, ...]
    clauses: tuple[Clause, ...]

    def families(self, seed: int) -> tuple[Family, ...]:
        """Return the families of requests that a seed draws, from easy to hard."""
        return _families(self, seed)

    def module(self, seed: int) -> str:
        """Return the source of the module with the data of this seed."""
        parts = []
        for name, function in self.functions.items():
            parameter = function.parameter.partition(":")[0]
            parts.append(
                f"def {name}({function.parameter}) -> {function.returns}:\n"
                f'    """Return {function.words}.\n\n    Args:\n'
                f"        {parameter}: As another function or the user says it.\n\n"
                f'    Raises:\n        ValueError: there is no such {parameter}.\n    """\n'
                f"    if {parameter} not in {function.keys}:\n"
                f'        raise ValueError(f"there is no {{{parameter}!r}}: {function.form}")\n'
                f"    return {function.result}\n"
            )
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


def definition(
    domain: Domain, family: Family, docstring: str = "", *, is_apart: bool = False
) -> str:
    """Return the right function of a family; one with `is_apart` imports what it calls."""
    imports = "import json\n\n" if "json." in family.lines else ""
    imports += (
        f"from functions.{domain.name} import {', '.join(family.used)}\n\n\n" if is_apart else ""
    )
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
        f'    """Work out one value for each of these {domain.rows}: total, count, largest and smallest.\n\n'
        f"    {family.rule()}\n\n    Args:\n        numbers: The numbers of the {domain.rows}.\n"
        f'        above: Only values that are more than this count.\n\n{examples}    """\n'
    )
    return definition(domain, family, words, is_apart=True)


def requests(domain: Domain, seed: int, day: int) -> Iterator[Requested]:
    """Yield the forty requests of a day in order: each quarter has two of each family."""
    chance, families = random.Random(f"{domain.name} {seed} {day}"), domain.families(seed)
    for number in range(ROUNDS * FAMILIES):
        round_, place = divmod(number, FAMILIES)
        family, size, twist = families[place], _SIZES[place], _TWISTS[(round_ + place) % ROUNDS]
        twist = "total" if not round_ else twist
        first = chance.randrange(100, 900)
        rows = (
            [*range(first, first + size)]
            if size > ROUNDS
            else sorted(chance.sample(range(100, 900), size))
        )
        every = _figures(domain, family, seed, rows, -1.0)
        above = (
            float(round((every["largest"] + every["smallest"]) / 2))
            if twist in ("above", "count")
            else -1.0
        )
        calls: list[list[Call]] = []
        figures = _figures(domain, family, seed, rows, above, calls)
        shown = (
            f"{rows[0]} to {rows[-1]}"
            if size > ROUNDS
            else f"{', '.join(map(str, rows[:-1]))} and {rows[-1]}"
        )
        asked = _ASKED[twist][round_ % 2].format(above=f"{above:g}")
        beginning = chance.choice(_BEGINNINGS).format(rows=domain.rows, shown=shown)
        text = f"{beginning} {family.rule(chance.choice(PHRASINGS))} {asked} Answer with the number alone."
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
def _families(domain: Domain, seed: int) -> tuple[Family, ...]:
    chance, families = random.Random(f"rules of {domain.name} {seed}"), dict[str, Family]()
    while len(families) < FAMILIES:
        rest = chance.sample(domain.clauses, _CLAUSES[len(families)])
        family = Family(
            domain, tuple(clause.drawn(chance) for clause in (chance.choice(domain.starts), *rest))
        )
        if len(family.used) >= _FEWEST_USED:
            families.setdefault(family.name, family)
    return tuple(families.values())


@cache
def _world(domain: Domain, seed: int) -> dict[str, Any]:  # Any: what a module holds
    names: dict[str, Any] = {}
    exec(domain.module(seed), names)
    return names


def _figures(
    domain: Domain,
    family: Family,
    seed: int,
    rows: list[int],
    above: float,
    calls: list[list[Call]] | None = None,
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


def _noted(
    name: str, parameter: str, function: Callable[[Any], Any], made: list[Call]
) -> Callable[[Any], Any]:
    def call(value: Any) -> Any:  # Any: JSON
        made.append((name, {parameter: value}))
        return function(value)

    return call


def _domains() -> Iterator[Domain]:
    for name, table in tomllib.loads(
        Path(__file__).with_suffix(".toml").read_text("utf-8")
    ).items():
        functions = {each: DomainFunction(**given) for each, given in table["functions"].items()}
        starts, clauses = (
            tuple(Clause(**given) for given in table[key]) for key in ("starts", "clauses")
        )
        yield Domain(name, **table | {"functions": functions, "starts": starts, "clauses": clauses})


DOMAINS: Final = {domain.name: domain for domain in _domains()}
