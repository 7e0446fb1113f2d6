"""Which functions the model is shown, in an order that changes as little as possible.

Servers cache the longest unchanged prefix of a request, so a name keeps its place while it is shown,
what is new goes last, and what must leave is what was used least recently.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from ..model.reply import Mode
from ..model.request import FunctionShown
from ..registry.function import Function

FOR_SMALL_MODELS: Final = frozenset({"core_memory_append", "core_memory_replace", "conversation_search"})
"""Of the functions of memory, those that a model under a schema is shown: each costs it attention."""

FOR_LARGE_ROOMS: Final = frozenset({"debugger", "clear_debugger", "trace_function"})
"""What goes first where the room is small: a failure tells its frames and locals without them."""

_ENVELOPE: Final = 80


class Hidden(Protocol):
    """Knows the functions that are not shown, as (name, hash of the body)."""

    held: frozenset[tuple[str, str]]


class Shown:
    """The functions that one agent is shown; kept from step to step."""

    def __init__(
        self, pinned: Iterable[Function], limit: int, hidden: Hidden, memory: frozenset[str] = frozenset()
    ) -> None:
        """`memory` names those of the pinned functions that are about memory."""
        self._pinned = {function.name: _Place.of(function) for function in pinned}
        self._limit = limit
        self._hidden = hidden
        self._held: frozenset[tuple[str, str]] = frozenset()
        self._places: dict[str, _Place] = {}
        self._used: dict[str, int] = {}
        self._uses = 0
        self._seen: object = None
        self._kept: frozenset[str] = frozenset()
        self._withheld = memory - FOR_SMALL_MODELS
        self._fitted: tuple[object, object, tuple[FunctionShown, ...]] = (None, None, ())
        self._known = 0
        self.line: tuple[FunctionShown, ...] = ()

    def use(self, name: str) -> None:
        """A function was called: it leaves last when room is needed."""
        self._uses += 1
        self._used[name] = self._uses
        if name not in self._places and name not in self._pinned:
            self._seen = None  # it comes into sight: only then does a use change the choice

    def choose(
        self, functions: Mapping[str, Function], kept: frozenset[str] = frozenset()
    ) -> tuple[FunctionShown, ...]:
        """The functions for this step, also held as `line`; `kept` always stay."""
        if functions is self._seen and kept == self._kept and self._hidden.held is self._held:
            return self.line
        self._seen, self._kept, self._held = functions, kept, self._hidden.held
        if self._held:
            functions = {name: each for name, each in functions.items() if (name, each.body_hash) not in self._held}
        if self._pinned.keys() & functions.keys():  # a memory class of the user's own: its methods are called
            functions = {name: each for name, each in functions.items() if name not in self._pinned}
        staying = self._most_useful(functions, kept, max(self._limit - len(self._pinned), 0))
        self._known = len(functions)
        order = [*self._in_place(staying), *self._new(staying)]
        self._places = {name: self._place(name, functions[name]) for name in order}
        places = [*self._pinned.values(), *self._places.values()]
        self.line = tuple(place.shown for place in places)
        return self.line

    def fitting(self, mode: Mode, room: int) -> tuple[FunctionShown, ...]:
        """The last choice as a model of this mode is shown it in so many bytes; the same object while it holds.

        A small model, and one in a small room, is shown few functions of memory; then what was used least goes.
        """
        if self._fitted[0] is not self.line or self._fitted[1] != (mode, room):
            self._fitted = self.line, (mode, room), self._fit(mode, room)
        return self._fitted[2]

    def hidden(self, shown: tuple[FunctionShown, ...]) -> int:
        """How many functions of the workspace are not among those that are shown."""
        return self._known - sum(each.name not in self._pinned for each in shown)

    def _fit(self, mode: Mode, room: int) -> tuple[FunctionShown, ...]:
        sizes = {each.name: _size(each) for each in self.line}
        if mode == "native" and sum(sizes.values()) <= room:
            return self.line
        if mode == "native":
            sizes = {name: size for name, size in sizes.items() if name not in FOR_LARGE_ROOMS}
            if sum(sizes.values()) <= room:
                return tuple(each for each in self.line if each.name in sizes)
        staying = {name: size for name, size in sizes.items() if name not in self._withheld}
        movable = [name for name in staying if name not in self._pinned and name not in self._kept]
        for name in sorted(movable, key=lambda each: self._used.get(each, 0)) if mode == "native" else ():
            if sum(staying.values()) <= room:
                break
            del staying[name]
        return tuple(each for each in self.line if each.name in staying)

    @property
    def pinned_count(self) -> int:
        """How many functions are shown whatever happens."""
        return len(self._pinned)

    def names(self) -> frozenset[str]:
        """The names in the last choice."""
        return frozenset(shown.name for shown in self.line)

    def _most_useful(self, wanted: Mapping[str, Function], kept: frozenset[str], room: int) -> set[str]:
        if len(wanted) <= room:
            return set(wanted)
        order = sorted(
            wanted, key=lambda name: (name in kept, self._used.get(name, 0), name in self._places), reverse=True
        )
        return set(order[:room])

    def _in_place(self, staying: set[str]) -> list[str]:
        return [name for name in self._places if name in staying]

    def _new(self, staying: set[str]) -> list[str]:
        return sorted(name for name in staying if name not in self._places)

    def _place(self, name: str, function: Function) -> "_Place":
        # The same object from step to step: the wire form of what did not change is not made again.
        known = self._places.get(name)
        return known if known is not None and known.function is function else _Place.of(function)


def _size(shown: FunctionShown) -> int:
    """About how many bytes a function takes on the wire."""
    return len(shown.name) + len(shown.description) + len(json.dumps(shown.parameters)) + _ENVELOPE


@dataclass(frozen=True, slots=True)
class _Place:
    """A function in the line, as it is shown."""

    function: Function
    shown: FunctionShown

    @classmethod
    def of(cls, function: Function) -> "_Place":
        return cls(function, FunctionShown(function.name, function.description, function.parameters))
