"""Carry a plan out: the intent, the file, the record, the snapshot, in this order.

A crash between any two of them leaves an intent row, which the next start finishes or gives up. What
a human or another process saved meanwhile is never overwritten.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ..errors import StaleFile, WorkspaceError
from ..registry.registry import Registry
from ..registry.saving import remove, save
from ..registry.snapshot import Snapshot
from ..storage import STATE, BeginWrite, EndWrite, ManifestConflict, Store
from .one_writer import NoTurn, only_writer
from .plan import FileChange, Plan

Record = Callable[[Plan], Awaitable[None]]


class Carrier:
    """Makes the changes of one process, one after another."""

    def __init__(self, root: Path, store: Store, registry: Registry) -> None:
        self.one_at_a_time = asyncio.Lock()
        self._folder = root / "functions"
        self._state = root / STATE
        self._store = store
        self._registry = registry

    async def carry_out(self, plan: Plan, record: Record, by: str) -> Plan:
        """Make the planned change and have it recorded; the plan as it came out, which may be a refusal."""
        if plan.change is None:
            await record(plan)
            return plan
        async with self.one_at_a_time:
            try:
                async with only_writer(self._state):
                    return await self._change(plan, plan.change, record, by)
            except NoTurn as error:
                return await self._give_up(plan, record, error)

    async def _change(self, plan: Plan, change: FileChange, record: Record, by: str) -> Plan:
        end = EndWrite(change.path, change.version)
        before = self._registry.snapshot().modules.get(change.module)
        await self._store.apply([BeginWrite(change.path, change.version, change.text, change.expected)])
        try:
            await asyncio.to_thread(self._write, change)
        except WorkspaceError as error:
            await self._store.apply([end])
            return await self._give_up(plan, record, error)
        try:
            await record(replace(plan, writes=(*plan.writes, end)))
        except ManifestConflict as error:
            undo = replace(change, expected=change.version, text=before.text if before else None)
            with suppress(StaleFile):  # saved by somebody else meanwhile: it is theirs
                await asyncio.to_thread(self._write, undo)
            await self._store.apply([end])
            return await self._give_up(plan, record, error)
        self._registry.swap(_after(self._registry.snapshot(), change), by="agent" if by == "agent" else "human")
        return plan

    def _write(self, change: FileChange) -> None:
        if change.text is None:
            assert change.expected is not None
            remove(self._folder, change.path, change.expected)
        else:
            save(self._folder, change.path, change.text, change.expected)

    async def _give_up(self, plan: Plan, record: Record, error: WorkspaceError | ManifestConflict) -> Plan:
        name = plan.detail.get("name", plan.change.module if plan.change else "")
        kept = "Nothing was changed. " + (
            "Read it again with introspect_function. " if isinstance(error, StaleFile) else ""
        )
        detail = {**plan.detail, "admitted": False}
        text = f"`{name}` was not written: {error.message} {kept}{error.mend}".rstrip()
        refusal = Plan(text=text, outcome="refused", detail={**detail, "error": str(error)})
        await record(refusal)
        return refusal


def _after(snapshot: Snapshot, change: FileChange) -> Snapshot:
    if change.reading is None:
        return snapshot.without_module(change.module)
    return snapshot.with_module(change.reading)
