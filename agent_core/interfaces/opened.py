"""A workspace opened for one command and closed after it. Slow to import: imported only by command bodies."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from agent_core.access.grants import Approver
from agent_core.base.errors import WorkspaceError
from agent_core.functions.service import FunctionService
from agent_core.functions.service.change_texts import ReloadReport
from agent_core.workspace.workspace import Workspace

from .editor import open_editor
from .question_of_grants import decide, is_attended
from .scene import CliContext

T = TypeVar("T")


def with_workspace(scene: CliContext, use: Callable[[Workspace], Awaitable[T]]) -> T:
    """Open the scene's workspace, report what it recovered, and use it.

    Raises:
        WorkspaceError: there is none: a command that looks makes nothing.
    """
    return _use(scene, Workspace.find(scene.root), use)


def with_any_workspace(scene: CliContext, use: Callable[[Workspace], Awaitable[T]]) -> T:
    """Open the scene's workspace, or an empty temporary one for commands that only inspect the machine."""
    with TemporaryDirectory() as folder:
        try:
            root = Workspace.find(scene.root)
        except WorkspaceError:
            root = Path(folder)
        return _use(scene, root, use)


def _use(
    scene: CliContext, root: Path, use: Callable[[Workspace], Awaitable[T]], approver: Approver | None = None
) -> T:
    async def opened() -> T:
        async with Workspace.open(root, approver=approver) as workspace:
            scene.talk(*workspace.recovered)
            return await use(workspace)

    return asyncio.run(opened())


def with_workshop(scene: CliContext, use: Callable[[FunctionService], Awaitable[T]]) -> T:
    """Do the same, for commands that need only its functions."""
    return with_workspace(scene, lambda workspace: use(workspace.workshop))


def with_asking_workshop(scene: CliContext, use: Callable[[FunctionService], Awaitable[T]]) -> T:
    """Do the same, but ask the user at the terminal for missing grants. For a script, the answer is no."""
    approver = decide if is_attended() and not scene.as_json else None
    return _use(scene, Workspace.find(scene.root), lambda workspace: use(workspace.workshop), approver)


async def edit_function(workshop: FunctionService, name: str) -> ReloadReport:
    """Open the user's editor on a function, wait until it is closed, and read the folder again."""
    return await workshop.reload_after(open_editor(*workshop.path_of(name)))
