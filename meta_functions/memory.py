"""Further pages of long texts; search in past messages; archival memory."""

from agent_core import Agent
from agent_core.storage import Plan


async def read_on(self: Agent, name: str, page: int = 2) -> str:
    """Read another page of a long text of which you were shown a part.

    Args:
        name: The name that stands at the end of the part, such as `text-100003`.
        page: Which page, from 1.
    """
    text: str = await self.read_on(name, page)
    return text


async def conversation_search(self: Agent, query: str, page: int = 0, count: int = 10) -> str:
    """Search all that was ever said.

    Args:
        query: A question, or words that were said.
    """
    return str(await self.memory.recall.search(query, page, count))


async def conversation_search_date(
    self: Agent, start_date: str, end_date: str = "", page: int = 0, count: int = 10
) -> str:
    """Read what was said between two dates, oldest first.

    Args:
        start_date: The first day, such as `2023-05-07`, `last tuesday`, `March 2023` or `two weeks ago`.
        end_date: The last day, in the same forms; empty for the same as the first.
        page: Which page of results, from 0.
        count: How many results a page has.
    """
    return str(await self.memory.recall.on_dates(start_date, end_date, page, count))


async def archival_memory_insert(self: Agent, content: str, tags: list[str] | None = None) -> Plan:
    """Keep a text in archival memory, which has no limit.

    Args:
        content: The text, to be understood alone.
        tags: Words to find it by.
    """
    return await self.memory.archival.insert(content, tags or ())


async def archival_memory_search(
    self: Agent, query: str, page: int = 0, tags: list[str] | None = None, count: int = 5
) -> str:
    """Search archival memory and attached sources, by words and meaning.

    Args:
        query: What to look for; empty lists the newest.
        page: From 0.
        tags: What has all of these.
        count: Results on a page.
    """
    return str(await self.memory.archival.search(query, tags or (), page, count))


async def archival_memory_delete(self: Agent, id: str) -> Plan:
    """Delete one passage from archival memory.

    Args:
        id: The passage's id, as a search shows it.
    """
    return await self.memory.archival.delete(id)
