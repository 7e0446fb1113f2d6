"""A process that tends a library, and reports each change, until it is killed."""

import asyncio
from multiprocessing.connection import Connection
from pathlib import Path

from agent_core.functions.service.tending import TendingBudget
from agent_core.workspace.workspace import Workspace


def tend(argument: str, reports: Connection) -> None:
    """Tend the workspace in this folder."""
    asyncio.run(_tend(Path(argument), reports))


async def _tend(root: Path, reports: Connection) -> None:
    async with Workspace.open(root, flags={"model.base_url": "http://127.0.0.1:9/v1"}) as workspace:
        reports.send("ready")
        report = await workspace.workshop.tending.run(TendingBudget(), applies=True)
        for step in report.steps:
            reports.send(f"{step.kind} {step.function} {step.done}")
