"""Running one job in one worker: the clock, the output, and every way to end.

However a session ends (a reply, a timeout, a protocol violation, cancellation), the worker is killed.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

from ..errors import ProtocolError
from ..outcome import Killed, Outcome, Raised, Returned, TimedOut
from ..policy import Limits
from ..wire.protocol import Frame as Message
from ..wire.protocol import pack
from ..wire.requests import PausableClock
from ..wire.values import is_large
from .conversation import Late, OnOutput, Serve, WorkerConversation, judge
from .debugging import DebugControl
from .ends import Death, WorkerEnd, WorkerPool
from .launch import ZygoteEnded
from .pool import kernel_limits
from .usage import Sight, Used


@dataclass(frozen=True, slots=True)
class WorkerReply:
    """The reply of a worker, not yet validated, with its output, duration and resource usage."""

    reply: Message
    output: str
    seconds: float
    used: Used


@dataclass(frozen=True, slots=True)
class StreamListeners:
    """The observers of a running call: the debugger and the output listener."""

    reins: DebugControl | None = None
    on_output: OnOutput | None = None


NOBODY: Final = StreamListeners()
_SOON_S: Final = 0.001  # a measurement of this age is recent enough


class WorkerSession:
    """An async context manager that takes a worker, and kills it at the end. `conversation` talks to it.

    If `stays_alive` is set, the worker stays alive for the next session.
    """

    def __init__(
        self,
        pool: WorkerPool,
        limits: Limits,
        worker: WorkerEnd | None = None,
        *,
        was_used: bool = False,
        listeners: StreamListeners = NOBODY,
    ) -> None:
        self._reins = listeners.reins
        self._on_output = listeners.on_output
        self._pool = pool
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._given = worker
        self._was_used = was_used
        self.stays_alive = False
        self._is_stopped = False
        self.used = Used()
        self._looked = 0.0

    async def __aenter__(self) -> "WorkerSession":
        self._worker = self._given or await self._pool.take(kernel_limits(self._limits))
        self.conversation = WorkerConversation(self._worker, self._limits, self._on_output)
        if self._reins is not None:
            self._reins.take(self._worker)
        self._worker.listen(self.conversation.listen)
        self._began = self._loop.time()
        self.conversation.was_confined = self._was_used
        self._used_before = self._worker.sight.processor_time() if self._was_used else 0.0
        self._clock = PausableClock(self._limits.wall_s)  # waiting for a worker is not charged to the call
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
        if not self.stays_alive:
            self._reaped = self._pool.give_back(self._worker)
        self.seconds = self._loop.time() - self._began - self._clock.stood

    async def reply(self, act: Callable[[], Awaitable[Message | None]]) -> Message | Late | str | None:
        """Return the reply, `Late` after a timeout, the reason if the worker was stopped, or None if it died."""
        try:
            async with self._clock:
                return await act() if self._was_used or await self._ready() else None
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
        self._used_before = self._worker.sight.processor_time()  # its warm-up is not charged to the call
        return is_ready

    async def ended(self, end: Late | str | None) -> Killed | TimedOut:
        """Return the outcome without a reply. `end` is `Late`, the reason if it was stopped, or None if it died."""
        output, seconds, used = self.conversation.output.text, self.seconds, self.used
        if self.conversation.output.is_flood:
            reason = f"the worker was stopped, because it printed far more than {self._limits.output} bytes"
            return Killed(reason, output, seconds, used.memory, used.cpu_s)
        match end:
            case None if not self.conversation.was_confined:
                return Killed(f"the worker could not be confined, so it was given nothing: {output}", "", seconds)
            case Late():
                return TimedOut(self._limits.wall_s, output, seconds, used.memory, used.cpu_s)
            case str():
                return Killed(end, output, seconds, used.memory, used.cpu_s)
            case None:
                cause, spent = await _death(self._reaped, self._limits)
                return Killed(cause, output, seconds, spent.memory, used.cpu_s)


async def run(
    pool: WorkerPool, message: Message, limits: Limits, serve: Serve, listeners: StreamListeners = NOBODY
) -> WorkerReply | Killed | TimedOut:
    """Run a job in a new worker."""
    data = pack(message)
    async with WorkerSession(pool, limits, listeners=listeners) as session:
        reply = await session.reply(lambda: session.hold(data, serve))
    return await session_result(session, reply)


async def session_result(session: WorkerSession, reply: Message | Late | str | None) -> WorkerReply | Killed | TimedOut:
    """Return the result of an ended session."""
    if isinstance(reply, dict) and not session.conversation.output.is_flood:
        return WorkerReply(reply, session.conversation.output.text, session.seconds, session.used)
    return await session.ended(None if isinstance(reply, dict) else reply)


async def judged(result: WorkerReply | Killed | TimedOut) -> Outcome:
    """Return the outcome that a reply claims, or Killed if its shape is invalid.

    Large replies are read in a thread: half a million values take a second, which would block the event loop.
    """
    if not isinstance(result, WorkerReply):
        return result
    return await asyncio.to_thread(_judge_reply, result) if is_large(result.reply) else _judge_reply(result)


def _judge_reply(reply: WorkerReply) -> Outcome:
    try:
        outcome = judge(reply.reply, reply.output, reply.seconds)
    except ProtocolError as error:
        reason = f"the worker's answer was not taken, because {error}"
        return Killed(reason, reply.output, reply.seconds, reply.used.memory, reply.used.cpu_s)
    if isinstance(outcome, Returned | Raised):
        return replace(outcome, memory=reply.used.memory, cpu_s=reply.used.cpu_s)
    return outcome


async def _death(reaped: Death, limits: Limits) -> tuple[str, Used]:
    try:
        answer, _none = await asyncio.shield(reaped)
    except ZygoteEnded:
        return "the worker ended without an answer, because the sandbox's parent process ended", Used()
    return answer.get("cause") or _cause(answer["status"], limits), Used(answer["cpu_s"], answer["memory"])


def _cause(status: int, limits: Limits) -> str:
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
