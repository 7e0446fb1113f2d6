"""One conversation with one worker: send the job, serve its requests, receive replies.

Everything that arrives is a claim of untrusted code. Frames are capped before they are read and checked for shape; a
worker that violates the protocol is reported as killed.
"""

import asyncio
import codecs
import contextlib
from collections.abc import Awaitable, Callable

from ..errors import ProtocolError
from ..outcome import Failure, Frame, Outcome, Raised, Refused, Returned
from ..policy import Limits
from ..wire import caps
from ..wire.claims import within
from ..wire.protocol import Frame as Message
from ..wire.protocol import FrameBuffer, pack
from ..wire.values import read
from .ends import WorkerEnd

Serve = Callable[[Message], Awaitable[Message]]
OnOutput = Callable[[str], None]  # gets printed output, piece by piece, up to the cap

_SLACK = 64 * 1024  # bytes for a reply's shown text and frames, in addition to its value
_FLOOD = 64  # a worker that prints more than this many times the output limit is stopped


class Late:
    """The marker of a timeout."""


class Output:
    """The output of a worker, up to the cap. The rest is read and dropped, so that printing never blocks."""

    def __init__(self, worker: WorkerEnd, limit: int, tell: OnOutput | None = None) -> None:
        self._worker = worker
        self._limit = limit
        self._tell = tell
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._kept = bytearray()
        self._seen = 0

    def read(self) -> bool:
        """Read available output. Return False at its end."""
        data = self._worker.read_output()
        if data is None:
            return True
        self._seen += len(data)
        chunk = data[: max(0, self._limit - len(self._kept))]
        self._kept += chunk
        if chunk and self._tell is not None:
            self._tell(self._decoder.decode(chunk))
        return bool(data)

    def drain(self) -> None:
        """Read the remaining output of an ended worker."""
        while self._seen <= self._limit:
            seen = self._seen
            if not self.read() or self._seen == seen:
                return

    def empty(self) -> None:
        """Read all output so far of a worker that stays alive."""
        seen = -1
        while seen != self._seen and not self.is_flood:
            seen = self._seen
            self.read()

    @property
    def is_flood(self) -> bool:
        """True if there is so much output that it must be an attack on the reader."""
        return self._seen > _FLOOD * self._limit

    @property
    def text(self) -> str:
        """The output up to the cap, with a note if some was dropped."""
        text = self._kept.decode("utf-8", "replace")
        return text if self._seen <= self._limit else f"{text}\n[output cut after {self._limit} bytes]"


class WorkerConversation:
    """The host side of a conversation with one worker."""

    def __init__(self, worker: WorkerEnd, limits: Limits, on_output: OnOutput | None = None) -> None:
        self._worker = worker
        self._limits = limits
        self._frames = FrameBuffer(limits.result + _SLACK)
        self._requests = 0
        self._held: Message | None = None
        self.heard = 0  # received bytes
        self.was_confined = False
        self.output = Output(worker, limits.output, on_output)

    def listen(self) -> None:
        """Read the worker's output; a callback for when there is some."""
        if not self.output.read():
            self._worker.listen(None)
        if self.output.is_flood:
            self._worker.kill()

    @property
    def has_frame(self) -> bool:
        """True if a complete frame has arrived."""
        return self._frames.has_frame

    async def ready(self) -> bool:
        """Wait until the worker reports that it is confined. Return False if it died instead."""
        frame = await self._hear()
        self.was_confined = frame is not None and frame["kind"] == "ready"
        return self.was_confined

    async def hold(self, job: bytes, serve: Serve) -> Message | None:
        """Send the job and serve requests until the only reply. Return None if the worker died without a reply."""
        frame = await self.go_on(job, serve)
        if frame is not None:
            await self.end()
        return frame

    async def go_on(self, job: bytes, serve: Serve) -> Message | None:
        """Return the reply to a job, or None if the worker died. The worker may get another job afterwards."""
        await self.say(job)
        return await self.reply(serve)

    @property
    def is_well(self) -> bool:
        """True if no frame is left unread and the worker has not flooded its output."""
        return self._frames.is_empty and not self.output.is_flood

    async def reply(self, serve: Serve) -> Message | None:
        """Serve requests until a reply. Return None if the worker died without a reply."""
        while (frame := await self._hear()) is not None and frame["kind"] in _REQUESTS:
            self._requests += 1
            if self._requests > self._limits.requests:
                raise ProtocolError(f"it made more than {self._limits.requests} requests")
            await self.say(pack(await serve(frame)))
            await asyncio.sleep(0)  # arrived frames never wait: without this, timeouts and Ctrl-C would starve
        return frame

    async def reply_within(self, seconds: float, serve: Serve) -> Message | Late | None:
        """Return the next reply, or `Late` after the timeout. A reply that has already arrived is never late."""
        frame = self._frames.next()
        if frame is not None and frame["kind"] not in _REQUESTS:
            return frame
        self._held = frame
        task = asyncio.ensure_future(self.reply(serve))
        try:
            done, _late = await asyncio.wait({task}, timeout=seconds)
            return task.result() if done else Late()
        finally:
            task.cancel()

    async def say(self, data: bytes) -> None:
        """Send bytes to the worker; ignore it if the worker has died."""
        with contextlib.suppress(ConnectionError):  # the next receive notices a dead worker
            await self._worker.send(data)

    async def end(self) -> None:
        """Wait until the worker has closed its end. Raise ProtocolError if it sends anything else."""
        if await self._hear() is not None or not self._frames.is_empty:
            raise ProtocolError("it sent something after its reply")

    async def _hear(self) -> Message | None:
        if self._held is not None:
            message, self._held = self._held, None
            return message
        while (frame := self._frames.next()) is None:
            data = await self._worker.receive()
            if not data:
                return None
            self.heard += len(data)
            self._frames.feed(data)
            if not self._frames.has_frame:
                await asyncio.sleep(0)  # as above, for a frame that arrives byte by byte
        return frame


