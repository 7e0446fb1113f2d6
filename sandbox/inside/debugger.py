"""The debugger in a worker. It is active only if something is armed, and reports to the host.

With a human, a stop is a request, and the answers are commands until one resumes the function. Without a human, a stop
is only recorded: the first records are sent at once, the last one with the number of hits at the end.
"""

import builtins
import importlib.machinery
import importlib.util
import signal
import sys
import threading
from collections.abc import Iterable
from dataclasses import fields
from types import CodeType, FrameType, ModuleType, TracebackType
from typing import Any, ClassVar, Final

from ..wire import caps
from ..wire.protocol import Frame
from .channel import Channel
from .debug_stop import EVALUATING, HIT, ArmedPoint, StackStop, by_function, plain_function, woven
from .debug_trace import RESUMING, Stepper, Tracer, Why, lines_of_code
from .edge import attempt
from .failure import clean, shown

FIRST: Final = 8  # records of a breakpoint that are sent at once
_FIELDS: Final = {field.name for field in fields(ArmedPoint)} - {"hits", "off"}


def stand_by() -> None:
    """Route the signal of `break now` to the current debugger. This must be called before the worker is confined.

    While an expression is evaluated for a human, the signal interrupts the evaluation.
    """
    signal.signal(signal.SIGUSR1, _now)


def _now(_number: int, frame: FrameType | None) -> None:
    stop_at(frame)


def stop_at(frame: FrameType | None) -> None:
    """Interrupt an evaluation, or stop function code at a frame, for `break now`."""
    if EVALUATING.interrupt(frame, Channel.ask.__code__.co_filename):
        return
    if WorkerDebugger.present is not None and frame is not None:
        WorkerDebugger.present.stop_now(frame)


