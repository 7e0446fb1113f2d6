"""The debugger of one workspace, and its watch over one call with the calls that it makes.

Stops of several calls come to the human one after another; while one waits, its clock stands still.
"""

import asyncio
import json
import random
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from sandbox import Around, CallEnded, Debug, Patient, Reins, RequestRefused, caps

from ..registry.function import Function
from ..registry.snapshot import Snapshot
from ..storage import SaveRecorded
from . import halt as halting
from . import said
from .breakpoints import Breakpoints
from .claims import Claim, Line, Reader, Record
from .halt import Halt
from .recording import Recording, kept_call
from .spoken import Order
from .stop import Debugger, Stop

WAIT_S: Final = 1800.0
CHANGED: Final = "a human changed values at the debugger"
MOST_RECORDS, MOST_STOPS = 60, 2_000
Tracing = Literal["", "lines", "cover"]


class Debugging:
    """What is armed in a workspace, who sits at the debugger, and what runs."""

    def __init__(self, wait_s: float = WAIT_S) -> None:
        self.breakpoints = Breakpoints()
        self.debugger: Debugger | None = None
        self.wait_s = wait_s
        self._turn = asyncio.Lock()
        self._running: list[Watch] = []

    def watch(self, *, trace: Tracing = "", covers: tuple[str, str] | None = None, looks_back: bool = False) -> "Watch":
        """A watch over one call."""
        return Watch(self, trace, covers, looks_back=looks_back)

    def break_now(self) -> list[str]:
        """Stop what runs, at the next line of each; the functions that were reached.

        A human has to sit at the debugger: without one nothing is stopped.
        """
        if self.debugger is None:
            return []
        return [one.running[-1].function for one in self._running if one.running and one.running[-1].reins.stop_now()]

    def stop_evaluation(self) -> bool:
        """End the expression that a worker evaluates for a human at a stop; false where there is none."""
        return any(one.stop_evaluation() for one in self._running)

    @contextmanager
    def _at_work(self, watch: "Watch") -> Iterator[None]:
        self._running.append(watch)
        try:
            yield
        finally:
            self._running.remove(watch)


@dataclass(frozen=True, slots=True)
class Run:
    """A function of a call while it runs; its worker may speak of the breakpoints that it was sent, of no others."""

    function: str
    has_human: bool = False
    points: set[int] = field(default_factory=set)
    reins: Reins = field(default_factory=Reins)
    given: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON


