"""Blocks as they are kept and as a memory holds them; pure.

What differs, what would be lost, what an undo puts back.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..storage import BlockChange, BlockRow
from .block import Block, from_row, kept_value
from .classes import Memory
from .edits import EditRefused

_UNDO = "undo: as in version {}"
_UNDONE = re.compile(r"undo: as in version (\d+)$")


@dataclass(frozen=True, slots=True)
class Kept:
    """A memory, and the row of each of its blocks by label."""

    memory: Memory
    rows: Mapping[str, BlockRow]


@dataclass(frozen=True, slots=True)
class Difference:
    """One block that an edit changed: its row before (None: new) and after (None: gone)."""

    before: BlockRow | None
    after: BlockRow | None


def opened(memory: Memory, rows: Sequence[BlockRow]) -> Kept:
    """The memory with these blocks; of several with one label the first counts."""
    by_label: dict[str, BlockRow] = {}
    for row in sorted(rows, key=lambda row: row.position):
        by_label.setdefault(row.label, row)
    now = memory.model_copy(deep=True)
    now.blocks = [from_row(row) for row in by_label.values()]
    return Kept(now, by_label)


def differences(now: Kept, after: Memory) -> Iterator[Difference]:
    """What a memory has come to differ in from what is kept; each block is held to its limit here."""
    if len({*after.labels}) < len(after.labels):
        raise EditRefused(f"There can be one block per label, and there would be {', '.join(after.labels)}.")
    for place, block in enumerate(after.blocks):
        checked = Block.model_validate(block.model_dump())
        row = now.rows.get(block.label)
        if row is None:
            yield Difference(
                None, _row(checked, BlockRow("", block.label, "", 0, position=block.position or place, version=0))
            )
        elif from_row(row) != checked:
            yield Difference(row, _row(checked, replace(row, position=checked.position)))
    for label, row in now.rows.items():
        if label not in after:
            yield Difference(row, None)


def _row(block: Block, row: BlockRow) -> BlockRow:
    """The next version of a row."""
    return replace(
        row,
        value=kept_value(block),
        limit=block.limit,
        description=block.description,
        read_only=block.read_only,
        shared=block.shared,
        version=row.version + 1,
    )


def lost(seen: Kept, now: Kept, after: Memory) -> dict[str, list[str]]:
    """Lines, by label, that came by another hand since `seen` and would go again."""
    found = {}
    for label, row in now.rows.items():
        before = seen.rows.get(label)
        if before is None or before.version == row.version or label not in after:
            continue
        known, left = {*seen.memory[label].lines}, {*after[label].lines}
        if gone := [line for line in now.memory[label].lines if line not in known and line not in left]:
            found[label] = gone
    return found


def undo_of(changes: Sequence[BlockChange]) -> tuple[BlockChange, str] | None:
    """Which state an undo goes back to, and what its line of history says; None at the beginning.

    An undo after an undo goes back one more. A change of a limit or the like leaves the value, so it is no state.
    """
    states: list[BlockChange] = []
    for change in changes:
        if undone := _UNDONE.search(change.what):
            wanted = int(undone[1])
            while len(states) > 1 and states[-1].version > wanted:
                states.pop()
        elif not states or states[-1].value != change.value:
            states.append(change)
    return (states[-2], _UNDO.format(states[-2].version)) if len(states) > 1 else None
