"""Stops of a function that every window of the conversation shows: one of them steps, and another may take it over.

Each stop waits as a question by its id, like one about grants: a window answers it with a command, with that it takes
the function over, or with that it lets go of it. So a window in another process needs no more than the store.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import uuid4

from agent_core.base import events
from agent_core.base.errors import UsageError
from agent_core.base.records import from_json, replace, to_json
from agent_core.base.untrusted import visible
from agent_core.functions.debug import Command, DebuggerSlot, DebugStop
from agent_core.storage import ApprovalStore, QuestionRow
from sandbox.wire.strict_json import Malformed, read_json

if TYPE_CHECKING:
    from agent_core.functions.debug import Debugger
    from agent_core.registry.registry import Snapshot

    from .turn import Turn

KIND: Final = "stop"
"""The `kind` of a stored question that is a stop."""
_TAKE: Final = "take"
_RELEASE: Final = "release"
_LOOK_S: Final = 0.1
_NOT_SENT: Final = ("source", "armed")  # each window has the functions itself


class StoppedTurn(Protocol):
    """A turn in which a function stops."""

    id: str

    @property
    def agent(self) -> str:
        """The agent whose turn it is."""

    def tell(self, event: events.Event, /) -> None:
        """Notify the listeners."""


class SharedDebugger:
    """The debugger of a turn that runs here: it is asked, until another window takes a stop over."""

    def __init__(self, debugger: "Debugger", store: ApprovalStore, turn: StoppedTurn) -> None:
        self._here = debugger
        self._store = store
        self._turn = turn
        self._is_elsewhere = False
        self._taken_back = asyncio.Event()

    def take_back(self) -> None:
        """Step here again.

        Raises:
            UsageError: no function is stopped, or it is stepped here.
        """
        if not self._is_elsewhere:
            raise UsageError("No function is stepped in another window.")
        self._taken_back.set()

    async def stopped(self, stop: DebugStop) -> Command:
        """Return the next command, of the window that steps."""
        while True:
            id = uuid4().hex
            stopped_call = {"kind": KIND, "function": stop.call}
            await self._store.ask_user(
                QuestionRow(id, self._turn.agent, self._turn.id, stopped_call)
            )
            self._turn.tell(
                events.CallStopped(
                    question=id,
                    function=stop.call,
                    place=f"{stop.at.path}:{stop.at.line}",
                    why=stop.why,
                    stop=_written(stop),
                    is_elsewhere=self._is_elsewhere,
                )
            )
            try:
                command = await self._first(id, stop)
            finally:
                # Whoever asks for it elsewhere sees that it is gone.
                await self._store.answer_question(id, _decision("no"))
                await self._store.take_answer(id)
            if command is not None:
                return command

    async def _first(self, id: str, stop: DebugStop) -> Command | None:
        """Return the first command; None if another window steps from now on."""
        self._taken_back.clear()
        back = asyncio.create_task(self._taken_back.wait())
        given = asyncio.create_task(_given(id, self._store))
        tasks: set[asyncio.Future[Any]] = {back, given}  # Any: of different results
        here: asyncio.Future[Command] | None = None
        if not self._is_elsewhere:
            here = asyncio.ensure_future(self._here.stopped(stop))
            tasks.add(here)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if here is not None and here.done():
                return here.result()
            if back.done():
                self._is_elsewhere = False
                return None
            return self._read(given.result())
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _read(self, decision: Mapping[str, str]) -> Command | None:
        if decision["answer"] != "yes":
            self._is_elsewhere = decision["word"] == _TAKE
            return None
        self._is_elsewhere = True
        return _command_of(decision["word"])


class FollowedStops:
    """The stops of a turn that another process runs, for a window that may take them over."""

    def __init__(self, store: ApprovalStore) -> None:
        self._store = store
        self._stop: events.CallStopped | None = None
        self._debugger: Debugger | None = None
        self._snapshot: Snapshot | None = None
        self._asking: asyncio.Task[None] | None = None

    @property
    def are_ours(self) -> bool:
        """True if they are stepped here."""
        return self._debugger is not None

    def hear(self, event: events.Event) -> None:
        """Keep the stop that waits, and ask for a command if it is stepped here."""
        match event:
            case events.CallStopped():
                self._end_asking()
                self._stop = event
                if self._debugger is not None:
                    self._asking = asyncio.create_task(self._ask(event, self._debugger))
            case events.TurnEnded():
                self._end_asking()
                self._stop = self._debugger = None
            case _:
                pass

    async def take(self, debugger: "Debugger", snapshot: "Snapshot") -> None:
        """Step here from now on.

        Raises:
            UsageError: no function is stopped, or it is stepped here already.
        """
        if self._stop is None or self.are_ours:
            raise UsageError("No function is stopped in another window.")
        if not await self._store.answer_question(self._stop.question, _decision("no", _TAKE)):
            raise UsageError("The function went on meanwhile.")
        self._debugger = debugger
        self._snapshot = snapshot

    async def aclose(self) -> None:
        """Let go of a stop, which the window that runs the function steps again."""
        self._end_asking()
        if self.are_ours and self._stop is not None:
            await self._store.answer_question(self._stop.question, _decision("no", _RELEASE))
        self._debugger = None

    def _end_asking(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            self._asking = None

    async def _ask(self, event: events.CallStopped, debugger: "Debugger") -> None:
        here = asyncio.ensure_future(debugger.stopped(_read_stop(event.stop, self._snapshot)))
        gone = asyncio.create_task(_given(event.question, self._store))
        try:
            await asyncio.wait((here, gone), return_when=asyncio.FIRST_COMPLETED)
            if here.done():
                command = here.result()
                word = json.dumps([command.do, command.argument])
                await self._store.answer_question(event.question, _decision("yes", word))
            else:
                self._debugger = None  # it was taken back, or has ended
        finally:
            here.cancel()
            gone.cancel()
            await asyncio.gather(here, gone, return_exceptions=True)


async def _given(id: str, store: ApprovalStore) -> Mapping[str, str]:
    """Wait until a stop has an answer, and return it."""
    while (decision := await store.decision(id)) is None:  # noqa: ASYNC110 - another process answers it
        await asyncio.sleep(_LOOK_S)
    return decision


def _decision(answer: str, word: str = "") -> dict[str, str]:
    return {"answer": answer, "word": word, "by": "human"}


def _command_of(word: str) -> Command | None:
    """Return the command in an answer; None if it is none."""
    try:
        do, argument = read_json(word)
    except (Malformed, TypeError, ValueError):
        return None
    return Command(str(do), str(argument))


def _written(stop: DebugStop) -> dict[str, Any]:  # Any: JSON
    """Return a stop as it is sent to other windows."""
    told = to_json(replace(stop, source="", armed=frozenset()))
    return {name: value for name, value in told.items() if name not in _NOT_SENT}


def _read_stop(told: Mapping[str, Any], snapshot: "Snapshot | None") -> DebugStop:  # Any: JSON
    """Return a stop with the source that this window has."""
    stop: DebugStop = from_json(DebugStop, told)
    modules = snapshot.modules.values() if snapshot is not None else ()
    source = next((module.text for module in modules if module.path == stop.at.path), "")
    return replace(stop, source=visible(source))


def shared_slot(turn: "Turn", usual_slot: DebuggerSlot) -> DebuggerSlot:
    """Return the place of a turn's debugger, whose stops all windows see; it is empty if nobody here has one."""
    questions = turn.questions
    slot = questions.slot or usual_slot
    if slot.debugger is None or questions.queue.rows is None:
        return slot
    if questions.debugger is None:
        questions.debugger = SharedDebugger(slot.debugger, questions.queue.rows, turn)
    return DebuggerSlot(questions.debugger, slot.one_at_a_time)
