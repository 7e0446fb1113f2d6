"""What the outcomes of the calls show: which arguments a function reads, and which it only hands on."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from sandbox import Outcome, Raised, Returned, TimedOut

from .answers import (
    Shape,
    coarse,
    holds_row,
    invented,
    is_carried,
    leaves,
    parts_of,
    plain,
    shape,
    share_of,
    skeleton,
    texts_of,
    words_of,
)
from .probes import APART, Probe, is_of_digits
from .reach import RAISED, FreshCall, OtherCase, answer_of, is_echo

_WORDED = frozenset({"example", "twin", "everyday-twin", "number"})
_SOME, _MOST = 5, 0.6
_MUCH = 0.8  # of the calls
_RICH = 3  # results: more than a yes and a no
_FORMS = 2  # one, and one for what it does not take
_OTHERS = frozenset({"twin", "number", "other"})


class Behavior:
    """The outcomes of calls next to their arguments."""

    def __init__(
        self, probes: Sequence[Probe] = (), outcomes: Sequence[Outcome | None] = (), words: frozenset[str] = frozenset()
    ) -> None:
        self._words = words  # of the code
        self._tried = [*probes]
        self._outcomes = [*outcomes] or [None] * len(self._tried)

    def completed(self, reached: Sequence[Outcome | None]) -> "Behavior":
        """Return it with the outcomes of the calls that had none, in their order."""
        more = iter(reached)
        return Behavior(self._tried, [next(more) if old is None else old for old in self._outcomes], self._words)

    @property
    def count(self) -> int:
        """The number of calls that ended."""
        return sum(outcome is not None for outcome in self._outcomes)

    @property
    def has_hung(self) -> bool:
        """True if a call did not end: the others are not worth waiting for."""
        return any(isinstance(outcome, TimedOut) for outcome in self._outcomes)

    @property
    def is_cut_short(self) -> bool:
        """True if a fifth of the calls was not reached in time: what never came back says nothing."""
        return not self.is_reached(_MUCH)

    def is_reached(self, share: float) -> bool:
        """Check whether that share of the calls ended."""
        return self.count >= share * len(self._tried)

    @cached_property
    def returned(self) -> list[tuple[Probe, Any]]:  # Any: values that crossed
        """The calls that returned, with their values."""
        pairs = zip(self._tried, self._outcomes, strict=True)
        return [
            (probe, plain(outcome.value))
            for probe, outcome in pairs
            if isinstance(outcome, Returned) and probe.kind not in APART
        ]

    @property
    def outcomes(self) -> list[tuple[Probe, Outcome | None]]:
        """All calls with what became of them."""
        return [*zip(self._tried, self._outcomes, strict=True)]

    @property
    def gives_nothing(self) -> bool:
        """True if every call that returned gave None."""
        return bool(self.returned) and all(value is None for _probe, value in self.returned)

    @property
    def is_by_chance(self) -> bool:
        """True if the same call gave different results."""
        repetitions = [
            repr(value)
            for probe, value in self.returned
            if probe.kind == "again" or (probe.of < 0 and probe.kind == "example")
        ]
        first = [repr(value) for probe, value in self.returned if probe.kind == "again"]
        return len(set(first)) > 1 and bool(repetitions)

    def answer(self, at: int, *, loose: bool = False) -> str | None:
        """Return the skeleton of an outcome, `raises`, or None if there is none."""
        outcome = self._outcome(at)
        if isinstance(outcome, Returned):
            return skeleton(plain(outcome.value), self._tried[at].arguments, loose=loose)
        return RAISED if isinstance(outcome, Raised) else None

    def _outcome(self, at: int) -> Outcome | None:
        return self._outcomes[at] if 0 <= at < len(self._outcomes) else None

    def is_free(self, *, loose: bool = False, texts_only: bool = False) -> bool:
        """Check whether no letter of a text argument and no number changes more than what is handed on.

        Two twins are compared, not a call and its twin: what is looked up in a table counts as not read here.
        """
        return bool(self.returned) and not any(
            first != second
            for first, second in self._pairs(loose=loose, kinds=("twin",) if texts_only else ("twin", "number"))
        )

    def _pairs(self, *, loose: bool, kinds: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        for at, probe in enumerate(self._tried):
            if probe.kind not in kinds:
                continue
            is_pair = probe.kind == "twin" and self._tried[probe.of].kind == "twin"
            if is_pair or (
                probe.kind == "number" and (at + 1 < len(self._tried)) and self._tried[at + 1].kind == "number"
            ):
                partner = probe.of if is_pair else at + 1
                is_row = probe.kind == "number" and probe.is_row
                if not is_pair and not self._is_sibling(partner, probe):
                    continue
                first, second = (self.answer(place, loose=loose and not is_row) for place in (at, partner))
                if first is not None and second is not None and not (not is_pair and RAISED in (first, second)):
                    yield first, first if is_pair and self._is_carried(at, partner) else second

    def _is_sibling(self, at: int, probe: Probe) -> bool:
        """Check whether a call differs from a probe's origin in the same argument as that probe."""
        return (self._tried[at].parameter, self._tried[at].of) == (probe.parameter, probe.of)

    def _is_carried(self, at: int, partner: int) -> bool:
        """Check whether two calls returned what differs only by the letters that they were given."""
        outcome, other = self._outcome(at), self._outcome(partner)
        if not (isinstance(outcome, Returned) and isinstance(other, Returned)):
            return False
        arguments, other_arguments = self._tried[at].arguments, self._tried[partner].arguments
        return is_carried(plain(outcome.value), arguments, plain(other.value), other_arguments)

    @cached_property
    def _by_shape(self) -> dict[Shape, set[str]]:
        """The different answers to calls that are alike in everything but content."""
        answers: dict[Shape, set[str]] = {}
        for probe, value in self.returned:
            if probe.kind != "again":
                answers.setdefault(shape(probe.arguments), set()).add(skeleton(value, probe.arguments))
        return answers

    @cached_property
    def is_by_content(self) -> bool:
        """True if calls whose texts and rows have the same lengths got different results, whatever was handed on."""
        return not self.is_by_chance and any(len(answers) > 1 for answers in self._by_shape.values())

    @cached_property
    def is_by_length(self) -> bool:
        """True if the results are many numbers, and hang on the lengths of the arguments, or of their words, alone."""
        results = {repr(value) for _probe, value in self.returned}
        if not self.gives_numbers or len(results) < _RICH:
            return False
        by_letters: dict[int, set[str]] = {}
        by_length: dict[int, set[str]] = {}
        for probe, value in self.returned:
            texts = [*texts_of([*probe.arguments.values()])]
            by_letters.setdefault(sum(map(str.isalpha, "".join(texts))), set()).add(repr(value))
            by_length.setdefault(sum(len(text.strip()) for text in texts), set()).add(repr(value))
        groupings = (self._by_shape, by_letters, by_length)
        return any(all(len(answers) == 1 for answers in groups.values()) for groups in groupings)

    @cached_property
    def is_computed(self) -> bool:
        """True if the results are many, and hang on the content of the arguments."""
        return self.is_by_content and len(set().union(*self._by_shape.values())) >= _RICH

    @cached_property
    def is_reckoned(self) -> bool:
        """True if the results are many, and differ in more than the choice and order of what was handed on."""
        return self.is_selective and len(set().union(*self._parts.values())) >= _RICH

    @cached_property
    def _parts(self) -> dict[Shape, set[frozenset[str]]]:
        answers: dict[Shape, set[frozenset[str]]] = {}
        for probe, value in self.returned:
            answers.setdefault(shape(probe.arguments), set()).add(parts_of(value, probe.arguments))
        return answers

    @cached_property
    def is_selective(self) -> bool:
        """True if calls that are alike in everything but content got results that are made in different ways."""
        return not self.is_by_chance and any(len(parts) > 1 for parts in self._parts.values())

    @cached_property
    def updates_rows(self) -> bool:
        """True if every result has all of a list or mapping that came in, with more or other values in it."""
        rows = [
            (probe.arguments, value) for probe, value in self.returned if probe.kind in ("example", "similar", "twin")
        ]
        changed = [value not in list(arguments.values()) for arguments, value in rows]
        return any(changed) and all(holds_row(value, arguments) for arguments, value in rows)

    @cached_property
    def tells_rows(self) -> bool:
        """True if most of the texts and numbers in a list or mapping that came in are in the result, in an example."""
        told = [
            str(leaf) in " ".join(map(str, leaves(value)))
            for probe, value in self.returned
            if probe.kind == "example"
            for argument in probe.arguments.values()
            if isinstance(argument, list | dict)
            for leaf in leaves(argument)
        ]
        return 2 * sum(told) >= len(told)

    @cached_property
    def says_words(self) -> bool:
        """True if a result has a word of the code that no argument had."""
        return any(
            word.lower() in self._words
            for probe, value in self.returned
            if probe.kind != "other"
            for word in invented(skeleton(value, probe.arguments))
        )

    @cached_property
    def everyday_hits(self) -> int:
        """The number of everyday texts whose letters mattered."""
        pairs = [(at, probe.of) for at, probe in enumerate(self._tried) if probe.kind == "everyday-twin"]
        return sum(self._differ(*pair) for pair in pairs)

    def _differ(self, first: int, second: int) -> bool:
        """Check whether two calls got other answers, even if words of the code are not taken for those of the calls."""
        if self.answer(first) == self.answer(second) or self._is_carried(first, second):
            return False
        rough = [self._rough(at) for at in (first, second)]
        return rough[0] != rough[1]

    def _rough(self, at: int) -> str:
        outcome = self._outcome(at)
        if not isinstance(outcome, Returned):
            return RAISED
        return coarse(skeleton(plain(outcome.value), self._tried[at].arguments, code_words=self._words))

    @cached_property
    def example_hits(self) -> int:
        """The number of examples whose letters mattered: their twins were answered otherwise."""
        pairs = [(at, probe.of) for at, probe in enumerate(self._tried) if probe.kind == "twin"]
        return sum(self._differ(at, of) for at, of in pairs if self._tried[of].kind in ("example", "other"))

    @cached_property
    def gives_back(self) -> bool:
        """True if most everyday texts are in their results, word for word."""
        return any(5 * sum(shares) >= 4 * len(shares) for shares in self._shares(whole=True))

    @cached_property
    def gives_numbers(self) -> bool:
        """True if every result is a number."""
        kinds = {type(value) for _probe, value in self.returned}
        return bool(kinds) and kinds <= {int, float}

    @cached_property
    def holds_only_numbers(self) -> bool:
        """True if numbers are all that the results hold: none of them is the number of a confirmation."""
        values = [leaf for _probe, value in self.returned for leaf in leaves(value)]
        return bool(values) and all(isinstance(leaf, int | float) and not isinstance(leaf, bool) for leaf in values)

    @cached_property
    def gives_truths(self) -> bool:
        """True if every result is True or False."""
        return bool(self.returned) and all(isinstance(value, bool) for _probe, value in self.returned)

    @cached_property
    def is_echo(self) -> bool:
        """True if every call, and every example, returned one and the same of its arguments."""
        if len(self.returned) <= _SOME:
            return False
        names = set(self.returned[0][0].arguments)
        return any(
            all(is_echo(value, {name: probe.arguments.get(name)}) for probe, value in self.returned) for name in names
        )

    @cached_property
    def forms(self) -> frozenset[str]:
        """The different forms of what random words and the examples got, if all that was handed on is left out."""
        answers = [
            skeleton(value, probe.arguments, loose=True) for probe, value in self.returned if probe.kind in _WORDED
        ]
        return frozenset(map(coarse, answers))

    @cached_property
    def is_constant(self) -> bool:
        """True if every call got the same value."""
        return len({repr(value) for _probe, value in self.returned}) == 1

    @cached_property
    def invented(self) -> frozenset[str]:
        """The words and numbers that every result has and no argument had."""
        sets = [
            invented(skeleton(value, probe.arguments, code_words=self._words))
            for probe, value in self.returned
            if value
        ]
        return frozenset.intersection(*sets) if len(sets) > _SOME else frozenset()

    @cached_property
    def chooses_words(self) -> bool:
        """True if the words that no argument had differ from form to form."""
        return len({invented(form) for form in self.forms}) > 1

    @cached_property
    def keeps_words(self) -> bool:
        """True if most words of everyday texts are in their results."""
        return any(sum(shares) > _MOST * len(shares) for shares in self._shares(whole=False))

    @cached_property
    def chooses_values(self) -> bool:
        """True if a value of the code, or one of the kind of an example's, got words that no other call got."""
        chosen, usual = set[str](), set[str]()
        for probe, value in self.returned:
            words = map(str.casefold, invented(skeleton(value, probe.arguments, code_words=self._words)))
            is_chosen = probe.kind == "literal" or (probe.kind == "similar" and bool(probe.parameter))
            (chosen if is_chosen else usual).update(words)
        return not chosen <= usual

    @cached_property
    def knows_members(self) -> bool:
        """True if members of a list or set are compared with values of the code: several of those change the result."""
        results = [
            repr(value)
            for probe, value in self.returned
            if probe.kind == "literal" and isinstance(probe.arguments[probe.parameter], list | set)
        ]
        return len(set(results)) >= _RICH

    def _shares(self, *, whole: bool) -> Iterator[list[float]]:
        """Yield for each parameter how much of everyday texts is in their results."""
        for name in {probe.parameter for probe, _value in self.returned if probe.kind == "everyday"}:
            texts = [
                (str(probe.arguments[name]), value)
                for probe, value in self.returned
                if probe.kind == "everyday" and probe.parameter == name
            ]
            shares = [share_of(text, value, whole=whole) for text, value in texts if words_of({"": text})]
            if len(shares) > _SOME:
                yield shares

    @property
    def is_fixed(self) -> bool:
        """True if everything is handed on inside of fixed words, whatever the texts are."""
        return self.is_free(loose=True) and len(self.forms) <= _FORMS and not self.example_hits

    @property
    def hands_on(self) -> bool:
        """True if something of the arguments is in a result."""
        return any("<*>" in form for form in self.forms)

    @cached_property
    def repeats(self) -> bool:
        """True if a twin of an example got that example's very answer, with words of it that the twin does not have."""
        by_place = {id(probe): value for probe, value in self.returned}
        for probe, value in self.returned:
            origin = self._tried[probe.of] if probe.kind == "twin" and probe.of >= 0 else None
            if (
                origin is not None
                and origin.kind == "example"
                and id(origin) in by_place
                and by_place[id(origin)] == value
            ):
                absent_words = words_of(origin.arguments) - words_of(probe.arguments)
                if any(len(word) > 1 for word in words_of({"": value}) & absent_words):  # one letter may part a date
                    return True
        return False

    def others(self) -> list[OtherCase]:
        """Return the calls unlike the examples, without those of their kind."""
        return [call for call in self.fresh if call.kind in _OTHERS]

    @cached_property
    def fresh(self) -> list[FreshCall]:
        """The calls unlike the examples."""
        calls = []
        for probe, outcome in zip(self._tried, self._outcomes, strict=True):
            if probe.kind in ("example", "again", "everyday-twin", *APART) or is_of_digits(probe):
                continue
            if isinstance(outcome, Returned):
                answer = answer_of(plain(outcome.value), probe.arguments)
                calls.append(FreshCall(probe.arguments, answer, repr(outcome.value), probe.kind, probe.parameter))
            elif isinstance(outcome, Raised):
                calls.append(FreshCall(probe.arguments, RAISED, "", probe.kind, probe.parameter))
        return calls

    def is_of(self, literals: frozenset[str]) -> bool:
        """Check whether every value that was returned stands in the code, or was handed on."""
        for probe, value in self.returned:
            argument_leaves = {repr(leaf) for leaf in leaves([*probe.arguments.values()])}
            if not all(
                repr(leaf) in literals or repr(leaf) in argument_leaves or leaf is None for leaf in leaves(value)
            ):
                return False
        return bool(self.returned)
