"""Execution of a plan, in this order: the intent, the file, the record, the snapshot.

A crash in between leaves an intent row, which the next start completes or discards. What a human or another process
saved meanwhile is never overwritten: the change is planned again on top of it.

Only one process at a time changes the files of a workspace. From the check of a file to its replacement, and on to the
rows, no other process may write; otherwise the second writer would undo a change that the first has reported as done.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agent_core.base import machine
from agent_core.base.clock import Clock
from agent_core.base.errors import KnapperError, LostLease, StaleFile, StorageError, WorkspaceError
from agent_core.base.json_form import to_json
from agent_core.base.problem import Place, Problem
from agent_core.registry.module_edits import remove, save
from agent_core.registry.source import folder_problem
from agent_core.storage import STATE, BeginWrite, EndWrite, FunctionStore, SaveTended, UndoTended, commit, open_lock

from .judgment import Judgment
from .loaded_files import with_kept_out
from .plan import FileChange, PlannedChange

if TYPE_CHECKING:
    from agent_core.access.grants import GrantStore
    from agent_core.registry.registry import Registry, Snapshot

    from .folder_copy import FolderCopy

Record = Callable[[PlannedChange], Awaitable[object]]
_TRIES = 20  # each runs the gate again


class ChangeExecutor:
    """The executor of changes, one at a time per process."""

    def __init__(
        self,
        root: Path,
        store: FunctionStore,
        registry: "Registry",
        grant_store: "GrantStore",
        copy: "FolderCopy | None" = None,
    ) -> None:
        """Create the executor; `copy` records what a folder with a shared store has contributed."""
        self.one_at_a_time = asyncio.Lock()
        self._folder = root / "functions"
        self._state = root / STATE
        self._store = store
        self._registry = registry
        self._grant_store = grant_store
        self._copy = copy
        self._random = Clock().random

    async def carry_out(self, plan: PlannedChange, record: Record, by: str) -> PlannedChange:
        """Carry out the planned change and record it. Return the resulting plan, which may be a refusal."""
        plan = await commit(plan, partial(self._commit, record=record, by=by), self._random, _refusal, tries=_TRIES)
        # Now the user's decisions about the plan come into force.
        if plan.new_grant is not None:
            self._grant_store.forget()
        if plan.one_call_grant is not None:
            self._grant_store.allow_once(plan.one_call_grant)
        if plan.revoked and plan.revoked in await self._grant_store.entries():
            with suppress(WorkspaceError):  # the file is invalid, but the approval itself is gone
                await self._grant_store.revoke(plan.revoked)
        return plan

    async def _commit(self, plan: PlannedChange, record: Record, by: str) -> None:
        if plan.change is None and plan.new_grant is None:
            await record(plan)
            return
        async with self.one_at_a_time, only_writer(self._state):
            if plan.new_grant is not None:  # entry before row: an entry without its row grants nothing
                plan = replace(plan, writes=(*plan.writes, *await self._grant_store.put(plan.new_grant)))
            if plan.change is None:
                await record(plan)
            else:
                await self._change(plan, plan.change, record, by)

    async def _change(self, plan: PlannedChange, change: FileChange, record: Record, by: str) -> None:
        end, modules = EndWrite(change.path, change.version), self._registry.snapshot().modules
        if modules and not self._folder.is_dir():  # a new folder would make all other functions appear deleted
            problem = folder_problem("functions/", "there is no such folder")
            raise WorkspaceError(f"{problem.message}.", fix=problem.fix or "")
        before = modules.get(change.module)
        if change.expected != (before.version if before else None):
            raise StaleFile(f"`{change.path}` was changed since it was read.", fix="Read it again.")
        tended = next((write for write in plan.writes if isinstance(write, (SaveTended, UndoTended))), None)
        await self._store.apply([BeginWrite(change.path, change.version, change.text, change.expected, tended)])
        try:
            await asyncio.to_thread(self._write, change)
        except WorkspaceError:
            await self._store.apply([end])
            raise
        after = _after(self._registry.snapshot(), change)
        writes = [with_kept_out(write, change.reading, after) for write in plan.writes]
        try:
            await record(replace(plan, writes=(*writes, end)))
        except (StorageError, LostLease):
            undo = replace(change, expected=change.version, text=before.text if before else None)
            with suppress(StaleFile):  # someone else has saved it meanwhile: keep theirs
                await asyncio.to_thread(self._write, undo)
            with suppress(StorageError):  # the next start will find nothing left to do
                await self._store.apply([end])
            raise
        if self._copy:
            await self._copy.note({change.module: change.version})
        self._registry.swap(_after(self._registry.snapshot(), change), by="agent" if by == "agent" else "user")

    def _write(self, change: FileChange) -> None:
        if change.text is None:
            assert change.expected is not None
            remove(self._folder, change.path, change.expected)
        else:
            save(self._folder, change.path, change.text, change.expected)


def _refusal(plan: PlannedChange, error: KnapperError) -> PlannedChange:
    """Return the answer that a plan was not carried out."""
    name = plan.detail.name if plan.detail else plan.change.module if plan.change else ""
    note = "Nothing was changed. " + (
        "Read it again with introspect_function. " if isinstance(error, StaleFile) else ""
    )
    text = f"`{name}` was not written: {error.message} {note}{error.fix}".rstrip()
    detail = {**(to_json(plan.detail) or {}), "admitted": False, "error": str(error)}
    if "problems" in detail:
        place = Place(plan.change.path if plan.change else "")
        problem = Problem(error.code, error.message.rstrip(), place, error.fix)
        detail |= {"standing": "", "problems": [*detail["problems"], problem.to_json()]}
    return PlannedChange(text, "refused", Judgment.from_json(detail))


def _after(snapshot: "Snapshot", change: FileChange) -> "Snapshot":
    if change.reading is None:
        return snapshot.without_module(change.module)
    return snapshot.with_module(change.reading)


class NoTurn(WorkspaceError):
    """Another process holds the lock, or the lock cannot be created. Nothing was changed."""

    code = "no-turn"


_NAME = "write.lock"
_PATIENCE_S = 10.0
_PAUSE_S = 0.01


@asynccontextmanager
async def only_writer(state: Path) -> AsyncIterator[None]:
    """Hold the lock. The kernel releases it when the process ends in any way.

    Raises:
        NoTurn: another process holds the lock too long, or it cannot be created.
    """
    try:
        descriptor = open_lock(state / _NAME)
    except OSError as error:
        raise NoTurn(f"The lock `{state / _NAME}` cannot be made: {error.strerror}.") from error
    try:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while not machine.try_lock(descriptor):  # noqa: ASYNC110 - the kernel tells no event of another process
                    await asyncio.sleep(_PAUSE_S)
        except TimeoutError as error:
            raise NoTurn("Another process is changing functions and does not finish.", fix="Try again.") from error
        yield
    finally:
        os.close(descriptor)
