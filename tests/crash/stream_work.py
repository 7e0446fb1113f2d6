"""A process that takes one turn until it is killed; it reports each event that has a number, as JSON after it."""

import asyncio
import json
from multiprocessing.connection import Connection
from pathlib import Path

from agent_core.workspace.workspace import Workspace
from tests.knapper_ext.server.told import Human


def take_turn(argument: str, reports: Connection) -> None:
    """Take a turn in the workspace of `FOLDER|BASE_URL`."""
    root, base_url = argument.split("|")
    asyncio.run(_take_turn(Path(root), base_url, reports))


async def _take_turn(root: Path, base_url: str, reports: Connection) -> None:
    flags = {"model.base_url": base_url, "model.name": "scripted"}
    async with Workspace.open(root, flags=flags) as workspace:
        agent = await workspace.agent()
        reports.send("ready")
        async for event in agent.turn("What is there?", approver=Human()):
            if event.seq:
                reports.send(f"{event.seq} {json.dumps(event.to_json())}")