_REQUESTS = frozenset({"module", "source", "request"})


def judge(message: Message, output: str, seconds: float, most_shown: int = caps.MOST_SHOWN) -> Outcome:
    """Return the outcome that a reply claims. Raise ProtocolError if its shape is unknown or it claims too much."""
    match message:
        case {"kind": "returned", "value": value, "shown": str(shown)}:
            within("characters of a representation", len(shown), most_shown)
            return Returned(read(value), shown, output, seconds)
        case {"kind": "raised"}:
            return Raised(_failure(message), output, seconds)
        case {"kind": "refused", "reason": str(reason)}:
            within("characters of a reason", len(reason), caps.MOST_MESSAGE)
            return Refused(reason)
        case _:
            raise ProtocolError("its reply has no known shape")


def _failure(claim_message: Message, depth: int = 0) -> Failure:
    match claim_message:
        case {"type": str(kind), "message": str(message), "frames": list(frames)}:
            within("characters of a type", len(kind), caps.MOST_NAME)
            within("characters of a message", len(message), _most(depth, caps.MOST_MESSAGE, caps.MOST_CAUSE_MESSAGE))
            within("frames", len(frames), _most(depth, caps.MOST_FRAMES, caps.MOST_CAUSE_FRAMES))
            cause = _cause(claim_message.get("cause"), depth + 1)
            was_handling = cause is not None and claim_message.get("was_handling") is True
            return Failure(kind, message, tuple(_frame(frame) for frame in frames), cause, was_handling)
        case _:
            raise ProtocolError("its failure has no known shape")


def _most(depth: int, first: int, cause: int) -> int:
    return cause if depth else first


def _cause(claim: object, depth: int) -> Failure | None:
    if claim is None or depth > caps.MOST_CAUSES:
        return None
    if not isinstance(claim, dict):
        raise ProtocolError("the cause of its failure has no known shape")
    return _failure(claim, depth)


def _frame(frame: object) -> Frame:
    match frame:
        case [str(path), int(line), str(function), list(names)] if all(_is_pair(pair) for pair in names):
            within("characters of a path", len(path), caps.MOST_PATH)
            within("lines", line, caps.MOST_LINE)
            within("locals of a frame", len(names), caps.MOST_LOCALS)
            within("characters of a name", max(map(len, (function, *(name for name, _ in names)))), caps.MOST_NAME)
            within("characters of a local", max((len(text) for _, text in names), default=0), caps.MOST_TEXT)
            return Frame(path, line, function, "", tuple((name, text) for name, text in names))
        case _:
            raise ProtocolError("a frame of its failure has no known shape")


def _is_pair(pair: object) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) for text in pair)
