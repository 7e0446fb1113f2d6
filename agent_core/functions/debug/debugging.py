"""The debugger of one workspace, and its watch over one call and the calls that it makes.

Stops of several calls come to the human one after another; while one waits, its clock stands still.
"""

import asyncio
import json
import random
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from sandbox import CallEnded, CallHooks, Debug, DebugControl, Patient, RequestRefused
from sandbox.wire import caps

from . import stop
from .breakpoints import Breakpoints
from .halt import Halt, begun, why_of
from .recording import Recording, kept_call
from .stop import BreakpointRecord, Claim, Debugger, DebugStop, Reader, TraceLine

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.snapshot import Snapshot
    from agent_core.storage import SaveRecorded

    from ..answers import CallReport
    from .typed_line import Order

WAIT_S: Final = 1800.0
CHANGED: Final = "a human changed values at the debugger"
MOST_RECORDS, MOST_STOPS = 60, 2_000
Tracing = Literal["", "lines", "cover"]


@dataclass(slots=True)
class DebuggerSeat:
    """The place of the human at a debugger, who handles one stop at a time; it may be empty."""

    debugger: Debugger | None = None
    one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)


class Debugging:
    """The breakpoints of a workspace, the human at the debugger where a turn has none, and the calls that run."""

    def __init__(self, wait_s: float = WAIT_S, debugger: Debugger | None = None) -> None:
        self.breakpoints = Breakpoints()
        self.wait_s = wait_s
        self.seat = DebuggerSeat(debugger)  # where a turn has none of its own
        self._running: list[Watch] = []

    def watch(
        self,
        *,
        trace: Tracing = "",
        covers: tuple[str, str] | None = None,
        looks_back: bool = False,
        seat: DebuggerSeat | None = None,
    ) -> "Watch":
        """Return a watch over one call, with the human of its turn at the debugger or the usual one."""
        return Watch(self, trace, covers, looks_back=looks_back, seat=seat or self.seat)

    def break_now(self) -> list[str]:
        """Stop each running call at its next line, and return the functions that were reached.

        A human has to sit at the debugger: without one nothing is stopped.
        """
        return [
            watch.running[-1].function
            for watch in self._running
            if watch.seat.debugger is not None and watch.running and watch.running[-1].reins.stop_now()
        ]

    def stop_evaluation(self) -> bool:
        """End the expression that a worker evaluates for the user at a stop; return False if there is none."""
        return any(watch.stop_evaluation() for watch in self._running)

    @contextmanager
    def _at_work(self, watch: "Watch") -> Iterator[None]:
        self._running.append(watch)
        try:
            yield
        finally:
            self._running.remove(watch)


@dataclass(frozen=True, slots=True)
class Run:
    """A function of a call while it runs; its worker may only mention the breakpoints that it received."""

    function: str
    has_human: bool = False
    points: set[int] = field(default_factory=set)
    reins: DebugControl = field(default_factory=DebugControl)
    call_arguments: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON


