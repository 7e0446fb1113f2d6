"""The user's own editor, opened on a function at its line.

It has the user's own environment, since dozens of variables may concern an editor, but for what is a key or a secret by
its name or its value. It works in the home folder: settings and modules of the current one may be a stranger's.
"""

import os
import shlex
import shutil
from pathlib import Path

from agent_core.base import programs
from agent_core.base.errors import UsageError
from agent_core.base.own_environment import environment, without_secrets

# How to pass the line to an editor; editors not listed get `+LINE FILE`, which most understand.
_GOTO = {"code", "codium", "cursor", "windsurf"}
_COLON = {"subl", "hx", "helix", "zed"}
_KNOWN = ("nano", "vim", "vi")
_WAITING = {"code", "codium", "cursor", "windsurf", "subl", "zed"}


async def open_editor(path: Path, line: int) -> None:
    """Open a file at a line, and wait until the editor is closed.

    Raises:
        UsageError: there is no such editor, or it cannot be started.
    """
    command = editor_command(_absolute(path), line)
    try:
        running = await programs.start(
            [_program(command[0]), *command[1:]],
            env=without_secrets(environment()),
            cwd=_home(),
            start_new_session=False,  # the terminal is its own for the while
        )
    except OSError as error:
        raise UsageError(f"The editor `{command[0]}` cannot be started: {error.strerror}.", fix=_fix()) from error
    await running.wait()


def editor_command(path: Path, line: int) -> list[str]:
    """Return the command that opens the file at the line, in $VISUAL, $EDITOR, or an installed editor."""
    chosen = _chosen("VISUAL") or _chosen("EDITOR") or [*filter(None, [_installed()])]
    if not chosen:
        raise UsageError("No editor was found.", fix=_fix())
    name = Path(chosen[0]).name
    waiting = ["--wait"] if name in _WAITING and "--wait" not in chosen else []
    if name in _GOTO:
        return [*chosen, *waiting, "--goto", f"{path}:{line}"]
    if name in _COLON:
        return [*chosen, *waiting, f"{path}:{line}"]
    return [*chosen, f"+{line}", str(path)]


def _home() -> Path:
    home = Path(environment().get("HOME", ""))
    return home if home.is_absolute() and home.is_dir() else Path("/")


def _program(name: str) -> str:
    """Return a program given as a path relative to the current folder. A bare name is looked up in PATH."""
    return str(_absolute(Path(name))) if "/" in name else name


def _absolute(path: Path) -> Path:
    return path.absolute()


def _chosen(variable: str) -> list[str]:
    try:
        return shlex.split(os.environ.get(variable, ""))
    except ValueError as error:
        raise UsageError(f"{variable} is not a command line: {error}.", fix=_fix()) from error


def _installed() -> str:
    return next(filter(shutil.which, _KNOWN), "")


def _fix() -> str:
    return f"Set EDITOR to one that is installed, such as: export EDITOR={_installed() or _KNOWN[0]}"
