"""A program: lines of Python that call the agent's functions by name; each call is a request to the host.

The job fixes the time of day and the randomness, so that a rerun of the program has the same result. The program's
value is its last expression or assignment; top-level variables with values that can be sent are returned to be stored.
"""

import ast
import builtins
import datetime
import functools
import io
import json
import os
import random
import signal
import time
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from types import FrameType
from typing import Any

from ..errors import ProtocolError
from ..wire.caps import MOST_SHOWN
from ..wire.large import PART
from ..wire.protocol import Frame, json_text
from ..wire.values import BODY, Encoded, Unsendable, decode, in_kind, lean
from . import failure
from .channel import Channel, GivenValues, TooLarge, is_asking, listed, simplify
from .finder import PROGRAM

MOST_CALLS = 1_000  # of one program
MOST_SMALL, MOST_SMALL_ALL = (
    64 << 10,
    256 << 10,
)  # bytes of JSON of variables that go in frames: of one, of all
MOST_KEPT, MOST_KEPT_ALL = 4 << 20, 64 << 20  # the same of all that are kept
MOST_KEPT_NAMES = 200
MAX_NAME_CHARS = 80
_MOST_DROPPED, _LONGEST_KIND = (
    20,
    60,
)  # names of variables that are not kept, and characters of the name of a type
ROOM = 512 << 10  # bytes of a reply in addition to its value
_LOOK_LIMIT = 1_000  # values of a call's arguments in which a temporary file is looked for
_ROWS_AT_ONCE = 32  # of `each`, so that the host holds few results at a time
MOST_SEEN = 4  # recorded calls of one function that a program defines
_TICK_NS = 1_000_000
_SEEN, _VALUE = "__seen__", "__value__"


class CallFailed(Exception):
    """A failed call in a program. A plain call raises it; `each` returns it in place of a result.

    If the function raised an error, it is of the class of that error, too.
    """


CallFailed.__module__ = "builtins"


class TimeIsUp(BaseException):
    """The time of a program is up: it ends here, and what its variables are now is kept."""


class _Deadline:
    """Whether a program runs in this process, so that the host's signal ends it."""

    def __init__(self) -> None:
        self._is_running = False

    def __enter__(self) -> None:
        self._is_running = True

    def __exit__(self, *_error: object) -> None:
        self._is_running = False

    def end(self, frame: FrameType | None) -> None:
        """End the program, from a signal handler; not within a request, which the host answers first."""
        if self._is_running and not is_asking(frame):
            raise TimeIsUp("its time is up")


_DEADLINE = _Deadline()


def stand_by() -> None:
    """Route the signal by which the host ends a program. This must be called before the worker is confined."""
    signal.signal(signal.SIGUSR2, lambda _number, frame: _DEADLINE.end(frame))


