"""Stops of a function that every window of the conversation shows: one of them steps, and another may take it over.

Each stop waits as a question by its id, like one about grants: a window answers it with a command, with that it takes
the function over, or with that it lets go of it. So a window in another process needs no more than the store.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import uuid4

from agent_core.base import events
from agent_core.base.errors import UsageError
from agent_core.base.records import dataclass, from_json, replace, to_json
from agent_core.base.untrusted import visible
from agent_core.functions.debug import Breakpoint, Command, DebugStop, Placed
from agent_core.storage import ApprovalStore, QuestionRow
from sandbox.wire.strict_json import Malformed, read_json

if TYPE_CHECKING:
    from agent_core.functions.debug import Debugger, Debugging
    from agent_core.registry.registry import Snapshot

KIND: Final = "stop"
"""The `kind` of a stored question that is a stop."""
_TAKE: Final = "take"
_RELEASE: Final = "release"
_LOOK_S: Final = 0.1
_COMES_S: Final = 3.0  # until a window has said that it steps what stopped at its breakpoint
_SET: Final = "break"
_BREAKPOINT: Final = "breakpoint "
_NOT_SENT: Final = ("source", "armed")  # each window has the functions itself


@dataclass(frozen=True, slots=True)
class OwnDebugger:
    """The debugger of a window, for what stops at its breakpoints in other processes."""

    window: str
    debugger: "Debugger"
    snapshot: Callable[[], "Snapshot"]


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

    def __init__(
        self,
        debugger: "Debugger | None",
        store: ApprovalStore,
        turn: StoppedTurn,
        debugging: "Debugging",
    ) -> None:
        """Create it; without a `debugger` here, only other windows are asked."""
        self._here = debugger
        self._store = store
        self._turn = turn
        self._debugging = debugging
        self._is_elsewhere = debugger is None
        self._is_taken = False  # whether another window has said that it steps
        self._is_alone = False  # whether the window that set a breakpoint did not come
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
        """Return the next command, of the window that steps.

        The window that set the breakpoint does, if it comes; else this one, or the function goes on.
        """
        window = self._window_of(stop)
        if window and not (self._is_taken or self._is_alone or stop.message):
            self._is_elsewhere = True
        while True:
            if self._here is None and self._is_alone:
                return Command("continue")
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
                    window=window,
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
            stop = replace(stop, message="")  # who steps from now on sees where it stands

    async def _first(self, id: str, stop: DebugStop) -> Command | None:
        """Return the first command; None if another window steps from now on."""
        self._taken_back.clear()
        back = asyncio.create_task(self._taken_back.wait())
        given = asyncio.create_task(_given(id, self._store))
        tasks: set[asyncio.Future[Any]] = {back, given}  # Any: of different results
        here: asyncio.Future[Command] | None = None
        if self._here is not None and not self._is_elsewhere:
            here = asyncio.ensure_future(self._here.stopped(stop))
            tasks.add(here)
        try:
            is_expected = self._is_elsewhere and not self._is_taken
            limit = None
            if is_expected:
                limit = _COMES_S
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED, timeout=limit)
            if here is not None and here.done():
                return here.result()
            if back.done():
                self._is_elsewhere = self._is_taken = False
                return None
            if given.done():
                return self._read(given.result())
            self._is_elsewhere = self._here is None
            self._is_alone = True
            await self._lapse(self._window_of(stop))
            return None
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _read(self, decision: Mapping[str, str]) -> Command | None:
        is_command = decision["answer"] == "yes"
        self._is_taken = is_command or decision["word"] == _TAKE
        self._is_elsewhere = self._is_taken or self._here is None
        if not is_command:
            return None
        return _command_of(decision["word"])

    async def _lapse(self, window: str) -> None:
        """Clear the breakpoints of a window that does not come: it was killed, or shows another conversation."""
        held = self._debugging.breakpoints.held
        taken_up = self._debugging.taken_up
        for row, id in [*taken_up.items()]:
            if id not in held or held[id].window == window:
                del taken_up[row]
                self._debugging.breakpoints.clear(id=id)
                await _drop(row, self._store)

    def _window_of(self, stop: DebugStop) -> str:
        """Return the window that set the breakpoint at which a function is stopped, if that is another one."""
        id = stop.why.removeprefix(_BREAKPOINT).partition(",")[0]
        if not id.isdecimal() or int(id) not in self._debugging.breakpoints.held:
            return ""
        return self._debugging.breakpoints.held[int(id)].window


class FollowedStops:
    """The stops of a turn that another process runs, for a window that may take them over."""

    def __init__(self, store: ApprovalStore, own_debugger: "OwnDebugger | None") -> None:
        self._store = store
        self._own = own_debugger
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
                if not event.is_elsewhere:  # the window that runs it has taken it back
                    self._debugger = None
                if self._debugger is not None:
                    self._asking = asyncio.create_task(self._ask(event, self._debugger))
                elif self._own is not None and event.window == self._own.window:
                    self._asking = asyncio.create_task(self._come(self._own))
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

    async def _come(self, own_debugger: "OwnDebugger") -> None:
        """Step what stopped at a breakpoint of this window, if nobody else does."""
        with suppress(UsageError):
            await self.take(own_debugger.debugger, own_debugger.snapshot())

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


# The breakpoints of people, told to other windows as questions that nobody answers, as long as they are set.


async def tell_breakpoints(
    debugging: "Debugging", store: ApprovalStore, snapshot: "Snapshot"
) -> None:
    """Tell other windows which breakpoints a person has set here."""
    own = dict[int, Placed]()
    for placed in debugging.breakpoints.placed(snapshot):
        point = placed.breakpoint
        if placed.line and point.by == "human" and not point.window:
            own[point.id] = placed
    pending = {row.id for row in await store.pending_questions()}
    for id, row in [*debugging.told.items()]:
        if id not in own or row not in pending:
            await _drop(debugging.told.pop(id), store)
    for id, placed in own.items():
        if id not in debugging.told:
            debugging.told[id] = await _tell(placed, debugging.window, store)


async def end_breakpoints(debugging: "Debugging", store: ApprovalStore) -> None:
    """Tell other windows that none of this one is set any longer."""
    for id in [*debugging.told]:
        await _drop(debugging.told.pop(id), store)


async def take_up_breakpoints(
    debugging: "Debugging", store: ApprovalStore, snapshot: "Snapshot"
) -> None:
    """Set the breakpoints here that other windows have set, and clear those that are not set there any longer."""
    told = dict[str, Mapping[str, Any]]()  # Any: JSON
    for row in await store.pending_questions():
        if row.question.get("kind") == _SET and row.question.get("window") != debugging.window:
            told[row.id] = row.question
    for gone in debugging.taken_up.keys() - told.keys():
        debugging.breakpoints.clear(id=debugging.taken_up.pop(gone))
    for id, asked in told.items():
        if id in debugging.taken_up:
            continue
        with suppress(UsageError, KeyError, TypeError, ValueError):  # the function is another one
            placed = debugging.breakpoints.arm(_point_of(asked), int(asked["line"]), snapshot)
            if placed.breakpoint.window:
                debugging.taken_up[id] = placed.breakpoint.id


async def _tell(placed: Placed, window: str, store: ApprovalStore) -> str:
    id = uuid4().hex
    point = placed.breakpoint
    asked = {
        "kind": _SET,
        "window": window,
        "function": point.function,
        "line": placed.line,
        "condition": point.condition,
        "after": point.after,
        "every": point.every,
        "once": point.once,
    }
    await store.ask_user(QuestionRow(id, "", f"{_SET}:{window}", asked))
    return id


async def _drop(id: str, store: ApprovalStore) -> None:
    await store.answer_question(id, _decision("no"))
    await store.take_answer(id)


def _point_of(asked: Mapping[str, Any]) -> Breakpoint:  # Any: JSON
    """Return the breakpoint of another window."""
    function = str(asked["function"])
    condition = str(asked["condition"])
    after = int(asked["after"])
    every = int(asked["every"])
    is_once = bool(asked["once"])
    window = str(asked["window"])
    return Breakpoint(
        0, function, "", 0, condition, (), after, every, is_once, by="human", window=window
    )
