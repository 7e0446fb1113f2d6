"""Running jobs in workers: the conversation with one worker, the clock, the output, and every way to end.

Everything that arrives is a claim of untrusted code. Frames are capped before they are read and checked for shape; a
worker that violates the protocol is reported as killed. However a session ends (a reply, a timeout, a protocol
violation, cancellation), the worker is killed.
"""

import asyncio
import codecs
import contextlib
import json
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ..errors import ProtocolError
from ..outcome import Failure, Frame, Killed, Outcome, Raised, Refused, Returned, TimedOut
from ..policy import Limits
from ..wire import caps
from ..wire.claims import within
from ..wire.large import Large, ValueGone
from ..wire.protocol import Frame as Message
from ..wire.protocol import FrameBuffer, pack
from ..wire.requests import PausableClock
from ..wire.values import is_large, read
from .debugging import DebugControl
from .ends import OnOutput, Sight, Used, WorkerEnd, WorkerPool
from .large import LargeExchange
from .launch import ZygoteEnded
from .pool import kernel_limits

Serve = Callable[[Message], Awaitable[Message]]

FAREWELL_S: Final = 1.0  # for a program to end when its time is up
MAX_ENDINGS: Final = 20  # how often it is ended then
REFUSAL: Final = {"kind": "refused", "reason": "the time of the program is up"}
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

    @property
    def is_flood(self) -> bool:
        """True if there is so much output that it must be an attack on the reader."""
        return self._seen > _FLOOD * self._limit

    @property
    def text(self) -> str:
        """The output up to the cap, with a note if some was dropped."""
        text = self._kept.decode("utf-8", "replace")
        return (
            text if self._seen <= self._limit else f"{text}\n[output cut after {self._limit} bytes]"
        )


class WorkerConversation:
    """The host side of a conversation with one worker."""

    def __init__(
        self,
        worker: WorkerEnd,
        limits: Limits,
        on_output: OnOutput | None = None,
        large: LargeExchange | None = None,
    ) -> None:
        self._worker = worker
        self._limits = limits
        self._large = large or LargeExchange(None, limits)
        self._frames = FrameBuffer(self._large.most_bytes(limits.result + _SLACK))
        self._requests = 0
        self._held: Message | None = None
        self._owes_answer = False
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
        """Return the reply to a job, or None if the worker died."""
        await self.say(job)
        return await self.reply(serve)

    async def reply(self, serve: Serve) -> Message | None:
        """Serve requests until a reply. Return None if the worker died without a reply."""
        while (frame := await self._hear()) is not None and frame["kind"] in _REQUESTS:
            self._requests += 1
            if self._requests > self._limits.requests:
                raise ProtocolError(f"it made more than {self._limits.requests} requests")
            self._owes_answer = True
            answer = pack(await serve(frame))
            self._owes_answer = False
            try:
                await self.say(answer)
            except ValueGone as gone:
                await self.say(pack({"kind": "refused", "reason": str(gone)}))
            await asyncio.sleep(
                0
            )  # arrived frames never wait: without this, timeouts and Ctrl-C would starve
        return frame

    async def last_reply(self) -> Message | None:
        """End the program that the worker runs, and return its reply, if it comes; all that it asks for is refused.

        It may have been within a request, or have caught its end, so it is ended again until it replies.
        """
        if self._owes_answer:
            await self.say(pack(REFUSAL))
        try:
            for _ in range(MAX_ENDINGS):
                if not self._worker.end_program():
                    return None
                reply = await self.reply_within(FAREWELL_S / MAX_ENDINGS, _refuse)
                if not isinstance(reply, Late):
                    return reply
        except ProtocolError:  # the call has ended in any case
            return None
        return None

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
        """Send a packed frame to the worker, after the large values in it; ignore it if the worker has died.

        Raises:
            ValueGone: one of these is not kept any longer, and the frame was not sent.
        """
        with contextlib.suppress(ConnectionError):  # the next receive notices a dead worker
            await self._large.send(data, self._worker.send)

    async def end(self) -> None:
        """Wait until the worker has closed its end. Raise ProtocolError if it sends anything else."""
        if await self._hear() is not None or not self._frames.is_empty:
            raise ProtocolError("it sent something after its reply")

    async def _hear(self) -> Message | None:
        if self._held is not None:
            message, self._held = self._held, None
            return message
        while True:
            while (frame := self._frames.next()) is None:
                data = await self._worker.receive()
                if not data:
                    return None
                self.heard += len(data)
                self._frames.feed(data)
                if not self._frames.has_frame:
                    await asyncio.sleep(0)  # as above, for a frame that arrives byte by byte
            if not await self._large.take(frame):
                return frame


