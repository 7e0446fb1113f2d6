"""All that one agent remembers, in one hand: its blocks, sections, recall, archival and sources."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ..storage import Counts, MemoryStore, SectionRow, Store
from .archival import Archival
from .blocks import Blocks
from .recall import Recall
from .said import KINDS, lines
from .sections import Sections
from .sources import Sources

_MANY: Final = 100  # messages that wait to be indexed; where nobody searches or idles, a turn indexes them


async def counts_of(store: Store, agent: str) -> Counts:
    """How much an agent remembers; messages that no index has yet are counted too."""
    found, last = await store.memory.counts(agent), await store.memory.last_said(agent)
    waiting = lines(await store.history(agent, since=last.seq if last else 0, kinds=KINDS))
    return replace(found, messages=found.messages + len(waiting))


@dataclass(frozen=True, slots=True)
class AgentMemory:
    """What an agent remembers; `load` first."""

    agent: str
    store: Store
    kept: MemoryStore
    blocks: Blocks
    sections: Sections
    recall: Recall
    archival: Archival
    sources: Sources

    async def load(self) -> None:
        """Read what is always in the context."""
        await self.blocks.load()

    async def remember(self) -> None:
        """Index and embed what came since: for hosts that stay alive, when nothing else is to be done."""
        await self.recall.catch_up()
        await self.recall.vectors.embed_all()
        await self.archival.vectors.embed_all()

    def render_blocks(self) -> str:
        """The blocks as the model reads them."""
        return self.blocks.render()

    async def counts(self) -> Counts:
        """How much there is beside them."""
        found, indexed = await counts_of(self.store, self.agent), await self.kept.counts(self.agent)
        if found.messages - indexed.messages > _MANY:
            await self.recall.catch_up()
        return found

    async def custom_sections(self) -> Sequence[SectionRow]:
        """The sections that somebody added."""
        return await self.sections.list()

    async def changed_elsewhere(self, versions: Mapping[str, int] | None = None) -> list[str]:
        """What other hands changed in the blocks, as sentences for the model; `versions` as in `Blocks`."""
        return await self.blocks.changed_elsewhere(versions)