class Offered:
    """A function of the agent in a program; each call is a request to the host."""

    def __init__(self, channel: Channel, name: str, parameters: list[str]) -> None:
        self.__name__ = self.__qualname__ = name
        self._channel = channel
        self._parameters = parameters

    def __call__(self, *positional: Any, **named: Any) -> Any:  # values that can be sent
        """Call the function and return the result. Raise CallFailed if the call failed."""
        row = self.row(positional, named)
        return _result(
            self._channel.request("inner", {"function": self.__name__, "rows": [row]})[0]
        )

    def row(self, positional: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by name. Raise TypeError if there are too many, or one is given twice."""
        if len(positional) > len(self._parameters):
            count = len(self._parameters)
            raise TypeError(
                f"{self.__name__}() takes {count} arguments ({', '.join(self._parameters)}), not more"
            )
        first = dict(zip(self._parameters, positional, strict=False))
        if twice := [name for name in named if name in first]:
            raise TypeError(f"{self.__name__}() got two values for {twice[0]!r}")
        row = first | dict(named)
        if own := next(_own_files(row), None):
            raise ValueError(
                f"{self.__name__} cannot open {own}: a program's temporary files are there for the program alone. "
                "Pass what is in it, or write it into a folder of the user"
            )
        return row

    def each(self, rows: Iterable[Any]) -> list[Any]:
        """Call the function for each row and return the results, with a CallFailed for each failed call."""
        whole = [self._row(row) for row in rows]
        if len(whole) > MOST_CALLS:
            raise PermissionError(
                f"a program may make {MOST_CALLS:,} calls, and these are {len(whole):,}"
            )
        results: list[Any] = []
        for batch in _batches(whole):
            answers = self._channel.request("inner", {"function": self.__name__, "rows": batch})
            results += [_result(answer, raises=False) for answer in answers]
        return results

    def _row(self, row: Any) -> dict[str, Any]:
        if _is_named(row, self._parameters):
            return self.row((), row)
        return self.row(row if isinstance(row, tuple) else (row,), {})

    def __repr__(self) -> str:
        return f"<function {self.__name__}({', '.join(self._parameters)})>"


def _own_files(row: Any) -> Iterator[str]:  # any values
    """Yield the temporary files of this program that arguments name, to a depth that a tool with arguments has."""
    scratch = os.environ.get("TMPDIR")
    waiting = [row]
    for _ in range(_LOOK_LIMIT if scratch else 0):
        if not waiting:
            return
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += islice(value.values(), _LOOK_LIMIT)
        elif isinstance(value, list | tuple):
            waiting += islice(value, _LOOK_LIMIT)
        elif isinstance(value, str | os.PathLike):
            path = os.fspath(value)
            if isinstance(path, str) and path.startswith(f"{scratch}/") and os.path.lexists(path):
                yield path


def _batches(rows: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Yield the rows in parts that fit into a request."""
    batch: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        row_size = min(
            len(json_text(lean(row, simplify))), PART * len(row)
        )  # larger arguments do not go in it
        if batch and (len(batch) >= _ROWS_AT_ONCE or size + row_size > MOST_SMALL_ALL):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += row_size
    if batch:
        yield batch


def _result(answer: Mapping[str, Any], *, raises: bool = True) -> Any:
    if "failed" not in answer:
        return answer["value"]
    error = (
        failure.rebuilt(answer["raised"], CallFailed)
        if "raised" in answer
        else CallFailed(answer["failed"])
    )
    if raises:
        raise error
    return error


def each(function: Callable[..., Any], rows: Iterable[Any]) -> list[Any]:
    """Call a function for each row and return the results in order; exceptions are values.

    A dictionary has arguments by name, a tuple by position; any other row is the first argument.
    """
    if isinstance(function, Offered):
        return function.each(rows)
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    names = code and code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return [_try_row(function, row, names) for row in rows]


def _is_named(row: Any, names: Collection[str] | None) -> bool:
    is_given = names is not None and isinstance(row, Mapping) and bool(row or not names)
    return is_given and all(name in (names or ()) for name in row)


def _try_row(function: Callable[..., Any], row: Any, names: Collection[str] | None) -> Any:
    try:
        if _is_named(row, names):
            return function(**row)
        return function(*row) if isinstance(row, tuple) else function(row)
    except Exception as error:  # noqa: BLE001 - a failure is a value here
        return error


def perform(
    frame: Frame,
    channel: Channel,
    variables: "Variables",
    compile_: Callable[[ast.AST, str], Any],
    left_by_failure: dict[str, Encoded],
) -> Frame:
    """Run a program and return the reply: its value, its variables, and recorded calls of functions it defines.

    If it fails, its variables are added to `left_by_failure`.
    """
    tree = ast.parse(frame["code"], PROGRAM)
    target = _with_value(tree)
    code = compile_(tree, "exec")
    _fix_surroundings(frame["began"], frame["seed"])
    offered = {
        name: Offered(channel, name, parameters) for name, parameters in frame["functions"].items()
    }
    seen: dict[str, list[list[str]]] = {}
    namespace = {"each": each, "CallFailed": CallFailed} | offered | variables.values
    namespace |= {_SEEN: functools.partial(_noting, seen)}
    own = {**namespace, "__name__": "__main__", "__builtins__": builtins}
    theirs = {name: item for name, item in namespace.items() if name not in frame["kept"]}
    imported = _imported_names(tree)
    try:
        with _DEADLINE:
            exec(code, own)
    except BaseException:
        left_by_failure |= variables.left(own, theirs, imported)[0]
        raise
    value = own.get(target)
    left, dropped = variables.left(own, theirs, imported)
    whole = listed(value)
    is_shown = False
    try:
        encoded = lean(whole, simplify)
    except (Unsendable, RecursionError):
        encoded, is_shown = failure.shown(whole, MOST_SHOWN), True
    try:
        part = channel.part(encoded, frame["result"] - ROOM)
    except TooLarge as error:
        return error.reply() | {"kept": left}
    reply = {"value": part, "is_shown": is_shown, "kept": left, "dropped": dropped, "seen": seen}
    return {"kind": "returned", "value": reply, "shown": failure.shown(value, MOST_SHOWN)}


def _with_value(tree: ast.Module) -> str:
    """Change a program to store its value and to record calls of its functions; return the name of its value."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            node.decorator_list.append(ast.copy_location(ast.Name(_SEEN, ast.Load()), node))
    last = tree.body[-1] if tree.body else None
    target = _VALUE
    if isinstance(last, ast.Expr):
        assigned = ast.Assign([ast.copy_location(ast.Name(_VALUE, ast.Store()), last)], last.value)
        tree.body[-1] = ast.copy_location(assigned, last)
    else:
        target = next(reversed([*_assigned_names(tree.body)]), _VALUE)
    ast.fix_missing_locations(tree)
    return target


def _assigned_names(body: Iterable[ast.AST]) -> Iterable[str]:
    """Yield the names that statements assign, in order, except inside functions and classes."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (
                inner.id
                for target in targets
                for inner in ast.walk(target)
                if isinstance(inner, ast.Name)
            )
        elif not isinstance(node, ast.expr):
            yield from _assigned_names(ast.iter_child_nodes(node))