_REQUESTS = frozenset({"module", "source", "request"})


async def _refuse(_frame: Message) -> Message:
    return REFUSAL


def judge(
    message: Message,
    output: str,
    seconds: float,
    most_shown: int = caps.MOST_SHOWN,
    received: Sequence[Large] = (),
) -> Outcome:
    """Return the outcome that a reply claims. Raise ProtocolError if its shape is unknown or it claims too much.

    `received` are the large values that came before it.
    """
    match message:
        case {"kind": "returned", "value": value, "shown": str(shown)}:
            within("characters of a representation", len(shown), most_shown)
            return Returned(read(value, received), shown, output, seconds)
        case {"kind": "raised"}:
            kept = read(message.get("kept", {}), received)
            if not isinstance(kept, dict):
                raise ProtocolError("the variables of its program have no known shape")
            return Raised(_failure(message), output, seconds, kept=tuple(kept.items()))
        case {"kind": "refused", "reason": str(reason)}:
            within("characters of a reason", len(reason), caps.MOST_MESSAGE)
            return Refused(reason)
        case _:
            raise ProtocolError("its reply has no known shape")


def _failure(claim_message: Message, depth: int = 0) -> Failure:
    match claim_message:
        case {"type": str(kind), "message": str(message), "frames": list(frames)}:
            within("characters of a type", len(kind), caps.MOST_NAME)
            within(
                "characters of a message",
                len(message),
                caps.MOST_CAUSE_MESSAGE if depth else caps.MOST_MESSAGE,
            )
            within("frames", len(frames), caps.MOST_CAUSE_FRAMES if depth else caps.MOST_FRAMES)
            cause, claimed = None, claim_message.get("cause")
            if claimed is not None and depth < caps.MOST_CAUSES:
                if not isinstance(claimed, dict):
                    raise ProtocolError("the cause of its failure has no known shape")
                cause = _failure(claimed, depth + 1)
            was_handling = cause is not None and claim_message.get("was_handling") is True
            failure = Failure(
                kind, message, tuple(_frame(frame) for frame in frames), cause, was_handling
            )
            return failure if depth else replace(failure, **_class_claim(claim_message))
        case _:
            raise ProtocolError("its failure has no known shape")


def _class_claim(claim_message: Message) -> dict[str, Any]:
    """Return what a failure claims about the class of its exception, and about its arguments."""
    claimed: dict[str, Any] = {}
    for name in ("module", "base"):
        text = claim_message.get(name, "")
        if not isinstance(text, str):
            raise ProtocolError("the class of its failure has no known shape")
        within(f"characters of a {name}", len(text), caps.MOST_NAME)
        claimed |= {name: text} if text else {}
    if isinstance(arguments := claim_message.get("arguments"), list):
        within(
            "characters of an exception's arguments", len(json.dumps(arguments)), caps.MOST_MESSAGE
        )
        claimed["arguments"] = tuple(read(arguments))
    return claimed


def _frame(frame: object) -> Frame:
    match frame:
        case [str(path), int(line), str(function), list(names), int(column)] if all(
            map(_is_pair, names)
        ):
            within("characters of a path", len(path), caps.MOST_PATH)
            within("lines", line, caps.MOST_LINE)
            within("columns", column, caps.MOST_LINE)
            within("locals of a frame", len(names), caps.MOST_LOCALS)
            within(
                "characters of a name",
                max(map(len, (function, *(name for name, _ in names)))),
                caps.MOST_NAME,
            )
            within(
                "characters of a local",
                max((len(text) for _, text in names), default=0),
                caps.MOST_TEXT,
            )
            return Frame(
                path, line, function, "", tuple((name, text) for name, text in names), column
            )
        case _:
            raise ProtocolError("a frame of its failure has no known shape")


