"""All that one agent remembers, in one hand: its blocks, sections, recall, archival and sources."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..storage import Counts, MemoryStore, SectionRow
from .archival import Archival
from .blocks import Blocks
from .recall import Recall
from .sections import Sections
from .sources import Sources


@dataclass(frozen=True, slots=True)
class AgentMemory:
    """What an agent remembers; `load` first."""

    agent: str
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
        return await self.kept.counts(self.agent)

    async def custom_sections(self) -> Sequence[SectionRow]:
        """The sections that somebody added."""
        return await self.sections.list()

    async def changed_elsewhere(self) -> list[str]:
        """What other hands changed in the blocks, as sentences for the model."""
        return await self.blocks.changed_elsewhere()
