"""Functions in the store: versions of modules, the manifest, verdicts, kept candidates, readings of files, pins."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from .subject import Subject, Write

Author: TypeAlias = Literal["human", "agent"]


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A line of a module's history. A removal has an empty `version` and no text. `agent` is the agent of the turn.

    `kept_out` are functions of the text that another file, or what is built in, kept out: this line is none of theirs.
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
    """A write into a file that was begun and not ended. None stands for "no file"."""

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
    """Keep a module's source once by its hash, and add a line to the module's history.

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

    A removal is a line in the module's history too, with `by`, `turn` and `reason`.
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
    """Announce that a file is to become `text` (None: be deleted) if it still matches `expected` (None: absent)."""

    path: str
    version: str | None
    text: str | None
    expected: str | None


@dataclass(frozen=True, slots=True)
class EndWrite(Write):
    """Note that the file matches the intent of this path and version, or that the intent was given up."""

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
"""In place of a turn: the empty state of a function that joined, and one that a person brought back."""


@dataclass(frozen=True, slots=True)
class StateRow:
    """The value that a function keeps for itself, as the turn left it; `n` is another one after each change.

    `turn` is empty for a call outside of turns, and may be `BEGUN` or `RESTORED`.
    """

    n: int
    function: str
    turn: str
    value: Any  # Any: JSON
    at: float


@dataclass(frozen=True, slots=True)
class SaveState(Write):
    """A compare-and-set write of a function's state: it must be at `expected` (0: none). Raises StateConflict where
    another call was first. Of one turn, only the last value is kept, and of a function those of its newest turns.
    """

    function: str
    value: Any  # Any: JSON
    expected: int
    turn: str = ""


@dataclass(frozen=True, slots=True)
class BeginState(Write):
    """A write that gives a function that joins an empty state, whatever one of the same name has kept."""

    function: str


@dataclass(frozen=True, slots=True)
class DropState(Write):
    """A write that takes a state back to the one before it, if it is still at `n`. Raises StateConflict otherwise."""

    function: str
    n: int


@dataclass(frozen=True, slots=True)
class SaveTended(Write):
    """Keep what tending did to a function: `changed`, `deleted` or `archived`, with the hashes of its text before and
    after.
    """

    run: str
    function: str
    kind: str
    before: str
    after: str
    note: str


@dataclass(frozen=True, slots=True)
class UndoTended(Write):
    """Note that a change of tending was taken back."""

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
        """Return the version that each module is at."""

    async def kept_out(self) -> dict[str, frozenset[str]]:
        """Return the functions that are kept out of each module as it is now, for those with any."""

    async def version(self, version: str) -> VersionRow | None:
        """Return the source with that hash, with the line of history that first introduced it."""

    async def module_history(self, module: str) -> list[VersionRow]:
        """Return every version and removal of a module, oldest first."""

    async def kept_modules(self, folder: str) -> list[str]:
        """Return the paths below a folder, such as `helpers`, that have a history; no module of functions is one."""

    async def function_history(self, function: str) -> list[VersionRow]:
        """Return the merged histories of all modules that ever defined a function of this name, oldest first."""

    async def verdict(self, version: str, function: str) -> dict[str, Any] | None:  # Any: JSON
        """Return the gate's verdict on this function in this version."""

    async def pending(self, function: str) -> dict[str, Any] | None:  # Any: JSON
        """Return the rejected candidate of that name that was kept."""

    async def all_pending(self) -> dict[str, dict[str, Any]]:  # Any: JSON
        """Return every rejected candidate that was kept, by name."""

    async def open_writes(self) -> list[OpenWrite]:
        """Return writes into files that were begun and not ended, oldest first."""

    async def readings(self, paths: Collection[str] | None = None) -> dict[str, ReadingRow]:
        """Return the stored reading of each file, or of these, by path."""

    async def judged_at(self) -> dict[tuple[str, str], float]:
        """Return the time when each version of each function was last judged and taken, by (function, version)."""

    async def complaints(self) -> dict[tuple[str, str], str]:
        """Return what a human said of the functions, each with its version, that they called bad."""

    async def pinned(self) -> set[str]:
        """Return the functions that are always shown to some agent."""

    async def tended(self) -> list[TendedRow]:
        """Return what tending did, oldest first."""

    async def states(self, function: str = "") -> list[StateRow]:
        """Return the states of all functions, or of one, those that later ones replaced too, oldest first."""

    async def pins(self, agent: str) -> set[str]:
        """Return the functions that are always shown to this agent."""
