"""The debugger in a worker. It is active only if something is armed, and reports to the host.

With a human, a stop is a request, and the answers are commands until one resumes the function. Without a human, a stop
is only recorded: the first records are sent at once, the last one with the number of hits at the end.

A function with a breakpoint is recompiled from its text with a call before each armed statement, so other lines cost
nothing. If that is impossible (the function is wrapped beyond recognition, or is on one line), the line is watched by
tracing instead. Queries on a frame run inside the confinement, where values become short texts; a representation that
fails, loops or is huge affects only this call. What a person wrote may do what the function may; what a model wrote,
as the expressions and the condition of its breakpoint, only reads (`reading.py`), and not where a secret may be: a
model could have it told piece by piece, which no mask recognizes.

A trace has each line once, with its count and the first and last changes of locals, so its size depends on the number
of lines, not on how often they ran. For coverage only the lines count. Stepping, with the standard library's `bdb`,
stops only in function code; tracing for it starts at the first stop and ends at `continue`, unless lines are watched or
the call is traced. A traced call gets its events through the stepper: a thread can have only one trace function.
"""

import ast
import bdb
import builtins
import dis
import gc
import importlib.machinery
import importlib.util
import inspect
import pprint
import reprlib
import signal
import sys
import threading
import time
from collections import ChainMap
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from types import CodeType, FrameType, FunctionType, ModuleType, TracebackType
from typing import Any, ClassVar, Final, NamedTuple, Protocol

from ..wire import caps
from ..wire.protocol import Frame
from . import reading
from .channel import Channel, is_asking
from .context import Context
from .failure import Result, attempt, clean, message_of, short, shown

_HAS_PROXY = sys.version_info >= (3, 13)  # changes of `f_locals` take effect in the frame

_shortener = reprlib.Repr()
_shortener.maxstring = _shortener.maxother = _shortener.maxlong = 200
_shortener.maxlevel = 4
_shortener.maxlist = _shortener.maxdict = _shortener.maxtuple = _shortener.maxset = 12

_ARGUMENT: Final = 40  # characters of one argument in the stack
_HIDDEN: Final = "not shown to a model: this call may hold a secret"
_MOST_READING_S: Final = (
    2.0  # of a call, for what models ask at breakpoints; after that, these are passed over
)


class _Interruptible:
    """A runner of actions like `attempt`, which a signal handler can interrupt."""

    def __init__(self) -> None:
        self._by: int | None = None  # the thread that runs an action

    def attempt(self, action: Callable[[], Result]) -> Result | BaseException:
        """Return the result of the action, or the exception that it raised, such as KeyboardInterrupt."""

        def act() -> Result:
            outer, self._by = self._by, threading.get_ident()
            try:
                return action()
            finally:
                self._by = outer

        return attempt(act)

    def interrupt(self, frame: FrameType | None) -> bool:
        """Raise KeyboardInterrupt in the action, from a signal handler. Return False if no action is running.

        Nothing is raised while a function of the channel is running, because that would break its state.
        """
        if self._by != threading.get_ident():
            return False
        if is_asking(frame):
            return True
        self._by = None
        raise KeyboardInterrupt("it was stopped at the prompt")


_EVALUATING = _Interruptible()  # evaluations that the user can interrupt with Ctrl-C


