"""The blocks of one agent: kept in the store, edited by the methods of its memory class.

An edit is planned on a copy of the memory and results in writes, which take effect when they are stored: with the
answer of a call, or alone. This module also compares stored blocks with those of a memory: differences, lost text, and
the target of an undo. Function names from MemGPT and argument names from Letta are accepted in calls but never shown.
"""

import asyncio
import inspect
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from pydantic import ValidationError

from agent_core.base.errors import KnapperError
from agent_core.base.matching import diff_lines
from agent_core.base.offload import aside
from agent_core.base.receipt import Receipt
from agent_core.base.records import dataclass, field, replace
from agent_core.base.untrusted import one_line
from agent_core.storage import (
    AGENT,
    AttachBlock,
    BlockChange,
    BlockRow,
    DetachBlock,
    LimitBlock,
    MemoryStore,
    Plan,
    SaveBlock,
    Write,
    commit,
)

from .classes import (
    Block,
    Memory,
    UnknownBlock,
    from_row,
    kept_value,
    methods_of,
    reasons,
    value_lines,
)
from .edits import (
    ALREADY,
    NEAREST_SHOWN,
    EditRefused,
    beginning,
    difference,
    listed,
    nearest,
    shown,
)
from .vectors import TextVectors

if TYPE_CHECKING:
    from agent_core.base.clock import Clock
    from agent_core.registry.function import Function

    from .embedding import Embedder

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
    """Yield the differences between a memory and the stored one; the limit of each block is checked here."""
    if len({*memory_after.labels}) < len(memory_after.labels):
        raise EditRefused(
            f"There can be one block per label, and there would be {', '.join(memory_after.labels)}."
        )
    for place, block in enumerate(memory_after.blocks):
        checked = Block.model_validate(block.model_dump())
        row = memory.rows.get(block.label)
        if row is None:
            yield BlockDifference(
                None,
                _row(
                    checked,
                    BlockRow("", block.label, "", 0, position=block.position or place, version=0),
                ),
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


def lost(
    memory: StoredMemory, stored_memory: StoredMemory, memory_after: Memory
) -> dict[str, list[str]]:
    """Return the lines, by label, that someone else added since `memory` and that would be lost."""
    lost_lines = {}
    for label, row in stored_memory.rows.items():
        before = memory.rows.get(label)
        # Also compare the value: versions of edits that are not on disk may coincide with another writer's versions.
        if (
            before is None
            or (before.version, before.value) == (row.version, row.value)
            or label not in memory_after
        ):
            continue
        seen_lines, remaining_lines = {*memory.memory[label].lines}, {*memory_after[label].lines}
        if missing := [
            line
            for line in stored_memory.memory[label].lines
            if line not in seen_lines and line not in remaining_lines
        ]:
            lost_lines[label] = missing
    return lost_lines


def undo_of(changes: Sequence[BlockChange]) -> tuple[BlockChange, str] | None:
    """Return the target state of an undo and its line for the history, or None at the beginning.

    An undo after an undo goes back one more. A change that leaves the value as it is, such as of a limit, is not a
    state.
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
_LARGE = 4_000  # characters of a block; a typical one has at most half of them
_BOUND = frozenset({"agent", "function"})  # authors that may not change read-only blocks
_ANSWERED = (KnapperError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError)
"""Errors that a method may raise for its arguments: they become the answer, as for any other function."""


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
    """An author of an edit by name; `by` as in `EditAuthor`, or `class` for the initial blocks of a class."""

    agent: str = ""
    turn: str = ""
    by: str = "agent"


Deed: TypeAlias = Callable[
    [Memory], Any
]  # Any: the result of a user's method, awaited if necessary
"""Changes a copy of the memory, and returns a message about the change."""


@dataclass(frozen=True, slots=True)
class EditRequest:
    """An edit as requested: `action` names it in the history, `seen` is the state that the requester knew.

    `is_plain` means that `action` is the complete history line. A model knew the state `read` when it wrote the call;
    earlier calls of the same reply may have changed it since.
    """

    deed: Deed
    author: EditAuthor
    action: str
    seen: StoredMemory
    is_plain: bool = False
    read: StoredMemory | None = None


def adding(blocks: Sequence[Block]) -> Deed:
    """Return the deed that adds blocks."""

    def add(memory: Memory) -> str:
        memory.blocks = [*memory.blocks, *blocks]
        return ""

    return add


def _stamp(difference: BlockDifference, clock: "Clock") -> BlockDifference:
    if difference.after is None:
        return difference
    row = replace(difference.after, id=difference.after.id or clock.new_id(), edited=clock.now())
    return replace(difference, after=row)


def _check(request: EditRequest, changed: Sequence[BlockDifference]) -> None:
    for before, after in ((change.before, change.after) for change in changed):
        if before is None or request.author.by not in _BOUND:
            continue
        if before.read_only:
            raise EditRefused(
                f"`{before.label}` is read-only: only the user may change it, with `knapper memory edit`."
            )
        if not before.writable and after:
            raise EditRefused(
                f"`{before.label}` is another agent's: you may read it, and not change it."
            )


def _write(block_difference: BlockDifference, request: EditRequest, agent: str) -> Write:
    if block_difference.after is None:
        assert block_difference.before is not None
        return DetachBlock(agent, block_difference.before.id)
    summary = difference(
        *(
            value_lines(row.value) if row else []
            for row in (block_difference.before, block_difference.after)
        )
    )
    action = f"{request.action}: {summary}" if summary and not request.is_plain else request.action
    return SaveBlock(block_difference.after, agent, action, request.author.by, request.author.turn)


def _receipt(changed: Sequence[BlockDifference]) -> Receipt:
    """Return the blocks that an edit changes, and the number of lines that it writes."""
    receipt = Receipt()
    for change in changed:
        before, after = (
            Counter(value_lines(row.value) if row else []) for row in (change.before, change.after)
        )
        for row in filter(None, (change.after or change.before,)):
            receipt.note("remembered", row.label)
            if lines := (after - before).total():
                receipt.note("lines", row.label, lines)
    return receipt


def _reads_now(block: Block, before: BlockRow | None = None) -> str:
    """Return the current text of a changed block; its text or another field may have changed."""
    size = f"{len(block.text):,} of {block.limit:,} characters"
    if not block.text:
        return f"`{block.label}` is {'still empty' if before is not None and not before.value else 'empty now'}."
    if len(block.text) > _SHOWN:
        return f"`{block.label}` has {len(block.lines):,} lines now, {size}."
    return f"`{block.label}` reads now ({size}):\n{block.text}"


def changed_since(seen_row: BlockRow, row: BlockRow) -> list[str]:
    """Return the differences between a known version of a block and the current one, as lines of a diff."""
    names = (f"{row.label}, version {seen_row.version}", f"{row.label}, version {row.version}")
    return diff_lines(value_lines(seen_row.value), value_lines(row.value), names, 0)


NEAREST = "Nearest to what was written: "
"""The prefix of the message with the lines that are most similar to an edit."""
_MOST_COMPARED = 400  # of a block's lines, the newest
_MOST_WRITTEN = 3  # more new lines mean a rewritten block, which its writer has just read
_SHOWN_BYTES = 72  # of each line: some 20 tokens in most languages
_ADDS = "core_memory_append"


class Blocks:
    """The blocks of one agent; call `load` first."""

    def __init__(
        self,
        store: MemoryStore,
        agent: str,
        memory: Memory,
        clock: "Clock",
        embedder: "Embedder | None" = None,
    ) -> None:
        """Create the blocks of an agent; without an embedder, lines are compared only by their words."""
        self._store = store
        self._agent = agent
        self._clock = clock
        self._vectors = TextVectors(embedder)
        self._first = memory
        self._now = StoredMemory(memory, {})
        self._told: dict[str, BlockRow] = {}  # the versions that the model knows, by id
        self._read = self._now  # as the model read them before its last reply

    @property
    def memory(self) -> Memory:
        """The current blocks. Do not change them: only an edit changes stored data."""
        return self._now.memory

    @property
    def rows(self) -> list[BlockRow]:
        """The stored rows of the blocks, in order."""
        return [*self._now.rows.values()]

    async def load(self) -> None:
        """Read the blocks. Blocks of the class that this agent never had are added to it."""
        await self.reload()
        ever = {*(await self._store.block_ids(self._agent)).values()}
        missing = [block for block in self._first.blocks if block.label not in ever]
        if missing:
            await self.commit(await self._plan(adding(missing), NamedAuthor(by="class"), "created"))
        self._tell()

    async def reload(self) -> None:
        """Read the blocks again."""
        self._now = opened(self._first, await self._store.blocks(self._agent))

    def functions(self) -> list["Function"]:
        """Return the functions shown to the model: the methods of the class."""
        return [*methods_of(type(self.memory))]

    async def call(
        self, name: str, arguments: Mapping[str, Any], author: EditAuthor
    ) -> Plan:  # Any: JSON
        """Plan a call of one of the class's methods."""
        if name not in {function.name for function in self.functions()}:
            return Plan(f"The memory has no function `{name}`.", "refused")
        deed: Deed = lambda memory: getattr(memory, name)(**arguments)  # noqa: E731
        return (await self.plan(EditRequest(deed, author, name, self._now, read=self._read)))[0]

    async def plan(
        self, request: EditRequest, held: Sequence[BlockDifference] = ()
    ) -> tuple[Plan, Sequence[BlockDifference]]:
        """Plan an edit on top of differences that are not on disk, by applying it to a copy. Return its own, too.

        The answer to an agent includes the lines that are most similar to the new ones.
        """
        memory, by = self.with_differences(held), request.author.by
        after = memory.memory.model_copy(deep=True)
        known = (request.read or request.seen).memory
        for block in after.blocks:
            if block.label in known:
                block.note_seen(known[block.label])
        try:
            is_large = any(
                len(block.text) > _LARGE for block in after.blocks
            )  # comparing their lines takes long
            result = (
                await asyncio.to_thread(request.deed, after) if is_large else request.deed(after)
            )
            result = await result if inspect.isawaitable(result) else result
            changed = [_stamp(change, self._clock) for change in differences(memory, after)]
            _check(request, changed)
        except ValidationError as error:
            return Plan(reasons(error), "refused"), ()
        except _ANSWERED as error:
            own = isinstance(error, KnapperError)
            return Plan(str(error) if own else f"{type(error).__name__}: {error}", "refused"), ()
        if lost_lines := lost(request.seen, memory, after):
            listing = "; ".join(
                f"`{label}`: {listed(rows, range(len(rows)))}" for label, rows in lost_lines.items()
            )
            message = f"Someone else changed it meanwhile, and this would remove what was just added ({listing})."
            pairs = ((request.seen.rows[label], memory.rows[label]) for label in lost_lines)
            differs = [line for seen_row, row in pairs for line in changed_since(seen_row, row)]
            now = [_reads_now(memory.memory[label]) for label in lost_lines]
            return Plan("\n".join([message, *differs, *now]), "refused"), ()
        if result is not None and not isinstance(result, str):
            result = json.dumps(result, ensure_ascii=False, default=str)
        texts = [
            result,
            *(_reads_now(after[one.after.label], one.before) for one in changed if one.after),
        ]
        text, settled = "\n".join(filter(None, texts)) or "Nothing was changed.", frozenset[str]()
        if by == "agent" and not request.is_plain:
            near = [line for change in changed if (line := await self._near(change))]
            # Hide edits from the next step: all, if the block now has the content; or those that change lines, after an
            # addition without similar lines, because it cannot make any line untrue.
            settled = frozenset(function.name for function in self.functions())
            if request.action == _ADDS if changed else not text.startswith(ALREADY):
                settled = settled - {_ADDS} if changed and not near else frozenset()
            text = "\n".join([text, *near])
        writes = tuple(_write(change, request, self._agent) for change in changed)
        edit = Plan(text, writes=writes, did=_receipt(changed), excluded=settled)
        again, done = partial(self._replan, request), partial(self.applied, changed, by)
        return replace(edit, replan=again, done=done) if changed else edit, changed

    async def _near(self, difference: BlockDifference) -> str:
        """Return the lines of a block that are most similar to its new ones, as a line for the model."""
        before, after = (
            from_row(row).lines if row else [] for row in (difference.before, difference.after)
        )
        known = {*before}
        written = [line for line in after if line.strip() and line not in known]
        others = [number for number, line in enumerate(after) if line.strip() and line in known][
            -_MOST_COMPARED:
        ]
        if not others or not 0 < len(written) <= _MOST_WRITTEN:
            return ""
        lines = [after[number] for number in others]
        vectors, size = await self._vectors.of([*lines, *written]), sum(map(len, lines))
        found = [await aside(size, nearest, lines, line, vectors) for line in written]
        ranked = [
            *dict.fromkeys(
                place
                for same_rank in zip_longest(*found)
                for place in same_rank
                if place is not None
            )
        ]
        first = ranked[:NEAREST_SHOWN]
        shown_lines = (
            f"line {others[n] + 1}: {shown(beginning(lines[n], _SHOWN_BYTES))}" for n in first
        )
        return f"{NEAREST}{'; '.join(shown_lines)}" if ranked else ""

    async def write(
        self,
        label: str,
        value: str | list[str],
        author: EditAuthor,
        version: int | None = None,
    ) -> Plan:
        """Plan to replace a block's whole value; with a `version`, only if the block still has that version.

        A write against an older version changes nothing and returns the difference.
        """
        if version is not None and (behind := await self._behind(label, version)):
            return Plan(behind, "refused")
        lines = value_lines(tuple(value) if isinstance(value, list) else value)
        return await self._plan(lambda memory: memory[label].put(lines), author, "write")

    async def add(self, block: Block, author: EditAuthor) -> Plan:
        """Plan to add a block."""
        return await self._plan(adding([block]), author, "add")

    async def set_up(
        self,
        label: str,
        author: EditAuthor,
        version: int | None = None,
        *,
        value: str | None = None,
        **changes: Any,  # Any: the block's fields
    ) -> Plan:
        """Plan to change a block's limit, description or another of its fields, and maybe its value, in one edit.

        With a `version`, only if the block still has that version.
        """
        if version is not None and (behind := await self._behind(label, version)):
            return Plan(behind, "refused")

        def put(memory: Memory) -> str:
            block = memory[label]
            fresh = {
                name: value for name, value in changes.items() if getattr(block, name) != value
            }
            steps: list[Callable[[], None]] = [
                partial(setattr, block, name, value) for name, value in fresh.items()
            ]
            if lines is not None:  # each step is checked: a lower limit comes after a shorter value
                is_lower = changes.get("limit", block.limit) < block.limit
                steps.insert(0 if is_lower else len(steps), partial(block.put, lines))
            for step in steps:
                step()
            return "\n".join(
                f"The {name} of `{label}` is now: {value}" for name, value in fresh.items()
            )

        lines = None if value is None else value_lines(value)
        action = (
            f"set {', '.join(f'{name}={value}' for name, value in changes.items())}"
            if changes
            else "write"
        )
        return await self._plan(put, author, action)

    async def undo(self, label: str, author: EditAuthor) -> Plan:
        """Plan to restore a block to its value before the last change; another undo goes back one more."""
        target = undo_of(await self.history(label))
        if target is None:
            return Plan(
                f"Nothing of `{label}` is left to take back: it is as it was made.", "refused"
            )
        state, action = target

        def put(memory: Memory) -> str:
            memory[label].value = state.value if isinstance(state.value, str) else [*state.value]
            return f"As in version {state.version} again."

        return await self._plan(put, author, action, is_plain=True)

    async def history(self, label: str) -> list[BlockChange]:
        """Return every change of a block, oldest first, even if the agent no longer has it."""
        if label in self._now.rows:
            return await self._store.block_history(self._now.rows[label].id)
        ids = [
            id
            for id, block_label in (await self._store.block_ids(self._agent)).items()
            if block_label == label
        ]
        if not ids:
            raise UnknownBlock(label, self.memory.labels)
        return await self._store.block_history(ids[-1])

    async def share(
        self,
        label: str,
        author: EditAuthor,
        readers: Sequence[str] | None = None,
        writers: Sequence[str] | None = None,
    ) -> Plan:
        """Plan to share a block, and who may read and who may change it: names of agents, or `*`.

        At first these are all agents; None leaves them unchanged. Who may change a block reads it, too: if only some
        may read it from now on, `*` is no longer among the writers.
        """

        def put(memory: Memory) -> str:
            memory[label].shared = True
            return f"`{label}` is shared: another agent can have it too."

        plan = await self._plan(put, author, "share")
        if plan.outcome != "returned" or (readers is None and writers is None):
            return plan
        access = await self._access(self._now.rows[label], readers, writers)
        if access.outcome != "returned":
            return access

        async def replan() -> Plan:
            await self.reload()
            return await self.share(label, author, readers, writers)

        return replace(plan, text=access.text, writes=(*plan.writes, *access.writes), replan=replan)

    async def _access(
        self, row: BlockRow, readers: Sequence[str] | None, writers: Sequence[str] | None
    ) -> Plan:
        access, label = await self._store.block_access(row.id), row.label
        if access.owner not in ("", self._agent):
            return Plan(
                f"`{label}` belongs to {access.owner}, who says who may have it.", "refused"
            )
        may_read, may_write = (
            access.readers if readers is None else tuple(readers),
            access.writers if writers is None else tuple(writers),
        )
        if odd := [
            name for name in (*may_read, *may_write) if name != "*" and not AGENT.fullmatch(name)
        ]:
            return Plan(f"`{one_line(odd[0], 80)}` cannot be an agent's name.", "refused")
        if readers is not None and "*" not in may_read and writers is None and "*" in may_write:
            may_write = tuple(name for name in may_write if name != "*")
        all_readers = dict.fromkeys((*may_read, *may_write))
        read, change = (
            "*" if "*" in names else ", ".join(names) or "nobody else"
            for names in (all_readers, may_write)
        )
        text = f"`{label}` may be read by {read}, and changed by {change}."
        return Plan(text, writes=(LimitBlock(row.id, may_read, may_write),))

    async def _behind(self, label: str, version: int) -> str:
        """Return the differences from an older version of a block; "" if it is the newest one."""
        await self.reload()
        row = self._now.rows[self.memory[label].label]
        if row.version == version:
            return ""
        known = next(
            (change for change in await self.history(label) if change.version == version), None
        )
        if known is None:
            return f"`{label}` has no version {version}; the newest is {row.version}."
        seen = replace(row, value=known.value, version=version)
        head = f"`{label}` is at version {row.version} now, and this was written for version {version}:"
        return "\n".join([head, *changed_since(seen, row)])

    async def attach(self, label: str, author: EditAuthor) -> Plan:
        """Plan to attach a block that another agent shares. The agent's own block with the same label is detached."""
        shared = await self._store.shared_blocks()
        matches = [row for row in shared if label in (row.label, row.id)]
        if len(matches) != 1:
            among = ", ".join(f"{row.label} ({row.id})" for row in shared) or "none"
            which = "Several shared blocks are" if matches else "No shared block is"
            return Plan(f"{which} called `{label}`. Shared are: {among}.", "refused")
        own = self._now.rows.get(matches[0].label)
        if own is not None and own.id == matches[0].id:
            return Plan(f"`{own.label}` is attached already.")
        place = own.position if own else max((row.position for row in self.rows), default=-1) + 1
        row = replace(matches[0], position=place)
        detachments = (DetachBlock(self._agent, own.id),) if own else ()
        writes, changed = (
            (*detachments, AttachBlock(self._agent, row.id, place)),
            [BlockDifference(own, row)],
        )
        done = partial(self.applied, changed, author.by)
        return Plan(f"`{row.label}` is attached.", writes=writes, did=_receipt(changed), done=done)

    async def detach(self, label: str, author: EditAuthor) -> Plan:
        """Plan to detach a block; its history stays."""

        def drop(memory: Memory) -> str:
            target = memory[label]
            memory.blocks = [block for block in memory.blocks if block is not target]
            return f"`{label}` is out of the memory; its history stays."

        return await self._plan(drop, author, "detach")

    async def _plan(
        self, deed: Deed, author: EditAuthor, action: str, *, is_plain: bool = False
    ) -> Plan:
        edit, _ = await self.plan(EditRequest(deed, author, action, self._now, is_plain))
        return edit

    async def _replan(self, request: EditRequest) -> Plan:
        await self.reload()
        edit, _ = await self.plan(request)
        return edit

    async def commit(self, plan: Plan) -> Plan:
        """Commit an edit outside of a turn; return its final form."""

        def refusal(_: Plan, error: KnapperError) -> Plan:
            return Plan(str(error), "refused")

        return await commit(
            plan, lambda plan: self._store.apply(plan.writes), self._clock.random, refusal
        )

    def applied(self, changed: Sequence[BlockDifference], by: str) -> None:
        """Update the memory from an edit that is on disk."""
        self._now = self.with_differences(changed)
        if by == "agent":
            self._told |= {change.after.id: change.after for change in changed if change.after}
            self._told = {id: row for id, row in self._told.items() if row.label in self._now.rows}

    def with_differences(self, changed: Sequence[BlockDifference]) -> StoredMemory:
        """Return the memory with these differences applied."""
        if not changed:
            return self._now
        rows = dict(self._now.rows)
        for change in changed:
            if change.before is not None:
                rows.pop(change.before.label, None)
            if change.after is not None:
                rows[change.after.label] = change.after
        return opened(self._first, [*rows.values()])

    def render(self) -> str:
        """Return the blocks as the model reads them, and record that it now knows them."""
        self._tell()
        rows = self._now.rows
        return "\n".join(
            block.render(rows, is_fixed=not rows[block.label].writable)
            for block in self.memory.blocks
        )

    async def changed_elsewhere(self, versions: Mapping[str, int] | None = None) -> list[str]:
        """Return other authors' changes since the model last saw the blocks, as sentences; each is reported once.

        Pass `versions` of the shared blocks if they were just read; otherwise the store is asked.
        """
        stored_versions = (
            await self._store.block_versions(self._agent) if versions is None else versions
        )
        if stored_versions != {
            row.id: row.version for row in self.rows if row.id in stored_versions or row.shared
        }:
            await self.reload()
        now = {row.id: row for row in self.rows}
        changed = [row for id, row in now.items() if not _reads_alike(self._told.get(id), row)]
        removed_rows = [row for id, row in self._told.items() if id not in now]
        sentences = []
        for row in changed:
            previous = self._told.get(row.id)
            text = self.memory[row.label].render(self.memory.labels, is_fixed=not row.writable)
            if previous is None:
                sentences.append(f"A block is new in your memory:\n{text}")
                continue
            later = [
                change
                for change in await self._store.block_history(row.id)
                if change.version > previous.version
            ]
            hands = {_hand_of(change, self._agent) for change in later}
            who = " and ".join(sorted(hands)) or "someone else"
            sentences.append(f"Your memory was changed by {who}. It reads now:\n{text}")
        sentences += [
            f"The block `{row.label}` is no longer in your memory."
            for row in removed_rows
            if row.label not in self.memory
        ]
        self._tell()
        return sentences

    def _tell(self) -> None:
        """Record that the model knows the blocks."""
        self._told, self._read = {row.id: row for row in self.rows}, self._now


def _hand_of(change: BlockChange, agent: str) -> str:
    """Return who made a change, as an agent is told."""
    if change.by != "agent":
        return f"a {change.by}"
    return "you in another conversation" if change.agent == agent else f"agent `{change.agent}`"


def _reads_alike(before: BlockRow | None, row: BlockRow) -> bool:
    """Check whether a block reads as before; sharing or moving it changes nothing for the model."""
    if before is None:
        return False
    if before == row:  # as in almost every step
        return True
    same = {name: getattr(row, name) for name in ("version", "edited", "shared", "position")}
    return replace(before, **same) == row


@dataclass(frozen=True, slots=True)
class Alias:
    """The current meaning of an old name, and the current names of its arguments."""

    name: str
    arguments: Mapping[str, str] = field(default_factory=dict)


_BLOCK = {"label": "name", "section": "name", "field": "name"}
_CONTENT = {**_BLOCK, "new_content": "content", "text": "content"}
_REPLACED = {**_BLOCK, "old_str": "old_content", "new_str": "new_content", "content": "new_content"}

ALIASES: Mapping[str, Alias] = {
    "edit_memory": Alias("core_memory_rewrite", _CONTENT),
    "edit_memory_append": Alias("core_memory_append", _CONTENT),
    "edit_memory_replace": Alias("core_memory_replace", _REPLACED),
    "core_memory_append": Alias("core_memory_append", _CONTENT),
    "core_memory_save": Alias("core_memory_append", {**_CONTENT, "memory": "content"}),
    "core_memory_replace": Alias("core_memory_replace", _REPLACED),
    "core_memory_remove": Alias("core_memory_remove", {**_BLOCK, "old_content": "content"}),
    "core_memory_rewrite": Alias("core_memory_rewrite", _CONTENT),
    "recall_memory_search": Alias("conversation_search"),
    "recall_memory_search_date": Alias("conversation_search_date"),
}
