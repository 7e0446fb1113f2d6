"""The debugger of one workspace, and its watch over one call and the calls that it makes.

The human handles the stops of several calls one at a time; while a call waits, its clock is stopped.
"""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Literal
from uuid import uuid4

from agent_core.base.errors import UsageError
from agent_core.base.records import dataclass, field, replace
from agent_core.base.untrusted import fence, visible
from sandbox import CallEnded, CallHooks, Debug, DebugControl, Patient, RequestRefused
from sandbox.wire import caps
from sandbox.wire.lines import bare_lines

from ..service.call_records import Recording, kept_call
from . import stop
from .stop import (
    BY_NAME,
    COMMANDS,
    RESUMING,
    BreakpointRecord,
    Breakpoints,
    Claim,
    Command,
    Debugger,
    DebugStop,
    Order,
    Placed,
    Reader,
    TraceLine,
    expression_of,
    order_of,
    typed_breakpoint,
)

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot
    from agent_core.storage import SaveRecorded

    from ..answers import CallReport


# One stop, until the command that ends it: the host answers some commands, the worker the others.

MOST_DIGITS: Final = 9
_MOST_TYPED: Final = 200
WHY: Final = frozenset(
    {
        "breakpoint",
        "breakpoint()",
        "step",
        "return",
        "waits",
        "yields",
        "exception",
        "raised",
        "break now",
    }
)
FAILED: Final = ", whose condition failed"
QUIT: Final = "its debugger was told to end it"


