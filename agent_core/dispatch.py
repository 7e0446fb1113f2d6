"""One call → one answer: a function of the host, or a function in a sandboxed worker.

Every call of a reply gets exactly one answer, whatever happens to it. Host functions run one after
another in their order; workers run beside them. The translating edge between the sandbox and the rest.
"""

import asyncio
import difflib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sandbox import Killed, Raised, Refused, Returned

from . import answers, events
from .answers import CallOutcome, Interrupted, Skipped
from .cage import Cage
from .clock import Clock
from .errors import ToolwrightError
from .grants import Denied, Permit
from .interruption import Interrupted as StopRequested
from .messages import Call
from .registry.arguments import read as read_arguments
from .registry.function import Function
from .registry.snapshot import Snapshot
from .requests import Requests
from .settings import TurnSettings
from .storage import Entry, Write
from .turn import Turn, call_started, result
from .untrusted import shorten
from .workshop import Author, Plan, Workshop, recorded

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HostFunction:
    """A function that runs in the host with the agent as `self`: its schema, and the function itself."""

    function: Function
    run: Callable[..., Awaitable[Plan | str]]


@dataclass(frozen=True, slots=True)
class Done:
    """What came of one call; `arguments` and `outcome` are what decides whether it repeats."""

    call: Call
    text: str
    outcome: str
    excluded: frozenset[str] = frozenset()

    @property
    def failed(self) -> bool:
        """Whether the call did not give what was asked."""
        return self.outcome != "returned"


class Dispatcher:
    """Runs the calls of one reply after another's."""

    def __init__(
        self,
        cage: Cage,
        workshop: Workshop,
        host: Mapping[str, HostFunction],
        settings: TurnSettings,
        clock: Clock,
    ) -> None:
        self._cage = cage
        self._workshop = workshop
        self._host = host
        self._settings = settings
        self._clock = clock
        self._slots = asyncio.Semaphore(settings.parallel)

    async def run(self, calls: Sequence[Call], snapshot: Snapshot, turn: Turn) -> list[Done]:
        """Answer every call; what cannot run is answered too, and says why."""
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

    def _runs(self, call: Call, snapshot: Snapshot) -> bool:
        function = snapshot.functions.get(call.name)
        return function is not None and not self._workshop.quarantine.holds(function)

    async def _in_order(self, calls: Sequence[Call], snapshot: Snapshot, turn: Turn) -> list[Done]:
        return [await self._in_host(call, snapshot, turn) for call in calls]

    async def _in_host(self, call: Call, snapshot: Snapshot, turn: Turn) -> Done:
        running = _Running(call, turn, self._clock)
        if turn.interruption.requested:
            return await self._close(running, Skipped("the user ended the turn."))
        host = self._host[call.name]
        arguments = read_arguments(call.arguments, host.function.parameters)
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

    async def _carry_out(self, running: "_Running", plan: Plan | str) -> Done:
        if isinstance(plan, str):
            return await self._close(running, None, plan)

        async def record(plan: Plan) -> None:
            plan = self._readable(plan)
            running.plan = plan
            await running.record(plan.text, plan.outcome, plan.detail, plan.writes)

        plan = self._readable(await self._workshop.carry_out(plan, record, Author("agent")))
        running.note_plan(plan)
        running.tell(plan.text, plan.outcome, plan.detail)
        return Done(running.call, plan.text, plan.outcome, plan.excluded)

    def _readable(self, plan: Plan) -> Plan:
        """The plan with a text that no name, however long, can make too long to be read."""
        return replace(plan, text=shorten(plan.text, self._settings.answer_chars))

    async def _in_worker(self, call: Call, snapshot: Snapshot, turn: Turn) -> Done:
        running = _Running(call, turn, self._clock)
        function = snapshot.functions[call.name]
        arguments = read_arguments(call.arguments, function.parameters)
        if not isinstance(arguments, dict):
            return await self._close(running, Refused(""), answers.bad_arguments(call.name, arguments))
        permit: Permit | None = None
        try:
            async with turn.interruption:
                found = await self._workshop.granting.permit(function, snapshot)
                if isinstance(found, Denied):
                    return await self._close(running, Refused(found.text), found.text)
                permit = found
                async with self._slots:
                    outcome = await self._call(running, snapshot, arguments, permit)
        except StopRequested:
            outcome = Interrupted()
        record = recorded(function, snapshot, outcome, running.seconds(), turn.id)
        is_draft = isinstance(outcome, Returned) and await self._workshop.drafts.holds(function, snapshot)
        note = _lacking(outcome, permit)
        lacks = f"{answers.answer(outcome, self._settings.answer_chars)}\n{note}" if note else None
        return await self._close(running, outcome, lacks, writes=(record,), unproven=is_draft)

    async def _call(
        self, running: "_Running", snapshot: Snapshot, arguments: dict[str, Any], permit: Permit
    ) -> CallOutcome:
        if running.call.id not in running.turn.started:
            await running.turn.append([self._started(running.call, snapshot)])
        running.announce()
        running.restart_clock()
        requests = Requests(
            self._cage, snapshot, running.tell_progress, self._workshop.granting, broker=self._cage.broker
        )
        return await requests.run(snapshot.functions[running.call.name], arguments, permit)

    def _started(self, call: Call, snapshot: Snapshot) -> Entry:
        return call_started(call, snapshot.functions[call.name].version)

    async def _not_run(self, call: Call, snapshot: Snapshot, turn: Turn, *, is_beyond: bool) -> Done:
        """The answer to a call that is one too many, or names nothing: after the others, which may have made it."""
        running = _Running(call, turn, self._clock)
        if is_beyond:
            limit = f"one reply may ask for {self._settings.max_calls} calls; ask for this one again in the next step."
            return await self._close(running, Skipped(limit))
        if held := snapshot.functions.get(call.name):
            return await self._close(running, Refused(""), await self._workshop.quarantine.refusal(held))
        made_now = call.name in self._workshop.registry.snapshot().functions
        near = difflib.get_close_matches(call.name, [*self._host, *snapshot.functions], n=3)
        return await self._close(running, Refused(""), answers.unknown_name(call.name, near, made_now=made_now))

    async def _close(
        self,
        running: "_Running",
        outcome: CallOutcome | None,
        text: str | None = None,
        writes: Sequence[Write] = (),
        *,
        unproven: bool = False,
    ) -> Done:
        limit = self._settings.answer_chars
        full = shorten(text, limit) if text is not None else answers.answer(outcome or Skipped(""), limit)
        word = answers.word(outcome) if outcome is not None else "returned"
        detail = answers.outcome_json(outcome) if outcome is not None else {}
        if unproven:
            full, detail = f"{full}\n{answers.UNPROVEN}", {**detail, "unproven": True}
        await running.record(full, word, detail, writes)
        running.tell(full, word, detail)
        return Done(running.call, full, word)