def _is_pair(pair: object) -> bool:
    return isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) for text in pair)


@dataclass(frozen=True, slots=True)
class WorkerReply:
    """The reply of a worker, not yet validated, with its output, duration and resource usage."""

    reply: Message
    output: str
    seconds: float
    used: Used
    received: Sequence[Large] = ()


@dataclass(frozen=True, slots=True)
class StreamListeners:
    """The other parties of a running call: the debugger, the output listener, and the exchange of large values."""

    reins: DebugControl | None = None
    on_output: OnOutput | None = None
    large: LargeExchange | None = None


NOBODY: Final = StreamListeners()
_SOON_S: Final = 0.001  # a measurement of this age is recent enough


class WorkerSession:
    """An async context manager that takes a worker, and kills it at the end. `conversation` talks to it."""

    def __init__(
        self, pool: WorkerPool, limits: Limits, listeners: StreamListeners = NOBODY
    ) -> None:
        self._reins = listeners.reins
        self._on_output = listeners.on_output
        self._large = listeners.large
        self._pool = pool
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._is_stopped = False
        self.used = Used()
        self._looked = 0.0

    async def __aenter__(self) -> "WorkerSession":
        self._worker = await self._pool.take(kernel_limits(self._limits))
        self.conversation = WorkerConversation(
            self._worker, self._limits, self._on_output, self._large
        )
        if self._reins is not None:
            self._reins.take(self._worker)
        self._worker.listen(self.conversation.listen)
        self._began = self._loop.time()
        self._used_before = 0.0
        self._clock = PausableClock(
            self._limits.wall_s
        )  # waiting for a worker is not charged to the call
        return self

    @property
    def sight(self) -> Sight:
        """The resource usage of the worker."""
        return self._worker.sight

    async def __aexit__(self, *_error: object) -> None:
        if self._reins is not None:
            self._reins.take(None)
        self._worker.listen(None)
        self.conversation.output.drain()
        if self._loop.time() - self._looked > _SOON_S:
            self._look()  # measure before the worker is killed
        if self._is_stopped:
            self._worker.kill()  # given back alone, an instance could end by itself, and its child would serve again
        self._reaped = self._pool.give_back(self._worker)
        self.seconds = self._loop.time() - self._began - self._clock.stood
        if self._large is not None:
            await self._large.close()

    @property
    def received(self) -> Sequence[Large]:
        """The large values that have arrived."""
        return () if self._large is None else self._large.received

    async def reply(
        self, act: Callable[[], Awaitable[Message | None]]
    ) -> Message | Late | str | None:
        """Return the reply, `Late` after a timeout, the reason if the worker was stopped, or None if it died."""
        try:
            async with self._clock:
                return await act() if await self._ready() else None
        except TimeoutError:
            if not self._clock.expired:
                raise
            return Late()
        except ProtocolError as error:
            return self.stop_for(error)

    def stop_for(self, error: ProtocolError) -> str:
        """Have the worker killed at the end for a violation of the protocol, and return the reason."""
        self._is_stopped = True
        return f"the worker was stopped, because {error}"

    async def hold(self, job: bytes, serve: Serve) -> Message | None:
        """Return the only reply to a job. Resource usage is measured while the worker closes its end."""
        frame = await self.conversation.go_on(job, serve)
        if frame is not None:
            self._look()
            await self.conversation.end()
        return frame

    def _look(self) -> None:
        self.used, self._looked = self._worker.sight.used(self._used_before), self._loop.time()

    async def _ready(self) -> bool:
        is_ready = await self.conversation.ready()
        self._used_before = (
            self._worker.sight.processor_time()
        )  # its warm-up is not charged to the call
        return is_ready

    async def ended(self, end: Late | str | None) -> Killed | TimedOut:
        """Return the outcome without a reply. `end` is `Late`, the reason if it was stopped, or None if it died."""
        output, seconds, used = self.conversation.output.text, self.seconds, self.used
        if self.conversation.output.is_flood:
            reason = f"the worker was stopped, because it printed far more than {self._limits.output} bytes"
            return Killed(reason, output, seconds, used.memory, used.cpu_s)
        match end:
            case None if not self.conversation.was_confined:
                return Killed(
                    f"the worker could not be confined, so it was given nothing: {output}",
                    "",
                    seconds,
                )
            case Late():
                return TimedOut(self._limits.wall_s, output, seconds, used.memory, used.cpu_s)
            case str():
                return Killed(end, output, seconds, used.memory, used.cpu_s)
            case None:
                try:
                    answer, _none = await asyncio.shield(self._reaped)
                except ZygoteEnded:
                    reason = "the worker ended without an answer, because the sandbox's parent process ended"
                    return Killed(reason, output, seconds, None, used.cpu_s)
                reason = answer.get("cause") or _cause_of_exit(answer["status"], self._limits)
                return Killed(reason, output, seconds, answer["memory"], used.cpu_s)


