"""The registry: the functions that can be called right now, their sources, and rejected files.

It holds one immutable snapshot and replaces it as a whole, so a step never sees half a change. It notifies its
listeners of differences.

A snapshot's `with_…` and `without_…` return a new one with one module replaced. The maps are copied whole, which takes
10 µs for 1,000 entries (benchmarks/registry.py). In a draft, which only its creator has, they are changed in place. A
name is unique across the workspace: the existing function keeps it.
"""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from agent_core.base.problem import Place, Problem
from agent_core.base.records import dataclass, field, fields_to_json, replace
from sandbox.wire.lines import kept_lines

from .tree import imports_own_name

if TYPE_CHECKING:
    from .function import Function, ModuleReading
    from .source import ModuleSource


_T = TypeVar("_T")
_TAKEN: Final = ("name-clash", "reserved-name")


def _without(mapping: Mapping[str, _T], key: str) -> Mapping[str, _T]:
    return (
        {name: value for name, value in mapping.items() if name != key}
        if key in mapping
        else mapping
    )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One moment of the registry. `reserved` are names that functions of the folder cannot have.

    `helpers` are the names of helpers, which new functions cannot get. A snapshot reduced to what one agent sees has
    the full one as its `whole`, in which functions call each other.
    """

    functions: Mapping[str, "Function"]
    modules: Mapping[str, "ModuleSource"]
    readings: Mapping[str, "ModuleReading"]  # by module
    rejections: Mapping[str, tuple[Problem, ...]]  # by path
    reserved: frozenset[str] = frozenset()
    number: int = 0
    is_draft: bool = False
    helpers: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()  # modules whose name means a package: they import it
    whole: "Snapshot | None" = None

    @classmethod
    def empty(cls, reserved: frozenset[str] = frozenset()) -> "Snapshot":
        """Return a snapshot without functions."""
        return cls({}, {}, {}, {}, reserved)

    @property
    def rejected(self) -> tuple[Problem, ...]:
        """Every problem that rejects a file or a function, sorted by path."""
        return tuple(
            problem for path in sorted(self.rejections) for problem in self.rejections[path]
        )

    def text_of(self, function: "Function") -> str:
        """Return the function's source without the final line end."""
        lines = kept_lines(self.modules[function.module].text)[
            function.line - 1 : function.end_line
        ]
        return "\n".join(line.rstrip("\r\n") for line in lines)

    def seen(self, sees: Callable[["Function"], bool]) -> "Snapshot":
        """Return the snapshot reduced to the functions for which `sees` is true."""
        functions = {name: function for name, function in self.functions.items() if sees(function)}
        return replace(self, functions=functions, whole=self)

    @property
    def hidden(self) -> frozenset[str]:
        """The functions of the whole snapshot that are not visible."""
        return (
            frozenset(self.whole.functions.keys() - self.functions.keys())
            if self.whole
            else frozenset()
        )

    def draft(self) -> "Snapshot":
        """Return a draft: a private copy in which many modules are placed one after another."""
        functions, modules, readings = dict(self.functions), dict(self.modules), dict(self.readings)
        return replace(self, functions=functions, modules=modules, readings=readings, is_draft=True)

    def finished(self) -> "Snapshot":
        """Return a draft as an immutable snapshot."""
        return replace(self, is_draft=False)

    def with_module(self, reading: "ModuleReading") -> "Snapshot":
        """Return the snapshot with one module as read; a fully rejected module only changes the rejections."""
        source = reading.source
        holder = self.modules.get(source.module)
        if not reading.parsed:
            return self.with_rejection(source.path, reading.problems)
        if holder is not None and holder.path != source.path:
            message = f"the module `{source.module}` is already {holder.path}, which stays"
            clash = Problem(
                "module-clash", message, Place(source.path), "rename or remove one of the two"
            )
            return self.with_rejection(source.path, (*reading.problems, clash))
        return self._place(reading)

    def without_module(self, module: str) -> "Snapshot":
        """Return the snapshot without one module."""
        if module not in self.modules:
            return self
        removed = self.readings[module]
        return replace(
            self,
            functions={
                name: function
                for name, function in self.functions.items()
                if function.module != module
            },
            modules=_without(self.modules, module),
            readings=_without(self.readings, module),
            rejections=_without(self.rejections, removed.source.path),
            packages=self.packages - {module},
            number=self.number + 1,
        )

    def with_rejection(self, path: str, problems: tuple[Problem, ...]) -> "Snapshot":
        """Return the same functions with the problems of a rejected file; an empty tuple clears them."""
        rejections = (
            {**self.rejections, path: problems} if problems else _without(self.rejections, path)
        )
        return replace(self, rejections=rejections, number=self.number + 1)

    def _place(self, reading: "ModuleReading") -> "Snapshot":
        module, path = reading.source.module, reading.source.path
        old = self.readings.get(module)
        names = {function.name for function in old.functions} if old else set[str]()
        had = {
            name
            for name in names
            if (holder := self.functions.get(name)) and holder.module == module
        }
        functions, refused = self._own(self.functions), []
        for name in had - {function.name for function in reading.functions}:
            del functions[name]
        for function in reading.functions:
            problem = self._taken(functions, function)
            if problem is None:
                functions[function.name] = (
                    function  # in the old place, which keeps the order that the model has seen
                )
            else:
                refused.append(problem)
        problems = (
            *(problem for problem in reading.problems if problem.severity == "refuses"),
            *refused,
        )
        packages = self.packages - {module}
        if imports_own_name(reading.source):
            packages |= {module}
        return replace(
            self.with_rejection(path, problems),
            functions=functions,
            modules=self._own(self.modules, {module: reading.source}),
            readings=self._own(self.readings, {module: reading}),
            packages=packages,
        )

    def _own(
        self, mapping: Mapping[str, _T], more: Mapping[str, _T] | None = None
    ) -> dict[str, _T]:
        """Return the mapping with more entries: a copy, or the mapping itself in a draft."""
        own = mapping if self.is_draft and isinstance(mapping, dict) else dict(mapping)
        own.update(more or {})
        return own

    def clashes(self, reading: "ModuleReading") -> tuple[Problem, ...]:
        """Return the problems that another module has a name of this one, or that it is built in."""
        problems = (self._taken(self.functions, function) for function in reading.functions)
        return tuple(problem for problem in problems if problem is not None)

    @property
    def has_clash(self) -> bool:
        """True if a file is rejected because of a name that is taken."""
        return any(problem.code in _TAKEN for problem in self.rejected)

    def _taken(self, functions: Mapping[str, "Function"], function: "Function") -> Problem | None:
        where = Place(function.path, function.line)
        if function.name in self.reserved:
            message = f"`{function.name}` is the name of a function that is built in"
            return Problem("reserved-name", message, where, "give the function another name")
        return _name_clash(functions.get(function.name), function.name, function.module, where)

    def clash(self, name: str, module: str, place: Place) -> Problem | None:
        """Return the problem that a function's name is taken by another module, or None."""
        return _name_clash(self.functions.get(name), name, module, place)


