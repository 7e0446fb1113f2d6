"""The worker's end of its socket: frames out, frames in, one request at a time."""

import _thread
import os
from functools import partial
from typing import Any

from ..wire.protocol import MAX_JOB, Frame, pack, read_frame
from ..wire.values import decode, encode
from .simplification import simplify


class Channel:
    """A channel for frames. `request` asks the host's handler and waits for the answer."""

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
        """Send a request and return the handler's answer. Raise PermissionError with its message if it refuses."""
        answer = self.ask({"kind": "request", "name": name, "arguments": encode(arguments, simplify)})
        if answer["kind"] == "refused":
            raise PermissionError(answer["reason"])
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
