"""Answers each call with the function that it names, whatever its source.

Every call of a reply gets exactly one answer. Parallel functions run concurrently, the others one after another in
order. Those of the workspace, which run in sandboxed workers, are here; other sources have modules of their own.
"""

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from agent_core.access.grants import Denied, Permit
from agent_core.base.matching import nearest
from agent_core.base.messages import Call
from agent_core.base.offload import aside
from agent_core.base.receipt import Receipt
from agent_core.base.records import replace
from agent_core.context import RUN_PROGRAM
from agent_core.context.folds import unwrapped
from agent_core.functions import answers
from agent_core.functions.answers import CallOutcome, InterruptedCall, Skipped
from agent_core.functions.asking import CallQuestions
from agent_core.functions.debug.debugging import DebuggerSlot, Debugging, Watch
from agent_core.functions.gate.capability import shares_state
from agent_core.functions.service import FunctionService, noted
from agent_core.functions.worker_api import TRIES, WorkerApi, large_of
from agent_core.memory.blocks import Alias
from agent_core.memory.function_api import FunctionMemoryApi
from agent_core.model.reading import meant
from agent_core.registry.arguments import renamed
from agent_core.storage import (
    Entry,
    StateConflict,
)
from agent_core.storage.journal import call_started
from sandbox import Refused, Returned
from sandbox.wire.strict_json import Malformed, read_json

from .call_record import MOST_CHARS, CallRecord, Done
from .reply_work import ReplyWork
from .shared_debugger import SharedDebugger, take_up_breakpoints
from .source import ModelFunction, ToolSource, ToolSources
from .turn import MAX_CALLS, Turn
from .turn import Interrupted as StopRequested

if TYPE_CHECKING:
    from agent_core.base.clock import Clock
    from agent_core.base.settings import TurnSettings
    from agent_core.functions.sandbox_client import SandboxClient
    from agent_core.memory.blocks import Blocks
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot


_WORD: Final = re.compile(r"\w+")


def _called_by(call: Call) -> Iterator[str]:
    """Yield the name that a call calls, and the words of a program's code, which calls some of them."""
    call = unwrapped(call)
    yield call.name
    if call.name == RUN_PROGRAM:
        with suppress(Malformed):
            match read_json(call.arguments):
                case {"code": str(code)}:
                    yield from _WORD.findall(code)


