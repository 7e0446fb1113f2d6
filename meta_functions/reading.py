"""Further pages of long messages and answers that were shown in part."""

from agent_core import Agent


async def read_on(self: Agent, name: str, page: int = 2) -> str:
    """Read another page of a long text of which you were shown a part.

    Args:
        name: The name that stands at the end of the part, such as `text-100003`.
        page: Which page, from 1.
    """
    text: str = await self.read_on(name, page)
    return text
