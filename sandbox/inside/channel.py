"""The worker's end of its socket: frames out, frames in, one request at a time; and what a result is sent as.

Dataclasses, named tuples, typed dictionaries and models become dictionaries; enums become their values; sequences and
the first items of an iterator become lists. Any other value raises an Unsendable that says what to return instead.
"""

import _thread
import collections
import enum
import io
import os
import pathlib
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import islice
from typing import Any

from ..wire.caps import MOST_ITEMS
from ..wire.protocol import MAX_JOB, Frame, pack, read_frame
from ..wire.values import Unsendable, decode, encode
from . import failure

_BASES: tuple[Callable[[Any], Any], ...] = (int, float, str, bytes, list, tuple, frozenset, set, dict)


class Channel:
    """A channel for frames. `request` asks the host's handler and waits for the answer."""

    call_here: Callable[[Frame], Any]  # calls a function in this worker, as the host says
    asked_for_secret = False  # whether function code, which this process may serve again, may know a secret

    def __init__(self, descriptor: int, lock: _thread.LockType) -> None:
        self._descriptor = descriptor
        self._lock = lock
        self._asking = 0  # the thread that waits for an answer

    def say(self, frame: Frame) -> None:
        """Send one frame."""
        self._send(pack(frame))

    def reply(self, frame: Frame, limit: int | None) -> None:
        """Send the reply to a job, or its `bounded` form. One that fits is serialized only once."""
        data = pack(frame)
        self._send(data if _fits(frame, len(data), limit) else pack(bounded(frame, limit)))

    def _send(self, data: bytes) -> None:
        sent = os.write(self._descriptor, data)
        while sent < len(data):
            sent += os.write(self._descriptor, memoryview(data)[sent:])

    def hear(self) -> Frame | None:
        """Wait for one frame. Return None if the host has closed its end."""
        return read_frame(partial(os.read, self._descriptor), MAX_JOB)

    def ask(self, frame: Frame) -> Frame:
        """Send a frame and wait for its answer. Threads of the function take turns."""
        if self._asking == _thread.get_ident():
            raise OSError("a destructor asked the host for something in the middle of another request")
        with self._lock:
            self._asking = _thread.get_ident()
            try:
                self.say(frame)
                answer = self.hear()
            finally:
                self._asking = 0
        if answer is None:
            os._exit(0)  # the host has ended this call
        return answer

    def request(self, name: str, arguments: dict[str, Any]) -> Any:  # a value that can be sent
        """Send a request and return the handler's answer.

        Raise PermissionError with its message if it refuses, or the exception of a function that was called.
        """
        self.asked_for_secret |= name == "secret"
        answer = self.ask({"kind": "request", "name": name, "arguments": encode(arguments, simplify)})
        if answer["kind"] == "refused":
            raise failure.rebuilt(answer["error"]) if "error" in answer else PermissionError(answer["reason"])
        if answer["kind"] == "here":
            return self.call_here(answer)
        return decode(answer["value"])

    def close(self) -> None:
        """Close the channel."""
        os.close(self._descriptor)


def bounded(frame: Frame, limit: int | None) -> Frame:
    """Return the reply, or an error reply if its value exceeds the limit."""
    size = len(pack(frame))
    if _fits(frame, size, limit):
        return frame
    message = f"the result takes {size} bytes as JSON and may take {limit}: return less, or a part"
    return {"kind": "raised", "type": "ResultTooLarge", "message": message, "frames": []}


def _fits(frame: Frame, size: int, limit: int | None) -> bool:
    return limit is None or frame["kind"] != "returned" or size <= limit


def simplify(value: Any) -> Any:  # any value that function code can make
    """Return the value one step closer to one that can be sent."""
    if isinstance(value, enum.Enum):
        return value.value
    fields = getattr(type(value), "__dataclass_fields__", None)
    if fields is not None:
        return {name: getattr(value, name) for name in fields}
    if hasattr(type(value), "model_dump") and not isinstance(value, type):
        return value.model_dump()
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict(zip(value._fields, value, strict=True))
    return _base(value)


def _base(value: Any) -> Any:  # as above
    for base in _BASES:
        if isinstance(base, type) and isinstance(value, base):
            return base(value)
    if isinstance(value, pathlib.PurePath):
        return pathlib.PurePosixPath(str(value))
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence | Set | collections.deque | collections.abc.ValuesView):
        return list(value)
    if _is_iterator(value):
        return first_items(value)
    name = type(value).__qualname__
    if isinstance(value, types.AsyncGeneratorType | types.CoroutineType):
        raise Unsendable(f"a {name} cannot be sent as JSON: return a list, `list(…)` of what it yields")
    what = "text, numbers, lists, dictionaries or a dataclass"
    raise Unsendable(f"a value of type {name} cannot be sent as JSON: return {what}")


def _is_iterator(value: object) -> bool:
    """Return whether a value is sent as a list of its items: generators, `map`, `zip` and the like, but not files."""
    return isinstance(value, Iterator) and not isinstance(value, io.IOBase)


def listed(value: Any) -> Any:  # as above
    """Return the first items of an iterator as a list, any other value unchanged."""
    return first_items(value) if _is_iterator(value) else value


def first_items(items: Iterator[Any]) -> list[Any]:
    """Return the first items of an iterator as a list. If items are left out, print a note for the reader."""
    first = list(islice(items, MOST_ITEMS))
    if len(first) == MOST_ITEMS and next(items, first) is not first:
        sys.stdout.write(f"[only the first {MOST_ITEMS:,} items are returned]\n")
    return first
