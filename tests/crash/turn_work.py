"""A process that takes turns until it is killed; it reports each event that it was shown."""

import asyncio
from multiprocessing.connection import Connection
from pathlib import Path

from agent_core.base.events import CallAnswered, TurnEnded, TurnStarted
from agent_core.workspace.workspace import Workspace


def take_turns(argument: str, reports: Connection) -> None:
    """Take turns in the workspace, with the model and the database of `FOLDER|BASE_URL|URL`; "" is no database."""
    root, base_url, database = argument.split("|")
    asyncio.run(_take_turns(Path(root), base_url, database or None, reports))


async def _take_turns(root: Path, base_url: str, database: str | None, reports: Connection) -> None:
    flags = {
        "model.base_url": base_url,
        "model.name": "scripted",
        "model.stream": False,
        "storage.url": database,
    }
    flags["model.context_tokens"] = 1_000_000  # so that no summary replaces the messages
    async with Workspace.open(root, flags=flags) as workspace:
        agent = await workspace.agent()
        reports.send("ready")
        number = len([entry for entry in await agent.history() if type(entry).__name__ == "User"])
        while True:
            async for event in agent.turn(f"message {number}"):
                match event:
                    case TurnStarted():
                        reports.send(f"said {event.message}")
                    case CallAnswered():
                        reports.send(f"answered {event.call_id} {event.outcome}")
                    case TurnEnded():
                        reports.send(f"replied {event.reply}")
            number += 1
