"""Who wrote which line of a block: read off its history, so that nothing has to be kept besides it."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent_core.base.matching.differences import ComparisonBudget, compare
from agent_core.storage import BlockChange, Value


@dataclass(frozen=True, slots=True)
class BlockLine:
    """A line of a block as it is now, and the change that wrote it."""

    text: str
    by: BlockChange


def blame(changes: Sequence[BlockChange]) -> list[BlockLine]:
    """Return the lines of a block after its last change, each with the change that brought it in; oldest change first.

    A line that was taken out and came back is whoever's brought it back.
    """
    blamed: list[BlockLine] = []
    allowance = ComparisonBudget()
    for change in changes:
        lines = lines_of(change.value)
        opcodes = compare([line.text for line in blamed], lines, allowance).opcodes
        blamed = [
            line
            for kind, i1, i2, j1, j2 in opcodes
            for line in (blamed[i1:i2] if kind == "equal" else [BlockLine(text, change) for text in lines[j1:j2]])
        ]
    return blamed


def lines_of(value: Value) -> list[str]:
    """Return the lines of a value; an empty list for an empty one."""
    if not value:
        return []
    return value.split("\n") if isinstance(value, str) else [*value]
