"""The blocks of one agent: kept in the store, edited by the methods of its memory class.

An edit is planned on a copy and comes out as writes; it counts once they are on disk (`planned_edit.commit`). Function
names from MemGPT and argument names from Letta are accepted in calls and never shown.
"""

import asyncio
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_core.base.errors import KnapperError
from agent_core.base.offload import aside
from agent_core.base.untrusted import one_line
from agent_core.storage import AGENT, AttachBlock, BlockChange, BlockRow, DetachBlock, LimitBlock, MemoryStore

from .block import Block, from_row, value_lines
from .classes import Memory, UnknownBlock, methods_of
from .edits import beginning, shown
from .planned_edit import (
    BlockDifference,
    Deed,
    EditAuthor,
    EditRequest,
    NamedAuthor,
    PlannedEdit,
    StoredMemory,
    adding,
    changed_since,
    commit,
    opened,
    plan,
    refused,
    undo_of,
)

if TYPE_CHECKING:
    from agent_core.base.clock import Clock
    from agent_core.registry.function import Function

    from .embedding import Embedder

NEAREST = "Nearest to what was written: "
"""The words before the lines that stand nearest to an edit."""
_MOST_COMPARED = 400  # lines of a block, the newest
_MOST_WRITTEN = 3  # more lines at once are a block written anew, which its writer has just read
_MOST_EMBEDDED = 500  # characters of a line
_MOST_VECTORS = 2_000
_SHOWN_BYTES = 72  # of each line: some 20 tokens in most languages
_WAIT_S = 5.0


