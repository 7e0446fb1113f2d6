"""The functions that the model is shown: with native calls, tools and an index, else the functions themselves.

Servers cache the longest unchanged prefix of a request, so tools and index stay for a whole conversation. Functions
that are shown themselves keep their places; new ones are added at the end, and the least recently used ones are removed
first.
"""

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from agent_core.base.records import dataclass, replace
from agent_core.model.reading import KnownFunctions
from agent_core.model.request import FunctionShown
from agent_core.registry.function import line_of

if TYPE_CHECKING:
    from agent_core.model.reply import Mode
    from agent_core.registry.function import Function

# The index: functions as lines of text in the system message, instead of a schema for each.
# It is created once per conversation, so that the server's cached prefix stays valid. Later functions are announced
# where they appear: in the answer to a call, or in a notice.

_HEAD: Final = "Call these {}by call_function (no type: a str; in []: what it reaches):"
_ALSO: Final = "And of the program (introspect_function shows how): "
_MARKS: Final = ("*", "**", "***")
_SHARED: Final = 3
_MOST_MODULES: Final = 12


@dataclass(frozen=True, slots=True)
class PromptIndex:
    """The text of an index, and the names of the functions that have a line in it."""

    text: str
    names: frozenset[str]

    @classmethod
    def of(
        cls,
        functions: Mapping[str, "Function"],
        order: Iterable[str],
        room: int,
        ending: Callable[["Function"], str],
        seen_type: Callable[["Function"], str],
        program: Sequence["Function"] = (),
        *,
        has_programs: bool = True,
    ) -> "PromptIndex":
        """Return the index of functions in this many bytes: the first of `order` that fit, and the others by module.

        `has_programs` tells whether the agent can run programs. Functions of the `program` are listed by name, in any
        case.
        """
        lines: dict[str, str] = {}
        endings: dict[str, str] = {}
        for name in order:
            line, end = (
                line_of(functions[name], seen_type(functions[name])),
                ending(functions[name]),
            )
            room -= len(f"{line}{end}".encode("utf-8", "replace")) + 1
            if room < 0:
                break
            lines[name], endings[name] = line, end
        # A mark stands for each ending that many functions share, the most frequent first.
        often = Counter(endings.values()).most_common(len(_MARKS))
        marks = dict(
            zip([text for text, count in often if text and count >= _SHARED], _MARKS, strict=False)
        )
        ends = {text: f" {mark}" for text, mark in marks.items()}
        lines = {
            name: f"{line}{ends.get(endings[name], endings[name])}" for name, line in lines.items()
        }
        listed = sorted(lines, key=lambda name: (functions[name].module, name))
        others = Counter(
            function.module for name, function in functions.items() if name not in lines
        )
        legend = "".join(f"\n{mark}:{text}" for text, mark in marks.items())
        head = _HEAD.format("in a program or " if has_programs else "")
        parts = [head + legend, *(lines[name] for name in listed)] if lines or others else []
        if others:
            many = ", ".join(
                f"{module} {count}" for module, count in others.most_common(_MOST_MODULES)
            )
            rest = ", …" if len(others) > _MOST_MODULES else ""
            parts.append(
                f"And {others.total()} more, by module: {many}{rest}. list_functions finds them."
            )
        if program:
            parts.append(_ALSO + ", ".join(function.name for function in program))
        return cls("\n".join(parts), frozenset(lines))


_OF_BLOCKS: Final = frozenset({"core_memory_append", "core_memory_replace"})
FOR_SMALL_MODELS: Final = _OF_BLOCKS | {"conversation_search"}
"""The memory functions that a model under a schema is shown: each costs it attention."""

CALLER: Final = "call_function"
"""Calls a function that is not a tool; an agent that has it is shown a few tools and an index."""

RUN_PROGRAM: Final = "run_program"
"""Runs a few lines of Python that call functions."""

READ_ON: Final = "read_on"
"""Reads a text again of which only a part is shown."""

TOOLS: Final = (
    *(
        "create_function",
        RUN_PROGRAM,
        CALLER,
        "list_functions",
        "introspect_function",
        "edit_function",
    ),
    *("core_memory_append", "core_memory_replace", "conversation_search"),
    *("send_message", "ask_agent", "message_agent"),
)
"""The tools of an agent with an index, if it has them: the same ones for a whole conversation."""

EXPECTED: Final = 40
"""The number of expected functions that fill the selection at first; later, only the first few are added."""

