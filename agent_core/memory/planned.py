"""One edit of blocks, planned on a copy of the memory: what is said of it, and what is to be written."""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias

from pydantic import ValidationError

from ..clock import Clock
from ..errors import ToolwrightError
from ..storage import BlockRow, DetachBlock, SaveBlock, Write
from .block import Block, reasons
from .classes import Memory
from .edits import EditRefused, difference, listed
from .rows import Difference, Kept, differences, lost

_SHOWN = 4000
_LARGE = 4_000  # characters of a block; the usual one may have half of them
_BOUND = frozenset({"agent", "function"})  # who may not touch what is read-only
_ANSWERED = (ToolwrightError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
"""What a method may raise over what it was given: an answer, as any other function's would be."""


class Author(Protocol):
    """Who edits, for the history; agent and turn are empty outside of a turn."""

    @property
    def by(self) -> str:
        """`human`, `agent` or `function`."""

    @property
    def agent(self) -> str:
        """The agent whose turn it is."""

    @property
    def turn(self) -> str:
        """The turn."""


@dataclass(frozen=True, slots=True)
class Edit:
    """What an edit came to: the answer, and what is to be written; `again` plans the same on what is there by then."""

    text: str
    writes: tuple[Write, ...] = ()
    outcome: Literal["returned", "refused"] = "returned"
    again: "Callable[[], Awaitable[Edit]] | None" = None
    by: str = "agent"
    changed: tuple[Difference, ...] = field(default=(), repr=False)


Deed: TypeAlias = Callable[[Memory], Any]  # Any: what a human's method returns, awaited if it has to be
"""What is done to a copy of the memory; it returns what is said of it."""


@dataclass(frozen=True, slots=True)
class Order:
    """An edit as it was asked for: `what` names it in the history, `seen` is what the one who asks knew.

    `is_plain`: `what` says it all.
    """

    deed: Deed
    author: Author
    what: str
    seen: Kept
    is_plain: bool = False


def refused(text: str, by: str = "agent") -> Edit:
    """An edit that changes nothing, and says why."""
    return Edit(text, outcome="refused", by=by)


async def plan(order: Order, now: Kept, agent: str, clock: Clock) -> Edit:
    """The edit on what is kept now."""
    after = now.memory.model_copy(deep=True)
    try:
        said = await asyncio.to_thread(order.deed, after) if _is_large(after) else order.deed(after)
        said = await said if inspect.isawaitable(said) else said
        changed = [_stamped(each, clock) for each in differences(now, after)]
        _check(order, changed)
    except ValidationError as error:
        return refused(reasons(error), order.author.by)
    except _ANSWERED as error:
        own = isinstance(error, ToolwrightError)
        return refused(str(error) if own else f"{type(error).__name__}: {error}", order.author.by)
    if gone := lost(order.seen, now, after):
        return refused(_overtaken(gone, now), order.author.by)
    told = [_spoken(said), *(_reads_now(after[each.after.label]) for each in changed if each.after)]
    writes = tuple(_write(each, order, agent) for each in changed)
    return Edit(
        "\n".join(filter(None, told)) or "Nothing was changed.", writes, by=order.author.by, changed=tuple(changed)
    )


def _is_large(memory: Memory) -> bool:
    """Whether to compare its lines may take longer than the event loop can wait."""
    return any(len(block.text) > _LARGE for block in memory.blocks)


def adding(blocks: Sequence[Block]) -> Deed:
    """The deed that adds blocks."""

    def add(memory: Memory) -> str:
        memory.blocks = [*memory.blocks, *blocks]
        return ""

    return add


def called(name: str, arguments: Mapping[str, Any]) -> Deed:  # Any: JSON
    """The deed that calls a method of the memory's class."""
    return lambda memory: getattr(memory, name)(**arguments)


def _stamped(change: Difference, clock: Clock) -> Difference:
    if change.after is None:
        return change
    row = replace(change.after, id=change.after.id or clock.new_id(), edited=clock.now())
    return replace(change, after=row)


def _check(order: Order, changed: Sequence[Difference]) -> None:
    for each in changed:
        if order.author.by in _BOUND and each.before is not None and each.before.read_only:
            raise EditRefused(f"`{each.before.label}` is read-only: only a human may change it.")


def _write(change: Difference, order: Order, agent: str) -> Write:
    if change.after is None:
        assert change.before is not None
        return DetachBlock(agent, change.before.id)
    what = difference(_lines(change.before), _lines(change.after))
    said = f"{order.what}: {what}" if what and not order.is_plain else order.what
    return SaveBlock(change.after, agent, said, order.author.by, order.author.turn)


def _lines(row: BlockRow | None) -> list[str]:
    if row is None or not row.value:
        return []
    return row.value.split("\n") if isinstance(row.value, str) else [*row.value]


def _spoken(said: Any) -> str:  # Any: what a human's method returned
    if said is None or isinstance(said, str):
        return said or ""
    return json.dumps(said, ensure_ascii=False, default=str)


def _reads_now(block: Block) -> str:
    size = f"{len(block.text):,} of {block.limit:,} characters"
    if not block.text:
        return f"`{block.label}` is empty now."
    if len(block.text) > _SHOWN:
        return f"`{block.label}` has {len(block.lines):,} lines now, {size}."
    return f"`{block.label}` reads now ({size}):\n{block.text}"


def _overtaken(gone: Mapping[str, Sequence[str]], now: Kept) -> str:
    said = "; ".join(f"`{label}`: {listed(lines, range(len(lines)))}" for label, lines in gone.items())
    texts = "\n".join(_reads_now(now.memory[label]) for label in gone)
    return f"Another hand changed it meanwhile, and this would take out what was just added ({said}).\n{texts}"