@dataclass(slots=True)
class Halt:
    """A stop, its debugger, and the expressions that are displayed at each stop; the call runs on `snapshot`."""

    stop: DebugStop
    debugger: Debugger
    breakpoints: Breakpoints
    snapshot: "Snapshot"
    displayed: list[str]
    waiting: Command = field(
        default_factory=lambda: Command("")
    )  # the command that the worker must answer
    is_setting: bool = False  # whether that command assigns a value
    reins: DebugControl | None = None  # controls the stopped worker
    is_asked: bool = False  # whether the human, not the worker, is asked
    listed: int = 0  # the last line that was listed
    done: str = ""  # the host's answer to the last order, shown instead of the worker's

    async def order(self) -> Order:
        """Return the next order for the worker.

        Raises:
            CallEnded: the human ends the call.
        """
        while True:
            self.is_asked = True
            command = await self.debugger.stopped(self.stop)
            self.is_asked = False
            self.stop, self.done = replace(self.stop, message=""), ""
            if command.do == "quit":
                raise CallEnded(QUIT)
            result: Order | str
            try:
                if command.do in RESUMING:
                    result = self._resume_order(command)
                elif act := _ACTS.get(command.do):
                    result = act(self, command.argument)
                else:
                    result = f"There is no command `{visible(command.do[:40])}`."
            except UsageError as error:
                result = str(error)
            if not isinstance(result, str):
                self.waiting, self.is_setting = command, result["do"] in ("set", "act")
                return result
            self.stop = replace(self.stop, message=result)

    def heard(self, claim: Claim, reader: Reader) -> bool:
        """Process the worker's answer to the last order; return whether a local has changed."""
        text = reader.text(claim.get("text", ""))
        has_changed = (self.is_setting and not text) or claim.get("changed") is True
        if "locals" in claim:
            names = reader.many(
                claim.get("names"),
                lambda name: reader.text(name, caps.MOST_SEEN_NAME),
                caps.MOST_NAMES,
            )
            self.stop = replace(
                self.stop,
                locals=reader.pairs(claim["locals"]),
                arguments=reader.number(claim.get("arguments")),
                names=names,
            )
            if self.waiting.do in ("up", "down"):
                text = _place(self.stop)
            else:
                count = self.stop.arguments if self.waiting.do == "args" else len(self.stop.locals)
                text = (
                    "\n".join(f"{name} = {value}" for name, value in self.stop.locals[:count])
                    or "none"
                )
        self.stop = replace(self.stop, message=self.done or text or "done")
        return has_changed

    @property
    def change(self) -> str:
        """A line about the last change: where the call was stopped, and what the human typed."""
        typed = self.waiting.argument.strip()
        name, _, expression = typed.partition(" ")
        if self.waiting.do == "set":
            typed = f"{name} = {expression.strip().removeprefix('=').strip()}"
        return f"{_place(self.stop)}: {fence(typed, _MOST_TYPED)}"

    def _resume_order(self, command: Command) -> Order:
        line = command.argument.strip()
        if line and (command.do != "until" or not line.isdecimal()):
            raise UsageError(
                f"`{command.do}` takes {'a line' if command.do == 'until' else 'nothing'}."
            )
        return {"do": command.do, "line": int(line or 0), "shown": self.displayed}

    def _look(self, step: int) -> Order | str:
        frame = self.stop.current + step
        if not 0 <= frame < len(self.stop.frames):
            return "This is the outermost frame." if step < 0 else "This is the innermost frame."
        path, self.listed = self.stop.frames[frame].path, 0
        self.stop = replace(
            self.stop, current=frame, **_source(path, self.snapshot, self.breakpoints)
        )
        return {"do": "locals", "frame": frame}

    def _evaluate(self, text: str, *, pretty: bool = False) -> Order:
        return {**order_of(text, self.stop.names), "frame": self.stop.current, "pretty": pretty}

    def _set(self, argument: str) -> Order:
        name, _, expression = argument.partition(" ")
        expression = expression.strip().removeprefix("=").strip()
        if not expression:
            raise UsageError("`set` needs a name and a value.", fix="For example: set total 0")
        return {
            "do": "set",
            "name": name,
            "expression": expression_of(expression),
            "frame": self.stop.current,
        }

    def _where(self, _argument: str) -> str:
        rows: list[str] = []
        for number, frame in enumerate(self.stop.frames):
            mark = "→" if number == self.stop.current else " "
            given = f"({frame.arguments})" if frame.arguments else ""
            rows.append(f"{mark} {frame.path}:{frame.line} in {frame.function}{given}")
        return "\n".join(rows)

    def _list(self, argument: str) -> str:
        """List the given lines, those around a line, or those after the last listed."""
        first, comma, last = (part.strip() for part in argument.partition(","))
        begin, end = self.listed + 1, self.listed + 11
        if argument == "." or not (argument or self.listed):
            begin, end = self.stop.at.line - 5, self.stop.at.line + 5
        elif argument:
            if (
                not first.isdecimal()
                or (comma and not last.isdecimal())
                or len(argument) > 2 * MOST_DIGITS
            ):
                raise UsageError(
                    "`list` takes nothing, a dot, a line, or two.", fix="For example: l 10,14"
                )
            begin, end = int(first), int(last or 0)
            if not comma:
                begin, end = begin - 5, begin + 5
            elif end < begin:
                end += begin
        lines, self.listed = self.stop.lines(begin, end), end
        return (
            _numbered_lines(self.stop, lines)
            if lines
            else f"{self.stop.at.path} has no line {begin}."
        )

    def _longlist(self, _argument: str) -> str:
        owner = self._owner()
        if owner is None:
            return _numbered_lines(self.stop, self.stop.listing(20))
        lines = bare_lines(self.stop.source)[owner.line - 1 : owner.end_line]
        return _numbered_lines(self.stop, enumerate(lines, owner.line))

    def _break(self, argument: str, *, once: bool = False) -> Order | str:
        if not argument:
            return (
                "\n".join(
                    visible(placement.text) for placement in self.breakpoints.placed(self.snapshot)
                )
                or "none"
            )
        spec, line = typed_breakpoint(argument, once=once)
        if not spec.function:
            owner = self._owner(line) or self._owner()
            spec = replace(
                spec, function=owner.name if owner else self.stop.at.function.split(".")[0]
            )
        return self._arm_order(self.breakpoints.arm(spec, line, self.snapshot))

    def _arm_order(self, placed: Placed, **more: bool) -> Order | str:
        """Return the order to set the breakpoint in the worker, or the breakpoint as text if its line is gone."""
        points = {point.id: point for point in self.breakpoints.points(self.snapshot)}
        point = points.get(placed.breakpoint.id)
        if point is None:
            return visible(placed.text)
        self.stop = replace(
            self.stop, **_source(self.stop.at.path, self.snapshot, self.breakpoints)
        )
        self.done = visible("\n".join(filter(None, (placed.text, placed.moved))))
        return {"do": "break", "point": point.to_json(), **more}

    def _condition(self, argument: str) -> Order | str:
        number, _, condition = argument.partition(" ")
        placement = self.breakpoints.change(
            _read_number(number), self.snapshot, condition=condition.strip()
        )
        return self._arm_order(placement, goes_on=True)

    def _ignore(self, argument: str) -> Order | str:
        number, _, times = argument.partition(" ")
        return self._arm_order(
            self.breakpoints.change(
                _read_number(number), self.snapshot, after=_read_number(times.strip())
            )
        )

    def _owner(self, line: int = 0) -> "Function | None":
        """Return the function that contains a line of this file; 0 means the current line."""
        path, line = self.stop.at.path, line or self.stop.at.line
        of_file = (
            function for function in self.snapshot.functions.values() if function.path == path
        )
        return next(
            (function for function in of_file if function.line <= line <= function.end_line), None
        )

    def _clear(self, argument: str) -> Order | str:
        matches = (
            self.breakpoints.clear(id=int(argument))
            if argument.isdecimal() and int(argument)
            else []
        )
        if not matches:
            return f"There is no breakpoint {visible(argument[:20])}."
        self.done = f"Breakpoint {argument} of {matches[0].breakpoint.function} is cleared."
        self.stop = replace(
            self.stop, **_source(self.stop.at.path, self.snapshot, self.breakpoints)
        )
        return {"do": "clear", "id": int(argument)}

    def _display(self, expression: str) -> Order:
        order = self._evaluate(expression_of(expression))
        self.displayed = [*dict.fromkeys([*self.displayed, expression])]
        return order

    def _undisplay(self, expression: str) -> str:
        was_displayed = expression in self.displayed
        self.displayed = [entry for entry in self.displayed if entry != expression]
        return f"`{visible(expression[:80])}` is {'no longer shown' if was_displayed else 'not shown at stops'}."


