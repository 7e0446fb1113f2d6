"""The complete memory of one agent: its blocks, sections, recall, archival and sources."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from agent_core.base.records import replace
from agent_core.storage import SectionRow
from agent_core.storage.names import agent_of, is_history, is_main

from .archival import Archival
from .blocks import Blocks, NamedAuthor
from .classes import SECTION_LIMIT, Sections, named
from .recall import KINDS, Recall, read_messages
from .source_catalog import Sources

if TYPE_CHECKING:
    from agent_core.base.clock import Clock
    from agent_core.storage import Counts, Store

    from .classes import Memory
    from .embedding import Embedder


_MANY: Final = 50  # unindexed messages; if neither a search nor idle time indexes them, a turn does


KEPT_IN: Final = "human"
"""The block about the user."""
CLIENT_SECTION: Final = "client"
"""The section with the instructions of a program; `INSTRUCTIONS` is their key in what its door keeps."""
INSTRUCTIONS: Final = "instructions"


async def counts_of(store: "Store", line: str) -> "Counts":
    """Return the counts of an agent's memory, including messages of this conversation that are not indexed yet."""
    return (await _count_memory(store, line))[0]


async def _count_memory(store: "Store", line: str) -> tuple["Counts", int]:
    """Return the counts of an agent's memory, and the number of the unindexed messages of a conversation."""
    indexed = await store.memory_counts(line)
    since = indexed.indexed or await store.branched_at(line)
    waiting = len(await read_messages(await store.history(line, since=since, kinds=KINDS)))
    return replace(indexed, messages=indexed.messages + waiting), waiting


class AgentMemory:
    """The memory of an agent, as one of its conversations has it; call `load` first."""

    def __init__(
        self,
        name: str,
        store: "Store",
        clock: "Clock",
        embedder: "Embedder | None",
        memory: "Memory | None" = None,
        line: str = "",
    ) -> None:
        """Create the memory of an agent that may not be open; a new agent starts with the blocks of `memory`.

        Of its conversations, it is that of a `line`; by default, of the main one.
        """
        self.agent = name
        self.line = line or name
        if agent_of(self.line) != name:
            raise ValueError(f"{self.line} is no conversation of {name}")
        self._is_history = is_history(name)
        self.store = store
        self.blocks = Blocks(store, name, memory or named("chat")(), clock, embedder)
        self.sections = Sections(store, name, clock)
        self.recall = Recall(store, self.line, embedder, clock)
        self.archival = Archival(store, name, embedder, clock)
        self.sources = Sources(store, self.archival, name, clock)

    async def load(self) -> None:
        """Read the blocks, which are always in the context."""
        await self.blocks.load()

    async def remember(self) -> None:
        """Index and embed new data; for long-running hosts, when they are idle."""
        await self.recall.catch_up()
        await self.recall.vectors.embed_all()
        await self.archival.vectors.embed_all()

    async def keep(self, lines: Sequence[str], turn: str) -> tuple[str, ...]:
        """Append sentences of the user to the block about them, in one edit; return the stored sentences."""
        if not lines or KEPT_IN not in {row.label for row in self.blocks.rows}:
            return ()
        text = "\n".join(filter(None, [self.blocks.memory[KEPT_IN].text, *lines]))
        edit = await self.blocks.commit(
            await self.blocks.write(KEPT_IN, text, NamedAuthor(self.agent, turn))
        )
        return tuple(lines) if edit.outcome == "returned" else ()

    def render_blocks(self) -> str:
        """Return the blocks as the model reads them."""
        return self.blocks.render()

    async def counts(self) -> "Counts":
        """Return the counts of the searchable memory.

        The messages of a history that a program sent are in the context. Their number would be another one in each
        request, after which no endpoint would find the beginning of the prompt in its cache.
        """
        if self._is_history:
            return replace(await self.store.memory_counts(self.line), messages=0)
        counts, waiting = await _count_memory(self.store, self.line)
        if waiting > _MANY:
            await self.recall.catch_up()
        return counts

    async def custom_sections(self) -> Sequence["SectionRow"]:
        """Return the sections that the user or a program added, and what a program wants in this conversation alone."""
        own = await self.sections.list()
        kept = {} if is_main(self.line) else await self.store.door(self.line) or {}
        text = str(kept.get(INSTRUCTIONS) or "")
        if not text:
            return own
        first = SectionRow(CLIENT_SECTION, 0, text, SECTION_LIMIT, 0.0)
        return sorted((first, *own), key=lambda row: (row.position, row.name))
