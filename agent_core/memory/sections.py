"""Custom sections of an agent's system message: text with a name and a position, kept in the store."""

import re
from typing import Final

from agent_core.base.clock import Clock
from agent_core.base.errors import UsageError
from agent_core.storage import DropSection, MemoryStore, SaveSection, SectionRow

_NAME = re.compile(r"[\w.-]{1,64}")
LIMIT = 4000
"""Characters of one section."""
POSITIONS: Final = {"instructions": 0, "memory": 100, "functions": 200, "statistics": 300}
"""Where the parts of the program stand in the system message; no section of one's own has one of these names."""


class Sections:
    """The sections of one agent, in the order of their position and name."""

    def __init__(self, store: MemoryStore, agent: str, clock: Clock | None = None) -> None:
        self._store = store
        self._agent = agent
        self._clock = clock or Clock()

    async def list(self) -> "list[SectionRow]":
        """Return the sections, in order."""
        return await self._store.sections(self._agent)

    async def set(self, name: str, position: int, text: str) -> SectionRow:
        """Store a section, replacing one with the same name.

        Raises:
            UsageError: the name is none or one of the program's own parts, or the text is too long.
        """
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"`{name}` cannot be a section's name.", fix="Take up to 64 letters, digits and any of `_-.`."
            )
        if name in POSITIONS:
            raise UsageError(f"The program has a section `{name}` of its own.", fix="Take another name.")
        if (over := len(text) - LIMIT) > 0:
            message = (
                f"The section `{name}` may have {LIMIT:,} characters and would have {len(text):,}: {over:,} too many."
            )
            raise UsageError(message, fix="Shorten it.")
        section = SectionRow(name, position, text, LIMIT, self._clock.now())
        await self._store.apply([SaveSection(self._agent, section)])
        return section

    async def drop(self, name: str) -> None:
        """Remove a section."""
        known_names = [section.name for section in await self.list()]
        if name not in known_names:
            names = ", ".join(f"`{known_name}`" for known_name in known_names) or "none"
            raise UsageError(f"There is no section `{name}`.", fix=f"There are: {names}.")
        await self._store.apply([DropSection(self._agent, name)])
