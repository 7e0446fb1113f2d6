"""Calls that tell whether a function works on the content of what it is given, or only pastes it.

Pure. A twin of a call has other letters of the same case in the same places: a function that never reads them
answers both alike, but for the letters that it hands on. Everyday texts stand in for what no example has.
"""

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from agent_core.registry.function import Function

from ..arguments.domain import Domain, domain
from ..arguments.generation import Arguments, generate
from ..arguments.schema_fit import fits
from .similarity import similar_calls

Kind = Literal[
    "example",
    "again",
    "twin",
    "everyday",
    "everyday-twin",
    "number",
    "similar",
    "literal",
    "other",
    "documented",
    "instance",
    "large",
    "known",
    "moved",
    "swapped",
    "slight",
    "stated",
    "piece",
]
APART = frozenset(
    {"documented", "instance", "large", "known", "moved", "swapped", "slight", "stated", "piece"}
)  # what the description names, long numbers, what everybody knows and what changed places: compared among themselves
NONSENSE = "zqxj"
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
    "detartrated",
)
_BASES, _OTHERS, _LONGEST, _VALUES, _PAIR = 4, 32, 4000, 24, 2
_ALPHABET, _NEAR = "abcdefghijklmnopqrstuvwxyz", 32


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


def probes(
    function: Function, examples: Sequence[Arguments], values: Sequence[Any] = (), description: str = ""
) -> list[Probe]:
    """Return the calls to try: each example, twins of it, everyday texts, arguments of the same kind, `values` that
    stand in the code, and what `robust` would generate.
    """
    chance, parameters = random.Random(function.body_hash), function.parameters  # noqa: S311 - the same again
    shown_domain = domain(examples, parameters["properties"])
    bases = list(examples[:_BASES]) or list(
        islice(generate(parameters, (), shown_domain, function.body_hash, 40), _BASES)
    )
    calls = [Probe(base, "example" if examples else "other") for base in bases]
    calls += [Probe(bases[0], "again", 0) for _ in range(3) if bases]
    for at, base in enumerate(bases):
        calls += _twins(base, at, chance, calls)
    for at, base in enumerate(bases[:2]):
        calls += _numbers(base, at)
    calls += _everyday(bases, chance, len(calls))
    calls += [Probe(call, "similar", -1, name) for call, name in similar_calls(examples, parameters)]
    calls += _with_values(function, examples, values)
    calls += _others(function, examples, shown_domain)
    calls += _documented(function, examples, description)
    calls += _large(function, examples)
    calls += _slight(function, examples)
    for at, base in enumerate(bases):
        calls += [*_moved(base, at), *_swapped(base, at), *_pieces(base, at)]
    return [probe for probe in calls if len(repr(probe.arguments)) <= _LONGEST] if _are_short(calls) else []


def _are_short(calls: list[Probe]) -> bool:
    """Check whether no call is too long; numbers of probes hold only if none is left out."""
    return all(len(repr(probe.arguments)) <= _LONGEST for probe in calls)


def _twins(base: Arguments, at: int, chance: random.Random, calls: list[Probe]) -> list[Probe]:
    """Return two twins of a call for each argument with text: the first is a twin of the call, the second of that."""
    twins: list[Probe] = []
    for name in base:
        if has_letters(base[name]) or _has_digits(base[name]):
            first = Probe(base | {name: twin(base[name], chance)}, "twin", at, name)
            twins += [first, Probe(base | {name: twin(base[name], chance)}, "twin", len(calls) + len(twins), name)]
    return twins


def _numbers(base: Arguments, at: int) -> Iterator[Probe]:
    for name, value in base.items():
        for change in (1, 4, 9) if _has_numbers(value) else ():
            yield Probe(base | {name: _more(value, change)}, "number", at, name)


