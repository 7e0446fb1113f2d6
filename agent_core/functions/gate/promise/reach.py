"""How far the answers of a function reach: what calls of the kind of its examples got, and what all others got.

Pure. A call is *silent* if it got what nearly all others got: one constant, an argument as it came, or nothing. Whoever
wrote for the examples alone has nothing else to say, whatever form the code has.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from .kin import is_named
from .memory import ECHO, RAISED, OtherCase, ShownCase, answer_of, is_default
from .probes import Kind

_ENOUGH, _KIN, _NAMED, _OWN = 12, 4, 3, 2
_MOSTLY = 0.6
_HITS = 0.02
_WHATEVER = ("any", "whatever", "arbitrary", "every", "general", "generic", "anything", "universal")


@dataclass(frozen=True, slots=True)
class FreshCall(OtherCase):
    """A call unlike the examples: how it was made, and which parameter differs."""

    kind: Kind
    parameter: str


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
    def kin(self) -> list[FreshCall]:
        """The calls with arguments of the same kind that returned."""
        return [call for call in self._returned if call.kind == "kin"]

    @cached_property
    def default(self) -> str:
        """The answer that most calls got; empty if there are too few."""
        calls = self.kin if len(self.kin) >= _KIN else self._returned
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
        shown = {call.shown for call in self._returned if call.answer == self.default}
        return bool(self.default) and "<" not in self.default and len(shown) == 1

    def is_nowhere_else(self) -> bool:
        """Check whether no call at all, not even with what stands in the code, got more than the default."""
        if len(self._returned) < _ENOUGH or not self.special or not self.is_silent_default:
            return False
        usual = Counter(call.shown for call in self._returned).most_common(1)[0][0]
        if usual in ("True", "False") and len({call.shown for call in self._returned}) > 1:
            return False  # a test that some others pass
        hits = [call for call in self._returned if not is_default(call.answer, self.default) and call.shown != usual]
        return len(hits) <= _HITS * len(self._returned) and not any(call.kind in ("kin", "literal") for call in hits)

    def always_raises(self) -> bool:
        """Check whether everything but the examples is refused, also what is of their kind."""
        kin = [call for call in self._fresh if call.kind == "kin"]
        return (len(kin) >= _KIN or len(self._fresh) >= 2 * _ENOUGH) and not [
            call for call in self._returned if not is_default(call.answer, "")
        ]

    def silent_kin(self) -> list[FreshCall]:
        """Return the calls of the kind of the examples that got a default of which no example tells, if most did."""
        silent = [call for call in self.kin if call.answer == self.default]
        is_told = len(self.special) < len(self._cases)
        is_written = self.default in _NOTHING or any(call.shown in self._literals for call in silent[:1])
        if is_told or not (self.is_silent_default and is_written) or self._is_related() or self._has_more():
            return []
        return silent if len(silent) >= max(_KIN, _MOSTLY * len(self.kin)) else []

    def _is_related(self) -> bool:
        """Check whether one argument is rows, in which another is looked for."""
        return any(
            len(case.arguments) > 1 and any(isinstance(value, list | tuple | dict) for value in case.arguments.values())
            for case in self._cases
        )

    def _has_more(self) -> bool:
        """Check whether values that stand in the code, but in no example, got answers of their own."""
        known = {repr(case.value) for case in self._cases}
        own = {call.shown for call in self._returned if call.kind == "literal" and call.answer != self.default}
        return len(own - known) >= _OWN

    def ignored(self) -> list[FreshCall]:
        """Return calls that differ in a name of a known kind, such as a unit, where only that of an example matters."""
        names = {call.parameter for call in self.kin if call.parameter}
        return next((calls for name in sorted(names) if (calls := self._ignored(name))), [])

    def _ignored(self, name: str) -> list[FreshCall]:
        named = [case for case in self._cases if is_named(case.arguments.get(name))]
        others = [call for call in self._returned if call.parameter == name and call.kind in ("kin", "literal")]
        for case in named:
            rest = {key: value for key, value in case.arguments.items() if key != name}
            alike = [call for call in others if all(call.arguments.get(key) == rest[key] for key in rest)]
            answers = {call.shown for call in alike}
            is_related = any(str(case.arguments[name]) in repr(value) for value in rest.values())
            if len(alike) >= _NAMED and len(answers) == 1 and repr(case.value) not in answers and not is_related:
                return alike
        return []

    def says_whatever(self, words: frozenset[str]) -> list[FreshCall]:
        """Return calls that got nothing, if the description promises whatever there is and no example shows that."""
        if words.isdisjoint(_WHATEVER):
            return []
        shown = {answer_of(case.value, case.arguments) for case in self._cases}
        unsaid = _NOTHING - shown - {"True", "False"}
        return [call for call in self._texts() if call.answer in unsaid]

    def _texts(self) -> Iterator[FreshCall]:
        yield from (call for call in self._returned if call.kind in ("kin", "everyday"))


_NOTHING = frozenset({"None", '""', "[]", "{}", "0", "-1", "False", "True", ECHO})
