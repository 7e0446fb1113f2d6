"""Frames between host and worker: four bytes of length, then one JSON object with a `kind`.

Both sides use it. Anything that does not parse strictly (UTF-8, no NaN, no lone surrogate, a length within the cap, a
known shape) is a ProtocolError, and the worker that sent it is killed.
"""

import gc
import json
from collections.abc import Callable
from typing import Any, TypeAlias

from ..errors import ProtocolError
from .strict_json import DEEPEST_ROW, FRAME, Malformed, read_json

Frame: TypeAlias = dict[str, Any]  # JSON whose shape is checked next

HEADER = 4
MAX_JOB = (
    64 << 20
)  # bytes of a frame from the host; sources and arguments have smaller caps elsewhere


_encoder = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=False
)


def json_text(value: Any) -> str:  # Any: JSON
    """Return a value as the text that frames have of it."""
    return _encoder.encode(value)


def pack(frame: Frame) -> bytes:
    """Return the bytes of one frame."""
    body = _encoder.encode(frame).encode()
    return len(body).to_bytes(HEADER, "big") + body


def unpack(body: bytes) -> Frame:
    """Parse a frame from untrusted bytes."""
    was_on = gc.isenabled()
    gc.disable()  # JSON makes no garbage, and the collector would scan 200,000 small lists repeatedly
    try:
        frame = read_json(body, FRAME, most=MAX_JOB, deepest=DEEPEST_ROW)
    except Malformed as error:
        raise ProtocolError(f"a frame cannot be read: {error}") from error
    finally:
        if was_on:
            gc.enable()
    if not isinstance(frame, dict) or not isinstance(frame.get("kind"), str):
        raise ProtocolError("a frame is not an object with a kind")
    return frame


def length(header: bytes | bytearray, cap: int) -> int:
    """Return the number of bytes after a header. Raise ProtocolError, before any is read, if it exceeds the cap."""
    size = int.from_bytes(header, "big")
    if size > cap:
        raise ProtocolError(f"a frame of {size} bytes is longer than {cap}")
    return size


class FrameBuffer:
    """A buffer that splits arriving bytes into frames. It holds at most one capped frame and the latest read."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._bytes = bytearray()
        self._end = 0  # end of the current frame; 0 while its header is incomplete

    def feed(self, data: bytes) -> None:
        """Add bytes that were read."""
        self._bytes += data

    def next(self) -> Frame | None:
        """Return the next complete frame, or None if it has not arrived yet."""
        if not self.has_frame:
            return None
        end, self._end = self._end, 0
        body = bytes(memoryview(self._bytes)[HEADER:end])
        del self._bytes[:end]
        return unpack(body)

    @property
    def has_frame(self) -> bool:
        """True if a complete frame has arrived."""
        if not self._end and len(self._bytes) >= HEADER:
            self._end = HEADER + length(self._bytes[:HEADER], self._cap)
        return 0 < self._end <= len(self._bytes)

    @property
    def is_empty(self) -> bool:
        """True if the buffer has no bytes."""
        return not self._bytes


def read_frame(read: Callable[[int], bytes], cap: int) -> Frame | None:
    """Return one frame by blocking reads (the worker's side), or None if the other side has closed."""
    header = _exactly(read, HEADER)
    return None if header is None else unpack(_exactly(read, length(header, cap)) or b"")


def _exactly(read: Callable[[int], bytes], count: int) -> bytes | None:
    data = bytearray()
    while len(data) < count:
        piece = read(count - len(data))
        if not piece:
            return None
        data += piece
    return bytes(data)