_ACTS: Final[dict[str, Callable[[Halt, str], Order | str]]] = {
    "up": lambda halt, _: halt._look(-1),
    "down": lambda halt, _: halt._look(1),
    "where": Halt._where,
    "list": Halt._list,
    "longlist": Halt._longlist,
    "p": Halt._evaluate,
    "pp": lambda halt, argument: halt._evaluate(argument, pretty=True),
    "args": lambda halt, _: {"do": "locals", "frame": halt.stop.current},
    "locals": lambda halt, _: {"do": "locals", "frame": halt.stop.current},
    "set": Halt._set,
    "break": Halt._break,
    "tbreak": lambda halt, argument: halt._break(argument, once=True),
    "condition": Halt._condition,
    "ignore": Halt._ignore,
    "clear": Halt._clear,
    "display": Halt._display,
    "undisplay": Halt._undisplay,
    "retval": lambda halt, _: (
        halt.stop.value if halt.stop.value is not None else "Nothing is being returned here."
    ),
    "whatis": lambda halt, text: halt._evaluate(f"({expression_of(text)}).__class__"),
    "help": lambda _, argument: _help(argument),
}


def _help(name: str) -> str:
    if not name:
        rows = [
            (command, command.short if command.short != command.name else "")
            for command in COMMANDS
        ]
        return "\n".join(
            f"{command.name:10} {short:4} {command.description}" for command, short in rows
        )
    command = BY_NAME.get(name)
    if command is None:
        raise UsageError(f"There is no command `{visible(name[:40])}`.", fix="`help` lists them.")
    example = f"\nFor example: {command.example}" if command.example else ""
    return (
        f"{', '.join(dict.fromkeys((command.name, command.short)))}: {command.description}{example}"
    )


def _source(
    path: str, snapshot: "Snapshot", breakpoints: Breakpoints
) -> Mapping[str, Any]:  # Any: fields of a Stop
    text = next(
        (visible(module.text) for module in snapshot.modules.values() if module.path == path), ""
    )
    armed = frozenset(
        placement.line for placement in breakpoints.placed(snapshot) if placement.path == path
    )
    return {"source": text, "armed": armed}


def _place(stop: DebugStop) -> str:
    return f"{stop.at.path}:{stop.at.line} in {stop.at.function}"


def _numbered_lines(stop: DebugStop, lines: Any) -> str:  # Any: pairs of number and text
    marks = dict.fromkeys(stop.armed, "B") | {stop.at.line: "→"}
    return "\n".join(
        f"{number:4} {marks.get(number, ' ')} {text}".rstrip() for number, text in lines
    )