class StackStop:
    """A stack at one moment: only frames of function code, outermost first. The last one is the stopped frame."""

    def __init__(self, frames: list[tuple[FrameType, int]], *, is_live: bool = True) -> None:
        self._frames = frames[-caps.MOST_STACK :]
        self._is_live = is_live
        self._locals = {
            id(frame): frame.f_locals for frame, _ in self._frames
        }  # once: reading again undoes `set`

    @classmethod
    def at(cls, frame: FrameType, own_paths: Container[str]) -> "StackStop":
        """Return the stack at a frame."""
        frames: list[tuple[FrameType, int]] = []
        current: FrameType | None = frame
        while current is not None:
            if current.f_code.co_filename in own_paths:
                frames.append((current, current.f_lineno))
            current = current.f_back
        return cls(frames[::-1])

    def frames(self) -> list[list[Any]]:
        """Return path, line, function and a short text of the arguments for each frame."""
        return [
            [
                frame.f_code.co_filename,
                line or 0,
                clean(frame.f_code.co_qualname)[: caps.MOST_NAME],
                self._arguments_text(number),
            ]
            for number, (frame, line) in enumerate(self._frames)
        ]

    def _arguments_text(self, number: int) -> str:
        """Return the arguments of a frame on one line; they distinguish the frames of a recursion."""
        pairs = self.locals(number)[: self.arguments(number)]
        return ", ".join(f"{name}={text[:_ARGUMENT]}" for name, text in pairs)[
            : caps.MOST_SEEN_NAME
        ]

    def locals(self, number: int, *, is_hidden: bool = False) -> list[list[str]]:
        """Return the names of a frame with short texts of their values, arguments first."""
        frame = self._frame(number)
        items = self._locals[id(frame)].items()
        pairs = [
            (name, value)
            for name, value in items
            if not name.startswith("__") and type(value) is not Context
        ]
        return [
            [_name(name), _text_of(name, value, is_hidden=is_hidden)]
            for name, value in pairs[: caps.MOST_SEEN]
        ]

    def arguments(self, number: int) -> int:
        """Return the number of locals that are arguments."""
        frame = self._frame(number)
        code, receiver = frame.f_code, self._locals[id(frame)].get("self")
        starred = bool(code.co_flags & inspect.CO_VARARGS) + bool(
            code.co_flags & inspect.CO_VARKEYWORDS
        )
        return code.co_argcount + code.co_kwonlyargcount + starred - (type(receiver) is Context)

    def names(self, number: int) -> list[str]:
        """Return the visible names, for completion."""
        frame = self._frame(number)
        names = {*self._locals[id(frame)], *frame.f_globals}
        return sorted(_name(name) for name in names if name.isidentifier())[: caps.MOST_NAMES]

    def value(self, number: int, expression: str, *, pretty: bool = False) -> str:
        """Return the text of an expression's value in a frame, or of its error."""
        result = _EVALUATING.attempt(lambda: self._evaluate(number, expression))
        if isinstance(result, BaseException):
            return _error(result)
        text = _EVALUATING.attempt(
            lambda: pprint.pformat(result[0], width=100) if pretty else repr(result[0])
        )
        return (
            _cut(text)
            if isinstance(text, str)
            else f"<{type(result[0]).__name__}, whose repr failed>"
        )

    def shown(
        self, expressions: Mapping[str, bool], look: Callable[[str, Mapping[str, Any]], str]
    ) -> list[list[str]]:
        """Return expressions with short texts of their values in the stopped frame.

        Each says whether it may act. `look` makes the text of one that only reads, from the names of the frame.
        """
        frame = self._frame(-1)
        names = ChainMap(self._locals[id(frame)], frame.f_globals)
        return [
            [
                expression,
                (self.value(-1, expression) if may_act else look(expression, names))[
                    : caps.MOST_SEEN_TEXT
                ],
            ]
            for expression, may_act in [*expressions.items()][: caps.MOST_SEEN]
        ]

    def set(self, number: int, name: str, expression: str) -> str:
        """Assign a value to a local. Return "", or the reason for a failure."""
        frame = self._frame(number)
        if not self._is_live:
            return "the call has ended: nothing can be set any more"
        if frame is not self._frames[-1][0] and not _HAS_PROXY:
            return "only the locals of the innermost frame can be set with this version of Python"
        if not name.isidentifier() or (
            name not in frame.f_code.co_varnames + frame.f_code.co_cellvars
        ):
            where = clean(frame.f_code.co_name)
            return (
                f"{clean(name)} is no local name of {where}: no line there would read it. "
                f"`locals` lists those that are"
            )
        result = _EVALUATING.attempt(lambda: self._evaluate(number, expression))
        if isinstance(result, BaseException):
            return _error(result)
        self._locals[id(frame)][name] = result[0]
        return ""

    def act(self, number: int, statement: str) -> str:
        """Run a statement that changes or deletes an item or attribute. Return "", or the reason for a failure."""
        if not self._is_live:
            return "the call has ended: nothing can be set any more"
        frame = self._frame(number)
        names = {**frame.f_globals, **self._locals[id(frame)]}
        code = attempt(lambda: compile(statement, "<debug>", "exec", dont_inherit=True))
        result = (
            _EVALUATING.attempt(lambda: exec(code, names)) if isinstance(code, CodeType) else code
        )  # in the confined worker
        return _error(result) if isinstance(result, BaseException) else ""

    def _evaluate(
        self, number: int, expression: str
    ) -> tuple[Any]:  # Any: any value of function code
        frame = self._frame(number)
        own = self._locals[id(frame)]
        names = {**frame.f_globals, **own}  # as globals, so that comprehensions see locals, too
        for name, listing in {
            "locals": lambda: {**own},
            "vars": _or(vars, own),
            "dir": _or(dir, own),
        }.items():
            names.setdefault(
                name, listing
            )  # for the function's names, not those of this evaluation
        return (eval(compile(expression.strip(), "<debug>", "eval", dont_inherit=True), names),)  # noqa: S307 - in the confined worker

    def _frame(self, number: int) -> FrameType:
        return self._frames[number if -len(self._frames) <= number < len(self._frames) else -1][0]


def _text_of(name: str, value: object, *, is_hidden: bool = False) -> str:
    """Return a short text of a local, or only its type. The value of a name that sounds secret is masked."""
    if is_hidden:
        return f"<{clean(reading.type_name(value))[:_ARGUMENT]}, {_HIDDEN}>"
    return short(name, value, _shortener, caps.MOST_SEEN_TEXT)


def _name(text: str) -> str:
    return clean(text)[: caps.MOST_SEEN_NAME]


