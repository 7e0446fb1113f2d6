"""Agents out of a workspace and into it, as texts: the verbs behind `toolwright agents`, `/save` and `/load`."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Protocol

from ..errors import UsageError
from ..storage import DropAgent
from ..storage.folder import AGENT
from ..storage.whole import WholeAgent, Wholes
from ..storage.writes import Write
from ..untrusted import one_line
from .document import FORMAT
from .errors import AgentExists, AgentFileError, NoAgent
from .fitted import fitted
from .foreign import agent_name
from .inward import Words, agent_of
from .letta import agents_of_letta, is_letta
from .memgpt import agent_of_memgpt, is_memgpt
from .outward import document_of
from .report import Report, waiting_of
from .text import parse, write


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


class Moves:
    """Agents of one store, whole; `words` is what the text index reads of a text."""

    def __init__(self, shelf: Shelf, wholes: Wholes, words: Words, known: Known) -> None:
        self._shelf = shelf
        self._known = known
        self._wholes = wholes
        self._words = words

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
        return write(document_of(await self.whole(name)))

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
        found = await self._agents_of(text, file_name)
        return [(replace(whole, sections=fitted(whole.sections, report)), report) for whole, report in found]

    async def _agents_of(self, text: str, file_name: str) -> list[tuple[WholeAgent, Report]]:
        raw, now = await asyncio.to_thread(parse, text), await self._shelf.now()
        ids = f"from-{sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"
        if raw.get("format") == FORMAT:
            return [self._own(agent_of(raw, self._words))]
        if is_memgpt(raw):
            return [self._checked(*agent_of_memgpt(raw, file_name, ids, now))]
        if is_letta(raw):
            return [self._checked(*one) for one in agents_of_letta(raw, ids, now, self._words)]
        raise AgentFileError("", f"expected the file of an agent: `format` is {FORMAT}, or one of MemGPT's or Letta's")

    def _checked(self, whole: WholeAgent, report: Report) -> tuple[WholeAgent, Report]:
        """The same, held to what holds for this program's own files."""
        return agent_of(document_of(whole), self._words), report

    async def _put(self, whole: WholeAgent, report: Report, share: bool) -> None:  # noqa: FBT001 - from `Taken`
        moved = await self._wholes.write(whole, share=share)
        _tell(moved.attached, whole, report)

    def _own(self, whole: WholeAgent) -> tuple[WholeAgent, Report]:
        report = Report("toolwright", whole.name)
        settings = dict(whole.settings or {})
        for key, here in (("memory_class", self._known.classes), ("preset", self._known.presets)):
            if settings.get(key, "") not in ("", *here):
                what = key.replace("_", " ")
                report.leaves(f"{what} `{one_line(settings.pop(key), 60)}`", f"no {what} of that name is set up here")
        _count(whole, report)
        return replace(whole, settings=whole.settings and settings), report


def _tell(attached: tuple[str, ...], whole: WholeAgent, report: Report) -> None:
    report.took("shared blocks", "the blocks that are here already", len(attached))
    own = sum(block.row.shared for block in whole.blocks) - len(attached)
    report.took("shared blocks", "blocks of its own, which can be shared", own)


def _count(whole: WholeAgent, report: Report) -> None:
    entries = [entry.kind for turn in whole.turns for entry in turn.entries]
    counts: dict[str, Any] = {
        "turns": len(whole.turns),
        "messages": sum(kind in ("user", "assistant") for kind in entries),
        "blocks": len(whole.blocks),
        "sections": len(whole.sections),
        "passages": len(whole.passages),
        "documents": len(whole.documents),
        "events that wait in the inbox": len(whole.inbox),
    }
    report.inbox, report.waiting = waiting_of(whole.inbox), len(whole.inbox)
    for what, count in counts.items():
        report.took(what, what, count)


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