def _moved(base: Arguments, at: int) -> Iterator[Probe]:
    """Yield a call with the numbers of a row in each other's places, so that another of its parts is the best."""
    for name, row in base.items():
        numbers = [*leaves_of(row)] if isinstance(row, list | dict) else []
        for other in (numbers[1:] + numbers[:1], numbers[::-1]) if len(set(numbers)) > 1 else ():
            if other != numbers:
                yield Probe(base | {name: _with_leaves(row, iter(other))}, "moved", at, name)


def _pieces(base: Arguments, at: int) -> Iterator[Probe]:
    """Yield a call with one number in a text a step up, or down, for each number in it."""
    for name, text in base.items():
        numbers = [*NUMBERS.finditer(text)] if isinstance(text, str) and len(text) <= _SHORT else []
        for number in numbers if PIECES <= len(numbers) <= _MOST_PIECES else ():
            for step in (1, -1):
                other = str(int(number[0]) + step).zfill(len(number[0]))
                if len(other) == len(number[0]) and other[0] != "-":
                    changed = text[: number.start()] + other + text[number.end() :]
                    yield Probe(base | {name: changed}, "piece", at, name)


NUMBERS = re.compile(r"\d+")
PIECES, _MOST_PIECES, _SHORT = 3, 6, 80  # numbers in one text, and characters


def _swapped(base: Arguments, at: int) -> Iterator[Probe]:
    """Yield a call with what a mapping holds under other keys of it."""
    for name, row in base.items():
        values = [*row.values()] if isinstance(row, dict) else []
        for other in (values[1:] + values[:1], values[::-1]):
            if len(values) > 1 and other != values:
                yield Probe(base | {name: dict(zip(row, other, strict=True))}, "swapped", at, name)


def leaves_of(value: Any) -> Iterator[int | float]:  # Any: whatever an argument is
    """Yield the numbers that a value holds."""
    match value:
        case bool():
            return
        case int() | float():
            yield value
        case list() | tuple():
            for part in value:
                yield from leaves_of(part)
        case dict():
            for part in value.values():
                yield from leaves_of(part)


def _with_leaves(value: Any, numbers: Iterator[int | float]) -> Any:  # Any: whatever an argument is
    match value:
        case bool():
            return value
        case int() | float():
            return next(numbers)
        case list() | tuple():
            return type(value)(_with_leaves(part, numbers) for part in value)
        case dict():
            return {key: _with_leaves(part, numbers) for key, part in value.items()}
        case _:
            return value


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
    calls: list[Probe] = []
    base = bases[0] if bases else {}
    for name in [name for name in base if isinstance(base[name], str)][:2]:
        for text in EVERYDAY:
            calls.append(Probe(base | {name: text}, "everyday", -1, name))
            if has_letters(text):
                calls.append(Probe(base | {name: twin(text, chance)}, "everyday-twin", start + len(calls) - 1, name))
    return calls


def _others(function: Function, examples: Sequence[Arguments], shown_domain: Domain) -> Iterator[Probe]:
    generated = generate(function.parameters, examples, shown_domain, function.body_hash, _OTHERS)
    yield from (Probe(call, "other") for call in generated)


def _with_values(function: Function, examples: Sequence[Arguments], values: Sequence[Any]) -> Iterator[Probe]:
    """Yield the first example with a value of the code for an argument, or the first member of a list, of its type."""
    base = examples[0] if examples else {}
    candidates = [
        (base | {name: value if argument is part else type(argument)([value, *[*argument][1:]])}, name)
        for name, argument in base.items()
        for part in [next(iter(argument)) if isinstance(argument, list | set) and argument else argument]
        for value in [value for value in values if type(value) is type(part)][:_VALUES]
    ]
    schema = function.parameters
    yield from (
        Probe(call, "literal", -1, name)
        for call, name in candidates
        if call not in examples and fits(call, schema, schema)
    )


_LISTED = re.compile(
    r"(?:[\"'`]?[\w.+%°$€/-]{1,14}[\"'`]?(?:,\s*(?:or |and )?|\s+or\s+|\s+and\s+))+[\"'`]?[\w.+%°$€/-]{1,14}"
)
_TOKEN = re.compile(r"[\w.+%°$€/-]{1,14}")
_MOST_NAMED, _LEAST_NAMED, _STEPS = 10, 3, (5, 9, 20)


