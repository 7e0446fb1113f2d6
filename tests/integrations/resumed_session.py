"""A resumed Agent Framework session, as a separate program: `resumed_session.py FOLDER MODEL_URL SESSION`."""

import asyncio
import json
import sys

from agent_framework import AgentSession

from agent_core import connect
from agent_core.interfaces.integrations.agent_framework import FrameworkAgent


async def main(folder: str, url: str, session: str) -> None:
    """Print the reply to a message of the session."""
    flags = {"model.base_url": url, "model.name": "scripted", "model.context_tokens": 8_192}
    async with await connect(folder, flags=flags) as client:
        kept = AgentSession.from_dict(json.loads(session))
        print((await FrameworkAgent("ada", client).run("And now?", session=kept)).text)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