class WorkerDebugger:
    """The armed breakpoints of one worker, and its channel to the host."""

    present: ClassVar["WorkerDebugger | None"] = None  # the one that gets the signal

    def __init__(self, channel: Channel, own_paths: set[str]) -> None:
        self._channel = channel
        self._own_paths = own_paths
        self._points: dict[int, ArmedPoint] = {}
        self._restore: list[tuple[Any, CodeType]] = []  # Any: functions
        self._waiting: dict[str, list[list[ArmedPoint]]] = {}  # by the name of a module that is not imported yet
        self._slow: dict[tuple[CodeType, int], list[ArmedPoint]] = {}
        self._steppers: dict[int, Stepper] = {}
        self._one_at_a_time = threading.RLock()
        self._replaced: set[int] = set()  # breakpoints with inserted calls that no longer count
        self._last: dict[tuple[object, ...], Frame] = {}
        self._hits: dict[tuple[str, int], int] = {}  # of each `breakpoint()`
        self._is_quiet = True
        self._displayed: list[str] = []
        self._woven: set[tuple[str, int]] = set()
        self._has_human = False
        self._is_refused = False
        self._looks_back = False
        self._tracer: Tracer | None = None
        self._covered: list[str] | None = None
        self.is_active = False

    def install(self) -> None:
        """Replace `breakpoint()` and `pdb.set_trace()`. Until a call begins, both do nothing.

        The rest of `pdb` is loaded only on access, which is rare without a terminal.
        """
        sys.breakpointhook = self.hook
        stand_in = ModuleType("pdb")
        stand_in.__dict__.update(set_trace=self.hook, __getattr__=_of_pdb)
        sys.modules["pdb"] = stand_in

    def begin(self, spec: Frame | None, *, is_trial: bool = False) -> None:
        """Arm the debugging options of a job. In a trial, such as an example, `breakpoint()` is ignored."""
        WorkerDebugger.present = self
        self._is_quiet, self._hits = is_trial, {}
        if self.is_active:
            self._disarm()
        if spec is None:
            return
        self.is_active = True
        self._has_human, self._looks_back = bool(spec.get("human")), bool(spec.get("looks_back"))
        if mode := spec.get("trace"):
            self._tracer = Tracer(self._own_paths, self._woven, mode, self._tell_rows)
            self._covered = spec.get("covers")
            self._tracer.start()
        points = [ArmedPoint(**{name: data[name] for name in _FIELDS & data.keys()}) for data in spec.get("points", ())]
        if points:
            setattr(builtins, HIT, self.hit)
        for (module, _), group in by_function(points).items():
            self._points |= {point.id: point for point in group}
            self._waiting.setdefault(module, []).append(group)
        for module in list(self._waiting):
            self.imported(module)

    def imported(self, name: str) -> None:
        """Arm the breakpoints of a module that was just imported."""
        module = sys.modules.get(f"functions.{name}")
        if module is None or name not in self._waiting:
            return
        for group in self._waiting.pop(name):
            function: Any = plain_function(getattr(module, group[0].function, None))
            if function is None:
                continue
            code = woven(function, group)
            if code is None:
                self._watch(function.__code__, group)
                continue
            self._restore.append((function, function.__code__))
            self._woven.add((code.co_filename, function.__code__.co_firstlineno))
            function.__code__ = code

    def _watch(self, code: CodeType, group: Iterable[ArmedPoint]) -> None:
        for point in group:
            for watched_code in (code, *_inner(code)):
                self._slow.setdefault((watched_code, point.line), []).append(point)
                self._stepper().watch(watched_code)

    def _disarm(self) -> None:
        for function, code in self._restore:
            function.__code__ = code
        if self._tracer is not None:
            self._tracer.stop()
        if self._slow:
            sys.settrace(None)
        self._restore, self._points, self._waiting, self._slow, self._steppers = [], {}, {}, {}, {}
        self._replaced = set()
        self._displayed, self._tracer, self._has_human, self.is_active = [], None, False, False

    @property
    def has_news(self) -> bool:
        """True if something has to be reported when the job ends."""
        return self.is_active or bool(self._last)

    def finish(self, outcome: object) -> None:
        """Report the trace and the last records, after the job has ended or failed."""
        if self._slow or any(stepper.slow for stepper in self._steppers.values()):
            sys.settrace(None)
        if self._tracer is not None:
            self._tracer.stop()
            # The lines of the function for which coverage is requested.
            module, name = self._covered or ("", "")
            function = plain_function(getattr(sys.modules.get(f"functions.{module}"), name, None))
            lines = lines_of_code(function.__code__)[: caps.MOST_LINES] if function else []
            self._tell({"event": "traced", **self._tracer.told(), "lines": lines})
        for record in self._last.values():
            point = self._points.get(record["id"])
            self._tell({**record, "hits": point.hits if point else record["hits"]})
        self._last = {}
        if self._looks_back and isinstance(outcome, BaseException):
            self._look_back(outcome)

    def hit(self, id: int, failed: bool = False) -> None:  # noqa: FBT001, FBT002 - called by woven code
        """Handle a breakpoint: its line is about to run, and its condition holds, if it has one."""
        point = self._points.get(id)
        frame = sys._getframe(1)
        if point is None or id in self._replaced or not (failed or point.counts()):
            return
        why = Why(f"breakpoint {id}" + (", whose condition failed" if failed else ""), id)
        if not self._has_human:
            self._record(frame, id, point.hits, point.expressions, line=point.line)
            return
        self._displayed = [*dict.fromkeys([*self._displayed, *point.expressions])]
        self._stepper().stop_in(frame, why)

    def hook(self, *_arguments: Any, **_options: Any) -> None:  # the signature of `breakpoint`
        """Handle a call of `breakpoint()` or `pdb.set_trace()`."""
        frame = None if self._is_quiet else self._own(sys._getframe(1))
        if frame is None:
            return
        if self._is_refused:
            self._pass_over(frame)
        elif self._has_human:
            self._stepper().stop_in(frame, Why("breakpoint()"))
        else:
            place = frame.f_code.co_filename, frame.f_lineno
            self._hits[place] = self._hits.get(place, 0) + 1
            self._record(frame, 0, self._hits[place], [])

    def stop_now(self, frame: FrameType) -> None:
        """Stop at the next line of function code that runs."""
        own = self._own(frame)
        if own is not None and self.is_active:
            self._stepper().stop_in(own, Why("break now"))

    def _own(self, frame: FrameType | None) -> FrameType | None:
        """Return the frame or its nearest caller that runs function code, or None."""
        while frame is not None and frame.f_code.co_filename not in self._own_paths:
            frame = frame.f_back
        return frame

    def watched(self, frame: FrameType) -> Why | None:
        """Return the reason to stop at a line that is watched by tracing, or None."""
        for point in self._slow.get((frame.f_code, frame.f_lineno), ()):
            if self._holds(point, frame) and point.counts():
                if self._has_human:
                    self._displayed = [*dict.fromkeys([*self._displayed, *point.expressions])]
                    return Why(f"breakpoint {point.id}", point.id)
                self._record(frame, point.id, point.hits, point.expressions)
        return None

    def _holds(self, point: ArmedPoint, frame: FrameType) -> bool:
        if not point.condition:
            return True
        names = {**frame.f_globals, **frame.f_locals}
        return attempt(lambda: bool(eval(point.condition, names))) is not False  # noqa: S307 - in the confined worker

    def _stepper(self) -> Stepper:
        me = threading.get_ident()
        if me not in self._steppers:
            self._steppers[me] = Stepper(self, self._own_paths, self._woven, self._tracer)
        return self._steppers[me]

    def _record(self, frame: FrameType, id: int, hits: int, expressions: list[str], line: int = 0) -> None:
        stop = StackStop([(frame, line or frame.f_lineno)])
        path, where, function, _ = stop.frames()[0]
        record: Frame = {"event": "record", "id": id, "hits": hits, "path": path, "line": where, "function": function}
        record |= {"locals": stop.locals(-1), "shown": stop.shown(expressions)}
        if hits <= FIRST:
            self._tell(record)
            if self._is_refused and not id:
                self._pass_over(frame)
        else:
            self._last[id, path, where] = record

    def stopped(self, frame: FrameType, why: Why, **more: Any) -> Frame:
        """Notify the user, and execute their commands until one resumes the function."""
        if self._tracer is not None:  # the call may never resume
            self._tell_rows(self._tracer.told())
        return self._converse(StackStop.at(frame, self._own_paths), why, more)

    def _look_back(self, error: BaseException) -> None:
        own: list[tuple[FrameType, int]] = []
        trace: TracebackType | None = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename in self._own_paths:
                own.append((trace.tb_frame, trace.tb_lineno))
            trace = trace.tb_next
        if own:
            self._converse(StackStop(own, is_live=False), Why("raised"), {"error": error})

    def _converse(self, stop: StackStop, why: Why, frame: Frame) -> Frame:
        with self._one_at_a_time:
            event: Frame = {"event": "stopped", "why": why.text, "id": why.id, "frames": stop.frames()}
            event |= {"locals": stop.locals(-1)}
            event |= {"arguments": stop.arguments(-1), "names": stop.names(-1), "shown": stop.shown(self._displayed)}
            event |= {"value": shown(frame["value"], caps.MOST_SEEN_RESULT)} if "value" in frame else {}
            event |= {"error": _told_error(frame["error"])} if "error" in frame else {}
            command = self._ask(event)
            while command["do"] not in RESUMING:
                command = self._ask({"event": "answered", **self._carry_out(stop, command)})
            self._displayed = command.get("shown", self._displayed)
            return command

    def _carry_out(self, stop: StackStop, frame: Frame) -> Frame:
        number = frame.get("frame", -1)
        match frame["do"]:
            case "locals":
                return {"locals": stop.locals(number), "arguments": stop.arguments(number), "names": stop.names(number)}
            case "evaluate":
                before = stop.locals(number)
                text = stop.value(number, frame["expression"], pretty=frame.get("pretty", False))
                return {"text": text, "changed": stop.locals(number) != before}
            case "set" | "act" as do:
                words = (frame["name"], frame["expression"]) if do == "set" else (frame["statement"],)
                return {"text": getattr(stop, do)(number, *words)}
            case "break":
                return {"text": self._break(ArmedPoint(**frame["point"]), goes_on=frame.get("goes_on", False))}
            case "clear":
                if frame["id"] in self._points:
                    self._points[frame["id"]].off = True
                return {"text": ""}
            case _:
                return {"text": "unknown command"}

    def _break(self, point: ArmedPoint, *, goes_on: bool) -> str:
        """Set a breakpoint at a stop. Its line is watched by tracing, because the function's code is running.

        It replaces a breakpoint of the same id; with `goes_on`, it takes over the number of hits.
        """
        if (old := self._points.get(point.id)) is not None:
            old.off = True
            self._replaced.add(point.id)
            point.hits = old.hits if goes_on else 0
        self._points[point.id] = point
        function = plain_function(getattr(sys.modules.get(f"functions.{point.module}"), point.function, None))
        if function is None:
            self._waiting.setdefault(point.module, []).append([point])
            return ""
        codes = [function.__code__, *(code for owner, code in self._restore if owner is function)]
        for code in codes:
            self._watch(code, [point])
        return ""

    def _ask(self, frame: Frame) -> Frame:
        answer = attempt(lambda: self._channel.request("debug", frame))
        return answer if isinstance(answer, dict) and "do" in answer else {"do": "continue"}

    def _tell(self, frame: Frame) -> None:
        answer = attempt(lambda: self._channel.request("debug", frame))
        self._is_refused |= isinstance(answer, PermissionError)

    def _tell_rows(self, frame: Frame) -> None:
        self._tell({"event": "traced", **frame})

    def _pass_over(self, frame: FrameType) -> None:
        place = f"{clean(frame.f_code.co_filename)}:{frame.f_lineno}"
        print(f"breakpoint() at {place}: no debugger is attached, so it was passed over")  # noqa: T201 - the call's output


def _of_pdb(name: str) -> Any:  # Any: anything in that module
    """Return the attribute of the real `pdb` with this name."""
    spec = None if name.startswith("__") else importlib.machinery.PathFinder.find_spec("pdb")
    if spec is None or spec.loader is None:
        raise AttributeError(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def _told_error(error: BaseException) -> str:
    return f"{clean(type(error).__name__)}: {shown(error, caps.MOST_SEEN_RESULT)}"[: caps.MOST_SEEN_RESULT]


def _inner(code: CodeType) -> list[CodeType]:
    """Return the code objects of everything that is defined inside a function."""
    codes = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return [*codes, *(deeper for nested in codes for deeper in _inner(nested))]