class Dispatcher:
    """The dispatcher that runs the calls of a reply."""

    def __init__(
        self,
        sources: ToolSources,
        settings: "TurnSettings",
        clock: "Clock",
        *,
        aliases: Mapping[str, Alias] | None = None,
    ) -> None:
        """Create the dispatcher of the calls of functions of these sources."""
        self._sources = sources
        self._settings = settings
        self._clock = clock
        self._aliases = aliases or {}

    async def run(
        self,
        calls: Sequence[Call],
        snapshot: "Snapshot",
        turn: Turn,
        current: Callable[[], "Snapshot"],
    ) -> list[Done]:
        """Answer every call; a call that cannot run is answered with the reason.

        Calls start in order, with the snapshot of the step. A function of the host waits for the calls before it: a
        program may read what they write. After it, which may have changed the snapshot, the calls that follow see the
        `current` one. A call of a name that does not exist yet waits for them. A change
        that is refused waits for the changes after it of what it uses.
        """
        accepted = calls[:MAX_CALLS]
        done: dict[str, Done] = {}
        work = turn.work.reply = ReplyWork(
            snapshot,
            await self._changes_of(accepted, snapshot, turn),
            [name for call in accepted for name in _called_by(call)],
        )
        tasks: list[asyncio.Task[Done]] = []
        late: list[Call] = []
        async with asyncio.TaskGroup() as group:
            for given in accepted:
                call = self._with_current_names(given, snapshot)
                if (callee := self.find(call.name, snapshot)) is None:
                    late.append(call)
                elif callee.is_parallel:
                    tasks.append(group.create_task(self._call(self._record(call, turn), callee)))
                else:
                    if tasks:
                        await asyncio.wait(tasks)
                    about = work.begin(call.id)
                    for settled in await work.give_up(about) if about else ():
                        done[settled.call.id] = settled
                    done[call.id] = await self._in_turn(call, callee, turn)
                    for settled in await work.settle():
                        done[settled.call.id] = settled
                    snapshot = current()
        done |= {result.call.id: result for result in (task.result() for task in tasks)}
        for call in (self._with_current_names(each, snapshot) for each in late):  # it may exist now
            done[call.id] = await self.answer(self._record(call, turn), snapshot)
        for call in (self._with_current_names(given, snapshot) for given in calls[len(accepted) :]):
            limit = (
                f"one reply may ask for {MAX_CALLS} calls; ask for this one again in the next step."
            )
            done[call.id] = await self._record(call, turn).close(Skipped(limit))
        return [done[call.id] for call in calls]

    async def _changes_of(
        self, calls: Sequence[Call], snapshot: "Snapshot", turn: Turn
    ) -> dict[str, str]:
        """Return the functions that calls will change, by their ids; those that the agent cannot see are left out."""
        changes: dict[str, str] = {}
        for call in (self._with_current_names(given, snapshot) for given in calls):
            callee = self.find(call.name, snapshot)
            if callee is None or not callee.about:
                continue
            arguments = await aside(
                len(call.arguments), self._record(call, turn).read, callee.function
            )
            name = arguments.get(callee.about) if isinstance(arguments, dict) else None
            if isinstance(name, str) and name not in snapshot.hidden:
                changes[call.id] = name
        return changes

    def started_at_once(self, calls: Sequence[Call], snapshot: "Snapshot") -> list[Entry]:
        """Return the entries of the calls that start right after the reply; they are stored with the reply."""
        starting: list[Entry] = []
        for asked in calls[:MAX_CALLS]:
            call = self._with_current_names(asked, snapshot)
            callee = self.find(call.name, snapshot)
            if callee is not None and not callee.is_parallel:
                break
            if callee is not None:
                starting.append(call_started(call, callee.version, unwrapped(asked).arguments))
        return starting[: self._settings.parallel]

    async def answer(self, record: CallRecord, snapshot: "Snapshot") -> Done:
        """Answer one call, also of a name that cannot be called."""
        if (callee := self.find(record.call.name, snapshot)) is not None:
            return await self._call(record, callee)
        call = record.call
        if why := await self._sources.refusal(call.name, snapshot, grows=record.turn.grows):
            return await record.close(Refused(""), why)
        record.is_waiting = call.name in record.turn.work.refused
        suggestions = nearest(call.name, self.names(snapshot), 3)
        text = answers.unknown_name(call.name, suggestions, grows=record.turn.grows)
        return await record.close(Refused(""), text)

    def names(self, snapshot: "Snapshot") -> list[str]:
        """Return the names of all functions that can be called."""
        return self._sources.names(snapshot)

    def find(self, name: str, snapshot: "Snapshot") -> ModelFunction | None:
        """Return the function with this name, or None if it cannot be called."""
        return self._sources.find(name, snapshot)

    def _with_current_names(self, call: Call, snapshot: "Snapshot") -> Call:
        """Return the call that a `call_function` wraps, or the call, with the current names of what it means.

        Old names of functions and parameters are replaced, unless a workspace function has the old name, and so is a
        name in the spelling of a model's template.
        """
        call = unwrapped(call)
        if call.name in snapshot.functions:
            return call
        alias = self._aliases.get(call.name)
        callee = self.find(alias.name, snapshot) if alias else None
        if alias is not None and callee is not None:
            own = callee.function.parameters.get("properties", {})
            names = {old: new for old, new in alias.arguments.items() if old not in own}
            return replace(call, name=alias.name, arguments=renamed(call.arguments, names))
        if self.find(call.name, snapshot) is None and (name := self.meant(call.name, snapshot)):
            return replace(call, name=name)
        return call

    def meant(self, name: str, snapshot: "Snapshot") -> str | None:
        """Return the function that a name means which is none; None if there is none, or more than one."""
        return meant(name, dict.fromkeys(self.names(snapshot), ()))

    async def _in_turn(self, call: Call, function: ModelFunction, turn: Turn) -> Done:
        """Answer a call that runs alone, unless the user has ended the turn."""
        record = self._record(call, turn)
        if turn.ending.interruption.requested:
            return await record.close(Skipped("the user ended the turn."))
        return await self._call(record, function)

    async def _call(self, record: CallRecord, function: ModelFunction) -> Done:
        call = record.call
        arguments = await aside(len(call.arguments), record.read, function.function)
        if not isinstance(arguments, dict):
            return await record.close(Refused(""), answers.bad_arguments(call.name, arguments))
        if function.snapshot is None and large_of(arguments):
            reason = (
                f"`{call.name}` gets no large values, because it is no function of the "
                f"workspace: pass less, or a part."
            )
            return await record.close(Refused(""), reason)
        return await function.call(arguments, record)

    def _record(self, call: Call, turn: Turn) -> CallRecord:
        return CallRecord(call, turn, self._clock, self._settings.answer_chars)


