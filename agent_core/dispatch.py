"""One call → one answer: a function of the host, or a function in a sandboxed worker.

Every call of a reply gets exactly one answer, whatever happens to it. Host functions run one after
another in their order; workers run beside them. The translating edge between the sandbox and the rest.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from sandbox import Killed, Raised, Refused, Returned

from . import answers
from .answers import CallOutcome, Interrupted, Skipped
from .aside import aside
from .cage import Cage
from .clock import Clock
from .context import beginning
from .debugging import Watch
from .errors import ToolwrightError
from .grants import Denied, Permit
from .interruption import Interrupted as StopRequested
from .matching import nearest
from .memory.blocks import Blocks
from .memory.door import Door
from .messages import Call
from .registry.arguments import renamed
from .registry.function import Function
from .registry.snapshot import Snapshot
from .requests import Requests
from .running import Running
from .settings import TurnSettings
from .storage import Entry, Write
from .turn import Turn, call_started
from .workshop import Author, Plan, Workshop, noted

_log = logging.getLogger(__name__)

MOST_CHARS = 4 << 20
"""Of an answer are kept at all."""


@dataclass(frozen=True, slots=True)
class HostFunction:
    """A function that runs in the host with the agent as `self`: its schema, and the function itself."""

    function: Function
    run: Callable[..., Awaitable[Plan | str]]


class Alias(Protocol):
    """A function of the host under an older name, or under its own with older names of its arguments."""

    @property
    def name(self) -> str:
        """What it is called today."""

    @property
    def arguments(self) -> Mapping[str, str]:
        """What its arguments are called today, by older names."""


@dataclass(frozen=True, slots=True)
class Done:
    """What came of one call; `arguments` and `outcome` are what decides whether it repeats.

    `heartbeat`: the call asked for another step.
    """

    call: Call
    text: str
    outcome: str
    excluded: frozenset[str] = frozenset()
    heartbeat: bool = False

    @property
    def failed(self) -> bool:
        """Whether the call did not give what was asked."""
        return self.outcome != "returned"


class Dispatcher:
    """Runs the calls of one reply after another's."""

    def __init__(  # noqa: PLR0913 - what it works with
        self,
        cage: Cage,
        workshop: Workshop,
        host: Mapping[str, HostFunction],
        settings: TurnSettings,
        clock: Clock,
        *,
        aliases: Mapping[str, Alias] | None = None,
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
        """Answer every call; what cannot run is answered too, and says why."""
        calls = [self._meant(call, snapshot) for call in calls]
        taken, beyond = calls[: self._settings.max_calls], calls[self._settings.max_calls :]
        host = [call for call in taken if call.name in self._host]
        workers = [call for call in taken if self._runs(call, snapshot)]
        async with asyncio.TaskGroup() as group:
            chain = group.create_task(self._in_order(host, snapshot, turn))
            running = [group.create_task(self._in_worker(call, snapshot, turn)) for call in workers]
        done = {each.call.id: each for each in [*chain.result(), *(task.result() for task in running)]}
        for call in calls:
            if call.id not in done:
                done[call.id] = await self._not_run(call, snapshot, turn, is_beyond=call in beyond)
        return [done[call.id] for call in calls]

    def started_at_once(self, calls: Sequence[Call], snapshot: Snapshot) -> list[Entry]:
        """The entries that say which calls will start as soon as the reply is on disk, to be written with it."""
        workers = [call for call in calls[: self._settings.max_calls] if self._runs(call, snapshot)]
        return [self._started(call, snapshot) for call in workers[: self._settings.parallel]]

    def _meant(self, call: Call, snapshot: Snapshot) -> Call:
        """The call by the names of today; a function of the folder that has an older name is meant itself."""
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
        running = Running(call, turn, self._clock, self._settings.answer_chars)
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
            return await self._close(running, Interrupted())
        except ToolwrightError as error:
            return await self._close(running, Refused(str(error)))
        except Exception:  # noqa: BLE001 - the named edge: one call's failure is an answer, and the log has the rest
            _log.exception("%s failed", call.name)
            text = f"`{call.name}` failed inside the program itself, and nothing was changed. Tell the user."
            return await self._close(running, Refused("internal error"), text)
        return await self._carry_out(running, plan)

    async def _carry_out(self, running: "Running", plan: Plan | str) -> Done:
        if isinstance(plan, str):
            return await self._close(running, None, plan)

        async def record(plan: Plan) -> None:
            running.plan = plan
            await running.record(plan.text, plan.outcome, plan.detail, plan.writes)

        plan = await self._workshop.carry_out(plan, record, Author("agent"))
        plan = replace(plan, text=beginning(plan.text, self._settings.answer_chars))
        running.note_plan(plan)
        running.tell(plan.text, plan.outcome, plan.detail)
        running.tell_remembered(plan.writes)
        return Done(running.call, plan.text, plan.outcome, plan.excluded, running.heartbeat)

    async def _in_worker(self, call: Call, snapshot: Snapshot, turn: Turn) -> Done:
        running = Running(call, turn, self._clock, self._settings.answer_chars)
        function = snapshot.functions[call.name]
        arguments = await aside(len(call.arguments), running.read, function)
        if not isinstance(arguments, dict):
            return await self._close(running, Refused(""), answers.bad_arguments(call.name, arguments))
        permit: Permit | None = None
        watch = self._cage.debugging.watch()
        watch.recording.turn = turn.id
        try:
            async with turn.interruption:
                found = await self._workshop.granting.permit(function, snapshot)
                if isinstance(found, Denied):
                    return await self._close(running, Refused(found.text), found.text)
                permit = found
                async with self._slots:
                    outcome = await self._call(running, snapshot, arguments, permit, watch)
        except StopRequested:
            outcome = Interrupted()
        finally:
            watch.close()
            running.stood = watch.stood
        size, seconds = max(answers.size_of(outcome), len(call.arguments)), running.seconds()
        kept = await aside(
            size, noted, watch, function, snapshot, outcome, seconds=seconds, arguments=arguments, turn=turn.id
        )
        is_draft = isinstance(outcome, Returned) and await self._workshop.drafts.holds(function, snapshot)
        note = "\n".join(filter(None, (_lacking(outcome, permit), watch.note(snapshot))))
        lacks = self._noted(await aside(size, answers.answer, outcome, MOST_CHARS), note) if note else None
        return await self._close(running, outcome, lacks, writes=kept, unproven=is_draft)

    async def _call(
        self, running: "Running", snapshot: Snapshot, arguments: dict[str, Any], permit: Permit, watch: Watch
    ) -> CallOutcome:
        if running.call.id not in running.turn.started:
            await running.turn.append([self._started(running.call, snapshot)])
        running.announce()
        running.restart_clock()
        turn, blocks, granting = running.turn, self._blocks, self._workshop.granting
        door = Door(blocks, turn.agent, turn.id) if blocks is not None else None
        requests = Requests(
            self._cage,
            snapshot,
            running.tell_progress,
            granting,
            broker=self._cage.broker,
            memory=door,
            watch=watch,
            on_output=running.tell_printed,
        )
        return await requests.run(snapshot.functions[running.call.name], arguments, permit)

    def _started(self, call: Call, snapshot: Snapshot) -> Entry:
        return call_started(call, snapshot.functions[call.name].version)

    async def _not_run(self, call: Call, snapshot: Snapshot, turn: Turn, *, is_beyond: bool) -> Done:
        """The answer to a call that is one too many, or names nothing: after the others, which may have made it."""
        running = Running(call, turn, self._clock, self._settings.answer_chars)
        if is_beyond:
            limit = f"one reply may ask for {self._settings.max_calls} calls; ask for this one again in the next step."
            return await self._close(running, Skipped(limit))
        if held := snapshot.functions.get(call.name):
            return await self._close(running, Refused(""), await self._workshop.quarantine.refusal(held))
        made_now = call.name in self._workshop.registry.snapshot().functions
        near = nearest(call.name, [*self._host, *snapshot.functions], 3)
        return await self._close(running, Refused(""), answers.unknown_name(call.name, near, made_now=made_now))

    async def _close(
        self,
        running: "Running",
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
        told = await running.record(full, word, detail, writes)
        running.tell(told, word, detail)
        return Done(running.call, told, word, heartbeat=running.heartbeat)

    def _noted(self, text: str, note: str) -> str:
        """An answer with a note: where it is seen, if only the beginning is shown."""
        return f"{text}\n{note}" if len(text) <= self._settings.answer_chars else f"{note}\n{text}"


def _lacking(outcome: CallOutcome, permit: Permit | None) -> str:
    """What a call may have failed for want of; with nothing granted at all it may even have returned something else."""
    if permit is None or (isinstance(outcome, Returned) and permit.grants):
        return ""
    return permit.note if isinstance(outcome, Returned | Raised | Killed) else ""
