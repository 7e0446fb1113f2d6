"""Blocks as they are stored and as a memory holds them: differences, lost text, and what an undo restores. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from agent_core.storage import BlockChange, BlockRow

from .block import Block, from_row, kept_value
from .classes import Memory
from .edits import EditRefused

_UNDO = "undo: as in version {}"
_UNDONE = re.compile(r"undo: as in version (\d+)$")


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A memory, and the row of each of its blocks by label."""

    memory: Memory
    rows: Mapping[str, BlockRow]


@dataclass(frozen=True, slots=True)
class BlockDifference:
    """One block that an edit changed: its row before (None: new) and after (None: removed)."""

    before: BlockRow | None
    after: BlockRow | None


def opened(memory: Memory, rows: Sequence[BlockRow]) -> StoredMemory:
    """Return the memory with these blocks. If several have the same label, the first one counts."""
    by_label: dict[str, BlockRow] = {}
    for row in sorted(rows, key=lambda row: row.position):
        by_label.setdefault(row.label, row)
    now = memory.model_copy(deep=True)
    now.blocks = [from_row(row) for row in by_label.values()]
    return StoredMemory(now, by_label)


def differences(now: StoredMemory, after: Memory) -> Iterator[BlockDifference]:
    """Yield how a memory differs from what is stored; the limit of each block is checked here."""
    if len({*after.labels}) < len(after.labels):
        raise EditRefused(f"There can be one block per label, and there would be {', '.join(after.labels)}.")
    for place, block in enumerate(after.blocks):
        checked = Block.model_validate(block.model_dump())
        row = now.rows.get(block.label)
        if row is None:
            yield BlockDifference(
                None, _row(checked, BlockRow("", block.label, "", 0, position=block.position or place, version=0))
            )
        elif from_row(row) != checked:
            yield BlockDifference(row, _row(checked, replace(row, position=checked.position)))
    for label, row in now.rows.items():
        if label not in after:
            yield BlockDifference(row, None)


def _row(block: Block, row: BlockRow) -> BlockRow:
    """Return the next version of a row."""
    return replace(
        row,
        value=kept_value(block),
        limit=block.limit,
        description=block.description,
        read_only=block.read_only,
        shared=block.shared,
        version=row.version + 1,
    )


def lost(seen: StoredMemory, now: StoredMemory, after: Memory) -> dict[str, list[str]]:
    """Return the lines, by label, that someone else added since `seen` and that would be lost."""
    lost_lines = {}
    for label, row in now.rows.items():
        before = seen.rows.get(label)
        # By the value, too: who holds edits that are not on disk has seen versions that another writer may have made.
        if before is None or (before.version, before.value) == (row.version, row.value) or label not in after:
            continue
        seen_lines, remaining_lines = {*seen.memory[label].lines}, {*after[label].lines}
        if missing := [
            line for line in now.memory[label].lines if line not in seen_lines and line not in remaining_lines
        ]:
            lost_lines[label] = missing
    return lost_lines


def undo_of(changes: Sequence[BlockChange]) -> tuple[BlockChange, str] | None:
    """Return the state that an undo goes back to and its line for the history, or None at the beginning.

    An undo after an undo goes back one more. A change of a limit or the like leaves the value, so it is no state.
    """
    states: list[BlockChange] = []
    for change in changes:
        if undone := _UNDONE.search(change.action):
            version = int(undone[1])
            while len(states) > 1 and states[-1].version > version:
                states.pop()
        elif not states or states[-1].value != change.value:
            states.append(change)
    return (states[-2], _UNDO.format(states[-2].version)) if len(states) > 1 else None