class WorkspaceFunctions(ToolSource):
    """The functions of a snapshot that are not in quarantine; up to `parallel` of them run concurrently."""

    def __init__(
        self,
        sandbox: "SandboxClient",
        functions: FunctionService,
        parallel: int,
        blocks: "Blocks | None" = None,
        agent: str = "",
    ) -> None:
        """Create the source; for failures in calls of other agents than `agent`, only their kind is disclosed."""
        self._sandbox = sandbox
        self._agent = agent
        self._functions = functions
        self._blocks = blocks
        self._slots = asyncio.Semaphore(parallel)

    def only_reads(self, _name: str, /) -> bool:
        """Return True: the grants of a call decide what it may do."""
        return True

    def names(self, snapshot: "Snapshot") -> Iterable[str]:
        """Return the names in the snapshot."""
        return snapshot.functions

    def find(self, name: str, snapshot: "Snapshot") -> ModelFunction | None:
        """Return the function of this name."""
        function = snapshot.functions.get(name)
        if function is None or self._functions.quarantine.holds(function):
            return None
        whole = snapshot.whole or snapshot
        call = partial(self._call_with_retries, function, whole)
        has_state = function.takes_self and shares_state(function, whole)
        return ModelFunction(function, call, function.version, not has_state, whole)

    async def refusal(self, name: str, snapshot: "Snapshot", *, grows: bool = True) -> str:
        """Return why a function in quarantine cannot be called."""
        function = snapshot.functions.get(name)
        if function is None:
            return ""
        return await self._functions.quarantine.refusal(function, (self._agent,), grows=grows)

    async def _call_with_retries(
        self,
        function: "Function",
        snapshot: "Snapshot",
        arguments: dict[str, Any],
        record: CallRecord,
    ) -> Done:
        """Call a function in a worker with its grants.

        If another call changed the state meanwhile, try again, unless this call has already had effects outside.
        """
        for tries_left in reversed(range(TRIES)):
            with suppress(StateConflict):
                return await self._call(
                    function, snapshot, arguments, record, is_last=not tries_left
                )
            record.did = Receipt()
        raise AssertionError("the last try returns")

    async def _call(
        self,
        function: "Function",
        snapshot: "Snapshot",
        arguments: dict[str, Any],
        record: CallRecord,
        *,
        is_last: bool,
    ) -> Done:
        turn, service = record.turn, self._functions
        states = service.states(turn.id, keeps=not turn.policy.only_reads)
        outcome: CallOutcome
        missing, was_refused = "", False
        decision: Permit | Denied | None = None
        near = dict.fromkeys(record.size_notes())
        debugging = self._sandbox.debugging
        watch = Watch(debugging, slot=await _shared_slot(turn, debugging, snapshot))
        watch.recording.turn, watch.recording.number = turn.id, record.number
        try:
            async with turn.ending.interruption:
                decision = await service.granting.during(record.approvals).permit(
                    function, snapshot, flow=record.flow, arguments=arguments
                )
                if not isinstance(decision, Denied):
                    async with self._slots:
                        await record.begin(function.version, reaches=bool(decision.grants))
                        granting = service.granting.during(record.approvals)
                        if self._blocks is not None:
                            record.memory = FunctionMemoryApi(self._blocks, turn.agent, turn.id)
                        asks = CallQuestions(turn.questions.queue.rows, turn, record)
                        requests = WorkerApi(
                            self._sandbox,
                            snapshot,
                            record.tell_progress,
                            granting,
                            memory=record.memory,
                            states=states,
                            watch=watch,
                            on_output=record.tell_printed,
                            did=record.did,
                            asks=asks,
                            near=near,
                            on_reach=record.note_reach,
                            flow=record.flow,
                            key=record.key,
                        )
                        try:
                            outcome = asks.ending_of(
                                await requests.run(function, arguments, decision)
                            )
                        finally:
                            record.stood += granting.stood + asks.stood
                        missing, was_refused = (
                            requests.lacking(outcome, decision),
                            requests.was_refused(outcome),
                        )
                        for name, large in large_of(arguments).items():
                            requests.note_size(f"The argument `{name}` of `{function.name}`", large)
                        if isinstance(outcome, Returned):
                            requests.note_size(f"The result of `{function.name}`", outcome.value)
        except StopRequested:
            outcome = InterruptedCall()
        finally:
            watch.close()
            record.stood += watch.notes.stood
        if isinstance(decision, Denied):  # not above: an interruption there would answer it again
            return await record.close(Refused(decision.text), decision.text)
        size, seconds = max(answers.size_of(outcome), len(record.call.arguments)), record.seconds()
        writes = await aside(
            size,
            noted,
            watch,
            function,
            snapshot,
            outcome,
            seconds=seconds,
            arguments=arguments,
            turn=turn.id,
        )
        unproven = (
            await service.ratings.unproven(function, snapshot)
            if isinstance(outcome, Returned)
            else ""
        )
        debugged = record.take_debug_notes(watch.notes, snapshot)
        note = "\n".join(filter(None, (missing, debugged, *record.take_size_notes(near))))
        text = await aside(size, answers.answer, outcome, MOST_CHARS, was_refused=was_refused)
        text = record.noted(text, note) if note else text
        kept = states.writes if isinstance(outcome, Returned) else ()
        seen = service.seen_results.note(function, outcome, turn.agent)
        try:
            return await record.close(
                outcome, text, writes=(*writes, *kept, *seen), unproven=unproven
            )
        except StateConflict as late:
            if not is_last and record.did.is_inside:
                raise
            done = "" if record.did.is_inside else " What it did outside is done."
            return await record.close(Refused(""), f"{late.message}{done} {late.fix}", writes)


