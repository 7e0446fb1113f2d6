"""Answers each call: by a function of the host, or by a function in a sandboxed worker.

Every call of a reply gets exactly one answer, whatever happens to it. Host functions run one after
another in their order; workers run at the same time. This module translates between the sandbox and the rest.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from agent_core.access.grants import Denied, Permit
from agent_core.base.clock import Clock
from agent_core.base.errors import ToolwrightError
from agent_core.base.interruption import Interrupted as StopRequested
from agent_core.base.json_form import to_json
from agent_core.base.matching import nearest
from agent_core.base.messages import Call
from agent_core.base.offload import aside
from agent_core.base.settings import TurnSettings
from agent_core.context import beginning
from agent_core.functions import answers
from agent_core.functions.answers import CallOutcome, InterruptedCall, Skipped
from agent_core.functions.debug import Watch
from agent_core.functions.sandbox_client import SandboxClient
from agent_core.functions.service import Author, FunctionService, PlannedChange, noted
from agent_core.functions.worker_api import WorkerApi
from agent_core.memory.blocks import Blocks
from agent_core.memory.function_api import FunctionMemoryApi
from agent_core.memory.planned_edit import NO_EDIT, PlannedEdit, commit
from agent_core.registry.arguments import renamed
from agent_core.registry.function import Function
from agent_core.registry.snapshot import Snapshot
from agent_core.storage import Entry, Write
from sandbox import Killed, Raised, Refused, Returned

from .call_record import CallRecord
from .turn import Turn, call_started

_log = logging.getLogger(__name__)

MOST_CHARS = 4 << 20
"""Of an answer are kept at all."""


@dataclass(frozen=True, slots=True)
class HostFunction:
    """A function that runs in the host with the agent as `self`: its schema and the function itself."""

    function: Function
    run: Callable[..., Awaitable[PlannedChange | PlannedEdit | str]]


class HostAlias(Protocol):
    """An older name of a host function, or of arguments of a host function."""

    @property
    def name(self) -> str:
        """The current name."""

    @property
    def arguments(self) -> Mapping[str, str]:
        """The current names of its arguments, by their older names."""


@dataclass(frozen=True, slots=True)
class Done:
    """The result of one call; `arguments` and `outcome` decide whether it repeats.

    `heartbeat`: the call asked for another step.
    """

    call: Call
    text: str
    outcome: str
    excluded: frozenset[str] = frozenset()
    heartbeat: bool = False

    @property
    def failed(self) -> bool:
        """True if the call did not return what was requested."""
        return self.outcome != "returned"


class Dispatcher:
    """Runs the calls of one reply after another."""

    def __init__(  # noqa: PLR0913 - what it works with
        self,
        cage: SandboxClient,
        workshop: FunctionService,
        host: Mapping[str, HostFunction],
        settings: TurnSettings,
        clock: Clock,
        *,
        aliases: Mapping[str, HostAlias] | None = None,
        blocks: Blocks | None = None,
    ) -> None:
        self._cage = cage
        self._workshop = workshop
        self._host = host
        self._settings = settings
        self._clock = clock
        self._aliases = aliases or {}
        self._blocks = blocks
        self._slots = asyncio.Semaphore(settings.parallel)

    async def run(self, calls: Sequence[Call], snapshot: Snapshot, turn: Turn) -> list[Done]:
        """Answer every call; a call that cannot run is answered with the reason."""
        calls = [self._meant(call, snapshot) for call in calls]
        accepted, beyond = calls[: self._settings.max_calls], calls[self._settings.max_calls :]
        host = [call for call in accepted if call.name in self._host]
        workers = [call for call in accepted if self._runs(call, snapshot)]
        async with asyncio.TaskGroup() as group:
            chain = group.create_task(self._in_order(host, snapshot, turn))
            running = [group.create_task(self._in_worker(call, snapshot, turn)) for call in workers]
        done = {result.call.id: result for result in [*chain.result(), *(task.result() for task in running)]}
        for call in calls:
            if call.id not in done:
                done[call.id] = await self._not_run(call, snapshot, turn, is_beyond=call in beyond)
        return [done[call.id] for call in calls]

    def started_at_once(self, calls: Sequence[Call], snapshot: Snapshot) -> list[Entry]:
        """Return the entries for the calls that start as soon as the reply is on disk; they are written with it."""
        workers = [call for call in calls[: self._settings.max_calls] if self._runs(call, snapshot)]
        return [self._started(call, snapshot) for call in workers[: self._settings.parallel]]

    def _meant(self, call: Call, snapshot: Snapshot) -> Call:
        """Return the call with current names; a workspace function with an older name is meant itself."""
        alias = self._aliases.get(call.name)
        if alias is None or alias.name not in self._host or call.name in snapshot.functions:
            return call
        own = self._host[alias.name].function.parameters.get("properties", {})
        names = {old: new for old, new in alias.arguments.items() if old not in own}
        return Call(call.id, alias.name, renamed(call.arguments, names))

    def _runs(self, call: Call, snapshot: Snapshot) -> bool:
        function = snapshot.functions.get(call.name)
        return function is not None and not self._workshop.quarantine.holds(function)

    async def _in_order(self, calls: Sequence[Call], snapshot: Snapshot, turn: Turn) -> list[Done]:
        return [await self._in_host(call, snapshot, turn) for call in calls]

    async def _in_host(self, call: Call, snapshot: Snapshot, turn: Turn) -> Done:
        running = CallRecord(call, turn, self._clock, self._settings.answer_chars)
        if turn.interruption.requested:
            return await self._close(running, Skipped("the user ended the turn."))
        host = self._host[call.name]
        arguments = await aside(len(call.arguments), running.read, host.function)
        if not isinstance(arguments, dict):
            return await self._close(running, Refused(""), answers.bad_arguments(call.name, arguments))
        await turn.append([call_started(call, None)])
        running.announce()
        try:
            async with turn.interruption:
                plan = await host.run(turn.hand, **arguments)
        except StopRequested:
            return await self._close(running, InterruptedCall())
        except ToolwrightError as error:
            return await self._close(running, Refused(str(error)))
        except Exception:  # noqa: BLE001 - the named edge: one call's failure is an answer, and the log has the rest
            _log.exception("%s failed", call.name)
            text = f"`{call.name}` failed inside the program itself, and nothing was changed. Tell the user."
            return await self._close(running, Refused("internal error"), text)
        return await self._carry_out(running, plan)

    async def _carry_out(self, running: "CallRecord", plan: PlannedChange | PlannedEdit | str) -> Done:
        if isinstance(plan, str):
            return await self._close(running, None, plan)
        if isinstance(plan, PlannedEdit):
            return await self._commit(running, plan)

        async def record(plan: PlannedChange) -> None:
            running.plan = plan
            await running.record(plan.text, plan.outcome, to_json(plan.detail) or {}, plan.writes)

        plan = await self._workshop.carry_out(plan, record, Author("agent"))
        plan = replace(plan, text=beginning(plan.text, self._settings.answer_chars))
        running.note_plan(plan)
        running.tell(plan.text, plan.outcome, to_json(plan.detail) or {})
        running.tell_remembered(plan.writes)
        return Done(running.call, plan.text, plan.outcome, plan.excluded, running.heartbeat)

    async def _commit(self, running: "CallRecord", edit: PlannedEdit) -> Done:
        async def record(edit: PlannedEdit) -> None:
            await running.record(edit.text, edit.outcome, {}, edit.writes)

        edit = await commit(edit, record, self._clock)
        text = beginning(edit.text, self._settings.answer_chars)
        running.tell(text, edit.outcome, {})
        running.tell_remembered(edit.writes)
        return Done(running.call, text, edit.outcome, edit.excluded, running.heartbeat)

    async def _in_worker(self, call: Call, snapshot: Snapshot, turn: Turn) -> Done:
        running = CallRecord(call, turn, self._clock, self._settings.answer_chars)
        function = snapshot.functions[call.name]
        arguments = await aside(len(call.arguments), running.read, function)
        if not isinstance(arguments, dict):
            return await self._close(running, Refused(""), answers.bad_arguments(call.name, arguments))
        permit: Permit | None = None
        watch = self._cage.debugging.watch()
        watch.recording.turn = turn.id
        try:
            async with turn.interruption:
                decision = await self._workshop.granting.permit(function, snapshot)
                if isinstance(decision, Denied):
                    return await self._close(running, Refused(decision.text), decision.text)
                permit = decision
                async with self._slots:
                    outcome = await self._call(running, snapshot, arguments, permit, watch)
        except StopRequested:
            outcome = InterruptedCall()
        finally:
            watch.close()
            running.stood = watch.stood
        size, seconds = max(answers.size_of(outcome), len(call.arguments)), running.seconds()
        records = await aside(
            size, noted, watch, function, snapshot, outcome, seconds=seconds, arguments=arguments, turn=turn.id
        )
        is_draft = isinstance(outcome, Returned) and await self._workshop.drafts.holds(function, snapshot)
        note = "\n".join(filter(None, (_lacking(outcome, permit), watch.note(snapshot))))
        lacks = self._noted(await aside(size, answers.answer, outcome, MOST_CHARS), note) if note else None
        return await self._close(running, outcome, lacks, writes=records, unproven=is_draft)

    async def _call(
        self, running: "CallRecord", snapshot: Snapshot, arguments: dict[str, Any], permit: Permit, watch: Watch
    ) -> CallOutcome:
        if running.call.id not in running.turn.started:
            await running.turn.append([self._started(running.call, snapshot)])
        running.announce()
        running.restart_clock()
        turn, blocks, granting = running.turn, self._blocks, self._workshop.granting
        running.memory = FunctionMemoryApi(blocks, turn.agent, turn.id) if blocks is not None else None
        requests = WorkerApi(
            self._cage,
            snapshot,
            running.tell_progress,
            granting,
            broker=self._cage.broker,
            memory=running.memory,
            watch=watch,
            on_output=running.tell_printed,
        )
        return await requests.run(snapshot.functions[running.call.name], arguments, permit)

    def _started(self, call: Call, snapshot: Snapshot) -> Entry:
        return call_started(call, snapshot.functions[call.name].version)

    async def _not_run(self, call: Call, snapshot: Snapshot, turn: Turn, *, is_beyond: bool) -> Done:
        """Answer a call beyond the limit or of an unknown name; this runs last, as other calls may have created it."""
        running = CallRecord(call, turn, self._clock, self._settings.answer_chars)
        if is_beyond:
            limit = f"one reply may ask for {self._settings.max_calls} calls; ask for this one again in the next step."
            return await self._close(running, Skipped(limit))
        if function := snapshot.functions.get(call.name):
            return await self._close(running, Refused(""), await self._workshop.quarantine.refusal(function))
        made_now = call.name in self._workshop.registry.snapshot().functions
        suggestions = nearest(call.name, [*self._host, *snapshot.functions], 3)
        return await self._close(running, Refused(""), answers.unknown_name(call.name, suggestions, made_now=made_now))

    async def _close(
        self,
        running: "CallRecord",
        outcome: CallOutcome | None,
        text: str | None = None,
        writes: Sequence[Write] = (),
        *,
        unproven: bool = False,
    ) -> Done:
        size = answers.size_of(outcome) if outcome is not None else 0
        full = text if text is not None else await aside(size, answers.answer, outcome or Skipped(""), MOST_CHARS)
        word = answers.word(outcome) if outcome is not None else "returned"
        detail = await aside(size, answers.outcome_json, outcome) if outcome is not None else {}
        if unproven:
            full, detail = self._noted(full, answers.UNPROVEN), {**detail, "unproven": True}

        async def record(edit: PlannedEdit) -> None:
            nonlocal full
            full = self._noted(full, edit.text) if edit.text else full
            await running.record(full, word, detail, (*writes, *edit.writes))

        await commit(running.memory.held if running.memory else NO_EDIT, record, self._clock)
        answer_text = beginning(full, self._settings.answer_chars)
        running.tell(answer_text, word, detail)
        return Done(running.call, answer_text, word, heartbeat=running.heartbeat)

    def _noted(self, text: str, note: str) -> str:
        """Return an answer with a note, placed where it is seen if only the beginning is shown."""
        return f"{text}\n{note}" if len(text) <= self._settings.answer_chars else f"{note}\n{text}"


def _lacking(outcome: CallOutcome, permit: Permit | None) -> str:
    """Return the missing grants that may have made a call fail; with no grants it may even have returned something
    else.
    """
    if permit is None or (isinstance(outcome, Returned) and permit.grants):
        return ""
    return permit.note if isinstance(outcome, Returned | Raised | Killed) else ""
