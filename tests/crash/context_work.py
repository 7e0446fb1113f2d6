"""A process that converses through a small window until it is killed; it reports each answered turn."""

import asyncio
from multiprocessing.connection import Connection
from pathlib import Path

from agent_core.base.events import TurnEnded, TurnStarted
from agent_core.workspace.workspace import Workspace
from tests.context.long_talk import message

WINDOW = 4_000


def talk(argument: str, reports: Connection) -> None:
    """Run turn after turn; the argument is the folder, the model's address and the number of the first turn."""
    root, url, number = argument.split("|")
    asyncio.run(_talk(Path(root), url, int(number), reports))


async def _talk(root: Path, url: str, number: int, reports: Connection) -> None:
    flags = {
        "model.base_url": url,
        "model.name": "scripted",
        "model.stream": False,
        "model.mode": "constrained",
    }
    async with Workspace.open(root, flags={**flags, "model.context_tokens": WINDOW}) as workspace:
        agent = await workspace.agent()
        reports.send("ready")
        while True:
            async for event in agent.turn(message(number)):
                match event:
                    case TurnStarted():
                        reports.send(f"said {event.message}")
                    case TurnEnded():
                        reports.send(f"{event.reason} {event.reply}")
            number += 1