class Watch:
    """One call as the debugger sees it: what it is sent along, its stops, its records, and what it heard."""

    def __init__(
        self, room: Debugging, trace: Tracing = "", covers: tuple[str, str] | None = None, *, looks_back: bool = False
    ) -> None:
        self._room = room
        self._trace: Tracing = trace
        self._covers = covers
        self._looks_back = looks_back
        self._halts: list[Halt] = []
        self._displayed: list[str] = []
        self._stops = 0
        self.was_quit = False  # by the human
        self.stood = 0.0  # seconds in which it waited for a human
        self.running: list[Run] = []  # each called by the one before
        self.records: list[Record] = []
        self.passed = 0  # records beyond those that are kept
        self.lines: tuple[Line, ...] = ()
        self.can_run: tuple[int, ...] = ()  # lines of the function whose coverage is asked for
        self.is_cut = False
        self.recording = Recording(random.SystemRandom().getrandbits(48))

    @contextmanager
    def over(
        self,
        function: str,
        snapshot: Snapshot,
        arguments: Mapping[str, Any] | None = None,  # Any: JSON
    ) -> Iterator[Around]:
        """While a function of the call runs: what its worker is sent along."""
        is_first = not self.running
        points = tuple(self._room.breakpoints.points(snapshot)) if self._room.breakpoints else ()
        human = self._room.debugger is not None
        wanted = points or human or self._trace
        debug = Debug(points, human, self._trace, self._covers, self._looks_back and is_first) if wanted else None
        around = Around(self.recording.seed_of(len(self.running)), self.recording.zone_then, debug)
        reins = debug.reins if debug else Reins()
        self.running.append(Run(function, human, {one.id for one in points}, reins, arguments or {}))
        try:
            if is_first:
                with self._room._at_work(self):
                    yield around
            else:
                yield around
        finally:
            self.running.pop()

    async def answer(self, claim: Claim, snapshot: Snapshot) -> Any:  # Any: None, an order, or Patient
        """The answer to a request of the debugger in the worker.

        Raises:
            CallEnded: it has no known shape, or is not what its worker was sent for: no debugger of ours says that.
        """
        try:
            return self._answer(claim, snapshot)
        except RequestRefused as refusal:
            raise CallEnded(f"its debugger was not heard: {refusal}") from refusal

    def _answer(self, claim: Claim, snapshot: Snapshot) -> Any:  # Any: as above
        reader = Reader()
        match claim.get("event"):
            case "record":
                self._keep(claim, reader)
            case "traced":
                self._traced(claim, reader)
            case "stopped" if self._room.debugger is not None and self._stops < MOST_STOPS:
                id, run = self._known(reader.number(claim.get("id", 0))), self.running[-1]
                stop = halting.begun(claim, reader, run.function, snapshot, self._room.breakpoints)
                stop = replace(stop, why=halting.why_of(claim, id), shown=self._shown(stop, snapshot))
                if len(self._room._running) > 1:
                    stop = replace(stop, given=reader.text(json.dumps(run.given, default=repr, ensure_ascii=False)))
                if not stop.frames:
                    raise RequestRefused("a stop has a frame")
                self._stops += 1
                return Patient(self._standing(self._begin(stop, id, snapshot)))
            case "answered" if self._halts:
                if self._halts[-1].heard(claim, reader):
                    self.recording.lack(CHANGED)
                return Patient(self._standing(self._go_on()))
            case _:
                return {"do": "continue"}
        return None

    async def _standing(self, order: Awaitable[Order]) -> Order:
        began = asyncio.get_running_loop().time()
        try:
            return await order
        finally:
            self.stood += asyncio.get_running_loop().time() - began

    def _known(self, id: int) -> int:
        """A breakpoint that the worker was sent, by its number; 0 is none of them."""
        if id and id not in self.running[-1].points:
            raise RequestRefused("the debugger hears of breakpoints that this call was sent")
        return id

    def _shown(self, stop: Stop, snapshot: Snapshot) -> tuple[tuple[str, str], ...]:
        """Return what a stop shows of the expressions that a human displays, here or with a breakpoint."""
        placed = self._room.breakpoints.placed(snapshot)
        wanted = {*self._displayed, *(text for each in placed for text in each.breakpoint.expressions)}
        return tuple((text, value) for text, value in stop.shown if text in wanted)

    def _keep(self, claim: Claim, reader: Reader) -> None:
        if self.running[-1].has_human:
            raise RequestRefused("a human is at the debugger: nothing is recorded")
        id = self._known(reader.number(claim.get("id")))
        if len(self.records) < MOST_RECORDS:
            self.records.append(reader.record(claim))
        else:
            self.passed += 1
        self._room.breakpoints.hit(id)

    def _traced(self, claim: Claim, reader: Reader) -> None:
        if not self._trace:
            raise RequestRefused("no trace was asked for")
        self.lines = reader.many(claim.get("rows"), reader.line, caps.MOST_ROWS)
        self.can_run = reader.many(claim.get("lines", []), reader.number, caps.MOST_LINES)
        self.is_cut = bool(claim.get("cut"))

    async def _begin(self, stop: Stop, id: int, snapshot: Snapshot) -> Order:
        debugger = self._room.debugger
        if debugger is None:
            return {"do": "continue"}
        self._room.breakpoints.hit(id)
        if not self._halts:
            await self._room._turn.acquire()
        self._halts.append(Halt(stop, debugger, self._room.breakpoints, snapshot, self._displayed))
        self._halts[-1].reins = self.running[-1].reins
        return await self._go_on()

    async def _go_on(self) -> Order:
        """Ask the human until the worker has something to do; the stop is over when it runs on, or when it cannot."""
        halt = self._halts[-1]
        order: Order = {}
        try:
            async with asyncio.timeout(self._room.wait_s):
                order = await halt.order()
        except CallEnded:
            self.was_quit = True
            raise
        except TimeoutError as error:
            waited = f"nobody said anything at its debugger for {self._room.wait_s / 60:g} minutes"
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
            self._room._turn.release()

    def note(self, snapshot: Snapshot) -> str:
        """What its breakpoints saw, for a model; empty if nothing."""
        return said.records(self.records, self.passed, snapshot)

    @property
    def was_stopped(self) -> bool:
        """Whether a human had the call in hand: how it ended says nothing of the function then."""
        return self._stops > 0

    def writes(
        self,
        function: Function,
        snapshot: Snapshot,
        arguments: Mapping[str, Any],
        outcome: Mapping[str, Any],
    ) -> list[SaveRecorded]:
        """What is kept of the call for a replay, if it went its way to an end; `outcome` in its published shape."""
        return [] if self.was_quit else kept_call(self.recording, function, snapshot, arguments, dict(outcome))

    def stop_evaluation(self) -> bool:
        """End what the worker that stands still evaluates; false where it does not."""
        halt = self._halts[-1] if self._halts else None
        return halt is not None and not halt.is_asked and halt.reins is not None and halt.reins.stop_now()

    def close(self) -> None:
        """The call has ended, perhaps in the middle of a stop."""
        for halt in list(self._halts):
            self._over(halt)


_LOOKS: Final = frozenset({"locals", "evaluate", "set", "act", "break", "clear"})
