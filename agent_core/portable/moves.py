"""Agents out of a workspace and into it, as texts: the verbs behind `toolwright agents`, `/save` and `/load`."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from ..errors import UsageError
from ..reader_process import NotRead, ReaderProcess, text_pieces
from ..storage import DropAgent
from ..storage.folder import AGENT
from ..storage.whole import WholeAgent, Wholes
from ..storage.writes import Write
from .errors import AgentExists, AgentFileError, NoAgent
from .foreign import agent_name
from .items import Arriving
from .outward import document_of
from .report import Report
from .text import write

_TIMES: Final = 16  # bytes of all items for one character of the file
_SPARE: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Known:
    """What a file may name: presets, and memory classes, which are a human's own code and imported by their names."""

    presets: Collection[str]
    classes: Collection[str]


class Shelf(Protocol):
    """What moving asks of the store."""

    async def now(self) -> float:
        """The store's clock."""

    async def apply(self, writes: Sequence[Write]) -> None:
        """Writes, in one transaction."""


@dataclass(frozen=True, slots=True)
class Taken:
    """How a file is to be taken in: under which name, which of its agents, with blocks that are shared here already."""

    name: str = ""
    only: str = ""
    share: bool = False
    dry_run: bool = False
    file_name: str = ""


def reader_of_files(within_s: float = 120.0) -> ReaderProcess:
    """Return the process that reads agents' files: not started yet, to be opened by the caller."""
    return ReaderProcess(f"{__package__}.child", within_s)


class Moves:
    """Agents of one store, whole; `reader` is the process that reads their files, made by `reader_of_files`."""

    def __init__(self, shelf: Shelf, wholes: Wholes, reader: ReaderProcess, known: Known) -> None:
        self._shelf = shelf
        self._wholes = wholes
        self._reader = reader
        self._known = known

    async def names(self) -> list[str]:
        """Every agent that anything is kept of."""
        return await self._wholes.names()

    async def whole(self, name: str) -> WholeAgent:
        """All that is kept of an agent.

        Raises:
            NoAgent: there is none of that name.
        """
        found = await self._wholes.read(name)
        if found is None:
            raise NoAgent(name, await self._wholes.names())
        return found

    async def export(self, name: str) -> str:
        """The file of an agent. The same agent gives the same text.

        Raises:
            NoAgent: there is none of that name.
        """
        return await asyncio.to_thread(_text_of, await self.whole(name))

    async def take_in(self, text: str, taken: Taken) -> list[Report]:
        """Make agents of a file: this program's, MemGPT's or Letta's. Nothing of it is run, nothing is written over.

        Raises:
            AgentFileError: the file is not as it must be.
            AgentExists: there is an agent of that name.
        """
        found = _named(await self._read(text, taken.file_name), taken)
        known = await self._wholes.names()
        for whole, _ in found:
            if whole.name in known:
                raise AgentExists(whole.name)
        if not taken.dry_run:
            for whole, report in found:
                await self._put(whole, report, taken.share)
        return [report for _, report in found]

    async def check(self, text: str, name: str, file_name: str = "") -> tuple[WholeAgent, Report]:
        """The one agent of a file, under this name; nothing is written.

        Raises:
            AgentFileError: the file is not as it must be, or holds several agents.
        """
        return _named(await self._read(text, file_name), Taken(name))[0]

    async def replace(self, whole: WholeAgent, report: Report) -> None:
        """Put an agent in the place of the one of its name, whole or not at all."""
        moved = await self._wholes.write(whole, drop=True)
        _tell(moved.attached, whole, report)

    async def delete(self, name: str) -> None:
        """Delete an agent whole; blocks that others share stay.

        Raises:
            NoAgent: there is none of that name.
        """
        known = await self._wholes.names()
        if name not in known:
            raise NoAgent(name, known)
        await self._shelf.apply([DropAgent(name)])

    async def _read(self, text: str, file_name: str) -> list[tuple[WholeAgent, Report]]:
        """The agents of a file; a process of its own reads it, and what it says is put together here."""
        order = {
            "file_name": file_name,
            "now": await self._shelf.now(),
            "presets": sorted(self._known.presets),
            "classes": sorted(self._known.classes),
        }
        arriving = Arriving()
        try:
            await self._reader.read(order, text_pieces(text), arriving.take, _TIMES * len(text) + _SPARE)
        except NotRead as error:
            raise AgentFileError("", error.message.rstrip(".")) from error
        if arriving.refused is not None:
            raise arriving.refused
        return arriving.agents

    async def _put(self, whole: WholeAgent, report: Report, share: bool) -> None:  # noqa: FBT001 - from `Taken`
        moved = await self._wholes.write(whole, share=share)
        _tell(moved.attached, whole, report)


def _text_of(whole: WholeAgent) -> str:
    return write(document_of(whole))


def _tell(attached: tuple[str, ...], whole: WholeAgent, report: Report) -> None:
    report.took("shared blocks", "the blocks that are here already", len(attached))
    own = sum(block.row.shared for block in whole.blocks) - len(attached)
    report.took("shared blocks", "blocks of its own, which can be shared", own)


def _named(found: list[tuple[WholeAgent, Report]], taken: Taken) -> list[tuple[WholeAgent, Report]]:
    """Those agents that are wanted, under the names that they will have."""
    if taken.name and not AGENT.fullmatch(taken.name):
        raise UsageError(
            f"`{taken.name}` cannot be an agent's name.", mend="Use up to 64 letters, digits, `_` and `-`."
        )
    names = [whole.name for whole, _ in found]
    wanted = [one for one in found if not taken.only or one[0].name == agent_name(taken.only)]
    if not wanted:
        raise AgentFileError("agents", f"expected one called `{taken.only}`; there are {', '.join(names) or 'none'}")
    if taken.name and len(wanted) > 1:
        raise AgentFileError("agents", f"expected one agent to give a name to; there are {', '.join(names)}")
    if len({whole.name for whole, _ in wanted}) < len(wanted):
        raise AgentFileError("agents", f"expected different names; there are {', '.join(names)}")
    for whole, report in wanted:
        report.name = taken.name or whole.name
    return [(replace(whole, name=report.name), report) for whole, report in wanted]
