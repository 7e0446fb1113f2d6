"""How far the answers of a function reach: what calls of the kind of its examples got, and what all others got.

Pure. A call is *silent* if it got what nearly all others got: one constant, an argument as it came, or nothing. Whoever
wrote for the examples alone has nothing else to say, whatever form the code has.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..arguments.generation import Arguments
from .answers import skeleton
from .probes import Kind
from .similarity import is_named

RAISED, ECHO = "raises", "echo"
_ENOUGH, _SIMILAR, _NAMED, _OWN = 12, 4, 3, 2
_MOSTLY = 0.6
_HITS = 0.02
_WHATEVER = ("any", "whatever", "arbitrary", "every", "general", "generic", "anything", "universal")


@dataclass(frozen=True, slots=True)
class ShownCase:
    """An example: its arguments, and what came back."""

    arguments: Arguments
    value: Any  # a value that crossed


@dataclass(frozen=True, slots=True)
class OtherCase:
    """A call unlike the examples, and the skeleton of what came back, or `raises`; also that value as text."""

    arguments: Arguments
    answer: str
    shown: str


@dataclass(frozen=True, slots=True)
class FreshCall(OtherCase):
    """A call unlike the examples: how it was made, and which parameter differs."""

    kind: Kind
    parameter: str


def is_echo(value: Any, arguments: Mapping[str, Any]) -> bool:  # Any: values that crossed
    """Check whether a value is one of the arguments."""
    return any(type(value) is type(argument) and value == argument for argument in arguments.values())


def answer_of(value: Any, arguments: Mapping[str, Any]) -> str:  # Any: values that crossed
    """Return the skeleton of a value, or `echo` if it is an argument."""
    return ECHO if is_echo(value, arguments) else skeleton(value, arguments)


def is_default(answer: str, default: str) -> bool:
    """Check whether an answer says no more than a default does."""
    return answer in (default, RAISED, ECHO, "None", '""', "[]", "{}", '"<w0>"', '"<n>"', "<n>", '["<w0>"]')


class Reach:
    """The calls unlike the examples, next to the examples."""

    def __init__(self, cases: Sequence[ShownCase], fresh: Sequence[FreshCall], literals: frozenset[str]) -> None:
        self._cases, self._literals = cases, literals
        self._fresh = [call for call in fresh if not self._is_shown(call)]

    def _is_shown(self, call: FreshCall) -> bool:
        return any(dict(call.arguments) == dict(case.arguments) for case in self._cases)

    @cached_property
    def _returned(self) -> list[FreshCall]:
        return [call for call in self._fresh if call.answer != RAISED]

    @cached_property
    def similar_calls(self) -> list[FreshCall]:
        """The calls with arguments of the same kind that returned."""
        return [call for call in self._returned if call.kind == "similar"]

    @cached_property
    def default(self) -> str:
        """The answer that most calls got; empty if there are too few."""
        calls = self.similar_calls if len(self.similar_calls) >= _SIMILAR else self._returned
        common = Counter(call.answer for call in calls).most_common(1)
        return common[0][0] if common and common[0][1] > 1 else ""

    @cached_property
    def special(self) -> list[int]:
        """The examples that got something else."""
        answers = [answer_of(case.value, case.arguments) for case in self._cases]
        return [at for at, answer in enumerate(answers) if answer != self.default]

    @property
    def is_silent_default(self) -> bool:
        """True if that answer is no result: a constant, or an argument as it came."""
        if self.default == ECHO:
            return True
        results = {call.shown for call in self._returned if call.answer == self.default}
        return bool(self.default) and "<" not in self.default and len(results) == 1

    def is_nowhere_else(self) -> bool:
        """Check whether no call at all, not even with what stands in the code, got more than the default."""
        if len(self._returned) < _ENOUGH or not self.special or not self.is_silent_default:
            return False
        usual = Counter(call.shown for call in self._returned).most_common(1)[0][0]
        if usual in ("True", "False") and len({call.shown for call in self._returned}) > 1:
            return False  # a test that some others pass
        silent = {call.shown for call in self._returned if call.answer == self.default}
        hits = [
            call for call in self._returned if not is_default(call.answer, self.default) and call.shown not in silent
        ]
        return len(hits) <= _HITS * len(self._returned) and not any(
            call.kind in ("similar", "literal") for call in hits
        )

    def always_raises(self) -> bool:
        """Check whether everything but the examples is refused, also what is of their kind."""
        similar_calls = [call for call in self._fresh if call.kind == "similar"]
        return (len(similar_calls) >= _SIMILAR or len(self._fresh) >= 2 * _ENOUGH) and not [
            call for call in self._returned if not is_default(call.answer, "")
        ]

    def silent_calls(self) -> list[FreshCall]:
        """Return the calls of the kind of the examples that got a default of which no example tells, if most did."""
        silent = [call for call in self.similar_calls if call.answer == self.default]
        is_told = len(self.special) < len(self._cases)
        is_written = self.default in _NOTHING or any(call.shown in self._literals for call in silent[:1])
        if is_told or not (self.is_silent_default and is_written) or self._is_related() or self._has_more():
            return []
        return silent if len(silent) >= max(_SIMILAR, _MOSTLY * len(self.similar_calls)) else []

    def _is_related(self) -> bool:
        """Check whether one argument is rows, in which another is looked for."""
        return any(
            len(case.arguments) > 1 and any(isinstance(value, list | tuple | dict) for value in case.arguments.values())
            for case in self._cases
        )

    def _has_more(self) -> bool:
        """Check whether values that stand in the code, but in no example, got answers of their own."""
        example_results = {repr(case.value) for case in self._cases}
        new_results = {call.shown for call in self._returned if call.kind == "literal" and call.answer != self.default}
        return len(new_results - example_results) >= _OWN

    def ignored(self) -> list[FreshCall]:
        """Return calls that differ in a name of a known kind, such as a unit, where only that of an example matters."""
        names = {call.parameter for call in self.similar_calls if call.parameter}
        return next((calls for name in sorted(names) if (calls := self._ignored(name))), [])

    def _ignored(self, name: str) -> list[FreshCall]:
        named = [case for case in self._cases if is_named(case.arguments.get(name))]
        shown = {repr(case.arguments.get(name)) for case in self._cases}
        others = [
            call
            for call in self._returned
            if call.parameter == name
            and call.kind in ("similar", "literal")
            and repr(call.arguments.get(name)) not in shown
        ]
        for case in named:
            unchanged = {key: value for key, value in case.arguments.items() if key != name}
            alike = [call for call in others if all(call.arguments.get(key) == unchanged[key] for key in unchanged)]
            answers = {call.shown for call in alike}
            is_related = any(str(case.arguments[name]) in repr(value) for value in unchanged.values())
            if len(alike) >= _NAMED and len(answers) == 1 and repr(case.value) not in answers and not is_related:
                return alike
        return []

    def says_whatever(self, words: frozenset[str]) -> list[FreshCall]:
        """Return calls that got nothing, if the description promises whatever there is and no example shows that."""
        if words.isdisjoint(_WHATEVER):
            return []
        example_answers = {answer_of(case.value, case.arguments) for case in self._cases}
        unsaid = _NOTHING - example_answers - {"True", "False"}
        return [call for call in self._texts() if call.answer in unsaid]

    def _texts(self) -> Iterator[FreshCall]:
        yield from (call for call in self._returned if call.kind in ("similar", "everyday"))


_NOTHING = frozenset({"None", '""', "[]", "{}", "0", "-1", "False", "True", ECHO})