ABOUT_AGENTS: Final = frozenset(
    {"list_agents", "message_agent", "ask_agent", "ask_agents", "hand_off"}
)
"""The host functions that are only shown to agents that may talk to others."""
GIVE: Final = "give_result"
"""The function with which a helper returns its result."""


class MakesHelpers(Protocol):
    """Actions on helpers for a model, which reads the returned texts. A rejection raises a UsageError."""

    async def create(self, name: str, table: Mapping[str, Any], reason: str) -> str:  # Any: JSON
        """Propose a new helper."""

    async def edit(self, name: str, old_text: str, new_text: str, reason: str) -> str:
        """Propose to replace one passage of a helper's file."""

    async def delete(self, name: str, reason: str) -> str:
        """Propose to delete a helper."""


async def _shared_slot(turn: Turn, debugging: Debugging, snapshot: "Snapshot") -> DebuggerSlot:
    """Return the place of a turn's debugger, whose stops all windows see.

    It is empty if nobody here has one, and no other window has set a breakpoint.
    """
    questions = turn.questions
    rows = questions.queue.rows
    slot = questions.slot or debugging.slot
    if rows is None:
        return slot
    if questions.debugger is None:
        await take_up_breakpoints(debugging, rows, snapshot)
        if slot.debugger is None and not debugging.taken_up:
            return slot
        questions.debugger = SharedDebugger(slot.debugger, rows, turn, debugging)
    return DebuggerSlot(questions.debugger, slot.one_at_a_time)