def _imported_names(tree: ast.Module) -> set[str]:
    """Return the names that a program imports, which the next one imports itself."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return {
        (alias.asname or alias.name).partition(".")[0] for node in imports for alias in node.names
    }


def _noting(seen: dict[str, list[list[str]]], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that records some of its calls with their results, as source text."""

    @functools.wraps(function)
    def noted(*positional: Any, **named: Any) -> Any:
        given = [repr(value) for value in positional] + [
            f"{name}={value!r}" for name, value in named.items()
        ]
        result = function(*positional, **named)
        calls = seen.setdefault(function.__name__, [])
        row = [f"{function.__name__}({', '.join(given)})", repr(result)]
        if len(calls) < MOST_SEEN and row not in calls and sum(map(len, row)) < 1_000:
            calls.append([failure.clean(text) for text in row])
        return result

    return noted


class Variables:
    """The variables that a program gets from earlier ones, and those that it leaves for the next.

    Each is the JSON text that a value is sent as, or, above `MOST_SMALL`, a large value. One that is as it was given is
    left as True.
    """

    def __init__(
        self, channel: Channel, kept: Mapping[str, Encoded], given: GivenValues | None
    ) -> None:
        self._channel = channel
        self._kept = kept
        self._given = given
        self.values: dict[str, Any] = {
            name: _read(json.loads(text)) if isinstance(text, str) else decode(text, given)
            for name, text in kept.items()
        }
        """The values that earlier programs left."""

    def left(
        self, values: Mapping[str, Any], theirs: Mapping[str, Any], imported: Collection[str]
    ) -> tuple[dict[str, Encoded], dict[str, str]]:
        """Return the variables that can be kept, and what the others are by their names: "" if too many or too large.

        What the program was given (`theirs`) and has not replaced is left out.
        """
        left: dict[str, Encoded] = {}
        dropped: dict[str, str] = {}
        room, small_room = MOST_KEPT_ALL, MOST_SMALL_ALL
        misnamed = 0
        for name, value in values.items():
            is_given = name in theirs and theirs[name] is value
            if is_given or name.startswith("_"):
                continue
            if not is_variable(name):
                misnamed += 1
                continue
            try:
                encoded = lean(value, _of_its_kind)
            except Unsendable as error:
                if name not in imported:
                    dropped[name] = _what_it_is(value, error)
                continue
            text = json.dumps(encoded, ensure_ascii=True)
            is_small = len(text) <= min(MOST_SMALL, small_room)
            if len(text) > min(MOST_KEPT, room) or len(left) >= MOST_KEPT_NAMES:
                dropped[name] = ""
                continue
            if is_small:
                left[name], small_room = text, small_room - len(text)
                continue
            try:
                left[name] = self._is_as_given(name, encoded) or self._channel.part(encoded, 0)
            except TooLarge:  # where no large values are kept
                dropped[name] = ""
                continue
            room -= len(text)
        told = dict(islice(dropped.items(), _MOST_DROPPED))
        if others := misnamed + len(dropped) - len(told):
            told[f"{others} more"] = ""
        return left, told

    def _is_as_given(self, name: str, encoded: Encoded) -> bool:
        """Return whether a large value is what the program was given."""
        reference = self._kept.get(name)
        if self._given is None or not isinstance(reference, dict):
            return False
        return self._given.texts.get(reference[BODY][0]) == json_text(encoded)