class Blocks:
    """The blocks of one agent; call `load` first."""

    def __init__(
        self, store: MemoryStore, agent: str, memory: Memory, clock: "Clock", embedder: "Embedder | None" = None
    ) -> None:
        """Make the blocks of an agent; without an embedder, lines are near each other by their words alone."""
        self._store = store
        self._agent = agent
        self._clock = clock
        self._embedder = embedder
        self._vectors: dict[str, bytes] = {}
        self._first = memory
        self._now = StoredMemory(memory, {})
        self._told: dict[str, BlockRow] = {}  # what the model knows, by id

    @property
    def memory(self) -> Memory:
        """The current blocks. Do not change them: only an edit changes what is stored."""
        return self._now.memory

    @property
    def rows(self) -> list[BlockRow]:
        """The blocks as they are stored, in order."""
        return [*self._now.rows.values()]

    async def load(self) -> None:
        """Read the blocks. Blocks of the class that this agent never had are added to it."""
        await self.reload()
        ever = {*(await self._store.block_ids(self._agent)).values()}
        missing = [block for block in self._first.blocks if block.label not in ever]
        if missing:
            await self.commit(await self._plan(adding(missing), NamedAuthor(by="class"), "created"))
        self._told = {row.id: row for row in self.rows}

    async def reload(self) -> None:
        """Read the blocks anew."""
        self._now = opened(self._first, await self._store.blocks(self._agent))

    def functions(self) -> list["Function"]:
        """Return the functions shown to the model: the methods of the class."""
        return [*methods_of(type(self.memory))]

    async def call(self, name: str, arguments: Mapping[str, Any], author: EditAuthor) -> PlannedEdit:  # Any: JSON
        """Plan a call of one of the class's methods; older names are accepted."""
        today = ALIASES[name].name if name in ALIASES else name
        function = next((candidate for candidate in self.functions() if candidate.name == today), None)
        if function is None:
            return refused(f"The memory has no function `{name}`.", author.by)
        given = renamed(name, arguments, function.parameters["properties"])
        return await self._plan(lambda memory: getattr(memory, today)(**given), author, today)

    def request(self, deed: Deed, author: EditAuthor, action: str, held: Sequence[BlockDifference] = ()) -> EditRequest:
        """Return the request for an edit of any kind, by someone who knows the blocks with these differences."""
        return EditRequest(deed, author, action, self.with_differences(held))

    async def plan(self, request: EditRequest, held: Sequence[BlockDifference] = ()) -> PlannedEdit:
        """Plan an edit on top of differences that are not on disk, by applying it to a copy of the memory.

        An agent is told which lines stand nearest to those that it wrote.
        """
        edit = await plan(request, self.with_differences(held), self._agent, self._clock)
        if request.author.by != "agent" or request.is_plain:
            return edit
        near = [line for change in edit.changed if (line := await self._near(change))]
        return replace(edit, text="\n".join([edit.text, *near]))

    async def _near(self, difference: BlockDifference) -> str:
        """Return the lines of a block that stand nearest to those that are new in it, as a line for the model."""
        before, after = (from_row(row).lines if row else [] for row in (difference.before, difference.after))
        known = {*before}
        written = [line for line in after if line.strip() and line not in known]
        others = [number for number, line in enumerate(after) if line.strip() and line in known][-_MOST_COMPARED:]
        if not others or not 0 < len(written) <= _MOST_WRITTEN:
            return ""
        lines = [after[number] for number in others]
        vectors = await self._vectors_of([*lines, *written])
        from .lexicon import MOST, nearest  # noqa: PLC0415 - numpy is loaded with the first edit

        found = list[list[int]]()
        for line in written:
            of_both = [vectors[text] for text in (*lines, line)] if vectors else []
            found.append(await aside(sum(map(len, lines)), nearest, lines, line, of_both))
        ranked = dict.fromkeys(places[rank] for rank in range(MOST) for places in found if rank < len(places))
        shown_lines = (f"line {others[n] + 1}: {shown(beginning(lines[n], _SHOWN_BYTES))}" for n in [*ranked][:MOST])
        return f"{NEAREST}{'; '.join(shown_lines)}" if ranked else ""

    async def _vectors_of(self, texts: Sequence[str]) -> dict[str, bytes]:
        """Return a vector for each text, or nothing if the model cannot be had soon: then words alone decide."""
        if self._embedder is None:
            return {}
        if len(self._vectors) > _MOST_VECTORS:
            self._vectors = {}
        missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        try:
            async with asyncio.timeout(_WAIT_S):
                made = await self._embedder.embed([text[:_MOST_EMBEDDED] for text in missing])
        except (KnapperError, TimeoutError):
            return {}
        self._vectors.update(zip(missing, made, strict=True))
        return self._vectors

    async def write(
        self,
        label: str,
        value: str | list[str],
        author: EditAuthor,
        version: int | None = None,
        *,
        action: str = "write",
    ) -> PlannedEdit:
        """Plan to replace a block's whole value; with a `version`, only if the block is still as it was then.

        A write against an older version is answered with the difference, and changes nothing.
        """
        if version is not None and (behind := await self._behind(label, version)):
            return refused(behind, author.by)
        lines = value_lines(tuple(value) if isinstance(value, list) else value)
        return await self._plan(lambda memory: memory[label].put(lines), author, action)

    async def add(self, block: Block, author: EditAuthor) -> PlannedEdit:
        """Plan to add a block."""
        return await self._plan(adding([block]), author, "add")

    async def set_up(self, label: str, author: EditAuthor, **changes: Any) -> PlannedEdit:  # Any: the block's fields
        """Plan to change a block's limit, description or another of its fields."""

        def put(memory: Memory) -> str:
            block = memory[label]
            fresh = {name: value for name, value in changes.items() if getattr(block, name) != value}
            for name, value in fresh.items():
                setattr(block, name, value)
            return "\n".join(f"The {name} of `{label}` is now: {value}" for name, value in fresh.items())

        return await self._plan(put, author, f"set {', '.join(f'{name}={value}' for name, value in changes.items())}")

    async def undo(self, label: str, author: EditAuthor) -> PlannedEdit:
        """Plan to restore a block to its value before the last change; another undo goes back one more."""
        target = undo_of(await self.history(label))
        if target is None:
            return refused(f"Nothing of `{label}` is left to take back: it is as it was made.", author.by)
        state, action = target

        def put(memory: Memory) -> str:
            memory[label].value = state.value if isinstance(state.value, str) else [*state.value]
            return f"As in version {state.version} again."

        return await self._planned(EditRequest(put, author, action, self._now, is_plain=True))

    async def history(self, label: str) -> list[BlockChange]:
        """Return every change of a block, oldest first, even if the agent no longer has it."""
        if label in self._now.rows:
            return await self._store.block_history(self._now.rows[label].id)
        ids = [id for id, block_label in (await self._store.block_ids(self._agent)).items() if block_label == label]
        if not ids:
            raise UnknownBlock(label, self.memory.labels)
        return await self._store.block_history(ids[-1])

    async def share(self, label: str, author: EditAuthor) -> PlannedEdit:
        """Plan to share a block with other agents."""

        def put(memory: Memory) -> str:
            memory[label].shared = True
            return f"`{label}` is shared: another agent can have it too."

        return await self._plan(put, author, "share")

    async def allow(
        self, label: str, readers: Sequence[str] | None, writers: Sequence[str] | None, author: EditAuthor
    ) -> PlannedEdit:
        """Plan who may have a shared block, and who may change it: names of agents, or `*`. None leaves it as it is."""
        row = self._now.rows.get(label)
        if row is None or not row.shared:
            return refused(f"`{label}` is no shared block of this agent's.", author.by)
        access = await self._store.block_access(row.id)
        if access.owner not in ("", self._agent):
            return refused(f"`{label}` belongs to {access.owner}, who says who may have it.", author.by)
        may_read, may_write = (
            access.readers if readers is None else tuple(readers),
            access.writers if writers is None else tuple(writers),
        )
        if odd := [name for name in (*may_read, *may_write) if name != "*" and not AGENT.fullmatch(name)]:
            return refused(f"`{one_line(odd[0], 80)}` cannot be an agent's name.", author.by)
        read, change = (", ".join(names) or "nobody else" for names in (may_read, may_write))
        text = f"`{label}` may be read by {read}, and changed by {change}."
        return PlannedEdit(text, (LimitBlock(row.id, may_read, may_write),), by=author.by)

    async def _behind(self, label: str, version: int) -> str:
        """Return what differs from an older version of a block; empty if it is the newest one."""
        await self.reload()
        row = self._now.rows[self.memory[label].label]
        if row.version == version:
            return ""
        known = next((change for change in await self.history(label) if change.version == version), None)
        if known is None:
            return f"`{label}` has no version {version}; the newest is {row.version}."
        seen = replace(row, value=known.value, version=version)
        head = f"`{label}` is at version {row.version} now, and this was written for version {version}:"
        return "\n".join([head, *changed_since(seen, row)])

    async def attach(self, label: str, author: EditAuthor) -> PlannedEdit:
        """Plan to attach a block that another agent shares. An own block with the same label is detached."""
        shared = await self._store.shared_blocks()
        matches = [row for row in shared if label in (row.label, row.id)]
        if len(matches) != 1:
            among = ", ".join(f"{row.label} ({row.id})" for row in shared) or "none"
            which = "Several shared blocks are" if matches else "No shared block is"
            return refused(f"{which} called `{label}`. Shared are: {among}.", author.by)
        own = self._now.rows.get(matches[0].label)
        if own is not None and own.id == matches[0].id:
            return PlannedEdit(f"`{own.label}` is attached already.", by=author.by)
        place = own.position if own else max((row.position for row in self.rows), default=-1) + 1
        row = replace(matches[0], position=place)
        detachments = (DetachBlock(self._agent, own.id),) if own else ()
        writes = (*detachments, AttachBlock(self._agent, row.id, place))
        edit = PlannedEdit(f"`{row.label}` is attached.", writes, by=author.by, changed=(BlockDifference(own, row),))
        return replace(edit, done=partial(self.applied, edit))

    async def detach(self, label: str, author: EditAuthor) -> PlannedEdit:
        """Plan to detach a block; its history stays."""

        def drop(memory: Memory) -> str:
            target = memory[label]
            memory.blocks = [block for block in memory.blocks if block is not target]
            return f"`{label}` is out of the memory; its history stays."

        return await self._plan(drop, author, "detach")

    async def _plan(self, deed: Deed, author: EditAuthor, action: str) -> PlannedEdit:
        return await self._planned(self.request(deed, author, action))

    async def _planned(self, request: EditRequest) -> PlannedEdit:
        edit = await self.plan(request)
        if not edit.writes:
            return edit
        return replace(edit, replan=partial(self._again, request), done=partial(self.applied, edit))

    async def _again(self, request: EditRequest) -> PlannedEdit:
        await self.reload()
        return await self._planned(request)

    async def commit(self, edit: PlannedEdit) -> PlannedEdit:
        """Commit an edit outside of a turn; return the edit in its final form."""
        return await commit(edit, self._apply, self._clock)

    async def _apply(self, edit: PlannedEdit) -> None:
        await self._store.apply(edit.writes)

    def applied(self, edit: PlannedEdit) -> None:
        """Update the memory from an edit that is on disk."""
        if not edit.changed:
            return
        self._now = self.with_differences(edit.changed)
        if edit.by == "agent":
            self._told |= {change.after.id: change.after for change in edit.changed if change.after}
            self._told = {id: row for id, row in self._told.items() if row.label in self._now.rows}

    def with_differences(self, changed: Sequence[BlockDifference]) -> StoredMemory:
        """Return the memory as these differences make it."""
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
        self._told = {row.id: row for row in self.rows}
        labels, rows = self.memory.labels, self._now.rows
        return "\n".join(block.render(labels, is_fixed=not rows[block.label].writable) for block in self.memory.blocks)

    async def changed_elsewhere(self, versions: Mapping[str, int] | None = None) -> list[str]:
        """Return what others changed since the model last saw the blocks, as sentences; each is reported once.

        Whoever has just heard the versions of the shared blocks from the store gives them: else it is asked.
        """
        stored_versions = await self._store.block_versions(self._agent) if versions is None else versions
        if stored_versions != {row.id: row.version for row in self.rows if row.id in stored_versions or row.shared}:
            await self.reload()
        return await self._news()

    async def _news(self) -> list[str]:
        now = {row.id: row for row in self.rows}
        changed = [row for id, row in now.items() if id not in self._told or self._told[id].version != row.version]
        removed_rows = [row for id, row in self._told.items() if id not in now]
        sentences = [await self._told_of(row) for row in changed]
        sentences += [
            f"The block `{row.label}` is no longer in your memory."
            for row in removed_rows
            if row.label not in self.memory
        ]
        self._told = now
        return sentences

    async def _told_of(self, row: BlockRow) -> str:
        previous = self._told.get(row.id)
        text = self.memory[row.label].render(self.memory.labels, is_fixed=not row.writable)
        if previous is None:
            return f"A block is new in your memory:\n{text}"
        later = [change for change in await self._store.block_history(row.id) if change.version > previous.version]
        hands = {f"agent `{change.agent}`" if change.by == "agent" else f"a {change.by}" for change in later}
        return f"Your memory was changed by {' and '.join(sorted(hands)) or 'someone else'}. It reads now:\n{text}"


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


def renamed(name: str, arguments: Mapping[str, Any], own: Container[str]) -> dict[str, Any]:  # Any: JSON
    """Return the arguments of a call of `name` under their current names. Those that the function itself has are
    kept.
    """
    names = {old: new for old, new in ALIASES.get(name, Alias(name)).arguments.items() if old not in own}
    renamed_arguments = {names[key]: value for key, value in arguments.items() if key in names}
    return {**renamed_arguments, **{key: value for key, value in arguments.items() if key not in names}}