def _read_number(text: str) -> int:
    if not text.isdecimal() or len(text) > MOST_DIGITS:
        raise UsageError(
            f"`{visible(text[:20])}` is not a number that counts something.",
            fix="For example: ignore 1 20",
        )
    return int(text)


WAIT_S: Final = 1800.0
CHANGED: Final = "values were changed at the debugger"
MOST_RECORDS, MOST_STOPS = 60, 2_000
Tracing = Literal["", "lines", "cover"]


@dataclass(slots=True)
class DebuggerSlot:
    """The place of the human at a debugger, who handles one stop at a time; it may be empty."""

    debugger: Debugger | None = None
    one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)


class Debugging:
    """The breakpoints of a workspace, its default debugger, and the running calls."""

    def __init__(self, wait_s: float = WAIT_S, debugger: Debugger | None = None) -> None:
        self.breakpoints = Breakpoints()
        self.wait_s = wait_s
        self.slot = DebuggerSlot(debugger)  # for turns without their own
        self.window = uuid4().hex
        self.told: dict[int, str] = {}
        """The breakpoints of people here of which other windows know, by id, with the question that tells of each."""
        self.taken_up: dict[str, int] = {}
        """The breakpoints of other windows that stop functions here, by that question."""
        self._running: list[Watch] = []

    def break_now(self) -> list[str]:
        """Stop each running call at its next line, and return the functions that were reached.

        Without a human at the debugger, nothing is stopped.
        """
        return [
            watch.running[-1].function
            for watch in self._running
            if watch.slot.debugger is not None
            and watch.running
            and watch.running[-1].reins.stop_now()
        ]

    def stop_evaluation(self) -> bool:
        """Stop the expression that a worker evaluates for the user at a stop; return False if there is none."""
        return any(watch.stop_evaluation() for watch in self._running)


@dataclass(frozen=True, slots=True)
class Run:
    """A function of a call while it runs; its worker may only refer to breakpoints that it was sent."""

    function: str
    has_human: bool = False
    points: set[int] = field(default_factory=set)
    reins: DebugControl = field(default_factory=DebugControl)
    call_arguments: Mapping[str, Any] = field(default_factory=dict)  # Any: JSON


@dataclass(slots=True)
class DebugNotes:
    """What breakpoints recorded in calls, and what a human changed there."""

    records: list[BreakpointRecord] = field(default_factory=list)
    passed: int = 0  # number of records beyond the limit
    changes: list[str] = field(default_factory=list)  # by the human, each with its place
    stood: float = 0.0  # seconds spent waiting for a human

    def note(self, record: BreakpointRecord) -> None:
        """Keep a record, if there is room."""
        if len(self.records) < MOST_RECORDS:
            self.records.append(record)
        else:
            self.passed += 1

    def add(self, notes: "DebugNotes") -> None:
        """Add the notes of another call."""
        for record in notes.records:
            self.note(record)
        self.passed += notes.passed
        self.changes += notes.changes
        self.stood += notes.stood

    def text(self, snapshot: "Snapshot") -> str:
        """Return the notes for a model; empty if there are none."""
        parts = [stop.changes(self.changes, self.stood)] if self.changes else []
        parts += [stop.records(self.records, self.passed, snapshot)] if self.records else []
        return "\n".join(parts)


