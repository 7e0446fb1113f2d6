"""The receipt of a turn: the facts that the program recorded in its journal, never anyone's claims.

Names come from models, functions and servers: each is one short line, and their number is limited.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, Self, TypeAlias, get_args

from .records import dataclass, field
from .untrusted import one_line

Fact: TypeAlias = Literal[
    "created",
    "changed",
    "deleted",
    "created helper",
    "changed helper",
    "deleted helper",
    "remembered",
    "lines",
    "wrote",
    "removed",
    "reached",
    "refused",
    "unreached",
    "told",
    "asked",
    "called",
    "failed",
    "unknown",
    "unmade",
]
"""The kinds of facts: functions and helpers that were created, changed or deleted; blocks of memory that were written,
and in how many lines; files that were written or removed; addresses that were reached, refused or did not answer;
agents that received a message; questions to a person, with the answers; functions that were called, those that
failed, and those that were not seen to end; functions whose text a reply holds and that are not there.
"""

Made: TypeAlias = dict[str, list[str] | dict[str, int]]
"""A receipt as JSON: the names of each kind, with counts where they are counted."""

NOTHING_OUTSIDE: Final = "nothing outside this conversation"
TOUCHED: Final[tuple[Fact, ...]] = get_args(Fact)[:6]
"""The kinds that concern created, changed or deleted functions and helpers."""
CHANGING: Final[tuple[Fact, ...]] = (*TOUCHED, "remembered", "wrote", "removed")
"""The kinds after which the same call may give another result."""
_COUNTED: Final[frozenset[Fact]] = frozenset(
    {"lines", "reached", "refused", "unreached", "told", "called", "failed", "unknown"}
)
INSIDE: Final[frozenset[Fact | None]] = frozenset({"called", "failed", "unmade", None})
"""The kinds that a receipt may contain although nothing reached beyond the conversation; None marks the phrase that
says so.
"""
_PHRASES: Final[Mapping[Fact, str]] = {
    **{fact: f"{fact} {{}}" for fact in get_args(Fact) if fact != "lines"},
    "refused": "was refused {}",
    "unreached": "got no answer from {}",
    "asked": "asked: {}",
    "told": "sent a message to {}",
    "failed": "{} failed",
    "unknown": "{} cut off, with unknown effect",
    "unmade": "did not make {}",
}
_MOST: Final = 100  # names of one kind; further names are counted together
_LONGEST: Final = 120  # characters of a name


@dataclass(slots=True)
class Receipt:
    """The facts of a turn: the names of each kind, and how often each occurred."""

    _facts: dict[Fact, dict[str, int]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Return whether it contains anything."""
        return bool(self._facts)

    def note(self, fact: Fact, name: str, times: int = 1) -> None:
        """Record a fact."""
        names, name = self._facts.setdefault(fact, {}), one_line(name, _LONGEST)
        name = name if name in names or len(names) < _MOST else "others"
        names[name] = names.get(name, 0) + times

    def add(self, receipt: "Receipt", masked: Callable[[str], str] = str) -> None:
        """Add all facts of another receipt, with its names `masked`."""
        for fact, names in receipt._facts.items():
            for name, times in names.items():
                self.note(fact, masked(name), times)

    def count(self, fact: Fact, name: str) -> int:
        """Return how often a fact was recorded with this name."""
        return self._facts.get(fact, {}).get(one_line(name, _LONGEST), 0)

    def names(self, *facts: Fact) -> list[str]:
        """Return the names of some kinds, each once."""
        return list(dict.fromkeys(name for fact in facts for name in self._facts.get(fact, ())))

    @property
    def is_inside(self) -> bool:
        """True if nothing reached beyond the conversation: at most, functions were called that only compute."""
        return self._facts.keys() <= INSIDE

    def to_json(self) -> Made:
        """Return the receipt as JSON, without empty kinds."""
        return {
            fact: {**self._facts[fact]} if fact in _COUNTED else [*self._facts[fact]]
            for fact in get_args(Fact)
            if fact in self._facts
        }

    @classmethod
    def from_json(
        cls, made: Mapping[str, Any]
    ) -> Self:  # Any: JSON, possibly from another person's file
        """Build a receipt from JSON; unknown forms are skipped."""
        receipt = cls()
        for fact in get_args(Fact):
            match made.get(fact):
                case dict() as counts:
                    pairs = [
                        (name, times) for name, times in counts.items() if isinstance(times, int)
                    ]
                case list() as listed:
                    pairs = [(name, 1) for name in listed if isinstance(name, str)]
                case _:
                    continue
            for name, times in pairs:
                receipt.note(fact, str(name), times)
        return receipt

    @property
    def text(self) -> str:
        """The whole receipt as one line, for a log and for programs that show text."""
        return "; ".join(text for _, text in self.parts(_MOST + 1))

    def parts(self, most: int) -> list[tuple[Fact | None, str]]:
        """Return its phrases, each with its kind of fact, or None for the phrase that nothing happened outside.

        At most `most` names of each kind are listed, and the others are counted.
        """
        parts: list[tuple[Fact | None, str]] = [
            (fact, self.phrase(fact, most)) for fact in _PHRASES if fact in self._facts
        ]
        return [*parts, (None, NOTHING_OUTSIDE)] if self.is_inside else parts

    def phrase(self, fact: Fact, most: int, *, to_you: bool = False) -> str:
        """Return the phrase of a kind of fact, with at most so many names. `to_you`: it is read by who was asked."""
        names = [*self._names_with_counts(fact)]
        shown, rest = ", ".join(names[:most]), len(names) - most
        if rest > 0:
            shown = f"{shown} and {rest} more" if most else str(len(names))
        if fact == "asked" and to_you:
            return (
                f"asked you: {shown}" if most else f"asked you {sum(self._facts[fact].values())}×"
            )
        return _PHRASES[fact].format(shown)

    def facts(self) -> list[Fact]:
        """Return the kinds of facts in it, in the order in which they are told."""
        return [fact for fact in _PHRASES if fact in self._facts]

    def _names_with_counts(self, fact: Fact) -> Iterator[str]:
        """Yield the names of a kind, with counts."""
        for name, times in self._facts[fact].items():
            if fact == "remembered":
                lines = self._facts.get("lines", {}).get(name, 0)
                yield f"{name} ({lines} line{'' if lines == 1 else 's'})" if lines else name
            else:
                yield f"{name} ×{times}" if times > 1 and fact in _COUNTED else name
