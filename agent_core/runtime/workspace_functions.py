"""Functions of the workspace, which run in sandboxed workers: each call with its permit, its watch, and its record."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from agent_core.access.grants import Denied, Permit
from agent_core.base.interruption import Interrupted as StopRequested
from agent_core.base.offload import aside
from agent_core.functions import answers
from agent_core.functions.answers import CallOutcome, InterruptedCall
from agent_core.functions.debug import Watch
from agent_core.functions.sandbox_client import SandboxClient
from agent_core.functions.service import FunctionService, noted
from agent_core.functions.worker_api import WorkerApi
from agent_core.memory.blocks import Blocks
from agent_core.memory.function_api import FunctionMemoryApi
from agent_core.registry.function import Function
from agent_core.registry.snapshot import Snapshot
from sandbox import Killed, Raised, Refused, Returned

from .call_record import MOST_CHARS, CallRecord, Done
from .turn import call_started


class WorkspaceFunctions:
    """The functions of a snapshot, as far as they are not in quarantine; `parallel` of them run at the same time."""

    def __init__(
        self, cage: SandboxClient, workshop: FunctionService, parallel: int, blocks: Blocks | None = None
    ) -> None:
        self.cage = cage
        self.workshop = workshop
        self.blocks = blocks
        self.slots = asyncio.Semaphore(parallel)

    def names(self, snapshot: Snapshot) -> Iterable[str]:
        """Return the names in the snapshot."""
        return snapshot.functions

    def find(self, name: str, snapshot: Snapshot) -> "WorkspaceFunction | None":
        """Return the function of this name."""
        function = snapshot.functions.get(name)
        if function is None or self.workshop.quarantine.holds(function):
            return None
        return WorkspaceFunction(function, snapshot, self)

    async def refusal(self, name: str, snapshot: Snapshot) -> str:
        """Return why a function in quarantine cannot be called."""
        function = snapshot.functions.get(name)
        return await self.workshop.quarantine.refusal(function) if function else ""


@dataclass(frozen=True, slots=True)
class WorkspaceFunction:
    """A function of the workspace in the version of one snapshot."""

    function: Function
    snapshot: Snapshot
    room: WorkspaceFunctions
    is_parallel: bool = True

    @property
    def version(self) -> str | None:
        """The version of its source."""
        return self.function.version

    async def call(self, arguments: dict[str, Any], record: CallRecord) -> Done:  # Any: JSON
        """Call the function in a worker, with what it was granted."""
        function, snapshot, turn, workshop = self.function, self.snapshot, record.turn, self.room.workshop
        permit: Permit | None = None
        watch = self.room.cage.debugging.watch(seat=turn.seat)
        watch.recording.turn = turn.id
        try:
            async with turn.interruption:
                decision = await workshop.granting.during(turn.approvals).permit(function, snapshot)
                if isinstance(decision, Denied):
                    return await record.close(Refused(decision.text), decision.text)
                permit = decision
                async with self.room.slots:
                    outcome = await self._run(record, arguments, permit, watch)
        except StopRequested:
            outcome = InterruptedCall()
        finally:
            watch.close()
            record.stood = watch.stood
        size, seconds = max(answers.size_of(outcome), len(record.call.arguments)), record.seconds()
        writes = await aside(
            size, noted, watch, function, snapshot, outcome, seconds=seconds, arguments=arguments, turn=turn.id
        )
        unproven = await workshop.ratings.unproven(function, snapshot) if isinstance(outcome, Returned) else ""
        note = "\n".join(filter(None, (_lacking(outcome, permit), watch.note(snapshot))))
        text = record.noted(await aside(size, answers.answer, outcome, MOST_CHARS), note) if note else None
        return await record.close(outcome, text, writes=writes, unproven=unproven)

    async def _run(self, record: CallRecord, arguments: dict[str, Any], permit: Permit, watch: Watch) -> CallOutcome:
        turn, room = record.turn, self.room
        if record.call.id not in turn.started:
            await turn.append([call_started(record.call, self.version)])
        record.announce()
        record.restart_clock()
        record.memory = FunctionMemoryApi(room.blocks, turn.agent, turn.id) if room.blocks is not None else None
        requests = WorkerApi(
            room.cage,
            self.snapshot,
            record.tell_progress,
            room.workshop.granting.during(turn.approvals),
            broker=room.cage.broker,
            memory=record.memory,
            watch=watch,
            on_output=record.tell_printed,
        )
        return await requests.run(self.function, arguments, permit)


def _lacking(outcome: CallOutcome, permit: Permit | None) -> str:
    """Return the missing grants that may have made a call fail; with no grants it may even have returned something
    else.
    """
    if permit is None or (isinstance(outcome, Returned) and permit.grants):
        return ""
    return permit.note if isinstance(outcome, Returned | Raised | Killed) else ""
