"""A process that renames a function back and forth, until it is killed."""

import asyncio
from multiprocessing.connection import Connection
from pathlib import Path

from agent_core.functions.service.plan import USER
from agent_core.workspace.workspace import Workspace

NAMES = ("count_vowels", "vowels_of")


def rename(argument: str, reports: Connection) -> None:
    """Rename the function in the workspace folder."""
    asyncio.run(_rename(Path(argument), reports))


async def _rename(root: Path, reports: Connection) -> None:
    async with Workspace.open(root, flags={"model.base_url": "http://127.0.0.1:9/v1"}) as workspace:
        functions = workspace.functions
        reports.send("ready")
        while True:
            for old, new in (NAMES, NAMES[::-1]):
                plan = await functions.relocations.rename(old, new, USER)
                await functions.finish(plan, USER)
                reports.send(new)
