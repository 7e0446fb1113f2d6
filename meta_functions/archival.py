"""Put facts and texts aside, and find them again."""

from agent_core import Agent, PlannedChange


async def archival_memory_insert(self: Agent, content: str, tags: list[str] | None = None) -> PlannedChange:
    """Keep a text in archival memory, which has no limit and is found by search.

    Args:
        content: The text, written so that it can be understood alone.
        tags: Words to find it by later, such as a project's name.
    """
    edit = await self.memory.archival.insert(content, tags or ())
    return PlannedChange(edit.text, writes=edit.writes)


async def archival_memory_search(self: Agent, query: str, page: int = 0, tags: list[str] | None = None) -> str:
    """Search archival memory, with all attached sources, by words and meaning; the best first.

    Args:
        query: What to look for; empty lists the newest.
        page: Which page of results, from 0.
        tags: Only what has all of these tags.
    """
    return str(await self.memory.archival.search(query, tags or (), page))


async def archival_memory_delete(self: Agent, id: str) -> PlannedChange:
    """Delete one passage from archival memory.

    Args:
        id: The passage's id, as a search shows it.
    """
    edit = await self.memory.archival.delete(id)
    return PlannedChange(edit.text, writes=edit.writes)
