"""The worker's end of its socket: frames out, frames in, one request at a time; and what a result is sent as.

A value that is too large for a frame is sent before it, as text in pieces, if the job allows that.

Dataclasses, named tuples, typed dictionaries and models become dictionaries; enums become their values; sequences and
the first items of an iterator become lists. Any other value raises an Unsendable that says what to return instead.
"""

import _thread
import collections
import enum
import io
import json
import os
import pathlib
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import partial
from itertools import islice
from types import FrameType
from typing import Any

from ..errors import ProtocolError
from ..wire.caps import MOST_ITEMS
from ..wire.large import PART, PIECE
from ..wire.protocol import MAX_JOB, Frame, json_text, pack, read_frame
from ..wire.values import BODY, LARGE, TAG, Encoded, Unsendable, decode, kind_of, lean
from . import failure
from .pictures import is_drawn, png_of

_NO_ROOM = "no memory is left to write the result as JSON: return less, or a part"
_MANY, _AT_ONCE = 10_000, 2_000  # items of a value whose JSON is written in parts, and of a part
_LONG = 1_000_000  # characters
_BASES: tuple[Callable[[Any], Any], ...] = (
    int,
    float,
    str,
    bytes,
    list,
    tuple,
    frozenset,
    set,
    dict,
)


class Channel:
    """A channel for frames. `request` asks the host's handler and waits for the answer."""

    call_here: Callable[[Frame], Any]  # calls a function in this worker, as the host says
    asked_for_secret = (
        False  # whether function code, which this process may serve again, may know a secret
    )

    def __init__(self, descriptor: int, lock: _thread.LockType) -> None:
        self._descriptor = descriptor
        self._lock = lock
        self._asking = 0  # the thread that waits for an answer
        self._most_inline = self._most_large = (
            0  # bytes of a frame, and of a large value; the job has them
        )
        self._sent = 0  # large values

    def say(self, frame: Frame) -> None:
        """Send one frame."""
        self._send(pack(frame))

    def reply(self, frame: Frame, limit: int | None) -> None:
        """Send the reply to a job, its result as a large value if it is too large for a frame, or its `bounded` form.

        One that fits is serialized only once, unless it is bulky.
        """
        try:
            if limit is not None and frame["kind"] == "returned" and _is_bulky(frame["value"]):
                frame = {**frame, "value": self.part(frame["value"], limit - PART)}
            data = pack(frame)
            if _fits(frame, len(data), limit):
                self._send(data)
                return
            del data
            self.say({**frame, "value": self.part(frame["value"])})
        except TooLarge as error:
            self.say(error.reply())
        except MemoryError:
            self.say({"kind": "raised", "type": "MemoryError", "message": _NO_ROOM, "frames": []})

    def part(self, encoded: Encoded, most: int = PART) -> Encoded:
        """Return what stands for a part of the next frame: itself, or, if it is longer, the large value that it is now.

        Raises:
            TooLarge: it is longer than any value may be.
        """
        with self._lock:  # nothing else is sent in between
            return self._part(encoded, most)

    def _part(self, encoded: Encoded, most: int = PART) -> Encoded:
        texts = [*_texts_of(encoded)]
        if sum(map(len, texts)) <= most:
            return encoded
        size = sum(len(text) if text.isascii() else len(text.encode()) for text in texts)
        if size > self._most_large:
            raise TooLarge(size, self._most_large or self._most_inline)
        texts.reverse()
        while texts:  # each is freed when it is sent
            text = texts.pop()
            for at in range(0, len(text), PIECE):
                self.say({"kind": "piece", "text": text[at : at + PIECE]})
        kind, count = kind_of(encoded)
        self.say({"kind": "large", "type": kind, "count": count})
        self._sent += 1
        return {TAG: LARGE, BODY: [self._sent]}

    def _send(self, data: bytes) -> None:
        sent = os.write(self._descriptor, data)
        while sent < len(data):
            sent += os.write(self._descriptor, memoryview(data)[sent:])

    def hear(self) -> Frame | None:
        """Wait for one frame, with the large values in it as `given`. Return None if the host has closed its end."""
        given = GivenValues()
        while (frame := self._hear_one()) is not None and given.takes(frame):
            pass
        if frame is not None and "most_large" in frame:
            self._most_inline, self._most_large, self._sent = (
                frame["result"],
                frame["most_large"],
                0,
            )
        return {**frame, "given": given} if frame is not None and given.texts else frame

    def _hear_one(self) -> Frame | None:
        return read_frame(partial(os.read, self._descriptor), MAX_JOB)

    def ask(self, frame: Frame) -> Frame:
        """Send a frame and wait for its answer. Threads of the function take turns."""
        if self._asking == _thread.get_ident():
            raise OSError(
                "a destructor asked the host for something in the middle of another request"
            )
        with self._lock:
            self._asking = _thread.get_ident()
            try:
                self._send(self._packed(frame))
                answer = self.hear()
            finally:
                self._asking = 0
        if answer is None:
            os._exit(0)  # the host has ended this call
        return answer

    def _packed(self, frame: Frame) -> bytes:
        """Return the bytes of a frame; if they are too many, the arguments of the calls in it are sent as large values.

        Raises:
            ValueError: it is too large even then.
        """
        calls = _calls_in(frame) if self._most_large else ()
        try:
            for call in calls:
                bulky = {name: value for name, value in call.items() if _is_bulky(value)}
                call |= {
                    name: self._part(value, self._most_inline - PART)
                    for name, value in bulky.items()
                }
            data = pack(frame)
            if not calls or len(data) <= self._most_inline:
                return data
            del data
            for call in calls:
                call |= {name: self._part(value) for name, value in call.items()}
        except TooLarge as error:
            raise ValueError(error.message("argument", "pass")) from error
        data = pack(frame)
        if len(data) > self._most_inline + PART:
            raise ValueError(TooLarge(len(data), self._most_inline).message("arguments", "pass"))
        return data

    def request(self, name: str, arguments: dict[str, Any]) -> Any:  # a value that can be sent
        """Send a request and return the handler's answer.

        Raise PermissionError with its message if it refuses, or the exception of a function that was called.
        """
        self.asked_for_secret |= name == "secret"
        answer = self.ask({"kind": "request", "name": name, "arguments": lean(arguments, simplify)})
        if answer["kind"] == "refused":
            raise (
                failure.rebuilt(answer["error"])
                if "error" in answer
                else PermissionError(answer["reason"])
            )
        if answer["kind"] == "here":
            return self.call_here(answer)
        return decode(answer["value"], answer.get("given"))

    def close(self) -> None:
        """Close the channel."""
        os.close(self._descriptor)


