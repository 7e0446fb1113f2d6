"""A process at a workspace that does one thing and is killed at an instant that was chosen before.

Instants are counted: each file that is opened for writing, renamed or removed, and each commit of the database, before
it and after it. So a kill can be repeated exactly, and hypothesis finds the earliest one that does harm.
"""

import asyncio
import json
import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

import apsw

from agent_core.access.grants import Grants
from agent_core.base.errors import KnapperError
from agent_core.base.events import CallAnswered, TurnEnded, TurnStarted
from agent_core.functions.service import Author
from agent_core.workspace.workspace import Workspace
from tests.sandbox.lacking import lack

CHANGES_OF_FILES = ("os.rename", "os.remove", "os.link", "os.mkdir")


class Instants:
    """Counts the instants of this process, and kills it at the last one."""

    def __init__(self, last: int) -> None:
        self._left = last
        self.is_counting = False

    def pass_one(self) -> None:
        if self.is_counting:
            self._left -= 1
            if self._left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def watch(self) -> None:
        """Count what changes a file or the database, in any thread."""
        sys.addaudithook(self._hear)
        apsw.connection_hooks.append(self._watch_commits)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:  # Any: of each event
        is_opened_to_write = event == "open" and bool(arguments[2] & (os.O_WRONLY | os.O_RDWR))
        if is_opened_to_write or event in CHANGES_OF_FILES:
            self.pass_one()

    def _watch_commits(self, connection: apsw.Connection) -> None:
        def before() -> bool:
            self.pass_one()
            return False

        def after(database: apsw.Connection, _name: str, pages: int) -> int:
            self.pass_one()
            if pages > 1_000:  # what SQLite does where nobody watches
                database.wal_checkpoint()
            return apsw.SQLITE_OK

        connection.set_commit_hook(before)
        connection.set_wal_hook(after)


def act(argument: str, reports: Connection) -> None:
    """Do what the argument says, as JSON; see `_act`."""
    order = json.loads(argument)
    if order.get("lacks"):
        lack(order["lacks"])
    instants = Instants(order.get("instant", sys.maxsize))
    instants.watch()
    asyncio.run(_act(order, instants, reports))


async def _act(order: dict[str, Any], instants: Instants, reports: Connection) -> None:
    """Open the workspace `root` with these `flags`, and do the `deed` with its `arguments`."""
    async with Workspace.open(order["root"], flags=order["flags"], follows=False) as workspace:
        deed = _DEEDS[order["deed"]]
        agent = await workspace.agent(order["agent"]) if deed is take_turn else None
        reports.send("ready")
        instants.is_counting = True
        try:
            await deed(agent or workspace, reports, *order["arguments"])
        except KnapperError as error:
            reports.send(f"failed {error}")
        instants.is_counting = False


async def take_turn(agent: Any, reports: Connection, message: str) -> None:
    """Report what the turn shows."""
    async for event in agent.turn(message):
        match event:
            case TurnStarted():
                reports.send(f"said {event.message}")
            case CallAnswered():
                reports.send(f"answered {event.call_id} {event.outcome}")
            case TurnEnded():
                reports.send(f"replied {event.reply}")


async def create(workspace: Workspace, reports: Connection, name: str, text: str) -> None:
    verdict = await workspace.functions.create(name, text, "letters", author=Author("agent"))
    why = [problem.message for problem in verdict.problems]
    reports.send(f"{why} {verdict.error} created {verdict.admitted}")


async def replace(workspace: Workspace, reports: Connection, name: str, text: str) -> None:
    verdict = await workspace.functions.replace(name, text)
    reports.send(f"replaced {verdict.admitted}")


async def delete(workspace: Workspace, reports: Connection, name: str) -> None:
    await workspace.functions.delete(name)
    reports.send("deleted True")


async def save(workspace: Workspace, reports: Connection, path: str, text: str) -> None:
    (workspace.root / path).write_text(text)
    await workspace.functions.reload()
    reports.send("saved True")


async def revoke(workspace: Workspace, reports: Connection, name: str) -> None:
    await workspace.functions.grants.revoke(name, None)
    reports.send("revoked True")


async def grant(workspace: Workspace, reports: Connection, name: str, folder: str) -> None:
    await workspace.functions.grants.grant(name, Grants(read=(folder,)))
    reports.send("granted True")


async def call(workspace: Workspace, reports: Connection, name: str) -> None:
    report = await workspace.functions.call(name, {})
    error = str(report.error.message if report.error else "")
    reports.send(f"{report.outcome} {report.value!r} {error}")


_DEEDS: dict[str, Any] = {
    deed.__name__: deed for deed in (take_turn, create, replace, delete, save, revoke, grant, call)
}
