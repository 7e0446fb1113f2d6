"""Search in past messages, however old."""

from agent_core import Agent


async def conversation_search(self: Agent, query: str, page: int = 0) -> str:
    """Search everything that was ever said in this conversation, by words and meaning; the best first.

    Args:
        query: What to look for: a question, or words that were said, with names.
        page: Which page of results, from 0.
    """
    return str(await self.memory.recall.search(query, page))


async def conversation_search_date(self: Agent, start_date: str, end_date: str = "", page: int = 0) -> str:
    """Read what was said between two dates, oldest first.

    Args:
        start_date: The first day, such as `2023-05-07`, `last tuesday`, `March 2023` or `two weeks ago`.
        end_date: The last day, in the same forms; empty for the same as the first.
        page: Which page of results, from 0.
    """
    return str(await self.memory.recall.on_dates(start_date, end_date, page))