def is_asking(frame: FrameType | None) -> bool:
    """Check whether a stack is within a channel, whose state an exception of a signal handler would break."""
    while frame is not None:
        if frame.f_code.co_filename == Channel.ask.__code__.co_filename:
            return True
        frame = frame.f_back
    return False


def _has_many_items(encoded: Encoded) -> bool:
    return isinstance(encoded, list | dict) and len(encoded) > _MANY


def _is_bulky(encoded: Encoded) -> bool:
    """Return whether a value is better written apart: writing the frame with it may take too much memory."""
    return _has_many_items(encoded) or (isinstance(encoded, str) and len(encoded) > _LONG)


def _texts_of(encoded: Encoded) -> Iterator[str]:
    """Yield the JSON of a value in parts: one text of it all may be as large as the value, and take much more room."""
    if not _has_many_items(encoded):
        yield json_text(encoded)
        return
    begin, end = ("[", "]") if isinstance(encoded, list) else ("{", "}")
    items = iter(encoded if isinstance(encoded, list) else encoded.items())
    while some := [*islice(items, _AT_ONCE)]:
        yield begin + json_text(some if isinstance(encoded, list) else dict(some))[1:-1]
        begin = ","
    yield end


class GivenValues:
    """The large values that came before a frame, as JSON by their digests; one is read when it is asked for."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.texts: dict[str, str] = {}

    def takes(self, frame: Frame) -> bool:
        """Take a part of a large value. Return False for any other frame."""
        if frame["kind"] == "piece":
            self._pieces.append(frame["text"])
        elif frame["kind"] == "large":
            self.texts[frame["digest"]], self._pieces = "".join(self._pieces), []
        else:
            return False
        return True

    def __call__(self, digest: str) -> Any:  # a value that can be sent
        """Return a value. Raise ProtocolError if the worker that sent it wrote no JSON."""
        text = self.texts[digest]
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ProtocolError(f"a large value cannot be read: {error}") from error
        return decode(value) if f'"{TAG}"' in text else value


def _calls_in(frame: Frame) -> list[dict[str, Encoded]]:
    """Return the arguments of each call that a request makes, in dictionaries that belong to the frame alone."""
    match frame:
        case {
            "kind": "request",
            "name": "call",
            "arguments": {"arguments": dict(given)} as request,
        } if TAG not in given:
            frame["arguments"] = {**request, "arguments": (own := dict(given))}
            return [own]
        case {"kind": "request", "name": "inner", "arguments": {"rows": list(rows)} as request} if (
            all(isinstance(row, dict) for row in rows)
        ):
            own_rows = [dict(row) for row in rows]
            frame["arguments"] = {**request, "rows": own_rows}
            return [row for row in own_rows if TAG not in row]
        case _:
            return []


class TooLarge(Exception):
    """A value that takes more bytes as JSON than it may."""

    def __init__(self, size: int, most: int) -> None:
        super().__init__(size, most)
        self.size, self.most = size, most

    def message(self, label: str, act: str) -> str:
        """Return what is wrong, and what to do."""
        return f"the {label} takes {self.size} bytes as JSON and may take {self.most}: {act} less, or a part"

    def reply(self) -> Frame:
        """Return the reply of a call whose result it is."""
        message = self.message("result", "return")
        return {"kind": "raised", "type": "ResultTooLarge", "message": message, "frames": []}


def bounded(frame: Frame, limit: int | None) -> Frame:
    """Return the reply, or an error reply if its value exceeds the limit."""
    size = len(pack(frame))
    return frame if limit is None or _fits(frame, size, limit) else TooLarge(size, limit).reply()


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
    if is_drawn(value):
        return png_of(value)
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
        raise Unsendable(
            f"a {name} cannot be sent as JSON: return a list, `list(…)` of what it yields"
        )
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
