"""Everything that one agent remembers: its blocks, sections, recall, archival and sources."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from agent_core.storage import Counts, SectionRow, Store

from .archival import Archival
from .block import Sections
from .blocks import Blocks
from .journal_messages import KINDS, lines
from .recall import Recall
from .source_catalog import Sources

_MANY: Final = 100  # messages that wait to be indexed; where nobody searches or idles, a turn indexes them


KEPT_IN: Final = "human"
"""The block about the user."""


@dataclass(frozen=True, slots=True)
class KeptFor:
    """The author of an edit that keeps what an agent's model chose."""

    agent: str
    turn: str = ""
    by: str = "agent"


async def counts_of(store: Store, agent: str) -> Counts:
    """Count what an agent remembers, including messages that are not indexed yet."""
    indexed = await store.memory_counts(agent)
    return replace(indexed, messages=indexed.messages + await _unindexed(store, agent))


async def _unindexed(store: Store, agent: str) -> int:
    last = await store.last_message(agent)
    return len(lines(await store.history(agent, since=last.seq if last else 0, kinds=KINDS)))


@dataclass(frozen=True, slots=True)
class AgentMemory:
    """The memory of an agent; call `load` first."""

    agent: str
    store: Store
    blocks: Blocks
    sections: Sections
    recall: Recall
    archival: Archival
    sources: Sources

    async def load(self) -> None:
        """Read what is always in the context."""
        await self.blocks.load()

    async def remember(self) -> None:
        """Index and embed what is new; for long-running hosts, when nothing else is to be done."""
        await self.recall.catch_up()
        await self.recall.vectors.embed_all()
        await self.archival.vectors.embed_all()

    def texts(self) -> list[str]:
        """Return the texts of all blocks."""
        return [block.text for block in self.blocks.memory.blocks]

    async def keep(self, lines: Sequence[str], turn: str) -> tuple[str, ...]:
        """Keep sentences of the user in the block about them, in one edit, and return those that were."""
        if not lines or KEPT_IN not in {row.label for row in self.blocks.rows}:
            return ()
        text = "\n".join(filter(None, [self.blocks.memory[KEPT_IN].text, *lines]))
        edit = await self.blocks.commit(await self.blocks.write(KEPT_IN, text, KeptFor(self.agent, turn)))
        return tuple(lines) if edit.outcome == "returned" else ()

    def render_blocks(self) -> str:
        """Return the blocks as the model reads them."""
        return self.blocks.render()

    async def counts(self) -> Counts:
        """Return the counts of everything besides the blocks."""
        indexed, waiting = await self.store.memory_counts(self.agent), await _unindexed(self.store, self.agent)
        if waiting > _MANY:
            await self.recall.catch_up()
        return replace(indexed, messages=indexed.messages + waiting)

    async def custom_sections(self) -> Sequence[SectionRow]:
        """Return the sections that the user or a program added."""
        return await self.sections.list()

    async def changed_elsewhere(self, versions: Mapping[str, int] | None = None) -> list[str]:
        """Return what others changed in the blocks, as sentences for the model; `versions` as in `Blocks`."""
        return await self.blocks.changed_elsewhere(versions)
