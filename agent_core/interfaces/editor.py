"""The user's own editor, opened on a function at its line."""

import asyncio
import os
import shlex
import shutil
from pathlib import Path

from agent_core.errors import UsageError

# How an editor is told the line; those that are not named get `+LINE FILE`, which most understand.
_GOTO = {"code", "codium", "cursor", "windsurf"}
_COLON = {"subl", "hx", "helix", "zed"}
_WAITING = {"code", "codium", "cursor", "windsurf", "subl", "zed"}


async def open_editor(path: Path, line: int) -> None:
    """Open a file at a line, and wait until the editor is left."""
    running = await asyncio.create_subprocess_exec(*editor_command(path, line))
    await running.wait()


def editor_command(path: Path, line: int) -> list[str]:
    """The command that opens the file at the line, in $VISUAL, $EDITOR, or what is installed."""
    chosen = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or _installed())
    name = Path(chosen[0]).name
    waiting = ["--wait"] if name in _WAITING and "--wait" not in chosen else []
    if name in _GOTO:
        return [*chosen, *waiting, "--goto", f"{path}:{line}"]
    if name in _COLON:
        return [*chosen, *waiting, f"{path}:{line}"]
    return [*chosen, f"+{line}", str(path)]


def _installed() -> str:
    for name in ("nano", "vim", "vi"):
        if shutil.which(name):
            return name
    raise UsageError("No editor was found.", mend="Set EDITOR, such as: export EDITOR=nano")
