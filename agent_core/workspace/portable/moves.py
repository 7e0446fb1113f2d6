"""Export and import of agents as text: the commands behind `knapper agents`, `/save` and `/load`."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from agent_core.access.grants import GrantStore
from agent_core.base.errors import UsageError
from agent_core.base.offload import aside
from agent_core.base.pictures import UnusablePicture
from agent_core.base.programs import NotRead, ReaderProcess, text_pieces
from agent_core.base.records import dataclass, replace
from agent_core.storage import (
    AGENT,
    STATE,
    AgentStore,
    DropAgent,
    Store,
    WholeAgent,
    only_writer,
    prepare_state_dir,
)
from agent_core.storage.agent_store import Moved
from agent_core.storage.picture_files import PictureFiles

from ..agent_files import AgentFiles, group_names
from ..presets import presets
from .document import Arriving, document_of
from .pictures import picture_in, with_copies
from .report import AgentExists, AgentFileError, AgentReport, NoAgent, agent_name
from .text import write

if TYPE_CHECKING:
    from agent_core.base.settings import Settings

_TIMES: Final = 16  # limit: bytes of items per character of the file
_SPARE: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The names that a file may use: presets, and memory classes, which are the user's code and imported by name."""

    presets: Collection[str]
    classes: Collection[str]


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """The options of an import.

    `name` is the new name, `only` the agent to select, and `share` uses blocks that are already shared here.
    """

    name: str = ""
    only: str = ""
    share: bool = False
    dry_run: bool = False
    file_name: str = ""


@asynccontextmanager
async def opened_moves(store: Store, root: Path, settings: "Settings") -> AsyncIterator["Moves"]:
    """Yield the export and import of a workspace's agents; a separate process parses files, started on first use."""
    known_names = KnownNames(
        {name for name, _ in presets(root)}, {"chat", settings.memory.class_name}
    )
    files = AgentFiles(root, settings.agent, partial(group_names, root))
    grant_store = GrantStore(root, store, partial(only_writer, prepare_state_dir(root)))
    async with reader_of_files() as reader:
        pictures = PictureFiles(root / STATE)
        yield Moves(store, reader, known_names, files, grant_store, pictures)


def reader_of_files(within_s: float = 120.0) -> ReaderProcess:
    """Return the process that parses agents' files; the caller must open it."""
    return ReaderProcess(f"{__package__}.child", within_s)


