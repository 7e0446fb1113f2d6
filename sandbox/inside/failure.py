"""The worker's edge, the one place where everything that function code raises is caught, and an exception as data.

The data are the frames of function code with short representations of their locals.
"""

import builtins
import json
import re
import reprlib
import sys
from collections.abc import Callable, Container, Sequence
from functools import partial
from itertools import islice
from types import BuiltinFunctionType, FrameType, FunctionType, ModuleType, TracebackType
from typing import Any, TypeGuard, TypeVar

from ..wire import caps
from ..wire.protocol import Frame as Message
from ..wire.values import decode, encode

Result = TypeVar("Result")
_SECRET = re.compile(r"key|token|secret|passw|credential|auth", re.IGNORECASE)
_CONTEXT = "sandbox.inside.context"

_shortener = reprlib.Repr()
_shortener.maxstring = _shortener.maxother = _shortener.maxlong = caps.MOST_TEXT
_shortener.maxlevel = 3


def attempt(action: Callable[[], Result]) -> Result | BaseException:
    """Return the result of the action, or the exception it raised, SystemExit and KeyboardInterrupt included."""
    try:
        return action()
    except BaseException as error:  # noqa: BLE001 - the edge; reported to the host as a failure
        return error


def describe(error: BaseException, own_paths: Container[str]) -> Message:
    """Return the reply that describes this exception to the host, with its causes."""
    reply: Message = {
        "kind": "raised",
        **_describe(error),
        **_class_of(error),
        "frames": _frames(error, own_paths),
    }
    above, seen = reply, [entry.tb_frame for entry in _own(error, own_paths)]
    for _ in range(caps.MOST_CAUSES):
        cause, above["was_handling"] = error.__cause__, False
        handled = None if error.__suppress_context__ else error.__context__
        # The exception being handled counts as the cause if it passed through function code.
        if cause is None and handled is not None and _own(handled, own_paths):
            cause, above["was_handling"] = handled, True
        if cause is None:
            break
        frames = _frames(cause, own_paths, seen)[-caps.MOST_CAUSE_FRAMES :]
        above["cause"] = {**_describe(cause, caps.MOST_CAUSE_MESSAGE), "frames": frames}
        above, error, seen = (
            above["cause"],
            cause,
            [*seen, *(entry.tb_frame for entry in _own(cause, own_paths))],
        )
    return reply


def _describe(error: BaseException, most: int = caps.MOST_MESSAGE) -> Message:
    return {"type": _name(type(error).__qualname__), "message": clean(message_of(error))[:most]}


def _class_of(error: BaseException) -> Message:
    """Return what another worker needs to raise an exception of the same class."""
    kind = type(error)
    base = next(
        (each for each in kind.__mro__ if vars(builtins).get(each.__name__) is each), Exception
    )
    claim: Message = {"module": _name(str(kind.__module__)), "base": base.__name__}
    arguments = attempt(lambda: encode([*error.args]))
    if isinstance(arguments, list) and len(json.dumps(arguments)) <= caps.MOST_MESSAGE:
        claim["arguments"] = arguments
    return claim


def rebuilt(claim_message: Message, also: type[Exception] | None = None) -> Exception:
    """Return the exception that another worker described, by the host's word.

    It is of the same class if this worker has that, otherwise of one with its name and the same builtin base; in any
    case it is `also` of another class. No constructor of function code runs.
    """
    arguments = [] if claim_message["arguments"] is None else decode(claim_message["arguments"])
    kind = _class_named(claim_message)
    error = _instance(_made(kind, (also, kind)) if also else kind, arguments)
    message, own = claim_message["message"], attempt(lambda: str(error))
    notes = [claim_message["note"]]
    if isinstance(own, str) and message.startswith(f"{own}\n"):
        notes.insert(0, message.removeprefix(f"{own}\n"))
    elif own != message:  # its text needs what its constructor got
        error = _instance(
            _made(type(error), (type(error),), {"__str__": lambda _error: message}), arguments
        )
    for note in filter(None, notes):
        error.add_note(note)
    return error


def _class_named(claim_message: Message) -> type[Exception]:
    base = vars(builtins).get(claim_message["base"])
    base = base if _is_error(base) else Exception
    kind: Any = sys.modules.get(
        claim_message["module"]
    )  # any object, until it is known to be a class
    for name in claim_message["type"].split("."):  # not by `getattr`, which may run code
        kind = vars(kind).get(name) if isinstance(kind, ModuleType | type) else None
    if _is_error(kind) and issubclass(kind, base):
        return kind
    made = type(claim_message["type"].rpartition(".")[2], (base,), {})
    made.__qualname__, made.__module__ = claim_message["type"], claim_message["module"]
    return made


