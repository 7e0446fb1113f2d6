"""One edit of blocks: planned on a copy of the memory, and committed, which is the one way to disk.

Whoever commits gives the transaction: the answer of a call and its journal entry, or the writes alone.
"""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias

from pydantic import ValidationError

from agent_core.base.clock import Clock
from agent_core.base.errors import ToolwrightError
from agent_core.storage import BlockRow, DetachBlock, ManifestConflict, SaveBlock, Write

from .block import Block, reasons
from .classes import Memory
from .edits import EditRefused, difference, listed
from .rows import BlockDifference, StoredMemory, differences, lost

_SHOWN = 4000
_TRIES = 100  # each time that an edit is too late, someone else has made one
_LONGEST_PAUSE_S = 0.2
_LARGE = 4_000  # characters of a block; the usual one may have half of them
_BOUND = frozenset({"agent", "function"})  # who may not touch what is read-only
_ANSWERED = (ToolwrightError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
"""What a method may raise over what it was given: an answer, as any other function's would be."""


class EditAuthor(Protocol):
    """The author of an edit, for the history; agent and turn are empty outside of a turn."""

    @property
    def by(self) -> str:
        """`human`, `agent` or `function`."""

    @property
    def agent(self) -> str:
        """The name of the agent that has the turn."""

    @property
    def turn(self) -> str:
        """The id of the turn."""


@dataclass(frozen=True, slots=True)
class PlannedEdit:
    """The result of an edit: the answer, and the writes; `replan` plans the same edit on the state at that time.

    `done` is called once it is on disk; `excluded` names functions that the next step should not offer.
    """

    text: str
    writes: tuple[Write, ...] = ()
    outcome: Literal["returned", "refused"] = "returned"
    replan: "Callable[[], Awaitable[PlannedEdit]] | None" = None
    by: str = "agent"
    changed: tuple[BlockDifference, ...] = field(default=(), repr=False)
    done: Callable[[], None] = field(default=lambda: None, repr=False)
    excluded: frozenset[str] = frozenset()


async def commit(edit: PlannedEdit, record: Callable[[PlannedEdit], Awaitable[None]], clock: Clock) -> PlannedEdit:
    """Commit an edit in the transaction of `record`; return its final form, which is on disk.

    A block that somebody else changed meanwhile is read again, and the same is done on what it has become.
    """
    for tried in range(_TRIES):
        try:
            await record(edit)
        except ManifestConflict:
            if edit.replan is None:
                raise
            # Out of step with the other writer, who would else be first each time.
            await asyncio.sleep(clock.random.uniform(0, min(0.002 * (tried + 1), _LONGEST_PAUSE_S)))
            edit = await edit.replan()
        else:
            edit.done()
            return edit
    edit = refused("Others change it all the time. Try again later.", edit.by)
    await record(edit)
    return edit


NO_EDIT = PlannedEdit("")

Deed: TypeAlias = Callable[[Memory], Any]  # Any: what a human's method returns, awaited if it has to be
"""What is done to a copy of the memory; it returns what is said of it."""


@dataclass(frozen=True, slots=True)
class EditRequest:
    """An edit as requested: `action` names it in the history, `seen` is what the requester knew.

    `is_plain`: `action` says it all.
    """

    deed: Deed
    author: EditAuthor
    action: str
    seen: StoredMemory
    is_plain: bool = False


def refused(text: str, by: str = "agent") -> PlannedEdit:
    """Return an edit that changes nothing, and says why."""
    return PlannedEdit(text, outcome="refused", by=by)


async def plan(order: EditRequest, now: StoredMemory, agent: str, clock: Clock) -> PlannedEdit:
    """Return the edit applied to what is stored now."""
    after = now.memory.model_copy(deep=True)
    try:
        result = await asyncio.to_thread(order.deed, after) if _is_large(after) else order.deed(after)
        result = await result if inspect.isawaitable(result) else result
        changed = [_stamped(change, clock) for change in differences(now, after)]
        _check(order, changed)
    except ValidationError as error:
        return refused(reasons(error), order.author.by)
    except _ANSWERED as error:
        own = isinstance(error, ToolwrightError)
        return refused(str(error) if own else f"{type(error).__name__}: {error}", order.author.by)
    if lost_lines := lost(order.seen, now, after):
        return refused(_overtaken(lost_lines, now), order.author.by)
    messages = [_spoken(result), *(_reads_now(after[change.after.label]) for change in changed if change.after)]
    writes = tuple(_write(change, order, agent) for change in changed)
    return PlannedEdit(
        "\n".join(filter(None, messages)) or "Nothing was changed.", writes, by=order.author.by, changed=tuple(changed)
    )


def _is_large(memory: Memory) -> bool:
    """Check whether comparing its lines may block the event loop for too long."""
    return any(len(block.text) > _LARGE for block in memory.blocks)


def adding(blocks: Sequence[Block]) -> Deed:
    """Return the deed that adds blocks."""

    def add(memory: Memory) -> str:
        memory.blocks = [*memory.blocks, *blocks]
        return ""

    return add


def called(name: str, arguments: Mapping[str, Any]) -> Deed:  # Any: JSON
    """Return the deed that calls a method of the memory's class."""
    return lambda memory: getattr(memory, name)(**arguments)


def _stamped(change: BlockDifference, clock: Clock) -> BlockDifference:
    if change.after is None:
        return change
    row = replace(change.after, id=change.after.id or clock.new_id(), edited=clock.now())
    return replace(change, after=row)


def _check(order: EditRequest, changed: Sequence[BlockDifference]) -> None:
    for change in changed:
        if order.author.by in _BOUND and change.before is not None and change.before.read_only:
            raise EditRefused(f"`{change.before.label}` is read-only: only a human may change it.")


def _write(change: BlockDifference, order: EditRequest, agent: str) -> Write:
    if change.after is None:
        assert change.before is not None
        return DetachBlock(agent, change.before.id)
    summary = difference(_lines(change.before), _lines(change.after))
    action = f"{order.action}: {summary}" if summary and not order.is_plain else order.action
    return SaveBlock(change.after, agent, action, order.author.by, order.author.turn)


def _lines(row: BlockRow | None) -> list[str]:
    if row is None or not row.value:
        return []
    return row.value.split("\n") if isinstance(row.value, str) else [*row.value]


def _spoken(result: Any) -> str:  # Any: what a human's method returned
    if result is None or isinstance(result, str):
        return result or ""
    return json.dumps(result, ensure_ascii=False, default=str)


def _reads_now(block: Block) -> str:
    size = f"{len(block.text):,} of {block.limit:,} characters"
    if not block.text:
        return f"`{block.label}` is empty now."
    if len(block.text) > _SHOWN:
        return f"`{block.label}` has {len(block.lines):,} lines now, {size}."
    return f"`{block.label}` reads now ({size}):\n{block.text}"


def _overtaken(lost_lines: Mapping[str, Sequence[str]], now: StoredMemory) -> str:
    listing = "; ".join(f"`{label}`: {listed(lines, range(len(lines)))}" for label, lines in lost_lines.items())
    texts = "\n".join(_reads_now(now.memory[label]) for label in lost_lines)
    return f"Someone else changed it meanwhile, and this would remove what was just added ({listing}).\n{texts}"