def _documented(function: Function, examples: Sequence[Arguments], description: str) -> Iterator[Probe]:
    """Yield examples with a value that the description lists next to theirs, and with a word without a meaning."""
    schema = function.parameters
    listed = [words for text in _LISTED.findall(description) if len(words := _tokens(text)) >= _LEAST_NAMED]
    for name, kind in schema["properties"].items():
        shown = {value.casefold() for example in examples if isinstance(value := example.get(name), str)}
        named = [words for words in listed if shown & {word.casefold() for word in words}]
        instances = [word for word in _instances(str(kind.get("description", ""))) if word.casefold() not in shown]
        values = [word for words in named for word in words if word.casefold() not in shown]
        kinds: dict[str, Kind] = {word: "documented" if word in values else "instance" for word in instances + values}
        if kind.get("type") != "string" or not kinds:
            continue
        for base in examples[:2]:
            for value in (*[*kinds][:_MOST_NAMED], NONSENSE):
                call = base | {name: _cased(value, str(base.get(name, "")))}
                if fits(call, schema, schema):
                    yield Probe(call, kinds.get(value, "documented"), -1, name)


_SUCH_AS = re.compile(r"(?:such as|for instance|for example|e\.g\.,?|one of:?)\s+([^.;()]{3,90})", re.IGNORECASE)
_BETWEEN = re.compile(r",\s*(?:or |and )?|\s+(?:or|and)\s+")
_PROSE = re.compile(r"(?:an?|the|any|some|other)\b|\S+ \S+ \S+ ", re.IGNORECASE)


def _instances(description: str) -> list[str]:
    """Return the values that the description of a parameter gives for instance, if they are words."""
    parts = [part.strip(" \"'`") for text in _SUCH_AS.findall(description) for part in _BETWEEN.split(text)]
    return [part for part in parts if part.replace(" ", "").isalpha() and not _PROSE.match(part)]


def unshown(function: Function, examples: Sequence[Arguments], texts: Iterable[str]) -> list[Arguments]:
    """Return the first example with what a description gives for instance, unless that stands in another example or
    in `texts`, those of the code.
    """
    schema, code = function.parameters, "\n".join(texts).casefold()
    return [
        call
        for name, kind in schema["properties"].items()
        if kind.get("type") == "string" and "enum" not in kind
        for value in _given(str(kind.get("description", "")))
        for call in [base | {name: value} for base in examples[:1] if name in base]
        if value.casefold() not in code and not any(_is_at(example, name, value) for example in examples)
        if fits(call, schema, schema)
    ]


def _is_at(example: Arguments, name: str, value: str) -> bool:
    return str(example.get(name, "")).casefold() == value.casefold()


_FOR_INSTANCE = re.compile(r"(?:such as|for instance|for example|e\.g\.,?)\s+([^;()]{1,90})", re.IGNORECASE)
_IN_QUOTES = re.compile(r"([\"'`])((?:(?!\1).){1,40})\1")


def _given(description: str) -> list[str]:
    """Return the values that a description gives for instance: what it quotes there, or each word of a list."""
    values: list[str] = []
    for text in _FOR_INSTANCE.findall(description):
        quoted = [value for _mark, value in _IN_QUOTES.findall(text)]
        words = [part.strip(" \"'`.") for part in _BETWEEN.split(text)]
        values += quoted or [word for word in words if word and " " not in word and not _PROSE.match(word)]
    return list(dict.fromkeys(values))


def _tokens(text: str) -> list[str]:
    return [word for token in _TOKEN.findall(text) if (word := token.rstrip(".")) and word not in ("or", "and")]


def _cased(word: str, like: str) -> str:
    return word.upper() if like.isupper() and len(like) > 1 else word.lower() if like.islower() else word


