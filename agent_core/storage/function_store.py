"""Functions in the store: versions of modules, the manifest, verdicts, kept candidates, readings of files, pins."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from .subject import Subject, Write

Author: TypeAlias = Literal["human", "agent"]


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A line of a module's history. A removal has an empty `version` and no text. `agent` is the agent of the turn.

    `kept_out` are functions in the text that are not in force, because another file or a built-in has the name; the
    line is not part of their history.
    """

    module: str
    version: str
    text: str
    by: str
    turn: str
    model: str
    reason: str
    at: float
    agent: str = ""
    kept_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenWrite:
    """A write to a file that was begun but not ended. None means "no file"."""

    path: str
    version: str | None
    text: str | None
    expected: str | None
    at: float


@dataclass(frozen=True, slots=True)
class ReadingRow:
    """The stored reading of a file: `stamp` is (mtime_ns, size, inode), `reading` is JSON text."""

    path: str
    stamp: tuple[int, int, int]
    version: str
    reading: str


@dataclass(frozen=True, slots=True)
class SaveVersion(Write):
    """Store a module's source under its hash, and add a line to the module's history.

    `kept_out` are the functions of the source that are not in force with it.
    """

    module: str
    version: str
    text: str
    by: Author = "human"
    turn: str = ""
    reason: str = ""
    model: str = ""
    kept_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SetManifest(Write):
    """Compare-and-set: `expected` None means that the module is new, `version` None removes it.

    A removal also adds a line to the module's history, with `by`, `turn` and `reason`.
    """

    module: str
    expected: str | None
    version: str | None
    by: Author = "human"
    turn: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SaveVerdict(Write):
    """The gate's verdict on one function of one version. A later verdict replaces an earlier one."""

    version: str
    function: str
    verdict: dict[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class SavePending(Write):
    """Keep a rejected candidate for `edit_function` and `confirm_function`."""

    function: str
    candidate: dict[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class DropPending(Write):
    """Delete a candidate that was admitted or given up."""

    function: str


@dataclass(frozen=True, slots=True)
class BeginWrite(Write):
    """Announce that a file will become `text` (None: be deleted) if it still matches `expected` (None: absent)."""

    path: str
    version: str | None
    text: str | None
    expected: str | None


@dataclass(frozen=True, slots=True)
class EndWrite(Write):
    """Record that the file matches the intent of this path and version, or that the intent was given up."""

    path: str
    version: str | None


@dataclass(frozen=True, slots=True)
class SaveReading(Write):
    """Store the reading of a file: `stamp` is (mtime_ns, size, inode), `reading` is JSON text."""

    path: str
    stamp: tuple[int, int, int]
    version: str
    reading: str


@dataclass(frozen=True, slots=True)
class DropReading(Write):
    """Delete the reading of a file that no longer exists."""

    path: str


@dataclass(frozen=True, slots=True)
class PinFunction(Write):
    """Always show this function to this agent."""

    agent: str
    function: str


@dataclass(frozen=True, slots=True)
class UnpinFunction(Write):
    """Show this function to this agent only when it is found."""

    agent: str
    function: str


BEGUN, RESTORED = "begun", "restored"
"""Values of `turn` for the empty state of a new function, and for a state that a person restored."""


@dataclass(frozen=True, slots=True)
class StateRow:
    """The state of a function after a turn; `n` changes with each change.

    `turn` is empty for a call outside of turns, and may be `BEGUN` or `RESTORED`.
    """

    n: int
    function: str
    turn: str
    value: Any  # Any: JSON
    at: float


@dataclass(frozen=True, slots=True)
class SaveState(Write):
    """A compare-and-set write of a function's state: the current one must be `expected` (0: none).

    Raises StateConflict if another call was first. Only the last value of each turn is kept, and only a function's
    newest states.
    """

    function: str
    value: Any  # Any: JSON
    expected: int
    turn: str = ""


@dataclass(frozen=True, slots=True)
class BeginState(Write):
    """A write that gives a new function an empty state, even if an earlier one of that name left a state."""

    function: str


@dataclass(frozen=True, slots=True)
class DropState(Write):
    """A write that reverts a state to the previous one if it is still at `n`. Raises StateConflict otherwise."""

    function: str
    n: int


@dataclass(frozen=True, slots=True)
class SaveTended(Write):
    """A change that tending made: `changed`, `deleted` or `archived`, with the hashes of the text before and after."""

    run: str
    function: str
    kind: str
    before: str
    after: str
    note: str


@dataclass(frozen=True, slots=True)
class UndoTended(Write):
    """Record that a change of tending was undone."""

    n: int


@dataclass(frozen=True, slots=True)
class TendedRow:
    """One change that tending made."""

    n: int
    run: str
    function: str
    kind: str
    before: str
    after: str
    note: str
    at: float
    undone: bool


class FunctionStore(Subject, Protocol):
    """The versions of functions, and the facts about them."""

    async def manifest(self) -> dict[str, str]:
        """Return the current version of each module."""

    async def kept_out(self) -> dict[str, frozenset[str]]:
        """Return the functions that are kept out of each current module, for modules with any."""

    async def version(self, version: str) -> VersionRow | None:
        """Return the source with that hash, with the line of history that introduced it."""

    async def module_history(self, module: str) -> list[VersionRow]:
        """Return every version and removal of a module, oldest first."""

    async def kept_modules(self, folder: str) -> list[str]:
        """Return the paths with a history below a folder, such as `helpers`; function modules are in no folder."""

    async def function_history(self, function: str) -> list[VersionRow]:
        """Return the merged histories of all modules that ever defined a function of this name, oldest first."""

    async def verdict(self, version: str, function: str) -> dict[str, Any] | None:  # Any: JSON
        """Return the gate's verdict on this function in this version."""

    async def pending(self, function: str) -> dict[str, Any] | None:  # Any: JSON
        """Return the rejected candidate that was kept under that name."""

    async def all_pending(self) -> dict[str, dict[str, Any]]:  # Any: JSON
        """Return every kept rejected candidate, by name."""

    async def open_writes(self) -> list[OpenWrite]:
        """Return writes to files that were begun but not ended, oldest first."""

    async def readings(self, paths: Collection[str] | None = None) -> dict[str, ReadingRow]:
        """Return the stored reading of each file, or of the given paths, by path."""

    async def judged_at(self) -> dict[tuple[str, str], float]:
        """Return the time of the last verdict on each version of each function, by (function, version)."""

    async def complaints(self) -> dict[tuple[str, str], str]:
        """Return the users' notes on the functions that they rated bad, by (function, version)."""

    async def pinned(self) -> set[str]:
        """Return the functions that are always shown to some agent."""

    async def tended(self) -> list[TendedRow]:
        """Return the changes that tending made, oldest first."""

    async def states(self, function: str = "") -> list[StateRow]:
        """Return the states of all functions, or of one, including replaced ones, oldest first."""

    async def pins(self, agent: str) -> set[str]:
        """Return the functions that are always shown to this agent."""
