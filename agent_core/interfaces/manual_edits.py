"""Manual changes of memory: an editor on its text, and an edit that is retried until it succeeds."""

from collections.abc import Awaitable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import ValidationError

from agent_core.base.errors import UsageError
from agent_core.functions.service import Author
from agent_core.memory.block import Block, Sections, reasons
from agent_core.memory.blocks import Blocks, PlannedEdit

from .editor import open_editor

HUMAN = Author("human")


async def text_from_editor(name: str, text: str, suffix: str = ".txt") -> str | None:
    """Return the text as changed in the user's editor, or None if it is unchanged."""
    with TemporaryDirectory(prefix="knapper-") as folder:
        path = Path(folder) / f"{Path(name).name or 'text'}{suffix}"
        path.write_text(text + "\n" if text else "", "utf-8")
        await open_editor(path, 1)
        try:
            edited = path.read_text("utf-8").removesuffix("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"The edited text cannot be read: {error}.") from error
    return None if edited == text else edited


async def write_block(blocks: Blocks, label: str, text: str, version: int | None = None) -> PlannedEdit:
    """Give a block a new text; with a `version`, only if it is still as it was then.

    Raises:
        UsageError: the agent has no such block.
    """
    return await blocks.commit(await blocks.write(label, text, HUMAN, version))


async def set_up_block(blocks: Blocks, label: str, **fields: Any) -> PlannedEdit:  # Any: the block's fields
    """Give a block another limit or description."""
    return await done(blocks, blocks.set_up(label, HUMAN, **fields))


async def write_section(sections: Sections, name: str, position: int, text: str) -> str:
    """Give a section a new text, or take it away if that is empty. Return what was done."""
    if not text.strip():
        await sections.drop(name)
        return f"The section `{name}` is taken away; it counts from the next turn on."
    await sections.set(name, position, text)
    return f"The section `{name}` is kept; it counts from the next turn on."


async def add_block(blocks: Blocks, label: str, **fields: Any) -> PlannedEdit:  # Any: the block's fields
    """Give an agent another block.

    Raises:
        UsageError: it cannot be as it is described.
    """
    try:
        block = Block(label=label, position=len(blocks.rows), **fields)
    except ValidationError as error:
        raise UsageError(reasons(error)) from error
    return await done(blocks, blocks.add(block, HUMAN))


async def done(blocks: Blocks, planned: Awaitable[PlannedEdit]) -> PlannedEdit:
    """Carry out a planned edit."""
    return await blocks.commit(await planned)


async def undo_block(blocks: Blocks, label: str) -> PlannedEdit:
    """Restore a block to its value before the last change; without a label, the block that was changed last.

    Raises:
        UsageError: the agent has no such block.
    """
    if not blocks.rows and not label:
        raise UsageError("The agent has no block.")
    last = label or max(blocks.rows, key=lambda row: row.edited).label
    return await blocks.commit(await blocks.undo(last, HUMAN))