def _large(function: Function, examples: Sequence[Arguments]) -> Iterator[Probe]:
    """Yield the longer numbers for a function of one whole number."""
    schema = function.parameters
    if len(schema["properties"]) != 1 or not examples:
        return
    for name, value in max(examples, key=repr).items():
        for factor in _STEPS if isinstance(value, int) and 0 < value < 200 else ():
            call = {name: factor * value + 3}
            if fits(call, schema, schema):
                yield Probe(call, "large", -1, name)


def _slight(function: Function, examples: Sequence[Arguments]) -> Iterator[Probe]:
    """Yield the longest text of an example next to itself, then next to slight variations, for a function of two."""
    schema = function.parameters
    names = [name for name, kind in schema["properties"].items() if kind.get("type") == "string"]
    texts = [text for example in examples for name in names if isinstance(text := example.get(name), str)]
    if len(names) != _PAIR or not texts:
        return
    text = max(texts, key=len)
    parts, between = (text.split(), " ") if len(text.split()) > _PAIR else ([*text], "")
    half = len(parts) // 2
    varied = [
        [*parts[:half], *parts[half + 1 :]],
        [*parts[: half - 1], parts[half], parts[half - 1], *parts[half + 1 :]] if half else parts,
        [*parts[: half + 1], *parts[half:]],
    ]
    others = [other for row in varied if (other := between.join(row)).casefold() != text.casefold()]
    for other in (text, *others) if len(others) == len(varied) else ():
        call = examples[0] | dict(zip(names, (text, other), strict=True))
        if fits(call, schema, schema):
            yield Probe(call, "slight", -1, names[1])


def has_letters(value: Any) -> bool:  # Any: whatever an argument is
    """Check whether there is text in a value that a twin could change."""
    match value:
        case str():
            return any(character.isalpha() for character in value)
        case list() | tuple() | set():
            return any(map(has_letters, value))
        case dict():
            return any(map(has_letters, value.values()))
        case _:
            return False


def twin(value: Any, chance: random.Random) -> Any:  # Any: whatever an argument is
    """Return a value with other letters in its texts, each occurrence of a word with others."""
    match value:
        case str():
            other = _other_letter if has_letters(value) else _other_digit
            return "".join(other(character, chance) for character in value)
        case set():
            return {twin(part, chance) for part in sorted(value, key=repr)}
        case list() | tuple():
            return type(value)(twin(part, chance) for part in value)
        case dict():
            return {key: twin(part, chance) for key, part in value.items()}
        case _:
            return value


def is_of_digits(probe: Probe) -> bool:
    """Check for a twin with other digits: it may well be none of the numbers that are meant."""
    return probe.kind == "twin" and not has_letters(probe.arguments[probe.parameter])


def _has_digits(value: Any) -> bool:  # Any: whatever an argument is
    """Check for a text of digits and signs alone, such as an amount."""
    if isinstance(value, list | tuple):
        return any(map(_has_digits, value))
    return isinstance(value, str) and any(map(str.isdigit, value)) and not has_letters(value)


def _other_digit(character: str, chance: random.Random) -> str:
    """Return another digit, and none that leads where none did."""
    if character not in "123456789":
        return character
    digits = "123456789".replace(character, "")
    return digits[int(chance.random() * len(digits))]


def _other_letter(character: str, chance: random.Random) -> str:
    """Return another letter of the same script and case: one that stands near it in Unicode, if it is not ASCII."""
    if not character.isalpha():
        return character
    first = ord(character) // _NEAR * _NEAR
    near = _ALPHABET if character.isascii() else "".join(map(chr, range(first, first + _NEAR)))
    cased = str.upper if character.isascii() and character.isupper() else str
    letters = [letter for letter in map(cased, near) if letter.isalpha() and letter.isupper() == character.isupper()]
    others = [letter for letter in letters if letter != character]
    return others[int(chance.random() * len(others))] if others else character


def valid(function: Function, calls: Sequence[Mapping[str, Any]]) -> list[Arguments]:  # Any: arguments
    """Return the calls that are valid under a function's schema."""
    schema = function.parameters
    return [dict(call) for call in calls if fits(dict(call), schema, schema)]
