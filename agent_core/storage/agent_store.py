"""Agents in the store: their settings, and complete agents as values, each read and written in one transaction.

A complete agent has positions instead of entry numbers: entries are counted through all turns from 1, and a summary's
`upto` is such a count.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, overload

from .memory_store import BlockChange, BlockRow, DocumentRow, PassageRow, SectionRow
from .subject import Subject, Write
from .turn_store import Entry

HELPER_RUN = "helper--"
"""The prefix of the names of agents that are runs of helpers."""
PASSING = "once--"
"""The prefix of the name of an agent that is deleted after one question; a later answer could not reach it."""
_TOLD = ("user", "notice", "assistant", "result", "summary")


T = TypeVar("T")


class Made(Sequence[T]):
    """A sequence of rows, each converted to a value on access.

    Rows are plain tuples, which the garbage collector does not traverse: with very many values, it would cause long
    pauses.
    """

    __slots__ = ("_make", "_rows")

    def __init__(self, rows: tuple[tuple[Any, ...], ...], make: Callable[..., T]) -> None:  # Any: columns
        self._rows = rows
        self._make = make

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> "Made[T]": ...
    def __getitem__(self, at: int | slice) -> "T | Made[T]":
        return Made(self._rows[at], self._make) if isinstance(at, slice) else self._make(*self._rows[at])


@dataclass(frozen=True, slots=True)
class AgentRow:
    """An agent that has had a turn: the number of turns, the start of the last one, and the number of hidden ones."""

    name: str
    turns: int
    last_at: float
    hidden: int


@dataclass(frozen=True, slots=True)
class SaveAgent(Write):
    """A write that stores an agent's settings, as JSON: preset, memory class, style of summaries."""

    agent: str
    settings: dict[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class DropAgent(Write):
    """A write that deletes an agent: its conversation, memory, passages, sources, pins, and runs of helpers.

    Shared blocks stay.
    """

    agent: str


@dataclass(frozen=True, slots=True)
class WholeEvent:
    """An event that arrived for an agent. `due` None means at once."""

    kind: str
    payload: dict[str, Any] | str  # Any: JSON
    at: float
    key: str | None = None
    due: float | None = None


@dataclass(frozen=True, slots=True)
class EntryText(Entry):
    """An entry to import, whose payload is already JSON `text` that is stored without parsing.

    A summary's `upto` is separate, because it is the only part that changes on import.
    """

    text: str = "{}"
    upto: int | None = None


@dataclass(frozen=True, slots=True)
class WholeTurn:
    """A turn: its journal, and the events that it took; the first one began it."""

    id: str
    state: str
    started: float
    ended: float | None
    events: Sequence[WholeEvent]
    entries: Sequence[Entry]
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class WholeBlock:
    """A block with its history and access rights. An unattached block belonged to the agent earlier."""

    row: BlockRow
    history: tuple[BlockChange, ...]
    attached: bool = True
    readers: tuple[str, ...] = ("*",)
    writers: tuple[str, ...] = ("*",)


@dataclass(frozen=True, slots=True)
class WholeAgent:
    """All stored data of an agent except derived data. `texts` maps the hashes in its entries to the texts."""

    name: str
    settings: dict[str, Any] | None = None  # Any: JSON
    turns: Sequence[WholeTurn] = ()
    inbox: tuple[WholeEvent, ...] = ()
    blocks: tuple[WholeBlock, ...] = ()
    sections: tuple[SectionRow, ...] = ()
    passages: Sequence[PassageRow] = ()
    documents: tuple[DocumentRow, ...] = ()
    pins: tuple[str, ...] = ()
    texts: dict[str, str] = field(default_factory=dict)


def text_names(entry: Entry) -> Iterator[str]:
    """Return the hashes of the texts that an entry refers to: its own full text, or the parts of a request."""
    if entry.kind == "request":
        sections = entry.payload.get("sections")
        names = [entry.payload.get("instructions"), *(sections if isinstance(sections, list) else ())]
    else:
        names = [entry.payload.get("whole")] if entry.kind in _TOLD else []
    return (name for name in names if isinstance(name, str) and name)


@dataclass(frozen=True, slots=True)
class Moved:
    """The result of an import: the new ids of turns and blocks by their ids in the file, and reused shared blocks."""

    turns: dict[str, str]
    blocks: dict[str, str]
    attached: tuple[str, ...]


class AgentStore(Subject, Protocol):
    """Agents, their settings, and the queries for moving them."""

    async def agents(self) -> list[AgentRow]:
        """Return the agents that have had a turn, by name."""

    async def agent_settings(self, agent: str) -> dict[str, Any] | None:  # Any: JSON
        """Return the saved settings of an agent; None if none were saved."""

    async def has_agent(self, name: str) -> bool:
        """Return whether anything is stored for an agent of that name."""

    async def agent_names(self) -> list[str]:
        """Return the names of all agents that have stored data."""

    async def read_agent(self, agent: str) -> WholeAgent | None:
        """Return all stored data of an agent, or None if there is none."""

    async def write_agent(self, whole: WholeAgent, *, share: bool = False, drop: bool = False) -> Moved:
        """Insert an agent. `share` reuses an existing shared block; `drop` deletes the existing agent of that name.

        Raises:
            StorageError: there is an agent of that name; nothing was written.
        """
