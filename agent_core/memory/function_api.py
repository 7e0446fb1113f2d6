"""Access of a function to a memory block that the user granted: `self.memory` in its source, answered by the host."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_core.storage import Plan

from . import edits
from .blocks import BlockDifference, EditRequest, NamedAuthor
from .classes import Block, Memory, check_given

if TYPE_CHECKING:
    from .blocks import Blocks

_MOST_EDITS = 100
_MOST_CHARS = 1_000_000  # characters of all blocks after the edits of one call


class MemoryAccessRefused(Exception):
    """Raised if an access is refused; the message is for the function's author."""


class FunctionMemoryApi:
    """The blocks of an agent, for one call and its nested calls.

    Edits are held, and visible to the call, until its answer is stored: both go to disk in one transaction.
    """

    def __init__(self, blocks: "Blocks", agent: str, turn: str) -> None:
        self._blocks = blocks
        self._author = NamedAuthor(agent, turn, "function")
        self._requests: list[tuple[str, EditRequest]] = []  # with the label of the block
        self._chars = 0
        self._one_at_a_time = asyncio.Lock()
        self.held = Plan("")
        self._changed: tuple[BlockDifference, ...] = ()  # by what is held

    @property
    def _memory(self) -> Memory:
        return self._blocks.with_differences(self._changed).memory

    def has(self, label: str) -> bool:
        """Check whether the agent has this block."""
        return label in self._memory

    async def answer(
        self,
        function: str,
        arguments: dict[str, Any],  # Any: as a worker sent them
        masked: Callable[[str], str],
    ) -> str | None:
        """Read or edit a block, and return the text read. An edit that would assemble a secret from pieces is refused.

        Raises:
            MemoryAccessRefused: the request has no known form, or the edit is refused.
        """
        match arguments:
            case {"act": "read", "block": str(label)}:
                return self._memory[label].text
            case {"act": "append", "block": str(label), "text": str(text)}:
                await self._edit(
                    function,
                    label,
                    lambda block: edits.append(block.lines, text).lines,
                    (text,),
                    masked,
                )
            case {"act": "replace", "block": str(label), "old": str(old), "new": str(new)}:
                replaced = lambda block: (  # noqa: E731
                    edits.replace(block.lines, old, new, block.seen_lines).lines
                )
                await self._edit(function, label, replaced, (old, new), masked)
            case {"act": "write", "block": str(label), "text": str(text)}:
                await self._edit(function, label, lambda _: text.split("\n"), (text,), masked)
            case _:
                raise MemoryAccessRefused(
                    "self.memory can read, append, replace and write, with texts"
                )
        return None

    async def _edit(
        self,
        function: str,
        label: str,
        change: Callable[[Block], list[str]],
        texts: tuple[str, ...],
        masked: Callable[[str], str],
    ) -> None:
        def deed(memory: Memory) -> None:
            check_given(memory[label], *texts)
            before, lines = "\n".join(memory[label].lines), change(memory[label])
            after = "\n".join(lines)
            if masked(after) != after and masked(before) == before:
                raise edits.EditRefused("the edit would put a secret together.")
            memory[label].put(lines)

        async with self._one_at_a_time:
            if len(self._requests) >= _MOST_EDITS or self._chars > _MOST_CHARS:
                raise MemoryAccessRefused(
                    f"one call can edit memory {_MOST_EDITS} times, and write {_MOST_CHARS:,} characters"
                )
            seen = self._blocks.with_differences(self._changed)
            request = EditRequest(deed, self._author, f"{function}()", seen)
            edit, changed = await self._blocks.plan(request, self._changed)
            if edit.outcome == "refused":
                raise MemoryAccessRefused(f"`{label}` stays as it is: {edit.text}")
            self._requests.append((label, request))
            self._chars += sum(len(str(change.after.value)) for change in changed if change.after)
            self._hold(edit, changed)

    def _hold(self, plan: Plan, changed: Sequence[BlockDifference]) -> None:
        self._changed = (*self._changed, *changed)
        self.held.did.add(plan.did)
        done = partial(self._blocks.applied, self._changed, self._author.by)
        self.held = replace(
            self.held, writes=(*self.held.writes, *plan.writes), replan=self._replan, done=done
        )

    async def _replan(self) -> Plan:
        """Plan the same edits on the current blocks; edits that are no longer possible are reported in the text.

        After a failed edit, later edits of the same block are skipped, because they may depend on it.
        """
        await self._blocks.reload()
        self.held, self._changed, refusals = Plan(""), (), dict[str, str]()
        for label, request in self._requests:
            if label in refusals:
                continue
            await asyncio.sleep(
                0
            )  # so that many edits of large blocks do not block the loop at once
            edit, changed = await self._blocks.plan(request, self._changed)
            if edit.outcome == "refused":
                refusals[label] = (
                    f"An edit of the memory by {request.action} was not made: {edit.text}"
                )
            else:
                self._hold(edit, changed)
        return replace(self.held, text="\n".join(refusals.values()))
