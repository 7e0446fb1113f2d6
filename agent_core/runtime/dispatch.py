"""Answers each call by the function that it names, wherever that comes from.

Every call of a reply gets exactly one answer, whatever happens to it. A source of functions gives those that the model
can call now: those of the host, those of the workspace. Those that are parallel run at the same time, the others one
after another in their order.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from agent_core.base.clock import Clock
from agent_core.base.matching import nearest
from agent_core.base.messages import Call
from agent_core.base.offload import aside
from agent_core.base.settings import TurnSettings
from agent_core.functions import answers
from agent_core.functions.answers import Skipped
from agent_core.registry.arguments import renamed
from agent_core.registry.function import Function
from agent_core.registry.snapshot import Snapshot
from agent_core.storage import Entry
from sandbox import Refused

from .call_record import CallRecord, Done
from .turn import Turn, call_started


class ModelFunction(Protocol):
    """A function that the model can call."""

    @property
    def function(self) -> Function:
        """Its name and its schema."""

    @property
    def version(self) -> str | None:
        """The version that a call is recorded with, if it has any."""

    @property
    def is_parallel(self) -> bool:
        """True if its calls run at the same time as others; otherwise they run one after another."""

    async def call(self, arguments: dict[str, Any], record: CallRecord) -> Done:  # Any: JSON
        """Make the call of a record, which knows the turn, and close the record with its answer."""


class FunctionSource(Protocol):
    """Functions of one kind."""

    def names(self, snapshot: Snapshot) -> Iterable[str]:
        """Return the names of the functions that the model may know."""

    def find(self, name: str, snapshot: Snapshot) -> ModelFunction | None:
        """Return the function of this name, or None if it cannot be called."""

    async def refusal(self, name: str, snapshot: Snapshot) -> str:
        """Return why a known function cannot be called; empty if there is none of this name."""


class HostAlias(Protocol):
    """An older name of a host function, or of arguments of a host function."""

    @property
    def name(self) -> str:
        """The current name."""

    @property
    def arguments(self) -> Mapping[str, str]:
        """The current names of its arguments, by their older names."""


class Dispatcher:
    """Runs the calls of one reply."""

    def __init__(
        self,
        sources: Sequence[FunctionSource],
        current: Callable[[], Snapshot],
        settings: TurnSettings,
        clock: Clock,
        *,
        aliases: Mapping[str, HostAlias] | None = None,
    ) -> None:
        """Create the dispatcher: the first source that has a function gives it; `current` is the newest snapshot."""
        self._sources = sources
        self._current = current
        self._settings = settings
        self._clock = clock
        self._aliases = aliases or {}

    async def run(self, calls: Sequence[Call], snapshot: Snapshot, turn: Turn) -> list[Done]:
        """Answer every call; a call that cannot run is answered with the reason."""
        calls = [self._meant(call, snapshot) for call in calls]
        accepted = calls[: self._settings.max_calls]
        callees = [(call, callee) for call in accepted if (callee := self._find(call.name, snapshot)) is not None]
        async with asyncio.TaskGroup() as group:
            chain = group.create_task(self._in_order([pair for pair in callees if not pair[1].is_parallel], turn))
            tasks = [group.create_task(self._call(*pair, turn)) for pair in callees if pair[1].is_parallel]
        done = {result.call.id: result for result in [*chain.result(), *(task.result() for task in tasks)]}
        for call in calls:
            if call.id not in done:
                done[call.id] = await self._not_run(call, snapshot, turn, is_beyond=call not in accepted)
        return [done[call.id] for call in calls]

    def started_at_once(self, calls: Sequence[Call], snapshot: Snapshot) -> list[Entry]:
        """Return the entries for the calls that start as soon as the reply is on disk; they are written with it."""
        callees = [(call, self._find(call.name, snapshot)) for call in calls[: self._settings.max_calls]]
        starting = [call_started(call, callee.version) for call, callee in callees if callee and callee.is_parallel]
        return starting[: self._settings.parallel]

    def _find(self, name: str, snapshot: Snapshot) -> ModelFunction | None:
        return next(filter(None, (source.find(name, snapshot) for source in self._sources)), None)

    def _meant(self, call: Call, snapshot: Snapshot) -> Call:
        """Return the call with current names; a workspace function with an older name is meant itself."""
        alias = self._aliases.get(call.name)
        callee = self._find(alias.name, snapshot) if alias else None
        if alias is None or callee is None or call.name in snapshot.functions:
            return call
        own = callee.function.parameters.get("properties", {})
        names = {old: new for old, new in alias.arguments.items() if old not in own}
        return Call(call.id, alias.name, renamed(call.arguments, names))

    async def _in_order(self, callees: Sequence[tuple[Call, ModelFunction]], turn: Turn) -> list[Done]:
        results = []
        for call, callee in callees:
            if turn.interruption.requested:
                results.append(await self._record(call, turn).close(Skipped("the user ended the turn.")))
            else:
                results.append(await self._call(call, callee, turn))
        return results

    async def _call(self, call: Call, callee: ModelFunction, turn: Turn) -> Done:
        record = self._record(call, turn)
        arguments = await aside(len(call.arguments), record.read, callee.function)
        if not isinstance(arguments, dict):
            return await record.close(Refused(""), answers.bad_arguments(call.name, arguments))
        return await callee.call(arguments, record)

    def _record(self, call: Call, turn: Turn) -> CallRecord:
        return CallRecord(call, turn, self._clock, self._settings.answer_chars)

    async def _not_run(self, call: Call, snapshot: Snapshot, turn: Turn, *, is_beyond: bool) -> Done:
        """Answer a call beyond the limit or of an unknown name; this runs last, as other calls may have created it."""
        record = self._record(call, turn)
        if is_beyond:
            limit = f"one reply may ask for {self._settings.max_calls} calls; ask for this one again in the next step."
            return await record.close(Skipped(limit))
        for source in self._sources:
            if why := await source.refusal(call.name, snapshot):
                return await record.close(Refused(""), why)
        made_now = any(call.name in source.names(self._current()) for source in self._sources)
        names = [name for source in self._sources for name in source.names(snapshot)]
        suggestions = nearest(call.name, names, 3)
        return await record.close(Refused(""), answers.unknown_name(call.name, suggestions, made_now=made_now))
