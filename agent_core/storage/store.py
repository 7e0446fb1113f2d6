"""The store as its users see it: a journal of turns, versions of functions, and their metadata.

Each method is one transaction, and what it returned is on disk. Names are uuid7; order is a number
that the store assigns. The contract tests in `tests/storage/` run against any backend.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from .memory_store import MemoryStore
from .questions import Questions
from .recorded import Recorded
from .tallies import CallRow, KindRow, Stats
from .writes import Write

SAID = ("user", "assistant", "call", "result", "notice")
"""The kinds of entries that are part of the conversation; others (such as `request`) explain it."""

SUMMARY = "summary"
"""The kind of an entry that stands for what was said before it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of a turn's journal. The caller sets `kind` and `payload`, the store the rest.

    `seq` rises through an agent's history; `n` counts from 0 within the turn. `is_imported`: it came with a file.
    """

    kind: str
    payload: dict[str, Any]  # Any: JSON
    n: int = -1
    turn: str = ""
    at: float = 0.0
    seq: int = 0
    is_imported: bool = False


@dataclass(frozen=True, slots=True)
class Post:
    """An event for an agent's inbox. A repeated `key` is the same event; `due` None means now."""

    agent: str
    kind: str
    payload: dict[str, Any]  # Any: JSON
    key: str | None = None
    due: float | None = None


@dataclass(frozen=True, slots=True)
class Inbound:
    """An event taken from the inbox."""

    id: str
    kind: str
    payload: dict[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class ClaimedTurn:
    """A claimed turn; writes need `attempt` and `n`. An attempt above 1 takes over an interrupted turn."""

    id: str
    agent: str
    attempt: int
    n: int
    state: str
    event: Inbound
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class Appended:
    """The result of an append: the next `n`, whether the turn is asked to end, and whether due events wait.

    `last` is the `seq` of the last entry that was written, 0 where there was none; `shared` the version of each of the
    agent's shared blocks, by id.
    """

    n: int
    cancelled: bool
    waits: bool = False
    last: int = 0
    shared: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Due:
    """An agent with work that can start now. Takeovers come first."""

    agent: str
    is_takeover: bool


@dataclass(frozen=True, slots=True)
class AgentRow:
    """An agent that has had a turn, with the number of turns and the start of the last one."""

    name: str
    turns: int
    last_at: float


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A line of a module's history. A removal has an empty `version` and no text. `agent` is the agent of the turn."""

    module: str
    version: str
    text: str
    by: str
    turn: str
    model: str
    reason: str
    at: float
    agent: str = ""


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
class YesRow:
    """An approval by the user as it is stored. See `SaveYes`."""

    function: str
    digest: str
    content: str
    grants: str
    by: str
    seal: str
    at: float


class Store(Protocol):
    """All state that outlives the process."""

    @property
    def recovered(self) -> str | None:
        """A message for the user if a damaged state file had to be put aside."""

    @property
    def recorded(self) -> Recorded:
        """Calls that can be made again."""

    @property
    def questions(self) -> Questions:
        """Questions to the user that are pending."""

    @property
    def memory(self) -> MemoryStore:
        """The queries of memory."""

    async def now(self) -> float:
        """Return the time of the store's clock, in seconds since the epoch."""

    async def post(self, post: Post) -> str:
        """Return the event's id. A repeated key gives the id of the first event.

        Raises:
            InboxFull: too many events wait for this agent.
        """

    async def waiting(self, agent: str) -> list[Inbound]:
        """Return the due events that nobody has taken, oldest first. `append(takes=…)` delivers them in mid-turn."""

    async def next(self, agent: str, owner: str) -> ClaimedTurn | None:
        """Claim the open turn (a takeover), or a new one for the oldest due event. Return None if nothing is due."""

    async def load(self, turn: str) -> list[Entry]:
        """Return the journal of one turn, all kinds, in order."""

    async def append(  # noqa: PLR0913 the one method of the journal: a place, and all that happens there at once
        self,
        turn: str,
        attempt: int,
        n: int,
        entries: Sequence[Entry],
        *,
        posts: Sequence[Post] = (),
        writes: Sequence[Write] = (),
        takes: Sequence[str] = (),
    ) -> Appended:
        """Write entries, posts, writes and takes (ids of waiting events): all of them or none.

        Raises:
            LostLease: the turn is not at (`attempt`, `n`), or not open.
            ManifestConflict: a compare-and-set among the writes failed.
        """

    async def finish(self, turn: str, attempt: int, state: str = "done", *, posts: Sequence[Post] = ()) -> None:
        """Close the turn under the same fence as `append`."""

    async def cancel(self, turn: str) -> None:
        """Ask the turn's owner to end it. The next append reports the request."""

    async def due(self, limit: int = 100) -> list[Due]:
        """Return agents with an open turn or a due event, the work list of a runner."""

    async def history(
        self, agent: str, *, since: int = 0, kinds: Collection[str] = SAID, most: int = -1
    ) -> list[Entry]:
        """Return every visible entry of the agent's turns after `since` (a `seq`), in order, reading at most `most`."""

    async def hide_last_turn(self, agent: str) -> list[Entry]:
        """Remove the last finished turn from the history, never from the record. Return its entries."""

    async def hide_turns(self, agent: str) -> int:
        """Remove every finished turn from the history, never from the record. Return their number."""

    async def agents(self) -> list[AgentRow]:
        """Return the agents that have had a turn, by name."""

    async def apply(self, writes: Sequence[Write]) -> None:
        """Apply the same writes outside of a turn, in one transaction.

        Raises:
            ManifestConflict: a compare-and-set among them failed.
        """

    async def text(self, hash: str) -> str | None:
        """Return the text stored under this content hash."""

    async def manifest(self) -> dict[str, str]:
        """Return the version that each module is at."""

    async def version(self, version: str) -> VersionRow | None:
        """Return the source with that hash, with the line of history that first introduced it."""

    async def module_history(self, module: str) -> list[VersionRow]:
        """Return every version and removal of a module, oldest first."""

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

    async def readings(self) -> dict[str, ReadingRow]:
        """Return the stored reading of each file, by path."""

    async def sketches(self, keys: Sequence[str]) -> dict[str, str]:
        """Return data derived from the texts of functions, for those of the keys that are known."""

    async def call_stats(self, function: str = "") -> list[Stats]:
        """Return the call statistics of each version of each function (or of one), the one called last at the end."""

    async def call_kinds(self, function: str) -> list[KindRow]:
        """Return the kinds of outcomes of a function's calls that did not return, the most frequent first."""

    async def recent_calls(self, function: str) -> list[CallRow]:
        """Return the calls of a function that are still kept one by one, newest first."""

    async def failing(self, failures: int) -> frozenset[tuple[str, str]]:
        """Return the functions, each with its version, that failed so often in a row since they were released."""

    async def releases(self, function: str) -> list[tuple[str, float]]:
        """Return the versions of a function that the user released, with the times, oldest first."""

    async def judged_at(self) -> dict[tuple[str, str], float]:
        """Return the time when each version of each function was last judged and taken, by (function, version)."""

    async def pinned(self) -> set[str]:
        """Return the functions that are always shown to some agent."""

    async def pins(self, agent: str) -> set[str]:
        """Return the functions that are always shown to this agent."""

    async def yeses(self) -> list[YesRow]:
        """Return every approval of what a function may reach, the newest last. The reader checks the seals."""

    async def check(self) -> str | None:
        """Read the whole state file and return a description of what is wrong with it, or None."""

    async def close(self) -> None:
        """Finish running work and close the file."""