def _lacking(outcome: CallOutcome, permit: Permit | None) -> str:
    """What a call may have failed for want of; with nothing granted at all it may even have returned something else."""
    if permit is None or (isinstance(outcome, Returned) and permit.grants):
        return ""
    return permit.note if isinstance(outcome, Returned | Raised | Killed) else ""


class _Running:
    """One call between its start and its answer."""

    def __init__(self, call: Call, turn: Turn, clock: Clock) -> None:
        self.call = call
        self.turn = turn
        self.step = turn.step
        self.plan: Plan | None = None
        self._clock = clock
        self._began = clock.monotonic()
        self._announced = False

    def restart_clock(self) -> None:
        self._began = self._clock.monotonic()

    def seconds(self) -> float:
        return self._clock.monotonic() - self._began

    def announce(self) -> None:
        self._announced = True
        call = self.call
        self.turn.emit(
            events.CallStarted(
                turn=self.turn.id, step=self.step, call_id=call.id, name=call.name, arguments=call.arguments
            )
        )

    async def record(self, text: str, word: str, detail: dict[str, Any], writes: Sequence[Write]) -> None:
        await self.turn.append([result(self.call, text, word, self.seconds(), detail)], writes=writes)

    def tell_progress(self, done: float, total: float | None, note: str) -> None:
        self.turn.emit(
            events.Progress(
                turn=self.turn.id,
                step=self.step,
                call_id=self.call.id,
                name=self.call.name,
                done=done,
                total=total,
                note=note,
            )
        )

    def note_plan(self, plan: Plan) -> None:
        if plan.made is not None:
            self.turn.note_made(plan.made[0], plan.made[1])
        if plan.refused is not None:
            self.turn.refused[plan.refused] = plan.text

    def tell(self, text: str, word: str, detail: dict[str, Any]) -> None:
        if not self._announced:
            self.announce()
        self.turn.emit(
            events.CallAnswered(
                turn=self.turn.id,
                step=self.step,
                call_id=self.call.id,
                name=self.call.name,
                text=text,
                outcome=word,
                seconds=self.seconds(),
                detail=detail,
            )
        )