def _name_clash(holder: "Function | None", name: str, module: str, place: Place) -> Problem | None:
    if holder is None or holder.module == module:
        return None
    message = f"`{name}` is already the function at {holder.path}:{holder.line}, which stays"
    return Problem("name-clash", message, place, "rename one of the two, or remove one")


Hand = Literal["human", "agent", "user"]
"""Who changed functions: someone in the files, an agent, or the user by a command."""


@dataclass(frozen=True, slots=True)
class RegistryChange:
    """The difference that a swap made: names of functions, problems that are new or occurred again, and who did it.

    `fixed` are paths without remaining problems. By function, `standings` are the new standings, `disagreeing` the
    failing examples, and `noted` other messages about a save.
    """

    loaded: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    rejected: tuple["Problem", ...] = ()
    by: Hand = "human"
    fixed: tuple[str, ...] = ()
    standings: Mapping[str, str] = field(default_factory=dict)
    disagreeing: Mapping[str, str] = field(default_factory=dict)
    noted: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:  # Any: values of JSON
        """Return the published report of a reload."""
        data = fields_to_json(self)
        del data["by"]
        return data

    def __bool__(self) -> bool:
        different = self.loaded or self.changed or self.removed or self.rejected or self.fixed
        return bool(different or self.disagreeing or self.noted)


# Of a function: what is different if it has changed.
_shown_values = attrgetter("module", "body_hash", "parameters", "description")
Listener = Callable[[RegistryChange], None]


def difference(
    old_snapshot: Snapshot,
    new_snapshot: Snapshot,
    by: Hand = "human",
    change: RegistryChange | None = None,
) -> RegistryChange:
    """Return the differences between two snapshots, with the messages by function from `change`.

    A function has changed if its own source or what the model is shown of it has; an edit of a neighbor in the same
    module does not count.
    """
    again = () if change is None else change.rejected
    told_of = frozenset(old_snapshot.rejected) | frozenset(again)
    settled = old_snapshot.rejections.keys() - new_snapshot.rejections.keys()
    # Of all modules, and the settled ones of folders.
    paths = {source.path for source in new_snapshot.modules.values()} if settled else set[str]()
    paths |= {path for path in settled if path.endswith("/")}
    # Few functions have another object after a typical change.
    before, after = old_snapshot.functions, new_snapshot.functions
    others = [
        name for name, function in after.items() if before.get(name, function) is not function
    ]
    return replace(
        RegistryChange() if change is None else change,
        loaded=tuple(sorted(after.keys() - before.keys())),
        changed=tuple(
            sorted(
                name for name in others if _shown_values(before[name]) != _shown_values(after[name])
            )
        ),
        removed=tuple(sorted(before.keys() - after.keys())),
        rejected=(
            *again,
            *(problem for problem in new_snapshot.rejected if problem not in told_of),
        ),
        by=by,
        fixed=tuple(sorted(settled & paths)),
    )


class Registry:
    """The holder of the current snapshot. It belongs to the event loop's thread."""

    def __init__(self, snapshot: Snapshot | None = None) -> None:
        self._snapshot = snapshot or Snapshot.empty()
        self._listeners: list[Listener] = []

    def snapshot(self) -> Snapshot:
        """Return the current snapshot, which never changes."""
        return self._snapshot

    def swap(
        self,
        snapshot: Snapshot,
        *,
        by: Hand = "human",
        known_change: RegistryChange | None = None,
    ) -> RegistryChange:
        """Make a snapshot the current one and notify the listeners, unless nothing has changed.

        The messages by function in `known_change` become part of the change.
        """
        change = difference(self._snapshot, snapshot, by, known_change)
        self._snapshot = snapshot
        if change:
            for listener in tuple(self._listeners):
                listener(change)
        return change

    def keep_for_helpers(self, names: frozenset[str]) -> None:
        """Reserve these names of helpers, so that no new function gets them."""
        self._snapshot = replace(self._snapshot, helpers=names)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Notify `listener` of every change from now on; call the returned function to stop."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)
