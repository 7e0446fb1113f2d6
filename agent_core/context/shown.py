"""The functions that the model is shown, in an order that changes as little as possible.

Servers cache the longest unchanged prefix of a request, so a name keeps its place while it is shown,
what is new goes last, and what must leave is what was used least recently.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from agent_core.model.reply import Mode
from agent_core.model.request import FunctionShown
from agent_core.registry.function import Function

FOR_SMALL_MODELS: Final = frozenset({"core_memory_append", "core_memory_replace", "conversation_search"})
"""Of the functions of memory, those that a model under a schema is shown: each costs it attention."""

FOR_LARGE_ROOMS: Final = frozenset({"debugger", "clear_debugger", "trace_function"})
"""What goes first where the room is small: a failure tells its frames and locals without them."""

_ENVELOPE: Final = 80


class Hidden(Protocol):
    """Knows the functions that are not shown, as (name, hash of the body), and what the user complained about."""

    held: frozenset[tuple[str, str]]
    complaints: Mapping[tuple[str, str], str]


class Shown:
    """The functions that one agent is shown; they persist from step to step."""

    def __init__(
        self, pinned: Iterable[Function], limit: int, hidden: Hidden, memory: frozenset[str] = frozenset()
    ) -> None:
        """Create the selection; `memory` names the pinned functions that are about memory."""
        self._pinned = {function.name: _Place.of(function) for function in pinned}
        self._limit = limit
        self._hidden = hidden
        self._held: frozenset[tuple[str, str]] = frozenset()
        self._complaints: Mapping[tuple[str, str], str] = {}
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
        """Record a call of a function: recently used ones are the last to be dropped when room is needed."""
        self._uses += 1
        self._used[name] = self._uses
        if name not in self._places and name not in self._pinned:
            self._seen = None  # it comes into sight: only then does a use change the choice

    def choose(
        self, functions: Mapping[str, Function], own_set: frozenset[str] = frozenset()
    ) -> tuple[FunctionShown, ...]:
        """Return the functions for this step, also stored as `line`; `own_set` always stays."""
        before = (self._seen, self._held, self._complaints)
        now = (functions, self._hidden.held, self._hidden.complaints)
        if own_set == self._kept and all(one is other for one, other in zip(before, now, strict=True)):
            return self.line
        self._kept, (self._seen, self._held, self._complaints) = own_set, now
        if self._held:
            functions = {
                name: function for name, function in functions.items() if (name, function.body_hash) not in self._held
            }
        if self._pinned.keys() & functions.keys():  # a memory class of the user's own: its methods are called
            functions = {name: function for name, function in functions.items() if name not in self._pinned}
        staying = self._most_useful(functions, own_set, max(self._limit - len(self._pinned), 0))
        self._known = len(functions)
        order = [*self._in_place(staying), *self._new(staying)]
        self._places = {name: self._place(name, functions[name]) for name in order}
        places = [*self._pinned.values(), *self._places.values()]
        self.line = tuple(place.shown for place in places)
        return self.line

    def fitting(self, mode: Mode, room: int) -> tuple[FunctionShown, ...]:
        """Return the last choice as this mode shows it in this many bytes; the same object as long as nothing changes.

        A small model, and one in a small room, is shown few functions of memory; then what was used least goes.
        """
        if self._fitted[0] is not self.line or self._fitted[1] != (mode, room):
            self._fitted = self.line, (mode, room), self._fit(mode, room)
        return self._fitted[2]

    def hidden(self, shown: tuple[FunctionShown, ...]) -> int:
        """Return how many functions of the workspace are not shown."""
        return self._known - sum(function.name not in self._pinned for function in shown)

    def _fit(self, mode: Mode, room: int) -> tuple[FunctionShown, ...]:
        sizes = {function.name: _size(function) for function in self.line}
        if mode == "native" and sum(sizes.values()) <= room:
            return self.line
        if mode == "native":
            sizes = {name: size for name, size in sizes.items() if name not in FOR_LARGE_ROOMS}
            if sum(sizes.values()) <= room:
                return tuple(function for function in self.line if function.name in sizes)
        staying = {name: size for name, size in sizes.items() if name not in self._withheld}
        movable = [name for name in staying if name not in self._pinned and name not in self._kept]
        for name in (
            sorted(movable, key=lambda movable_name: self._used.get(movable_name, 0)) if mode == "native" else ()
        ):
            if sum(staying.values()) <= room:
                break
            del staying[name]
        return tuple(function for function in self.line if function.name in staying)

    @property
    def pinned_count(self) -> int:
        """The number of functions that are always shown."""
        return len(self._pinned)

    def names(self) -> frozenset[str]:
        """Return the names in the last choice."""
        return frozenset(shown.name for shown in self.line)

    def _most_useful(self, functions: Mapping[str, Function], own_set: frozenset[str], room: int) -> set[str]:
        if len(functions) <= room:
            return set(functions)
        order = sorted(
            functions, key=lambda name: (name in own_set, self._used.get(name, 0), name in self._places), reverse=True
        )
        return set(order[:room])

    def _in_place(self, staying: set[str]) -> list[str]:
        return [name for name in self._places if name in staying]

    def _new(self, staying: set[str]) -> list[str]:
        return sorted(name for name in staying if name not in self._places)

    def _place(self, name: str, function: Function) -> "_Place":
        # The same object from step to step: the wire form of what did not change is not made again.
        place, complaint = self._places.get(name), self._complaints.get((name, function.body_hash), "")
        is_same = place is not None and place.function is function and place.complaint == complaint
        return place if place is not None and is_same else _Place.of(function, complaint)


def _size(shown: FunctionShown) -> int:
    """Return about how many bytes a function takes on the wire."""
    return len(shown.name) + len(shown.description) + len(json.dumps(shown.parameters)) + _ENVELOPE


@dataclass(frozen=True, slots=True)
class _Place:
    """A function in the selection, as it is shown."""

    function: Function
    shown: FunctionShown
    complaint: str = ""

    @classmethod
    def of(cls, function: Function, complaint: str = "") -> "_Place":
        warning = f"({complaint[0].upper()}{complaint[1:]}.) " if complaint else ""
        shown = FunctionShown(function.name, warning + function.description, function.parameters)
        return cls(function, shown, complaint)