def _made(
    kind: type[Exception], bases: tuple[type[Exception], ...], body: dict[str, Any] | None = None
) -> type[Exception]:
    """Return a new class that looks like another one."""
    made = type(kind.__name__, bases, body or {})
    made.__qualname__, made.__module__ = kind.__qualname__, kind.__module__
    return made


def _is_error(kind: object) -> TypeGuard[type[Exception]]:
    return isinstance(kind, type) and issubclass(kind, Exception)


def _instance(kind: type[Exception], arguments: Sequence[Any]) -> Exception:
    """Return an exception as its builtin class makes it; one without arguments if these do not fit it."""
    base = next(each for each in kind.__mro__ if vars(builtins).get(each.__name__) is each)
    for given in (arguments, ()):
        error = attempt(partial(base.__new__, kind, *given))
        if isinstance(error, kind):
            attempt(partial(base.__init__, error, *given))
            return error
    return Exception.__new__(
        type(kind.__name__, (Exception,), {})
    )  # as for a group, which is made of exceptions


def message_of(error: BaseException) -> str:
    """Return the exception's message. A broken `__str__` is reported, not raised."""
    text = attempt(lambda: str(error))
    if not isinstance(text, str):
        return f"<the exception's text could not be made: {type(text).__name__}>"
    notes = getattr(error, "__notes__", ())
    return "\n".join([text, *[note for note in notes if isinstance(note, str)]]) if notes else text


def clean(text: str) -> str:
    """Return the text with characters that are not valid UTF-8 escaped."""
    return text.encode("utf-8", "backslashreplace").decode()


def shown(value: object, limit: int) -> str:
    """Return the value's repr, cut to a length. A broken `__repr__` is reported, not raised."""
    text = attempt(lambda: repr(_head(value, limit + 1)))
    if not isinstance(text, str):
        return f"<{type(value).__name__}, whose repr failed>"
    cleaned = clean(text[: limit + 1])
    return cleaned if len(cleaned) <= limit else f"{cleaned[: limit - 1]}…"


def _head(value: object, count: int) -> object:
    """Return the first items of a long value, so that nothing is written that is cut off again."""
    if type(value) in (str, bytes, list, tuple) and len(value) > count:  # type: ignore[arg-type] # all of these have one
        return value[:count]  # type: ignore[index] # as above
    if type(value) is dict and len(value) > count:
        return dict(islice(value.items(), count))
    return value


def _name(text: str) -> str:
    return clean(text)[: caps.MOST_NAME]


def _own(error: BaseException, own_paths: Container[str]) -> list[TracebackType]:
    """Return the entries of an exception's traceback that are in function code."""
    own: list[TracebackType] = []
    entry = error.__traceback__
    while entry is not None:
        if entry.tb_frame.f_code.co_filename in own_paths:
            own.append(entry)
        entry = entry.tb_next
    return own


def _column(entry: TracebackType) -> int:
    """Return the column of the code that was running."""
    positions = entry.tb_frame.f_code.co_positions()
    *_, column, _ = next(islice(positions, entry.tb_lasti // 2, None), (None,) * 4)
    return min(column or 0, caps.MOST_LINE)


def _frames(
    error: BaseException, own_paths: Container[str], seen: Container[FrameType] = ()
) -> list[list[object]]:
    """Return the frames of function code, with locals unless the frame is in `seen`."""
    own: list[list[object]] = []
    for entry in _own(error, own_paths):
        frame, code = entry.tb_frame, entry.tb_frame.f_code
        names = [] if frame in seen else _locals(frame)
        own.append(
            [code.co_filename, entry.tb_lineno, _name(code.co_qualname), names, _column(entry)]
        )
    if isinstance(error, SyntaxError) and error.filename in own_paths:
        line = error.lineno if isinstance(error.lineno, int) else 0
        own.append([error.filename, max(0, min(line, caps.MOST_LINE)), "<module>", [], 0])
    half = caps.MOST_FRAMES // 2
    return own if len(own) <= caps.MOST_FRAMES else own[:half] + own[-half:]


def _locals(frame: FrameType) -> list[list[str]]:
    if frame.f_code.co_name == "<module>":
        return []
    names = []
    for name, value in frame.f_locals.items():
        is_context = name == "self" and type(value).__module__ == _CONTEXT
        explains = not isinstance(value, ModuleType | FunctionType | BuiltinFunctionType | type)
        if explains and not is_context and not name.startswith("__"):
            names.append(name)
    return [[_name(name), short(name, frame.f_locals[name])] for name in names[: caps.MOST_LOCALS]]


def short(
    name: str, value: object, shortener: reprlib.Repr = _shortener, most: int = caps.MOST_TEXT
) -> str:
    """Return a short text of a local. A value with a name that sounds like a secret is masked."""
    if _SECRET.search(name):
        return "<masked>"
    text = attempt(lambda: shortener.repr(value))
    return (
        clean(text)[:most]
        if isinstance(text, str)
        else f"<{type(value).__name__}, whose repr failed>"
    )