def is_variable(name: object) -> bool:
    """Return whether this is the name of a variable that is kept: one that can be typed, and of a line's length."""
    return isinstance(name, str) and len(name) <= MAX_NAME_CHARS and name.isidentifier()


def _read(encoded: Encoded) -> Any:
    try:
        return decode(encoded)
    except ProtocolError:  # an earlier release kept JSON only, as it was
        return encoded


class _Unkept(Unsendable):
    """A value of a type that is not kept."""

    def __init__(self, value: Any) -> None:
        super().__init__("it is not kept")
        self.value = value


def _of_its_kind(value: Any) -> Any:
    """Return what a value is kept as; nothing becomes of another type."""
    found = in_kind(value)
    if found is None:
        raise _Unkept(value)
    return found


def _what_it_is(value: Any, error: Unsendable) -> str:
    """Return in a few words why a value is not kept: what it is, or what is in it."""
    whole = _kind_name(value)
    if not isinstance(error, _Unkept):
        return f"{whole} that JSON cannot hold"
    return whole if error.value is value else f"{whole} with {_kind_name(error.value)} in it"


def _kind_name(value: Any) -> str:
    named: tuple[tuple[Any, str], ...] = (
        ((Offered, types.FunctionType, types.BuiltinFunctionType, types.MethodType), "function"),
        (type, "class"),
        (types.ModuleType, "module"),
        (io.IOBase, "file"),
    )
    kind = next(
        (name for kinds, name in named if issubclass(type(value), kinds)),
        failure.clean(type(value).__name__),
    )
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind[:_LONGEST_KIND]}"


def _fix_surroundings(began: float, seed: int) -> None:
    """Set the clock to the time of the program's first run, and seed all randomness.

    The clock advances only when the program reads it or sleeps.
    """
    now = [int(began * 1e9)]

    def nanoseconds() -> int:
        now[0] += _TICK_NS
        return now[0]

    def seconds() -> float:
        return nanoseconds() / 1e9

    real_sleep = time.sleep

    def sleep(duration: Any, /) -> None:
        now[0] += int(duration * 1e9)
        real_sleep(duration)

    chance = random.Random(seed)  # noqa: S311 - it must be the same in every run
    urandom = chance.randbytes
    time.time, time.time_ns, time.sleep = seconds, nanoseconds, sleep
    for name in ("localtime", "gmtime", "ctime"):
        setattr(time, name, _at(seconds, getattr(time, name)))
    strftime, localtime = time.strftime, time.localtime
    time.strftime = lambda form, moment=None: strftime(
        form, localtime() if moment is None else moment
    )
    os.urandom = random._urandom = urandom  # type: ignore[attr-defined]
    os.getrandom = lambda size, flags=0: urandom(size)
    datetime.datetime, datetime.date = _clock_classes(datetime.datetime, datetime.date, seconds)  # type: ignore[misc]


def _at(seconds: Callable[[], float], function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda moment=None: function(seconds() if moment is None else moment)


def _clock_classes(moment: Any, day: Any, seconds: Callable[[], float]) -> tuple[Any, Any]:
    """Return replacements of `datetime` and `date` that create real values with this clock."""

    class Kind(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, cls.__mro__[1])

        def __subclasscheck__(cls, other: type) -> bool:
            return issubclass(other, cls.__mro__[1])

    class Moment(moment, metaclass=Kind):  # type: ignore[misc]
        def __new__(cls, *positional: Any, **named: Any) -> Any:
            return moment(*positional, **named)

        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return moment.fromtimestamp(seconds(), tz)

        @classmethod
        def utcnow(cls) -> Any:
            return moment.fromtimestamp(seconds(), datetime.UTC).replace(tzinfo=None)

        @classmethod
        def today(cls) -> Any:
            return moment.fromtimestamp(seconds())

    class Day(day, metaclass=Kind):  # type: ignore[misc]
        def __new__(cls, *positional: Any, **named: Any) -> Any:
            return day(*positional, **named)

        @classmethod
        def today(cls) -> Any:
            return day.fromtimestamp(seconds())

    Moment.__name__ = Moment.__qualname__ = "datetime"
    Day.__name__ = Day.__qualname__ = "date"
    return Moment, Day