async def run(
    pool: WorkerPool,
    message: Message,
    limits: Limits,
    serve: Serve,
    listeners: StreamListeners = NOBODY,
) -> WorkerReply | Killed | TimedOut:
    """Run a job in a new worker."""
    data = pack(message)
    async with WorkerSession(pool, limits, listeners) as session:
        reply = await session.reply(lambda: session.hold(data, serve))
        last = None
        if isinstance(reply, Late) and message["kind"] == "program":
            last = await session.conversation.last_reply()
    result = await session_result(session, reply)
    if last is None or not isinstance(result, TimedOut):
        return result
    left = await judged(WorkerReply(last, "", 0, session.used, session.received))
    return replace(result, kept=left.kept) if isinstance(left, Raised) else result


async def session_result(
    session: WorkerSession, reply: Message | Late | str | None
) -> WorkerReply | Killed | TimedOut:
    """Return the result of an ended session."""
    if isinstance(reply, dict) and not session.conversation.output.is_flood:
        output = session.conversation.output.text
        return WorkerReply(reply, output, session.seconds, session.used, session.received)
    return await session.ended(None if isinstance(reply, dict) else reply)


async def judged(result: WorkerReply | Killed | TimedOut) -> Outcome:
    """Return the outcome that a reply claims, or Killed if its shape is invalid.

    Large replies are read in a thread: half a million values take a second, which would block the event loop.
    """
    if not isinstance(result, WorkerReply):
        return result
    return (
        await asyncio.to_thread(_judge_reply, result)
        if is_large(result.reply)
        else _judge_reply(result)
    )


def _judge_reply(reply: WorkerReply) -> Outcome:
    try:
        outcome = judge(reply.reply, reply.output, reply.seconds, received=reply.received)
    except ProtocolError as error:
        reason = f"the worker's answer was not taken, because {error}"
        return Killed(reason, reply.output, reply.seconds, reply.used.memory, reply.used.cpu_s)
    if isinstance(outcome, Returned | Raised):
        return replace(outcome, memory=reply.used.memory, cpu_s=reply.used.cpu_s)
    return outcome


def _cause_of_exit(status: int, limits: Limits) -> str:
    if status >= 0:
        return f"the worker ended without an answer (exit status {status})"
    match signal.Signals(-status).name:  # by name, because Windows does not define most of them
        case "SIGXCPU":
            return f"the worker used more than {limits.cpu_s} s of processor time"
        case "SIGSEGV" | "SIGBUS":
            return "the worker crashed (segmentation fault): recursion that is too deep for C, or broken native code"
        case "SIGKILL":
            return "the worker ended without an answer (killed: out of a limit, or it closed its channel)"
        case name:
            return f"the worker ended without an answer ({name})"