class Watch:
    """One call from the debugger's view: what is sent with it, its stops, its records, and reports."""

    def __init__(
        self,
        debugging: Debugging,
        trace: Tracing = "",
        covers: tuple[str, str] | None = None,
        *,
        looks_back: bool = False,
        slot: DebuggerSlot | None = None,
        trace_for: stop.By = "agent",
    ) -> None:
        """Create the watch, with the debugger of a turn in its `slot`, or the default one."""
        self.slot = slot or debugging.slot
        self._debugging = debugging
        self._trace: Tracing = trace
        self._covers = covers
        self._looks_back = looks_back
        self._trace_for = trace_for
        self._halts: list[Halt] = []
        self._displayed: list[str] = []
        self._stops = 0
        self.was_quit = False  # whether the human ended it
        self.was_denied = False  # whether a grant was missing, so that a failure does not count against the function
        self.running: list[Run] = []  # each called by the previous one
        self.notes = DebugNotes()
        self.lines: tuple[TraceLine, ...] = ()
        self.can_run: tuple[int, ...] = ()  # executable lines of the function to cover
        self.is_cut = False
        self.recording = Recording(random.SystemRandom().getrandbits(48))

    @contextmanager
    def over(
        self,
        function: str,
        snapshot: "Snapshot",
        arguments: Mapping[str, Any] | None = None,  # Any: JSON
        *,
        may_have_secret: bool = True,
    ) -> Iterator[CallHooks]:
        """Yield the hooks that the worker of a function receives, while the function runs as part of the call."""
        is_first = not self.running
        points = (
            tuple(self._debugging.breakpoints.points(snapshot))
            if self._debugging.breakpoints.held
            else ()
        )
        human = self.slot.debugger is not None
        needs_debug = points or human or self._trace
        looks_back = self._looks_back and is_first
        options = self._trace, self._covers, looks_back, self._trace_for
        debug = Debug(points, human, *options) if needs_debug else None
        seed, zone = self.recording.seed_of(len(self.running)), self.recording.zone_then
        around = CallHooks(seed, zone, debug, may_have_secret)
        reins = debug.reins if debug else DebugControl()
        self.running.append(
            Run(function, human, {point.id for point in points}, reins, arguments or {})
        )
        if is_first:
            self._debugging._running.append(self)
        try:
            yield around
        finally:
            if is_first:
                self._debugging._running.remove(self)
            self.running.pop()

    async def answer(
        self, claim: Claim, snapshot: "Snapshot"
    ) -> Any:  # Any: None, an order, or Patient
        """Return the answer to a request from the debugger in the worker.

        Raises:
            CallEnded: the request is malformed or unexpected, so it does not come from our debugger.
        """
        try:
            return self._answer(claim, snapshot)
        except RequestRefused as refusal:
            raise CallEnded(f"its debugger was not heard: {refusal}") from refusal

    def _answer(self, claim: Claim, snapshot: "Snapshot") -> Any:  # Any: as above
        reader = Reader()
        match claim.get("event"):
            case "record":
                if self.running[-1].has_human:
                    raise RequestRefused("the call is at the debugger: nothing is recorded")
                id = self._require_known(reader.number(claim.get("id")))
                self.notes.note(reader.record(claim))
                self._debugging.breakpoints.hit(id)
            case "traced":
                if not self._trace:
                    raise RequestRefused("no trace was asked for")
                self.lines = reader.many(claim.get("rows"), reader.line, caps.MOST_ROWS)
                self.can_run = reader.many(claim.get("lines", []), reader.number, caps.MOST_LINES)
                self.is_cut = bool(claim.get("cut"))
            case "stopped" if self.slot.debugger is not None and self._stops < MOST_STOPS:
                id = self._require_known(reader.number(claim.get("id", 0)))
                stop = self._read_stop(claim, reader, id, snapshot)
                self._stops += 1
                self._note_stop(stop, id)
                return Patient(self._standing(self._begin(stop, id, snapshot)))
            case "answered" if self._halts:
                if self._halts[-1].heard(claim, reader):
                    self.recording.omit(CHANGED)
                    self.notes.changes.append(self._halts[-1].change)
                return Patient(self._standing(self._go_on()))
            case _:
                return {"do": "continue"}
        return None

    def _read_stop(self, claim: Claim, reader: Reader, id: int, snapshot: "Snapshot") -> DebugStop:
        """Return the stop that a worker reports, in the host's words; `id` is the breakpoint's, or 0."""
        run, breakpoints = self.running[-1], self._debugging.breakpoints
        frames = reader.many(claim.get("frames"), reader.at, caps.MOST_STACK)
        value, error = claim.get("value"), claim.get("error")
        stop = DebugStop(
            run.function,
            "",
            frames,
            len(frames) - 1,
            reader.pairs(claim.get("locals")),
            reader.number(claim.get("arguments")),
            reader.many(
                claim.get("names"),
                lambda name: reader.text(name, caps.MOST_SEEN_NAME),
                caps.MOST_NAMES,
            ),
            reader.pairs(claim.get("shown")),
            None if value is None else reader.text(value, caps.MOST_SEEN_RESULT),
            None if error is None else reader.text(error, caps.MOST_SEEN_RESULT),
            is_first=not self._stops,
            **_source(frames[-1].path if frames else "", snapshot, breakpoints),
        )
        why, call_arguments = claim.get("why"), ""
        if not isinstance(why, str):
            raise RequestRefused("a stop has a reason")
        if id:
            why = f"breakpoint {id}{FAILED if why.endswith(FAILED) else ''}"
        elif why not in WHY:
            raise RequestRefused("a stop has one of the reasons that a debugger stops for")
        of_breakpoints = (
            text
            for placed in breakpoints.placed(snapshot)
            for text in placed.breakpoint.expressions
        )
        displayed = {*self._displayed, *of_breakpoints}
        shown = tuple((text, value) for text, value in stop.shown if text in displayed)
        if len(self._debugging._running) > 1:
            call_arguments = reader.text(
                json.dumps(run.call_arguments, default=repr, ensure_ascii=False)
            )
        if not frames:
            raise RequestRefused("a stop has a frame")
        return replace(stop, why=why, shown=shown, call_arguments=call_arguments)

    async def _standing(self, order: Awaitable["Order"]) -> "Order":
        began = asyncio.get_running_loop().time()
        try:
            return await order
        finally:
            self.notes.stood += asyncio.get_running_loop().time() - began

    def _note_stop(self, stop: DebugStop, id: int) -> None:
        """Record the values of a human's stop if an agent set the breakpoint: it reads them in the answer."""
        point = self._debugging.breakpoints.held.get(id)
        if point is not None and point.by == "agent":
            hits = 1 + sum(record.id == id for record in self.notes.records)
            self.notes.note(BreakpointRecord(id, hits, stop.at, stop.locals, stop.shown))

    def _require_known(self, id: int) -> int:
        """Return the ID of a breakpoint that the worker was sent, or 0 for none."""
        if id and id not in self.running[-1].points:
            raise RequestRefused("the debugger hears of breakpoints that this call was sent")
        return id

    async def _begin(self, stop: DebugStop, id: int, snapshot: "Snapshot") -> "Order":
        debugger = self.slot.debugger
        if debugger is None:
            return {"do": "continue"}
        self._debugging.breakpoints.hit(id)
        if not self._halts:
            await self.slot.one_at_a_time.acquire()
        self._halts.append(
            Halt(stop, debugger, self._debugging.breakpoints, snapshot, self._displayed)
        )
        self._halts[-1].reins = self.running[-1].reins
        return await self._go_on()

    async def _go_on(self) -> "Order":
        """Ask the user until there is an order for the worker; the stop ends when the call continues or cannot."""
        halt = self._halts[-1]
        order: Order = {}
        try:
            async with asyncio.timeout(self._debugging.wait_s):
                order = await halt.order()
        except CallEnded:
            self.was_quit = True
            raise
        except TimeoutError as error:
            waited = (
                f"nobody said anything at its debugger for {self._debugging.wait_s / 60:g} minutes"
            )
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
            self.slot.one_at_a_time.release()

    @property
    def is_halted(self) -> bool:
        """True if the call is stopped at the debugger: what it does now was typed by the user."""
        return bool(self._halts)

    @property
    def was_stopped(self) -> bool:
        """True if the user controlled the call, so that its outcome says nothing about the function."""
        return self._stops > 0

    def writes(
        self,
        function: "Function",
        snapshot: "Snapshot",
        arguments: Mapping[str, Any],
        report: "CallReport",
    ) -> list["SaveRecorded"]:
        """Return the record of the call for a replay, unless the user ended it."""
        return (
            []
            if self.was_quit
            else kept_call(self.recording, function, snapshot, arguments, report)
        )

    def stop_evaluation(self) -> bool:
        """Stop the evaluation in the stopped worker; return False if there is none."""
        halt = self._halts[-1] if self._halts else None
        return (
            halt is not None
            and not halt.is_asked
            and halt.reins is not None
            and halt.reins.stop_now()
        )

    def close(self) -> None:
        """Close the watch after the call has ended, possibly during a stop."""
        for halt in list(self._halts):
            self._over(halt)


_LOOKS: Final = frozenset({"locals", "evaluate", "set", "act", "break", "clear"})