def _error(error: BaseException) -> str:
    typed = isinstance(error, SyntaxError) and error.filename == "<debug>"
    return _cut(
        f"*** {type(error).__name__}: {getattr(error, 'msg', '') if typed else message_of(error)}"
    )


def _cut(text: str) -> str:
    cleaned = clean(text[: caps.MOST_ANSWER + 1])
    return cleaned if len(cleaned) <= caps.MOST_ANSWER else f"{cleaned[: caps.MOST_ANSWER - 1]}…"


def _or(
    function: Callable[..., Any], own: Mapping[str, Any]
) -> Callable[..., Any]:  # Any: values of function code
    """Return `vars` or `dir` that uses these names when called without an argument."""
    return lambda *values: (
        function(*values) if values else ({**own} if function is vars else sorted(own))
    )


_HIT: Final = "__knapper_hit__"
_FUTURE: Final = 0x1FF0000  # the flags of `from __future__ import …`
DEEPEST_WRAPPER: Final = 50


@dataclass(slots=True)
class ArmedPoint:
    """One breakpoint from the host. `text` is its function's text, which begins at line `first`."""

    id: int
    module: str
    function: str
    text: str
    first: int
    line: int
    condition: str = ""
    expressions: list[str] = field(default_factory=list)
    after: int = 0  # hits to skip first
    every: int = 1
    once: bool = False
    by: str = "agent"
    hits: int = 0
    off: bool = False

    @property
    def may_act(self) -> bool:
        """Whether a person wrote it; its expressions and its condition then may do what the function may."""
        return self.by == "human"

    def counts(self) -> bool:
        """Count a hit. Return whether the breakpoint stops at it."""
        self.hits += 1
        is_due = (
            not self.off
            and self.hits > self.after
            and not (self.hits - self.after - 1) % self.every
        )
        self.off |= is_due and self.once
        return is_due


def plain_function(value: object) -> FunctionType | None:
    """Return the function inside of decorators, or None if there is none."""
    for _ in range(DEEPEST_WRAPPER):
        inner = getattr(value, "__wrapped__", None)
        if inner is None:
            break
        value = inner
    return value if isinstance(value, FunctionType) else None


def defined_function(module: ModuleType | None, name: str) -> FunctionType | None:
    """Return the function that a module's text defines by this name, without its decorators; None if there is none.

    A decorator that does not name what it wraps (`functools.wraps`) still keeps it, so it is among the objects.
    """
    plain = plain_function(getattr(module, name, None))
    if module is None or (plain is not None and plain.__code__.co_qualname == name):
        return plain
    try:
        return _hidden_function(module, name)
    except LookupError:
        return plain


@lru_cache(maxsize=1)  # the search looks at every object, and many attempts call one function
def _hidden_function(module: ModuleType, name: str) -> FunctionType:
    functions = (each for each in gc.get_objects() if type(each) is FunctionType)
    own = [
        each
        for each in functions
        if each.__globals__ is vars(module) and each.__code__.co_qualname == name
    ]
    if not own:
        raise LookupError(name)
    return max(own, key=lambda function: function.__code__.co_firstlineno)


