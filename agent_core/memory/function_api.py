"""Access of a function to a memory block that the user granted: `self.memory` in its source, answered by the host."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from . import edits
from .blocks import Blocks
from .classes import Memory, check_given


class MemoryAccessRefused(Exception):
    """Raised if an access is refused; the message is for the function's author."""


@dataclass(frozen=True, slots=True)
class _Function:
    """A function as the author of an edit, for the history."""

    agent: str
    turn: str
    by: Literal["function"] = "function"


@dataclass(frozen=True, slots=True)
class FunctionMemoryApi:
    """The blocks of an agent, for the functions that it calls in one turn."""

    blocks: Blocks
    agent: str
    turn: str

    def has(self, label: str) -> bool:
        """Check whether the agent has this block."""
        return label in self.blocks.memory

    async def answer(
        self,
        function: str,
        arguments: dict[str, Any],  # Any: as a worker sent them
        masked: Callable[[str], str],
    ) -> str | None:
        """Read or edit a block, and return what was read. An edit that would assemble a secret from pieces is refused.

        Raises:
            DoorRefused: the request has no known shape, or the edit is refused.
        """
        match arguments:
            case {"act": "read", "block": str(label)}:
                return self.blocks.memory[label].text
            case {"act": "append", "block": str(label), "text": str(text)}:
                await self._edit(function, label, lambda lines: edits.append(lines, text).lines, (text,), masked)
            case {"act": "replace", "block": str(label), "old": str(old), "new": str(new)}:
                await self._edit(
                    function, label, lambda lines: edits.replace(lines, old, new).lines, (old, new), masked
                )
            case {"act": "write", "block": str(label), "text": str(text)}:
                await self._edit(function, label, lambda lines: text.split("\n"), (text,), masked)
            case _:
                raise MemoryAccessRefused("self.memory can read, append, replace and write, with texts")
        return None

    async def _edit(
        self,
        function: str,
        label: str,
        change: Callable[[list[str]], list[str]],
        texts: tuple[str, ...],
        masked: Callable[[str], str],
    ) -> None:
        def deed(memory: Memory) -> None:
            check_given(memory[label], *texts)
            before, lines = "\n".join(memory[label].lines), change(memory[label].lines)
            after = "\n".join(lines)
            if masked(after) != after and masked(before) == before:
                raise edits.EditRefused("the edit would put a secret together.")
            memory[label].put(lines)

        edit = await self.blocks.edit(deed, _Function(self.agent, self.turn), f"{function}()")
        if edit.outcome == "refused" or (await self.blocks.commit(edit)).outcome == "refused":
            raise MemoryAccessRefused(f"`{label}` stays as it is: {edit.text}")
