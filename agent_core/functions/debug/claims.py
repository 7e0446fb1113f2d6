"""A worker's claims about a stop, a record or a trace: parsed strictly, or refused."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from sandbox import RequestRefused
from sandbox.wire import caps

from agent_core.base.untrusted import visible
from .stop import At

Claim: TypeAlias = Mapping[str, Any]  # Any: JSON of a worker
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BreakpointRecord:
    """The values that were seen when a breakpoint was passed."""

    id: int
    hits: int
    at: At
    locals: tuple[tuple[str, str], ...]
    shown: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class TraceLine:
    """One line of a trace: how often it ran, and the locals it changed, with their first and last values."""

    at: At
    count: int
    first: tuple[tuple[str, str], ...]
    last: tuple[tuple[str, str], ...]


class Reader:
    """Reads one claim, already masked and checked for its size, and makes its texts visible.

    Each method raises RequestRefused where the claim has another shape.
    """

    def text(self, value: object, most: int = caps.MOST_ANSWER) -> str:
        """Return a text."""
        if not isinstance(value, str):
            raise RequestRefused("the debugger hears texts here")
        return visible(value[: most * 2])[:most]

    def word(self, value: object, most: int) -> str:
        """Return a text on one line: a name, or a path."""
        return self.text(value, most).replace("\n", "\\n")

    def number(self, value: object) -> int:
        """Return a number that counts something."""
        if not isinstance(value, int) or not 0 <= value < 1 << 40:
            raise RequestRefused("the debugger hears a number here")
        return int(value)

    def many(self, value: object, read: Callable[[Any], T], most: int = caps.MOST_SEEN) -> tuple[T, ...]:
        """Return a list, up to its limit."""
        if not isinstance(value, list):
            raise RequestRefused("the debugger hears a list here")
        return tuple(read(item) for item in value[:most])

    def pairs(self, value: object, most: int = caps.MOST_SEEN) -> tuple[tuple[str, str], ...]:
        """Return names with the texts of their values."""
        return self.many(value, self._pair, most)

    def _pair(self, value: object) -> tuple[str, str]:
        match value:
            case [name, text]:
                return self.word(name, caps.MOST_SEEN_NAME), self.text(text, caps.MOST_SEEN_TEXT)
            case _:
                raise RequestRefused("the debugger hears a name and a value here")

    def at(self, value: object) -> At:
        """Return a place."""
        match value:
            case [path, line, function]:
                return At(self.word(path, caps.MOST_PATH), self.number(line), self.word(function, caps.MOST_NAME))
            case _:
                raise RequestRefused("the debugger hears a place here")

    def record(self, claim: Claim) -> BreakpointRecord:
        """Return a record."""
        at = self.at([claim.get("path"), claim.get("line"), claim.get("function")])
        id, hits = self.number(claim.get("id")), self.number(claim.get("hits"))
        return BreakpointRecord(id, hits, at, self.pairs(claim.get("locals")), self.pairs(claim.get("shown")))

    def line(self, claim: object) -> TraceLine:
        """Return a line of a trace."""
        match claim:
            case [path, line, function, count, first, last]:
                at = self.at([path, line, function])
                first, last = (self.pairs(changes, caps.MOST_CHANGES) for changes in (first, last))
                return TraceLine(at, self.number(count), first, last)
            case _:
                raise RequestRefused("the debugger hears a line of a trace here")
