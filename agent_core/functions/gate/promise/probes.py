"""Calls that tell whether a function works on the content of what it is given, or only pastes it.

Pure. A twin of a call has other letters of the same case in the same places: a function that never reads them
answers both alike, but for the letters that it hands on. Everyday texts stand in for what no example has.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from agent_core.registry.function import Function

from ..arguments.domain import Domain, domain
from ..arguments.generation import Arguments, generate
from ..arguments.schema_fit import fits
from .kin import kin_calls

Kind = Literal["example", "again", "twin", "everyday", "everyday-twin", "number", "kin", "literal", "other"]
EVERYDAY = (
    "The cat sat on the mat. The dog hated the cat, and the cat hated rain. Rain fell all day.",
    "We hate this terrible, broken phone! Worst purchase ever.",
    "What a wonderful, great and happy day, I love it.",
    "Hello world, good morning! How are you?",
    "Congratulations, you won free money! Click here now to claim your prize.",
    "Dear Anna, the meeting moved to Monday 2024-06-03 at 15:30 in Berlin. Call 555-0199 or write to anna@example.org.",
    "tokyo",
    "banana bread",
    "3 + 4 * 2",
    "he dont know nothing about they car",
)
_BASES, _OTHERS, _LONGEST, _VALUES = 4, 32, 4000, 24
_VOWELS = "aeiou"


@dataclass(frozen=True, slots=True)
class Probe:
    """A call; `of` is the number of the probe that it is compared with, `parameter` what differs between the two."""

    arguments: Arguments
    kind: Kind
    of: int = -1
    parameter: str = ""

    @property
    def is_row(self) -> bool:
        """True if what differs is a container."""
        return isinstance(self.arguments.get(self.parameter), list | tuple | dict)


def probes(function: Function, examples: Sequence[Arguments], values: Sequence[Any] = ()) -> list[Probe]:
    """Return the calls to try: each example, twins of it, everyday texts, arguments of the same kind, `values` that
    stand in the code, and what `robust` would generate.
    """
    chance, parameters = random.Random(function.body_hash), function.parameters  # noqa: S311 - the same again
    known = domain(examples, parameters["properties"])
    bases = list(examples[:_BASES]) or list(islice(generate(parameters, (), known, function.body_hash, 40), _BASES))
    made = [Probe(base, "example" if examples else "other") for base in bases]
    made += [Probe(bases[0], "again", 0) for _ in range(3) if bases]
    for at, base in enumerate(bases):
        made += _twins(base, at, chance, made)
    for at, base in enumerate(bases[:2]):
        made += _numbers(base, at)
    made += _everyday(bases, chance, len(made))
    made += [Probe(call, "kin", -1, name) for call, name in kin_calls(examples, parameters)]
    made += _with_values(function, examples, values)
    made += _others(function, examples, known)
    return [probe for probe in made if len(repr(probe.arguments)) <= _LONGEST] if _are_short(made) else []


def _are_short(made: list[Probe]) -> bool:
    """Check whether no call is too long; numbers of probes hold only if none is left out."""
    return all(len(repr(probe.arguments)) <= _LONGEST for probe in made)


def _twins(base: Arguments, at: int, chance: random.Random, made: list[Probe]) -> list[Probe]:
    """Return two twins of a call for each argument with text: the first is a twin of the call, the second of that."""
    twins: list[Probe] = []
    for name in base:
        if has_letters(base[name]):
            first = Probe(base | {name: twin(base[name], chance)}, "twin", at, name)
            twins += [first, Probe(base | {name: twin(base[name], chance)}, "twin", len(made) + len(twins), name)]
    return twins


def _numbers(base: Arguments, at: int) -> Iterator[Probe]:
    for name, value in base.items():
        for change in (1, 4, 9) if _has_numbers(value) else ():
            yield Probe(base | {name: _more(value, change)}, "number", at, name)


def _has_numbers(value: Any) -> bool:  # Any: whatever an argument is
    match value:
        case bool():
            return False
        case int() | float():
            return True
        case list() | tuple():
            return any(map(_has_numbers, value))
        case dict():
            return any(map(_has_numbers, value.values()))
        case _:
            return False


def _more(value: Any, change: int) -> Any:  # Any: whatever an argument is
    """Return a value with larger numbers, each by another amount."""
    match value:
        case bool():
            return value
        case int() | float():
            return value + change
        case list() | tuple():
            return type(value)(_more(part, change + 2 * at) for at, part in enumerate(value))
        case dict():
            return {key: _more(part, change + 2 * at) for at, (key, part) in enumerate(value.items())}
        case _:
            return value


def _everyday(bases: Sequence[Arguments], chance: random.Random, start: int) -> list[Probe]:
    """Return everyday texts in the place of each text, each with its twin."""
    made: list[Probe] = []
    base = bases[0] if bases else {}
    for name in [name for name in base if isinstance(base[name], str)][:2]:
        for text in EVERYDAY:
            made.append(Probe(base | {name: text}, "everyday", -1, name))
            if has_letters(text):
                made.append(Probe(base | {name: twin(text, chance)}, "everyday-twin", start + len(made) - 1, name))
    return made


def _others(function: Function, examples: Sequence[Arguments], known: Domain) -> Iterator[Probe]:
    calls = generate(function.parameters, examples, known, function.body_hash, _OTHERS)
    yield from (Probe(call, "other") for call in calls)


def _with_values(function: Function, examples: Sequence[Arguments], values: Sequence[Any]) -> Iterator[Probe]:
    """Yield the first example with a value of the code instead of an argument of its type."""
    base = examples[0] if examples else {}
    calls = [
        (base | {name: value}, name)
        for name, argument in base.items()
        for value in [value for value in values if type(value) is type(argument)][:_VALUES]
    ]
    schema = function.parameters
    yield from (
        Probe(call, "literal", -1, name) for call, name in calls if call not in examples and fits(call, schema, schema)
    )


def has_letters(value: Any) -> bool:  # Any: whatever an argument is
    """Check whether there is text in a value that a twin could change."""
    match value:
        case str():
            return any(character.isalpha() for character in value)
        case list() | tuple():
            return any(map(has_letters, value))
        case dict():
            return any(map(has_letters, value.values()))
        case _:
            return False


def twin(value: Any, chance: random.Random) -> Any:  # Any: whatever an argument is
    """Return a value with other letters in its texts, each occurrence of a word with others."""
    match value:
        case str():
            return "".join(_other_letter(character, chance) for character in value)
        case list() | tuple():
            return type(value)(twin(part, chance) for part in value)
        case dict():
            return {key: twin(part, chance) for key, part in value.items()}
        case _:
            return value


def _other_letter(character: str, chance: random.Random) -> str:
    if not (character.isascii() and character.isalpha()):
        return character
    letters = "abcdefghijklmnopqrstuvwxyz".replace(character.lower(), "")
    drawn = letters[int(chance.random() * len(letters))]
    return drawn.upper() if character.isupper() else drawn


def valid(function: Function, calls: Sequence[Mapping[str, Any]]) -> list[Arguments]:  # Any: arguments
    """Return the calls that are valid under a function's schema."""
    schema = function.parameters
    return [dict(call) for call in calls if fits(dict(call), schema, schema)]
