"""A process that maintains a library and reports each change, until it is killed."""

import asyncio
from multiprocessing.connection import Connection
from pathlib import Path

from agent_core.workspace.workspace import Workspace
from knapper_ext.tending.tending import TendingBudget
from knapper_ext.tending.upkeep import tending_of


def tend(argument: str, reports: Connection) -> None:
    """Run maintenance in the workspace folder; the argument is the folder and the model's address."""
    root, _, address = argument.partition(" ")
    asyncio.run(_tend(Path(root), address, reports))


async def _tend(root: Path, address: str, reports: Connection) -> None:
    flags = {"model.base_url": address, "model.name": "strong"}
    async with Workspace.open(root, flags=flags) as workspace:
        reports.send("ready")
        report = await tending_of(workspace.functions, workspace.settings).run(
            TendingBudget(), applies=True
        )
        for step in report.steps:
            reports.send(f"{step.kind} {step.function} {step.done}")