_EXPECTED_LATER: Final = 5
_NOT_FITTED: Final[tuple[object, object, tuple[FunctionShown, ...]]] = (None, None, ())


class Hidden(Protocol):
    """The functions that are not shown, as (name, hash of the body), and the user's complaints.

    `held` functions cannot be called; `archived` ones are only found by a search.
    """

    held: frozenset[tuple[str, str]]
    archived: frozenset[tuple[str, str]]
    complaints: Mapping[tuple[str, str], str]


@dataclass(frozen=True, slots=True)
class FunctionNotes:
    """Additions to a function's own text: the end of its description, and the type of its result."""

    ending: Callable[["Function"], str] = lambda _function: ""
    seen_type: Callable[["Function"], str] = lambda _function: ""


class Shown:
    """The functions that one agent is shown; they persist from step to step."""

    def __init__(
        self,
        pinned: Iterable["Function"],
        limit: int,
        hidden: Hidden,
        memory: frozenset[str] = frozenset(),
        room: int = sys.maxsize,
        notes: FunctionNotes | None = None,
        labels: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """Create the selection; `memory` names the pinned functions that deal with memory, `labels` its blocks.

        Functions of the workspace take at most `room` bytes, however many there are; `notes` are added to each.
        """
        self._notes = notes or FunctionNotes()
        self._labels = labels
        self._of_host = {function.name: _Place.of_host(function) for function in pinned}
        self.has_index = CALLER in self._of_host
        """Whether a model with native calls is shown a few tools and an index, not all functions as tools."""
        self._pinned = self._of_host
        self._limit = limit
        self._room = room
        self._hidden = hidden
        self._complaints: Mapping[tuple[str, str], str] = {}
        self._places: dict[str, _Place] = {}
        self._used: dict[str, int] = {}
        self._uses = 0
        self._seen: object = None
        self._chosen_for: tuple[object, ...] = ()
        self._kept: frozenset[str] = frozenset()
        self._withheld = (memory - FOR_SMALL_MODELS) | {CALLER}
        self._fitted = _NOT_FITTED
        self._known: frozenset[str] | None = None
        self._is_filled = False
        self._functions: Mapping[str, Function] = {}
        self._tools: tuple[FunctionShown, ...] | None = None
        self._index: PromptIndex | None = None
        self.line: tuple[FunctionShown, ...] = ()
        self.callable = KnownFunctions({})
        """The functions that can be called by name, whether they are shown by a schema or by a line."""

    def withhold(self, names: Collection[str]) -> None:
        """Leave out functions of the host while there is nothing to use them on."""
        pinned = {name: place for name, place in self._of_host.items() if name not in names}
        changed = pinned.keys() ^ self._pinned.keys()
        if changed:
            self._pinned, self._seen, self._fitted = pinned, None, _NOT_FITTED
        if not changed.isdisjoint(TOOLS):
            self._tools = self._index = None

    def use(self, name: str) -> None:
        """Record a call of a function: recently used ones are dropped last."""
        self._uses += 1
        self._used[name] = self._uses
        if name in self._places or any(function.name == name for function in self._fitted[2]):
            return
        # It becomes visible: only then does a use change the choice.
        self._seen, self._fitted = (
            (self._seen, _NOT_FITTED) if name in self._pinned else (None, self._fitted)
        )

    def show(self, names: Sequence[str]) -> None:
        """Show functions from the next step on, as if the model had just called them."""
        self.tell(names)
        for name in reversed(names):
            self.use(name)

    def expect(self, names: Sequence[str]) -> None:
        """Show the functions that a message probably needs, best first, in place of the least recently needed ones.

        Once a set is shown, only few are added, because each addition invalidates the server's cached prefix.
        """
        if names and not self._is_filled:
            self._places = {}  # nothing was sent yet: expected functions come first
        for name in reversed(names[: _EXPECTED_LATER if self._is_filled else EXPECTED]):
            self.use(name)
        self._is_filled = True

    @property
    def is_crowded(self) -> bool:
        """True if the workspace had more functions than were shown at the last choice."""
        return len(self._known or ()) > len(
            self._places if self._index is None else self._index.names
        )

    @property
    def tools(self) -> tuple[FunctionShown, ...]:
        """The tools in addition to the index: the same object until `thaw`.

        Their schemas are shorter, for the model; calls are checked by the full ones.
        """
        if self._tools is not None:
            return self._tools
        tools = []
        for function in [self._pinned[name].shown for name in TOOLS if name in self._pinned]:
            parameters = function.parameters
            properties = {
                name: _lean(part) for name, part in parameters.get("properties", {}).items()
            }
            lean: dict[str, Any] = {"type": "object", "properties": properties}  # Any: JSON Schema
            if required := parameters.get("required"):
                lean["required"] = required
            tools.append(replace(function, parameters=lean))
        self._tools = tuple(tools)
        return self._tools

    def index(self, room: int, *, is_kept: bool) -> PromptIndex:
        """Return the index in this many bytes, after `choose`; with `is_kept`, it stays the same until `thaw`."""
        if self._index is not None:
            return self._index
        tools = {tool.name for tool in self.tools}
        program = [place.function for name, place in self._pinned.items() if name not in tools]
        index = PromptIndex.of(
            self._functions,
            self._by_use(self._functions),
            room,
            self._ending_of,
            self._notes.seen_type,
            program,
            has_programs=RUN_PROGRAM in tools,
        )
        self._index = index if is_kept else None
        return index

    def beyond_index(self, names: Iterable[str]) -> list[str]:
        """Return the lines of functions of the workspace that were not announced yet, and mark them as announced."""
        if self._index is None:
            return []
        new = [name for name in names if name in self._functions and name not in self._index.names]
        self.tell(new)
        return [
            line_of(function, self._notes.seen_type(function))
            for function in map(self._functions.__getitem__, new)
        ]

    def tell(self, names: Iterable[str]) -> None:
        """Mark functions as announced, after an answer or a notice that says how they are called."""
        if self._index is not None:
            self._index = PromptIndex(self._index.text, self._index.names.union(names))

    @property
    def told(self) -> frozenset[str]:
        """The functions of the workspace that were announced by text and still exist."""
        return (
            self._index.names & self._functions.keys() if self._index is not None else frozenset()
        )

    def thaw(self) -> None:
        """Choose tools and index again at the next step: a conversation begins, or the server's cache is gone."""
        self._tools = self._index = None

    def choose(
        self, functions: Mapping[str, "Function"], own_set: frozenset[str] = frozenset()
    ) -> tuple[FunctionShown, ...]:
        """Return the functions for this step, also stored as `line`; `own_set` always stays."""
        now = (self._hidden.held, self._hidden.archived, self._hidden.complaints, own_set)
        if functions is self._seen and now == self._chosen_for:
            return self.line
        self._seen, self._chosen_for = functions, now
        held, archived, self._complaints, self._kept = now
        if gone := held | archived:
            functions = {
                name: function
                for name, function in functions.items()
                if (name, function.body_hash) not in gone
            }
        if (
            self._pinned.keys() & functions.keys()
        ):  # the user's own memory class: its methods take precedence
            functions = {
                name: function for name, function in functions.items() if name not in self._pinned
            }
        names = frozenset(functions)
        for name in sorted(names - self._known) if self._known is not None else ():
            self._uses += 1  # new ones count as used: they have just been created to be called
            self._used.setdefault(name, self._uses)
            self.tell([name])
        self._known, self._functions = names, functions
        of_host = {name: place.function for name, place in self._pinned.items()}
        self.callable = KnownFunctions({**functions, **of_host})
        staying = self._most_useful(functions, max(self._limit - len(self._pinned), 0))
        # New ones that will be removed first come last, so that the beginning stays.
        new = sorted(
            staying - self._places.keys(), key=lambda name: (-self._used.get(name, 0), name)
        )
        order = [*[name for name in self._places if name in staying], *new]
        self._places = {name: self._place(name, functions[name]) for name in order}
        places = [*self._pinned.values(), *self._places.values()]
        self.line = tuple(place.shown for place in places)
        return self.line

    def fitting(
        self,
        mode: "Mode",
        room: int,
        line: tuple[FunctionShown, ...] | None = None,
        *,
        with_programs: bool = False,
    ) -> tuple[FunctionShown, ...]:
        """Return the last choice as this mode shows it in this many bytes; the same object while nothing changes.

        `line` is the choice in the agent's style, which may take more room. A small model is shown few memory
        functions, and no programs unless `with_programs`; in a small room, the least recently used functions are
        removed one after another.
        """
        line = self.line if line is None else line
        terms = mode, room, with_programs, (*self._labels(),)
        if self._fitted[0] is not line or self._fitted[1] != terms:
            shown, size = line, size_of(line)
            if mode != "native":
                withheld = self._withheld if with_programs else self._withheld | {RUN_PROGRAM}
                shown = tuple(
                    _with_labels(part, terms[-1]) for part in line if part.name not in withheld
                )
            elif size > room:
                staying = {function.name: function.size for function in line}
                movable = staying.keys() - self._pinned.keys()  # the own set is removed last
                for name in sorted(
                    movable, key=lambda name: (name in self._kept, self._used.get(name, 0), name)
                ):
                    size -= staying.pop(name)
                    if size <= room:
                        break
                shown = (
                    line
                    if len(staying) == len(line)
                    else tuple(part for part in line if part.name in staying)
                )
            self._fitted = line, terms, shown
        return self._fitted[2]

    @property
    def pinned(self) -> tuple["Function", ...]:
        """The functions of the host, whether or not there is room to show them."""
        return tuple(place.function for place in self._pinned.values())

    def _most_useful(self, functions: Mapping[str, "Function"], most: int) -> set[str]:
        """Return the names of those that fit: the own set, then the last used or expected, then those already shown."""
        staying, left = set[str](), self._room
        for name in self._by_use(functions)[:most]:
            left -= self._place(name, functions[name]).shown.size
            if left < 0 and name not in self._kept:
                break
            staying.add(name)
        return staying

    def _by_use(self, functions: Mapping[str, "Function"]) -> list[str]:
        """Return the names in order of need: the own set, then the last used or expected."""
        return sorted(
            functions,
            key=lambda name: (
                name not in self._kept,
                -self._used.get(name, 0),
                name not in self._places,
            ),
        )

    def _ending_of(self, function: "Function") -> str:
        complaint = self._complaints.get((function.name, function.body_hash), "")
        return f"{self._notes.ending(function)}{f' ({complaint})' if complaint else ''}"

    def _place(self, name: str, function: "Function") -> "_Place":
        # Keep the same object from step to step, so that unchanged functions are not serialized again.
        place, complaint = (
            self._places.get(name),
            self._complaints.get((name, function.body_hash), ""),
        )
        is_same = place is not None and place.function is function and place.complaint == complaint
        return (
            place
            if place is not None and is_same
            else _Place.of(function, complaint, self._notes.ending(function))
        )


def _lean(schema: Mapping[str, Any]) -> dict[str, Any]:  # Any: JSON Schema
    """Return the schema of a parameter without its default, and without null, which leaving it out says as well."""
    lean = {key: value for key, value in schema.items() if key != "default" and value != {}}
    match lean:
        case {"anyOf": [{} as option, {"type": "null"}]} if "default" in schema:
            del lean["anyOf"]
            return {**_lean(option), **lean}
        case _:
            return lean


def _with_labels(function: FunctionShown, labels: Sequence[str]) -> FunctionShown:
    """Return a function that edits a block with the block labels as choices; otherwise a small model names a person."""
    if not labels or function.name not in _OF_BLOCKS:
        return function
    properties = function.parameters["properties"]
    chosen = (
        {**properties, "name": {**properties["name"], "enum": [*labels]}}
        if "name" in properties
        else properties
    )
    return replace(function, parameters={**function.parameters, "properties": chosen})


def size_of(functions: Iterable[FunctionShown]) -> int:
    """Return the approximate size of functions on the wire in bytes."""
    return sum(function.size for function in functions)


@dataclass(frozen=True, slots=True)
class _Place:
    """A function in the selection, as it is shown."""

    function: "Function"
    shown: FunctionShown
    complaint: str = ""

    @classmethod
    def of_host(cls, function: "Function") -> "_Place":
        """Return the place of a function of the program, which is the same for all agents."""
        place = _PLACES.get(id(function))
        if place is None:
            if len(_PLACES) >= _MOST_PLACES:  # many memory classes of the user's own
                _PLACES.clear()
            place = cls.of(function)
            # The reference to the function keeps its id unique.
            place = _PLACES[id(function)] = replace(place, shown=replace(place.shown, is_host=True))
        return place

    @classmethod
    def of(cls, function: "Function", complaint: str = "", ending: str = "") -> "_Place":
        warning = f"({complaint[0].upper()}{complaint[1:]}.) " if complaint else ""
        shown = FunctionShown(
            function.name, warning + function.description + ending, function.parameters
        )
        return cls(function, shown, complaint)


_PLACES: Final[dict[int, _Place]] = {}
_MOST_PLACES: Final = 1000
