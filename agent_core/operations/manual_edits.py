"""Manual changes to memory and functions, in the user's editor or directly; conflicting edits are retried."""

import os
import shlex
import shutil
from collections.abc import Awaitable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import ValidationError

from agent_core.base import programs
from agent_core.base.errors import UsageError
from agent_core.base.own_environment import environment, without_secrets
from agent_core.functions.service import Author
from agent_core.memory.blocks import Blocks
from agent_core.memory.classes import Block, Sections, reasons
from agent_core.storage import Plan

# The user's editor, opened on a function at its line. It gets the user's environment, because dozens of variables may
# affect an editor, except for variables that look like a key or a secret by name or value. It runs in the home folder,
# because settings and modules in the current folder may be untrusted.

# How to pass the line to an editor; editors not listed get `+LINE FILE`, which most understand.
_GOTO = {"code", "codium", "cursor", "windsurf"}
_COLON = {"subl", "hx", "helix", "zed"}
_KNOWN = ("nano", "vim", "vi")
_WAITING = {"code", "codium", "cursor", "windsurf", "subl", "zed"}


async def open_editor(path: Path, line: int) -> None:
    """Open a file at a line and wait until the editor is closed.

    Raises:
        UsageError: the editor does not exist or cannot be started.
    """
    program, *arguments = editor_command(_absolute(path), line)
    try:
        running = await programs.start(
            # A path is relative to the current folder, not to the home; a bare name is looked up in PATH.
            [str(_absolute(Path(program))) if "/" in program else program, *arguments],
            env=without_secrets(environment()),
            cwd=_home(),
            start_new_session=False,  # the editor uses the terminal
        )
    except OSError as error:
        raise UsageError(
            f"The editor `{program}` cannot be started: {error.strerror}.", fix=_fix()
        ) from error
    await running.wait()


def editor_command(path: Path, line: int) -> list[str]:
    """Return the command that opens the file at the line in $VISUAL, $EDITOR, or an installed editor."""
    chosen = _chosen("VISUAL") or _chosen("EDITOR") or [*filter(None, [_installed_editor()])]
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


def _absolute(path: Path) -> Path:
    return path.absolute()


def _chosen(variable: str) -> list[str]:
    try:
        return shlex.split(os.environ.get(variable, ""))
    except ValueError as error:
        raise UsageError(f"{variable} is not a command line: {error}.", fix=_fix()) from error


def _installed_editor() -> str:
    return next(filter(shutil.which, _KNOWN), "")


def _fix() -> str:
    return f"Set EDITOR to one that is installed, such as: export EDITOR={_installed_editor() or _KNOWN[0]}"


HUMAN = Author("human")


async def text_from_editor(name: str, text: str, suffix: str = ".txt") -> str | None:
    """Open a text in the user's editor and return the edited text, or None if it is unchanged."""
    with TemporaryDirectory(prefix="knapper-") as folder:
        path = Path(folder) / f"{Path(name).name or 'text'}{suffix}"
        path.write_text(text + "\n" if text else "", "utf-8")
        await open_editor(path, 1)
        try:
            edited = path.read_text("utf-8").removesuffix("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"The edited text cannot be read: {error}.") from error
    return None if edited == text else edited


async def set_up_block(
    blocks: Blocks, label: str, version: int | None = None, **fields: Any
) -> Plan:  # Any: the block's fields
    """Change the value, limit and description of a block; with a `version`, only if it is still at that version.

    Raises:
        UsageError: the agent has no such block.
    """
    return await done(blocks, blocks.set_up(label, HUMAN, version, **fields))


async def write_section(sections: Sections, name: str, position: int, text: str) -> str:
    """Replace the text of a section, or drop the section if the text is empty. Return what was done."""
    if not text.strip():
        await sections.drop(name)
        return f"The section `{name}` is taken away; it counts from the next turn on."
    await sections.set(name, position, text)
    return f"The section `{name}` is kept; it counts from the next turn on."


async def add_block(blocks: Blocks, label: str, **fields: Any) -> Plan:  # Any: the block's fields
    """Add a block to an agent.

    Raises:
        UsageError: the block's fields are invalid.
    """
    try:
        block = Block(label=label, position=len(blocks.rows), **fields)
    except ValidationError as error:
        raise UsageError(reasons(error)) from error
    return await done(blocks, blocks.add(block, HUMAN))


async def done(blocks: Blocks, planned: Awaitable[Plan]) -> Plan:
    """Apply a planned edit."""
    return await blocks.commit(await planned)


async def undo_block(blocks: Blocks, label: str) -> Plan:
    """Restore a block to its value before its last change. Without a label, restore the block that was changed last.

    Raises:
        UsageError: the agent has no such block.
    """
    if not blocks.rows and not label:
        raise UsageError("The agent has no block.")
    last = label or max(blocks.rows, key=lambda row: row.edited).label
    return await blocks.commit(await blocks.undo(last, HUMAN))
