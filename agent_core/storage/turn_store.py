"""Turns in the store: an agent's inbox, the journal of its turns, and its history."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from .subject import Subject, Write

SAID = ("user", "assistant", "call", "result", "notice")
"""The kinds of entries that are part of the conversation; others (such as `request`) explain it."""

USAGE = "usage"
"""The kind of an entry with the tokens of a model request: `model`, `…_tokens`, and whether it is `estimated`."""

STREAMED = "streamed"
"""The kind of an entry that is not in the journal yet: the displayed part of an unfinished reply."""

ENDED = "ended"
"""The kind of an entry that says why a turn ended without a reply: `text`, as shown to the user."""

SUMMARY = "summary"
"""The kind of an entry that replaces earlier messages in the context."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of a turn's journal. The caller sets `kind` and `payload`, the store the rest.

    `seq` rises through an agent's history; `n` counts from 0 within the turn. `is_imported`: it came from a file.
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
class Posted:
    """A stored event, a `seq` before its turn, and its payload; a repeated key returns the first event's payload."""

    event: str
    after: int
    payload: dict[str, Any] = field(default_factory=dict)  # Any: JSON


@dataclass(frozen=True, slots=True)
class Inbound:
    """An event taken from the inbox."""

    id: str
    kind: str
    payload: dict[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class ClaimedTurn:
    """A claimed turn; writes need `attempt` and `n`. An attempt above 1 takes over an interrupted turn.

    `streamed` is the displayed part of an unfinished reply.
    """

    id: str
    agent: str
    attempt: int
    n: int
    state: str
    event: Inbound
    cancelled: bool = False
    streamed: str = ""


@dataclass(frozen=True, slots=True)
class Appended:
    """The result of an append: the next `n`, whether the turn should end, and whether due events wait.

    Events that always begin a turn of their own do not count. `last` is the `seq` of the last entry that was written, 0
    if there was none; `shared` has the version of each of the agent's shared blocks, by id.
    """

    n: int
    cancelled: bool
    waits: bool = False
    last: int = 0
    shared: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EndedTurn:
    """A turn that has ended; `seq` is after those of its entries, and before those of the next turn."""

    id: str
    state: str
    seq: int


@dataclass(frozen=True, slots=True)
class Due:
    """An agent with work that can start now. Takeovers come first."""

    agent: str
    is_takeover: bool


@dataclass(frozen=True, slots=True)
class JournalReport:
    """The result of checking all turns and entries. `missing` entries were forgotten, or are lost."""

    turns: int
    entries: int
    missing: int
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WakeAsker(Write):
    """The write at the end of each turn: its agent continues if all its asks are answered."""

    turn: str


class TurnStore(Subject, Protocol):
    """The inbox and the journal. A write to a turn must name its `attempt` and `n`."""

    async def post(self, post: Post) -> str:
        """Return the event's id. A repeated key gives the id of the first event.

        Raises:
            InboxFull: too many events wait for this agent.
        """

    async def post_after(self, post: Post) -> Posted:
        """Post an event, and return the `seq` after which its turn will come."""

    async def waiting(self, agent: str, thread: str | None = None) -> list[Inbound]:
        """Return the due events that no turn has taken, oldest first. `append(takes=…)` delivers them in mid-turn.

        With a `thread`, messages between agents in other threads are left out.
        """

    async def next(self, agent: str, owner: str, *, skip: Collection[str] = ()) -> ClaimedTurn | None:
        """Claim the open turn (a takeover), or a new one for the oldest due event. Return None if nothing is due.

        `skip` has kinds of events that may not begin a turn now.
        """

    async def load(self, turn: str) -> list[Entry]:
        """Return the journal of one turn, all kinds, in order."""

    async def append(
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

    async def keep_streamed(self, turn: str, attempt: int, n: int, text: str) -> None:
        """Store the displayed part of a reply until the next append, without waiting for the disk.

        Nothing is stored if the turn is not at (`attempt`, `n`), or not open.
        """

    async def streamed(self, agent: str) -> list[Entry]:
        """Return the stored part of an unfinished reply: it is still streaming, or was cut off."""

    async def finish(
        self,
        turn: str,
        attempt: int,
        state: str = "done",
        *,
        posts: Sequence[Post] = (),
        writes: Sequence[Write] = (),
    ) -> None:
        """Close the turn under the same fence as `append`; the answers to its asks are posted if all have arrived."""

    async def cancel(self, turn: str) -> None:
        """Ask the turn's owner to end it. The next append reports the request."""

    async def due(self, limit: int = 100) -> list[Due]:
        """Return agents with an open turn or a due event, the work list of a runner."""

    async def history(
        self,
        agent: str,
        *,
        since: int = 0,
        kinds: Collection[str] = SAID,
        most: int = -1,
        with_removed: bool = False,
    ) -> list[Entry]:
        """Return the visible entries of the agent's turns after `since` (a `seq`), in order, reading at most `most`.

        `with_removed` includes turns that were removed from the context.
        """

    async def ended_turns(self, agent: str, since: int) -> list[EndedTurn]:
        """Return the agent's turns that have ended after `since` (a `seq`), in order, including removed ones."""

    async def turn_of(self, event: str, agent: str = "") -> str | None:
        """Return the id of the turn that took an event; None while it waits, or if the agent has no such event.

        For a turn that was cut off and is resumed, it is the resuming turn, or None until that begins.
        """

    async def last_seq(self, agent: str) -> int:
        """Return the `seq` of the last entry or end of an agent's turns; 0 if there is none."""

    async def check_journal(self) -> JournalReport:
        """Read the whole journal, and return its faults: a call twice or without an answer, two writers of a turn.

        At most 20 faults are reported.
        """

    async def hide_last_turn(self, agent: str) -> list[Entry]:
        """Remove the last finished turn from the history, never from the record. Return its entries."""

    async def hide_turns(self, agent: str) -> int:
        """Remove every finished turn from the history, never from the record. Return their number."""