class Moves:
    """Export and import of the agents of one store."""

    def __init__(
        self,
        store: AgentStore,
        reader: ReaderProcess,
        known_names: KnownNames,
        files: AgentFiles,
        grant_store: GrantStore | None = None,
        pictures: PictureFiles | None = None,
    ) -> None:
        """Create them; `files` are those of the agents, which reject the name of a new one.

        What the functions of an agent were granted goes with it, from the `grant_store`, and so do its `pictures`.
        """
        self._pictures = pictures
        self._grants = grant_store
        self._store = store
        self._reader = reader
        self._known = known_names
        self._files = files

    async def names(self) -> list[str]:
        """Return the name of every agent with stored data."""
        return await self._store.agent_names()

    async def whole(
        self, name: str, token: str | None = None, *, has_contents: bool = True
    ) -> WholeAgent:
        """Return all stored data of an agent; with a `token`, without conversations that are private to another one.

        Without its contents, the turns and passages are left out.

        Raises:
            NoAgent: there is no agent with that name.
            ConfigError: the same, and its file is not valid.
        """
        agent = await self._store.read_agent(name, token=token, has_contents=has_contents)
        return agent or await self.missing(name)

    async def export(
        self, name: str, shown: Collection[str] | None = None, token: str | None = None
    ) -> str:
        """Return an agent as the text of a file; the same agent always gives the same text.

        With a `token`, it has no conversation that is private to another one. If only some agents may be `shown`, it
        has no name of another one, and no past value of a block from it.

        Raises:
            NoAgent: there is no agent with that name.
        """
        whole = await self.whole(name, token)
        if shown is not None:
            blocks = []
            for block in whole.blocks:
                *earlier, last = block.history  # the last one is the block as it is
                if not block.attached and last.agent not in shown:
                    continue
                last = last if last.agent in shown else replace(last, agent=name, turn="")
                history = (*(change for change in earlier if change.agent in shown), last)
                access = [
                    tuple(who for who in part if who in ("*", *shown))
                    for part in (block.readers, block.writers)
                ]
                blocks.append(replace(block, history=history, readers=access[0], writers=access[1]))
            whole = replace(whole, blocks=tuple(blocks))
        if self._pictures is not None:
            whole = await asyncio.to_thread(with_copies, whole, self._pictures)
        return await asyncio.to_thread(lambda: write(document_of(whole)))

    async def take_in(self, text: str, options: ImportOptions) -> list[AgentReport]:
        """Create agents from a file of this program, MemGPT or Letta. Nothing in it is run, nothing is overwritten.

        Raises:
            AgentFileError: the file is invalid.
            AgentExists: an agent with that name exists.
            ConfigError: a name is reserved, or looks like another one.
        """
        agents = _select(await self._read(text, options.file_name), options)
        names = await self._store.agent_names()
        for whole, _ in agents:
            if whole.name in names:
                raise AgentExists(whole.name)
            await asyncio.to_thread(self._files.check_name, whole.name, names)
            names = [*names, whole.name]
        if not options.dry_run:
            for whole, report in agents:
                moved = await self._write(whole, share=options.share)
                _tell(moved.attached, whole, report)
        return [report for _, report in agents]

    async def check(
        self, text: str, name: str, file_name: str = ""
    ) -> tuple[WholeAgent, AgentReport]:
        """Return the only agent in a file, under this name; nothing is written.

        Raises:
            AgentFileError: the file is invalid or has several agents.
        """
        return _select(await self._read(text, file_name), ImportOptions(name))[0]

    async def replace(self, whole: WholeAgent, report: AgentReport) -> None:
        """Replace the agent of the same name, in one transaction. The new one has no folders that it was granted."""
        if self._grants is not None:
            await self._grants.forget_agent(whole.name)
        moved = await self._write(whole, drop=True)
        _tell(moved.attached, whole, report)

    async def _write(self, whole: WholeAgent, *, drop: bool = False, share: bool = False) -> Moved:
        """Store an agent from a file without the copies of its pictures, which are kept as files here."""
        if self._pictures is None:
            return await self._store.write_agent(whole, drop=drop, share=share)
        texts = dict[str, str]()
        async with self._pictures.batch() as batch:
            for name, text in whole.texts.items():
                data = await aside(len(text), picture_in, text)
                if data is None:
                    texts[name] = text
                    continue
                with suppress(UnusablePicture):  # then its caption is left
                    await batch.keep(data)
            own = replace(whole, texts=texts)
            return await self._store.write_agent(own, drop=drop, share=share)

    async def delete(self, name: str) -> None:
        """Delete an agent completely, except blocks that others share.

        Raises:
            NoAgent: there is no agent with that name.
            ConfigError: the same, and its file is not valid.
        """
        if not await self._store.has_agent(name):
            await self.missing(name)
        if self._grants is not None:
            await self._grants.forget_agent(name)
        await self._store.apply([DropAgent(name)])

    async def missing(self, name: str) -> NoReturn:
        """Raise what is to be said about an agent that has no stored data, as `whole` does."""
        self._files.folder.must_hold(name)
        raise NoAgent(name, await self._store.agent_names())

    async def _read(self, text: str, file_name: str) -> list[tuple[WholeAgent, AgentReport]]:
        """Return the agents of a file. A separate process parses it; its items are assembled here."""
        order = {
            "file_name": file_name,
            "now": await self._store.now(),
            "presets": sorted(self._known.presets),
            "classes": sorted(self._known.classes),
        }
        arriving = Arriving()
        try:
            await self._reader.read(
                order, text_pieces(text), arriving.take, _TIMES * len(text) + _SPARE
            )
        except NotRead as error:
            raise AgentFileError("", error.message.rstrip(".")) from error
        if arriving.refused is not None:
            raise arriving.refused
        return arriving.agents


def _tell(attached: tuple[str, ...], whole: WholeAgent, report: AgentReport) -> None:
    report.took("shared blocks", "the blocks that are here already", len(attached))
    own = sum(block.row.shared for block in whole.blocks) - len(attached)
    report.took("shared blocks", "blocks of its own, which can be shared", own)


def _select(
    agents: list[tuple[WholeAgent, AgentReport]], options: ImportOptions
) -> list[tuple[WholeAgent, AgentReport]]:
    """Return the selected agents, under the names that they will have."""
    if options.name and not AGENT.fullmatch(options.name):
        raise UsageError(
            f"`{options.name}` cannot be an agent's name.",
            fix="Use up to 64 letters, digits, `_` and `-`.",
        )
    names = [whole.name for whole, _ in agents]
    selected = [
        pair for pair in agents if not options.only or pair[0].name == agent_name(options.only)
    ]
    if not selected:
        raise AgentFileError(
            "agents",
            f"expected one called `{options.only}`; there are {', '.join(names) or 'none'}",
        )
    if options.name and len(selected) > 1:
        raise AgentFileError(
            "agents", f"expected one agent to give a name to; there are {', '.join(names)}"
        )
    if len({whole.name for whole, _ in selected}) < len(selected):
        raise AgentFileError("agents", f"expected different names; there are {', '.join(names)}")
    for whole, report in selected:
        report.name = options.name or whole.name
    return [(replace(whole, name=report.name), report) for whole, report in selected]