class Watch:
    """One call as the debugger sees it: what is sent with it, its stops, its records, and what was reported."""

    def __init__(
        self,
        debugging: Debugging,
        trace: Tracing = "",
        covers: tuple[str, str] | None = None,
        *,
        looks_back: bool = False,
        seat: DebuggerSeat,
    ) -> None:
        self.seat = seat
        self._debugging = debugging
        self._trace: Tracing = trace
        self._covers = covers
        self._looks_back = looks_back
        self._halts: list[Halt] = []
        self._displayed: list[str] = []
        self._stops = 0
        self.was_quit = False  # by the human
        self.was_denied = False  # something that it had no grant for, so that its failure says nothing of it
        self.stood = 0.0  # seconds in which it waited for a human
        self.running: list[Run] = []  # each called by the one before
        self.changes: list[str] = []  # by the human, each with its place
        self.records: list[BreakpointRecord] = []
        self.passed = 0  # records beyond those that are kept
        self.lines: tuple[TraceLine, ...] = ()
        self.can_run: tuple[int, ...] = ()  # lines of the function with requested coverage
        self.is_cut = False
        self.recording = Recording(random.SystemRandom().getrandbits(48))

    @contextmanager
    def over(
        self,
        function: str,
        snapshot: "Snapshot",
        arguments: Mapping[str, Any] | None = None,  # Any: JSON
    ) -> Iterator[CallHooks]:
        """Yield what the worker of a function receives, while the function runs as part of the call."""
        is_first = not self.running
        points = tuple(self._debugging.breakpoints.points(snapshot)) if self._debugging.breakpoints else ()
        human = self.seat.debugger is not None
        needs_debug = points or human or self._trace
        debug = Debug(points, human, self._trace, self._covers, self._looks_back and is_first) if needs_debug else None
        around = CallHooks(self.recording.seed_of(len(self.running)), self.recording.zone_then, debug)
        reins = debug.reins if debug else DebugControl()
        self.running.append(Run(function, human, {point.id for point in points}, reins, arguments or {}))
        try:
            if is_first:
                with self._debugging._at_work(self):
                    yield around
            else:
                yield around
        finally:
            self.running.pop()

    async def answer(self, claim: Claim, snapshot: "Snapshot") -> Any:  # Any: None, an order, or Patient
        """Return the answer to a request from the debugger in the worker.

        Raises:
            CallEnded: it has no known shape, or is not what its worker was sent for: no debugger of ours says that.
        """
        try:
            return self._answer(claim, snapshot)
        except RequestRefused as refusal:
            raise CallEnded(f"its debugger was not heard: {refusal}") from refusal

    def _answer(self, claim: Claim, snapshot: "Snapshot") -> Any:  # Any: as above
        reader = Reader()
        match claim.get("event"):
            case "record":
                self._keep(claim, reader)
            case "traced":
                if not self._trace:
                    raise RequestRefused("no trace was asked for")
                self.lines = reader.many(claim.get("rows"), reader.line, caps.MOST_ROWS)
                self.can_run = reader.many(claim.get("lines", []), reader.number, caps.MOST_LINES)
                self.is_cut = bool(claim.get("cut"))
            case "stopped" if self.seat.debugger is not None and self._stops < MOST_STOPS:
                id, run = self._known(reader.number(claim.get("id", 0))), self.running[-1]
                stop = begun(claim, reader, run.function, snapshot, self._debugging.breakpoints)
                stop = replace(stop, why=why_of(claim, id), shown=self._shown(stop, snapshot))
                if len(self._debugging._running) > 1:
                    stop = replace(
                        stop,
                        call_arguments=reader.text(json.dumps(run.call_arguments, default=repr, ensure_ascii=False)),
                    )
                if not stop.frames:
                    raise RequestRefused("a stop has a frame")
                self._stops += 1
                return Patient(self._standing(self._begin(stop, id, snapshot)))
            case "answered" if self._halts:
                if self._halts[-1].heard(claim, reader):
                    self.recording.lack(CHANGED)
                    self.changes.append(self._halts[-1].change)
                return Patient(self._standing(self._go_on()))
            case _:
                return {"do": "continue"}
        return None

    async def _standing(self, order: Awaitable["Order"]) -> "Order":
        began = asyncio.get_running_loop().time()
        try:
            return await order
        finally:
            self.stood += asyncio.get_running_loop().time() - began

    def _known(self, id: int) -> int:
        """Return the number of a breakpoint that the worker received; 0 is none of them."""
        if id and id not in self.running[-1].points:
            raise RequestRefused("the debugger hears of breakpoints that this call was sent")
        return id

    def _shown(self, stop: DebugStop, snapshot: "Snapshot") -> tuple[tuple[str, str], ...]:
        """Return what a stop shows of the expressions that the user displays, here or with a breakpoint."""
        placed = self._debugging.breakpoints.placed(snapshot)
        expressions = {*self._displayed, *(text for placement in placed for text in placement.breakpoint.expressions)}
        return tuple((text, value) for text, value in stop.shown if text in expressions)

    def _keep(self, claim: Claim, reader: Reader) -> None:
        if self.running[-1].has_human:
            raise RequestRefused("a human is at the debugger: nothing is recorded")
        id = self._known(reader.number(claim.get("id")))
        if len(self.records) < MOST_RECORDS:
            self.records.append(reader.record(claim))
        else:
            self.passed += 1
        self._debugging.breakpoints.hit(id)

    async def _begin(self, stop: DebugStop, id: int, snapshot: "Snapshot") -> "Order":
        debugger = self.seat.debugger
        if debugger is None:
            return {"do": "continue"}
        self._debugging.breakpoints.hit(id)
        if not self._halts:
            await self.seat.one_at_a_time.acquire()
        self._halts.append(Halt(stop, debugger, self._debugging.breakpoints, snapshot, self._displayed))
        self._halts[-1].reins = self.running[-1].reins
        return await self._go_on()

    async def _go_on(self) -> "Order":
        """Ask the user until the worker has something to do; the stop is over when it continues, or when it cannot."""
        halt = self._halts[-1]
        order: Order = {}
        try:
            async with asyncio.timeout(self._debugging.wait_s):
                order = await halt.order()
        except CallEnded:
            self.was_quit = True
            raise
        except TimeoutError as error:
            waited = f"nobody said anything at its debugger for {self._debugging.wait_s / 60:g} minutes"
            raise CallEnded(waited) from error
        finally:
            if order.get("do") not in _LOOKS:
                self._over(halt)
        if order.get("do") == "break":
            self.running[-1].points.add(order["point"]["id"])
        return order

    def _over(self, halt: Halt) -> None:
        self._displayed = halt.displayed
        self._halts.remove(halt)
        if not self._halts:
            self.seat.one_at_a_time.release()

    @property
    def is_halted(self) -> bool:
        """True if the call stands at the debugger: what it does now, the user has typed."""
        return bool(self._halts)

    def note(self, snapshot: "Snapshot") -> str:
        """Return what the breakpoints recorded and what a human changed, for a model; empty if nothing."""
        changes = stop.changes(self.changes, self.stood)
        return "\n".join(filter(None, (changes, stop.records(self.records, self.passed, snapshot))))

    @property
    def was_stopped(self) -> bool:
        """True if the user controlled the call: how it ended then says nothing about the function."""
        return self._stops > 0

    def writes(
        self,
        function: "Function",
        snapshot: "Snapshot",
        arguments: Mapping[str, Any],
        report: "CallReport",
    ) -> list["SaveRecorded"]:
        """Return what is stored of the call for a replay, if it ran to an end."""
        return [] if self.was_quit else kept_call(self.recording, function, snapshot, arguments, report)

    def stop_evaluation(self) -> bool:
        """End the evaluation in the stopped worker; return False if there is none."""
        halt = self._halts[-1] if self._halts else None
        return halt is not None and not halt.is_asked and halt.reins is not None and halt.reins.stop_now()

    def close(self) -> None:
        """Close the watch after the call has ended, possibly in the middle of a stop."""
        for halt in list(self._halts):
            self._over(halt)


_LOOKS: Final = frozenset({"locals", "evaluate", "set", "act", "break", "clear"})
