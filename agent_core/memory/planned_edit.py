"""One edit of blocks: planned on a copy of the memory, and committed, which is the one way to disk.

Whoever commits gives the transaction: the answer of a call and its journal entry, or the writes alone. Blocks as they
are stored and as a memory holds them are compared here: differences, lost text, and what an undo restores.
"""

import asyncio
import inspect
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from pydantic import ValidationError

from agent_core.base.errors import KnapperError
from agent_core.base.matching.differences import diff_lines
from agent_core.storage import BlockChange, BlockRow, DetachBlock, ManifestConflict, SaveBlock, Write

from .block import Block, from_row, kept_value, reasons, value_lines
from .classes import Memory
from .edits import EditRefused, difference, listed

if TYPE_CHECKING:
    from agent_core.base.clock import Clock

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


def differences(memory: StoredMemory, memory_after: Memory) -> Iterator[BlockDifference]:
    """Yield how a memory differs from what is stored; the limit of each block is checked here."""
    if len({*memory_after.labels}) < len(memory_after.labels):
        raise EditRefused(f"There can be one block per label, and there would be {', '.join(memory_after.labels)}.")
    for place, block in enumerate(memory_after.blocks):
        checked = Block.model_validate(block.model_dump())
        row = memory.rows.get(block.label)
        if row is None:
            yield BlockDifference(
                None, _row(checked, BlockRow("", block.label, "", 0, position=block.position or place, version=0))
            )
        elif from_row(row) != checked:
            yield BlockDifference(row, _row(checked, replace(row, position=checked.position)))
    for label, row in memory.rows.items():
        if label not in memory_after:
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


def lost(memory: StoredMemory, stored_memory: StoredMemory, memory_after: Memory) -> dict[str, list[str]]:
    """Return the lines, by label, that someone else added since `memory` and that would be lost."""
    lost_lines = {}
    for label, row in stored_memory.rows.items():
        before = memory.rows.get(label)
        # By the value, too: who holds edits that are not on disk has seen versions that another writer may have made.
        if before is None or (before.version, before.value) == (row.version, row.value) or label not in memory_after:
            continue
        seen_lines, remaining_lines = {*memory.memory[label].lines}, {*memory_after[label].lines}
        if missing := [
            line for line in stored_memory.memory[label].lines if line not in seen_lines and line not in remaining_lines
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


_SHOWN = 4000
_TRIES = 100  # each time that an edit is too late, someone else has made one
_LONGEST_PAUSE_S = 0.2
_LARGE = 4_000  # characters of a block; the usual one may have half of them
_BOUND = frozenset({"agent", "function"})  # who may not touch what is read-only
_ANSWERED = (KnapperError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
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
class NamedAuthor:
    """An author of an edit by name; `by` as in `EditAuthor`, or `class` for the blocks that a class begins with."""

    agent: str = ""
    turn: str = ""
    by: str = "agent"


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


async def commit(edit: PlannedEdit, record: Callable[[PlannedEdit], Awaitable[None]], clock: "Clock") -> PlannedEdit:
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


async def plan(request: EditRequest, memory: StoredMemory, agent: str, clock: "Clock") -> PlannedEdit:
    """Return the edit applied to what is stored now."""
    after = memory.memory.model_copy(deep=True)
    try:
        is_large = any(len(block.text) > _LARGE for block in after.blocks)  # comparing its lines would hold up the loop
        result = await asyncio.to_thread(request.deed, after) if is_large else request.deed(after)
        result = await result if inspect.isawaitable(result) else result
        changed = [_stamped(change, clock) for change in differences(memory, after)]
        _check(request, changed)
    except ValidationError as error:
        return refused(reasons(error), request.author.by)
    except _ANSWERED as error:
        own = isinstance(error, KnapperError)
        return refused(str(error) if own else f"{type(error).__name__}: {error}", request.author.by)
    if lost_lines := lost(request.seen, memory, after):
        return refused(_overtaken(lost_lines, request.seen, memory), request.author.by)
    messages = [_spoken(result), *(_reads_now(after[each.after.label], each.before) for each in changed if each.after)]
    writes = tuple(_write(change, request, agent) for change in changed)
    return PlannedEdit(
        "\n".join(filter(None, messages)) or "Nothing was changed.",
        writes,
        by=request.author.by,
        changed=tuple(changed),
    )


def adding(blocks: Sequence[Block]) -> Deed:
    """Return the deed that adds blocks."""

    def add(memory: Memory) -> str:
        memory.blocks = [*memory.blocks, *blocks]
        return ""

    return add


def _stamped(difference: BlockDifference, clock: "Clock") -> BlockDifference:
    if difference.after is None:
        return difference
    row = replace(difference.after, id=difference.after.id or clock.new_id(), edited=clock.now())
    return replace(difference, after=row)


def _check(request: EditRequest, changed: Sequence[BlockDifference]) -> None:
    for change in changed:
        if request.author.by in _BOUND and change.before is not None and change.before.read_only:
            raise EditRefused(f"`{change.before.label}` is read-only: only a human may change it.")
        if request.author.by in _BOUND and change.before is not None and not change.before.writable and change.after:
            raise EditRefused(f"`{change.before.label}` is another agent's: you may read it, and not change it.")


def _write(block_difference: BlockDifference, request: EditRequest, agent: str) -> Write:
    if block_difference.after is None:
        assert block_difference.before is not None
        return DetachBlock(agent, block_difference.before.id)
    summary = difference(
        *(value_lines(row.value) if row else [] for row in (block_difference.before, block_difference.after))
    )
    action = f"{request.action}: {summary}" if summary and not request.is_plain else request.action
    return SaveBlock(block_difference.after, agent, action, request.author.by, request.author.turn)


def _spoken(result: Any) -> str:  # Any: what a human's method returned
    if result is None or isinstance(result, str):
        return result or ""
    return json.dumps(result, ensure_ascii=False, default=str)


def _reads_now(block: Block, before: BlockRow | None = None) -> str:
    """Return how a block reads that was changed, be it in its text or in its limit and the like."""
    size = f"{len(block.text):,} of {block.limit:,} characters"
    if not block.text:
        return f"`{block.label}` is {'still empty' if before is not None and not before.value else 'empty now'}."
    if len(block.text) > _SHOWN:
        return f"`{block.label}` has {len(block.lines):,} lines now, {size}."
    return f"`{block.label}` reads now ({size}):\n{block.text}"


def _overtaken(lost_lines: Mapping[str, Sequence[str]], memory: StoredMemory, stored_memory: StoredMemory) -> str:
    listing = "; ".join(f"`{label}`: {listed(lines, range(len(lines)))}" for label, lines in lost_lines.items())
    differs = [row for label in lost_lines for row in changed_since(memory.rows[label], stored_memory.rows[label])]
    texts = [*differs, *(_reads_now(stored_memory.memory[label]) for label in lost_lines)]
    message = f"Someone else changed it meanwhile, and this would remove what was just added ({listing})."
    return "\n".join([message, *texts])


def changed_since(seen_row: BlockRow, row: BlockRow) -> list[str]:
    """Return how a block differs from the version that somebody knows, as lines of a diff."""
    names = (f"{row.label}, version {seen_row.version}", f"{row.label}, version {row.version}")
    return diff_lines(value_lines(seen_row.value), value_lines(row.value), names, 0)