def _woven_code(function: FunctionType, points: Sequence[ArmedPoint]) -> CodeType | None:
    """Return the function's code with inserted breakpoints, or None if that is impossible."""
    code, text, first = function.__code__, points[0].text, points[0].first
    try:
        tree = ast.parse(text)
        (top,) = tree.body
        ast.increment_lineno(tree, first - 1)
        if code.co_freevars or not isinstance(top, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        places = {
            point.line: [candidate for candidate in points if candidate.line == point.line]
            for point in points
        }
        lines = set(places) - {code.co_firstlineno, top.lineno}
        done: set[int] = set()
        if len(lines) == len(places):
            _weave(top, places, code.co_firstlineno, done)
        module_code = compile(
            tree, code.co_filename, "exec", flags=code.co_flags & _FUTURE, dont_inherit=True
        )
    except (SyntaxError, ValueError, RecursionError):
        return None
    codes = [
        constant
        for constant in module_code.co_consts
        if isinstance(constant, CodeType) and constant.co_name == function.__name__
    ]
    fits = len(codes) == 1 and not codes[0].co_freevars and done == set(places)
    return codes[0] if fits else None


def _weave(node: ast.AST, places: dict[int, list[ArmedPoint]], fake: int, done: set[int]) -> None:
    """Insert the calls below a node. The lines found are added to `done`."""
    for name, value in ast.iter_fields(node):
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            setattr(
                node,
                name,
                [
                    replacement
                    for statement in value
                    for replacement in _with_calls(statement, places, fake, done)
                ],
            )
    for child in ast.iter_child_nodes(node):
        _weave(child, places, fake, done)


def _with_calls(
    statement: ast.stmt, places: dict[int, list[ArmedPoint]], fake: int, done: set[int]
) -> list[ast.stmt]:
    points = places.get(statement.lineno, []) if statement.lineno not in done else []
    done |= {statement.lineno} if points else set()
    if isinstance(statement, ast.While):  # stop at each iteration, as debuggers do
        calls: list[ast.expr] = [_at(_call(point, failed=None), fake) for point in points]
        statement.test = (
            ast.copy_location(ast.BoolOp(ast.Or(), [*calls, statement.test]), statement.test)
            if calls
            else statement.test
        )
        return [statement]
    return [*(_at(_conditional_call(point), fake) for point in points), statement]


def _call(point: ArmedPoint, *, failed: bool | None = False) -> ast.Call:
    """Return the call for a breakpoint: its condition holds, it failed, or (None) it is still to be asked."""
    return ast.Call(ast.Name(_HIT, ast.Load()), [ast.Constant(point.id), ast.Constant(failed)], [])


def _conditional_call(point: ArmedPoint) -> ast.stmt:
    """Return the call, inside an `if` when the breakpoint has a condition that may act."""
    if not (point.condition and point.may_act):
        return ast.Expr(_call(point, failed=None))
    test = ast.parse(point.condition, mode="eval").body
    conditional = ast.If(test, [ast.Expr(_call(point))], [])
    name = ast.Name("Exception", ast.Load())
    handler = ast.ExceptHandler(name, None, [ast.Expr(_call(point, failed=True))])
    return ast.Try([conditional], [handler], [], [])


def _at(node: Any, line: int) -> Any:  # Any: the same kind of node
    """Move a node and everything below it to a line outside the body, by which the tracer recognizes it."""
    for descendant in ast.walk(node):
        if isinstance(descendant, ast.stmt | ast.expr | ast.excepthandler):
            descendant.lineno = descendant.end_lineno = line
            descendant.col_offset = descendant.end_col_offset = 0
    return node


_NO_LINES: Final = frozenset(
    {"<module>", "__annotate__"}
)  # the second evaluates annotations since Python 3.14
_MOST_TOLD: Final = (
    caps.MOST_CLAIM * 4 // 5
)  # characters of all rows; the rest is for the executable lines
_CAREFUL: Final = (
    200  # runs of a line with checked changes; after that, only the frame's end is checked
)
_TELL_EVERY_S: Final = 0.5  # interval of reports, because a call may never end
_LOOK_EVERY: Final = 512  # lines between two looks at the clock
_SUSPENDS: Final = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_SIMPLE = (int, float, str, bool, bytes, complex, type(None))


class TraceRow:
    """One line of one function."""

    __slots__ = ("count", "first", "function", "last", "line", "names", "path")

    def __init__(self, path: str, line: int, function: str) -> None:
        self.path, self.line, self.function = path, line, function
        self.count = 0
        self.first: list[list[str]] = []
        self.last: list[list[str]] = []
        self.names: set[str] = set()  # locals that it changes

    def size(self) -> int:
        """Return the approximate number of characters of its JSON."""
        pairs = sum(
            len(name) + len(text) + 3 * caps.ITEM
            for values in (self.first, self.last)
            for name, text in values
        )
        return len(self.path) + len(self.function) + 7 * caps.ITEM + pairs


class FrameState:
    """The state of a frame: the running line, and the locals before it."""

    __slots__ = ("is_behind", "row", "texts", "values")

    def __init__(self) -> None:
        self.row = TraceRow("", 0, "")
        self.values: dict[str, Any] = {}  # Any: any value of function code
        self.texts: dict[str, str] = {}
        self.is_behind = False

    def changes(self, frame: FrameType, *, is_hidden: bool) -> list[list[str]]:
        """Return the changed locals with short texts of their values."""
        changed = []
        for name, value in list(frame.f_locals.items())[: caps.MOST_CHANGES]:
            is_unchanged = (
                name in self.values and self.values[name] is value and type(value) in _SIMPLE
            )
            if is_unchanged or name.startswith(("__", ".")):
                continue
            text = _text_of(name, value, is_hidden=is_hidden)
            if self.texts.get(name) != text:
                changed.append([name, text])
            self.values[name], self.texts[name] = value, text
        return changed


class Tracer:
    """A tracer of function code in the thread that starts it, and in threads that start later."""

    def __init__(
        self,
        own_paths: Container[str],
        woven: Container[tuple[str, int]],
        mode: str,
        tell: Callable[[dict[str, Any]], None],
        hides: Callable[[], bool],
    ) -> None:
        self._own_paths = own_paths
        self._woven = woven  # inserted lines, which are not in the source
        self._hides = hides  # whether values are hidden
        self._covers = mode == "cover"
        self._tell = tell
        self._rows: dict[tuple[CodeType, int], TraceRow] = {}
        self._states: dict[FrameType, FrameState] = {}
        self._seen = 0
        self._told_at = time.monotonic()
        self._dropped = False

    def start(self) -> None:
        """Start tracing."""
        threading.settrace(self._call)
        sys.settrace(self._call)

    def stop(self) -> None:
        """Stop tracing."""
        sys.settrace(None)
        threading.settrace(None)
        self._states.clear()

    def sees(self, frame: FrameType, event: str, value: object) -> bool:
        """Process an event from another trace function. Return whether more events of this frame are wanted."""
        follow = self._call(frame, event, value)
        if follow is not None and event != "call":
            follow(frame, event, value)
        return follow is not None

    def told(self) -> dict[str, Any]:  # Any: JSON
        """Return the rows as JSON, cut to the size limit."""
        rows: list[list[Any]] = []
        budget = _MOST_TOLD
        for row in self._rows.values():
            budget -= row.size()
            if budget < 0:
                return {"rows": rows, "cut": True}
            rows.append([row.path, row.line, row.function, row.count, row.first, row.last])
        return {"rows": rows, "cut": self._dropped}

    def _call(self, frame: FrameType, event: str, _value: object) -> Any:  # Any: a trace function
        if frame.f_code.co_filename not in self._own_paths or frame.f_code.co_name in _NO_LINES:
            return None
        return self._cover if self._covers else self._line

    def _cover(self, frame: FrameType, event: str, _value: object) -> Any:
        if event == "line":
            self._row(frame).count += 1
        return self._cover

    def _line(self, frame: FrameType, event: str, _value: object) -> Any:
        if event == "line" and (frame.f_code.co_filename, frame.f_lineno) in self._woven:
            return self._line
        if event == "line":
            state = self._note(frame)
            state.row = self._row(frame)
            state.row.count += 1
            self._seen += 1
            if self._seen % _LOOK_EVERY == 0 and time.monotonic() - self._told_at >= _TELL_EVERY_S:
                self._told_at = time.monotonic()
                self._tell(self.told())
        elif event == "return":
            state = self._note(frame, at_end=True)
            # For lines that ran too often to be checked each time, use the values at the end of the frame.
            for (code, _), row in self._rows.items():
                if code is frame.f_code and row.count > _CAREFUL and row.names:
                    named = sorted(row.names & state.texts.keys())[: caps.MOST_CHANGES]
                    row.last = [[name, state.texts[name]] for name in named]
            if not frame.f_code.co_flags & _SUSPENDS:
                self._states.pop(frame, None)
        return self._line

    def _row(self, frame: FrameType) -> TraceRow:
        key = frame.f_code, frame.f_lineno
        row = self._rows.get(key)
        if row is None:
            row = TraceRow(
                frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname[: caps.MOST_NAME]
            )
            if len(self._rows) < caps.MOST_ROWS:
                self._rows[key] = row
            else:
                self._dropped = True
        return row

    def _note(self, frame: FrameType, *, at_end: bool = False) -> "FrameState":
        """Record the changes made by the previous line."""
        state = self._states.setdefault(frame, FrameState())
        row = state.row
        if row.count > _CAREFUL and not at_end:
            state.is_behind = True
            return state
        changed = state.changes(frame, is_hidden=self._hides())
        if changed and row.line and not state.is_behind:
            row.first = row.first or changed
            row.last = changed
            row.names |= {name for name, _ in changed}
        state.is_behind = False  # unobserved changes belong to no line
        return state


_FAILED: Final = ", whose condition failed"
_RESUMING = frozenset({"next", "step", "return", "until", "continue"})


_WAITS: Final = "waits"
_PAUSES: Final = frozenset(
    {dis.opmap["YIELD_VALUE"], dis.opmap["RESUME"]}
)  # last instruction of a paused frame; the second in 3.13


class Why(NamedTuple):
    """The reason for a stop. `id` is that of the breakpoint, or 0."""

    text: str
    id: int = 0

    @property
    def is_failure(self) -> bool:
        """True if the condition of the breakpoint could not be evaluated."""
        return self.text.endswith(_FAILED)


class StepListener(Protocol):
    """A listener that is notified of a stopped frame and decides how it continues."""

    def stopped(self, frame: FrameType, why: Why, **more: Any) -> dict[str, Any]:  # Any: JSON
        """Handle a stop and return the command with which the frame continues."""

    def watched(self, frame: FrameType) -> Why | None:
        """Return the reason to stop at a watched line, or None."""


class Stepper(bdb.Bdb):
    """The stepper of one thread."""

    def __init__(
        self,
        listener: StepListener,
        own_paths: Container[str],
        woven: Container[tuple[str, int]],
        tracer: Tracer | None = None,
    ) -> None:
        super().__init__()
        self._listener = listener
        self._own_paths = own_paths
        self._woven = woven  # inserted lines, which are not in the source
        self._tracer = tracer
        self._why = Why("breakpoint")
        self.slow: set[CodeType] = set()  # code with watched lines

    def stop_in(self, frame: FrameType, why: Why) -> None:
        """Stop at the next line that runs in this frame or in a function that it calls."""
        self._why = why
        self.set_trace(frame)

    def watch(self, *codes: CodeType) -> None:
        """Start tracing for the lines of these code objects."""
        is_new = not self.slow
        self.slow.update(codes)
        if is_new:
            self.reset()
            self.botframe = sys._getframe()
            self._set_stopinfo(self.botframe, None, -1)  # type: ignore[attr-defined] # private, but in every version
            sys.settrace(self.trace_dispatch)

    def trace_dispatch(
        self, frame: FrameType, event: str, arg: Any
    ) -> Any:  # Any: as `bdb` types it
        """Dispatch an event as `bdb` does, after the tracer has processed it."""
        follows = self._tracer is not None and self._tracer.sees(frame, event, arg)
        next_trace: Any = super().trace_dispatch(frame, event, arg)
        return self.trace_dispatch if next_trace is None and follows else next_trace

    def stop_here(self, frame: FrameType) -> bool:
        """Return whether to stop here, as `bdb` decides, but only in function code."""
        return frame.f_code.co_filename in self._own_paths and super().stop_here(frame)

    def break_anywhere(self, frame: FrameType) -> bool:
        """Return whether any line of the frame is watched."""
        return frame.f_code in self.slow

    def break_here(self, frame: FrameType) -> bool:
        """Return whether this line is watched and stops now."""
        why = self._listener.watched(frame) if frame.f_code in self.slow else None
        self._why = why or self._why
        return why is not None

    def user_line(self, frame: FrameType) -> None:
        """Handle a line that is about to run."""
        if (frame.f_code.co_filename, frame.f_lineno) not in self._woven:
            self._stop(frame, self._why)

    def user_return(self, frame: FrameType, value: object) -> None:
        """Handle a function that is about to return a value."""
        pause, code, at = "", frame.f_code, frame.f_lasti
        if (
            code.co_flags & _SUSPENDS and at >= 0 and code.co_code[at] in _PAUSES
        ):  # it is only suspended
            yields = (
                code.co_flags & inspect.CO_GENERATOR
                or type(value).__name__ == "async_generator_wrapped_value"
            )
            pause = "yields" if yields else _WAITS
        self._stop(frame, Why(pause or "return"), **({} if pause == _WAITS else {"value": value}))

    def user_exception(self, frame: FrameType, info: Any) -> None:  # Any: as `bdb` types it
        """Handle an exception in a frame that is stepped through."""
        if not isinstance(info[1], StopIteration | GeneratorExit | StopAsyncIteration):
            self._stop(frame, Why("exception"), error=info[1])

    def _stop(self, frame: FrameType, why: Why, **more: Any) -> None:
        self._why = Why("step")
        command = self._listener.stopped(frame, why, **more)
        match command["do"]:
            case "next":
                self.set_next(frame)
            case "step":
                self.set_step()
            case "return":
                self.set_return(frame)
            case "until":
                self.set_until(frame, command.get("line") or None)
            case _:
                self._why = Why("breakpoint")
                self.set_continue()

    def set_continue(self) -> None:
        """Stop only at watched lines from now on."""
        if self.slow or self._tracer is not None:
            self._set_stopinfo(self.botframe, None, -1)  # type: ignore[attr-defined] # as above
        else:
            super().set_continue()


_FIRST: Final = 8  # records of a breakpoint that are sent at once
_FIELDS: Final = {field.name for field in fields(ArmedPoint)} - {"hits", "off"}


def stand_by() -> None:
    """Route the signal of `break now` to the current debugger. This must be called before the worker is confined.

    While an expression is evaluated for a human, the signal interrupts the evaluation.
    """
    signal.signal(signal.SIGUSR1, lambda _number, frame: stop_at(frame))


def stop_at(frame: FrameType | None) -> None:
    """Interrupt an evaluation, or stop function code at a frame, for `break now`."""
    if _EVALUATING.interrupt(frame):
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
        self._waiting: dict[
            str, list[list[ArmedPoint]]
        ] = {}  # by the name of a module that is not imported yet
        self._slow: dict[tuple[CodeType, int], list[ArmedPoint]] = {}
        self._steppers: dict[int, Stepper] = {}
        self._one_at_a_time = threading.RLock()
        self._replaced: set[int] = set()  # breakpoints with inserted calls that no longer count
        self._last: dict[tuple[object, ...], Frame] = {}
        self._hits: dict[tuple[str, int], int] = {}  # of each `breakpoint()`
        self._is_quiet = True
        self._displayed: dict[str, bool] = {}  # expressions; whether each may act
        self._may_have_secret = True
        self._reading_s = 0.0
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

    def begin(
        self, spec: Frame | None, *, is_trial: bool = False, may_have_secret: bool = True
    ) -> None:
        """Arm the debugging options of a job. In a trial, such as an example, `breakpoint()` is ignored.

        If it `may_have_secret`, a model is shown no values.
        """
        WorkerDebugger.present = self
        self._may_have_secret, self._reading_s = may_have_secret, 0.0
        self._is_quiet, self._hits = is_trial, {}
        if self.is_active:
            self._disarm()
        if spec is None:
            return
        self.is_active = True
        self._has_human, self._looks_back = bool(spec.get("human")), bool(spec.get("looks_back"))
        if mode := spec.get("trace"):
            is_for_model = spec.get("trace_for") != "human"
            hides = lambda: is_for_model and self._hides  # noqa: E731 - a sentence
            self._tracer = Tracer(self._own_paths, self._woven, mode, self._tell_rows, hides)
            self._covered = spec.get("covers")
            self._tracer.start()
        points = [
            ArmedPoint(**{name: data[name] for name in _FIELDS & data.keys()})
            for data in spec.get("points", ())
        ]
        if points:
            setattr(builtins, _HIT, self.hit)
        groups: dict[tuple[str, str], list[ArmedPoint]] = {}
        for point in points:
            groups.setdefault((point.module, point.function), []).append(point)
        for (module, _), group in groups.items():
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
            function: Any = defined_function(module, group[0].function)
            if function is None:
                continue
            code = _woven_code(function, group)
            if code is None:
                self._watch(function.__code__, group)
                continue
            self._restore.append((function, function.__code__))
            self._woven.add((code.co_filename, function.__code__.co_firstlineno))
            function.__code__ = code

    def _watch(self, code: CodeType, group: Iterable[ArmedPoint]) -> None:
        for point in group:
            for watched_code in _all_codes(code):
                self._slow.setdefault((watched_code, point.line), []).append(point)
                self._stepper().watch(watched_code)
        threading.settrace(self._trace_thread)

    def _trace_thread(
        self, frame: FrameType, event: str, arg: Any
    ) -> Any:  # Any: as `threading.settrace` types it
        """Watch the lines in a thread that has just started."""
        self._stepper().watch(*(code for code, _ in self._slow))
        return self._stepper().trace_dispatch(frame, event, arg)

    @staticmethod
    def _trace_no_longer() -> None:
        sys.settrace(None)
        threading.settrace(None)

    def _disarm(self) -> None:
        for function, code in self._restore:
            function.__code__ = code
        if self._tracer is not None:
            self._tracer.stop()
        if self._slow:
            self._trace_no_longer()
        self._restore, self._points, self._waiting, self._slow, self._steppers = [], {}, {}, {}, {}
        self._replaced = set()
        self._displayed, self._tracer, self._has_human, self.is_active = {}, None, False, False

    @property
    def has_news(self) -> bool:
        """True if something has to be reported when the job ends."""
        return self.is_active or bool(self._last)

    def finish(self, outcome: object) -> None:
        """Report the trace and the last records, after the job has ended or failed."""
        if self._slow or any(stepper.slow for stepper in self._steppers.values()):
            self._trace_no_longer()
        if self._tracer is not None:
            self._tracer.stop()
            # The lines of the function for which coverage is requested.
            module, name = self._covered or ("", "")
            function = defined_function(sys.modules.get(f"functions.{module}"), name)
            codes = _all_codes(function.__code__) if function else []
            places = ((code, line) for code in codes for *_, line in code.co_lines())
            lines = sorted(
                {line for code, line in places if line is not None and line != code.co_firstlineno}
            )
            path = codes[0].co_filename if codes else ""
            self._tell(
                {
                    "event": "traced",
                    **self._tracer.told(),
                    "path": path,
                    "lines": lines[: caps.MOST_LINES],
                }
            )
        for record in self._last.values():
            point = self._points.get(record["id"])
            self._tell({**record, "hits": point.hits if point else record["hits"]})
        self._last = {}
        if self._looks_back and isinstance(outcome, BaseException):
            self._look_back(outcome)

    def hit(self, id: int, failed: bool | None) -> None:  # noqa: FBT001 - called by woven code
        """Handle a breakpoint whose line is about to run: its condition holds, failed, or (None) is asked here."""
        point = self._points.get(id)
        frame = sys._getframe(1)
        if point is None or id in self._replaced:
            return
        why = (
            Why(f"breakpoint {id}{_FAILED}", id)
            if failed
            else self._due(point, frame, has_held=failed is False)
        )
        if why is None:
            return
        if self._has_human:
            self._stop_for(point)
            self._stepper().stop_in(frame, why)
        else:
            self._record(frame, point.hits, point, is_failed=why.is_failure, line=point.line)

    def _due(self, point: ArmedPoint, frame: FrameType, *, has_held: bool = False) -> Why | None:
        """Return the reason to stop at a breakpoint whose line is about to run, or None; a hit is counted."""
        holds = has_held or self._holds(point, frame)
        if holds is False or not point.counts():
            return None
        return Why(f"breakpoint {point.id}" + ("" if holds is True else _FAILED), point.id)

    def _stop_for(self, point: ArmedPoint) -> None:
        self._displayed = dict.fromkeys(point.expressions, point.may_act) | self._displayed

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
            self._record(frame, self._hits[place])

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
            why = self._due(point, frame)
            if why is not None and self._has_human:
                self._stop_for(point)
                return why
            if why is not None:
                self._record(frame, point.hits, point, is_failed=why.is_failure)
        return None

    def _holds(self, point: ArmedPoint, frame: FrameType) -> bool | BaseException:
        """Return whether the condition holds, or why that cannot be said."""
        if not point.condition:
            return True
        if point.may_act:
            names = {**frame.f_globals, **frame.f_locals}
            return attempt(lambda: bool(eval(point.condition, names)))  # noqa: S307 - in the confined worker
        return self._read(reading.holds, point.condition, ChainMap(frame.f_locals, frame.f_globals))

    @property
    def _hides(self) -> bool:
        """Whether values are hidden from a model."""
        return self._may_have_secret or self._channel.asked_for_secret

    def _read(
        self, read: Callable[[str, Mapping[str, Any]], Result], text: str, names: Mapping[str, Any]
    ) -> Result | BaseException:
        """Return what an expression of a model reads, or why it reads nothing."""
        if self._hides:
            return reading.Unreadable(_HIDDEN)
        if self._reading_s > _MOST_READING_S:
            return reading.Unreadable(
                f"it was passed over: breakpoints took {_MOST_READING_S:g} s of this call"
            )
        began = time.monotonic()
        try:
            return attempt(lambda: read(text, names))
        finally:
            self._reading_s += time.monotonic() - began

    def _look(self, text: str, names: Mapping[str, Any]) -> str:
        """Return the text of what an expression of a model reads."""
        seen = self._read(lambda text, names: reading.told(reading.read(text, names)), text, names)
        return clean(seen) if isinstance(seen, str) else _error(seen)

    def _stepper(self) -> Stepper:
        me = threading.get_ident()
        if me not in self._steppers:
            self._steppers[me] = Stepper(self, self._own_paths, self._woven, self._tracer)
        return self._steppers[me]

    def _record(
        self,
        frame: FrameType,
        hits: int,
        point: ArmedPoint | None = None,
        *,
        is_failed: bool = False,
        line: int = 0,
    ) -> None:
        """Record a breakpoint, or a `breakpoint()` in the source, for a model, unless a person set it."""
        id, may_act = (point.id, point.may_act) if point else (0, False)
        asked = [*([point.condition] if is_failed else []), *point.expressions] if point else []
        stop = StackStop([(frame, line or frame.f_lineno)])
        path, where, function, _ = stop.frames()[0]
        record: Frame = {
            "event": "record",
            "id": id,
            "hits": hits,
            "path": path,
            "line": where,
            "function": function,
        }
        record["locals"] = stop.locals(-1, is_hidden=self._hides and not may_act)
        record["shown"] = stop.shown(dict.fromkeys(asked, may_act), self._look)
        if hits <= _FIRST:
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
            event: Frame = {
                "event": "stopped",
                "why": why.text,
                "id": why.id,
                "frames": stop.frames(),
            }
            event |= {"locals": stop.locals(-1)}
            event |= {"arguments": stop.arguments(-1), "names": stop.names(-1)}
            event |= {"shown": stop.shown(self._displayed, self._look)}
            event |= (
                {"value": shown(frame["value"], caps.MOST_SEEN_RESULT)} if "value" in frame else {}
            )
            if "error" in frame:
                kind, text = (
                    clean(type(frame["error"]).__name__),
                    shown(frame["error"], caps.MOST_SEEN_RESULT),
                )
                event["error"] = f"{kind}: {text}"[: caps.MOST_SEEN_RESULT]
            command = self._ask(event)
            while command["do"] not in _RESUMING:
                command = self._ask({"event": "answered", **self._carry_out(stop, command)})
            self._displayed = dict.fromkeys(command.get("shown", ()), True)
            return command

    def _carry_out(self, stop: StackStop, frame: Frame) -> Frame:
        number = frame.get("frame", -1)
        match frame["do"]:
            case "locals":
                return {
                    "locals": stop.locals(number),
                    "arguments": stop.arguments(number),
                    "names": stop.names(number),
                }
            case "evaluate":
                before = stop.locals(number)
                text = stop.value(number, frame["expression"], pretty=frame.get("pretty", False))
                return {"text": text, "changed": stop.locals(number) != before}
            case "set" | "act" as do:
                words = (
                    (frame["name"], frame["expression"]) if do == "set" else (frame["statement"],)
                )
                return {"text": getattr(stop, do)(number, *words)}
            case "break":
                return {
                    "text": self._break(
                        ArmedPoint(**frame["point"]), goes_on=frame.get("goes_on", False)
                    )
                }
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
        function = defined_function(sys.modules.get(f"functions.{point.module}"), point.function)
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


def _all_codes(code: CodeType) -> list[CodeType]:
    """Return a code object and those of everything that is defined inside it."""
    return [
        code,
        *(
            deeper
            for each in code.co_consts
            if isinstance(each, CodeType)
            for deeper in _all_codes(each)
        ),
    ]
