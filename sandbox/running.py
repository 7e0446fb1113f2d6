"""Running one job in one worker: the clock, the output, the end, whichever it is.

Leaving by any door (a reply, a time-out, a broken rule, cancellation) kills the worker.
"""

import asyncio
import signal
from dataclasses import dataclass

from .conversation import Conversation, Serve
from .errors import ProtocolError
from .launch import ZygoteEnded
from .outcome import Killed, TimedOut
from .policy import Limits
from .pool import Pool, kernel_limits
from .protocol import Frame as Message
from .protocol import pack


@dataclass(frozen=True, slots=True)
class Told:
    """The one reply of a worker, not yet judged, with what it printed and how long it took."""

    reply: Message
    output: str
    seconds: float


async def run(pool: Pool, job: Message, limits: Limits, serve: Serve) -> Told | Killed | TimedOut:
    """Do a job in a worker of its own."""
    data = pack(job)
    worker = await pool.take(kernel_limits(limits))
    loop = asyncio.get_running_loop()
    talk = Conversation(worker, limits)
    loop.add_reader(worker.output, talk.listen)
    began = loop.time()
    try:
        reply = await _reply(talk, data, limits, serve)
    finally:
        loop.remove_reader(worker.output)
        talk.output.drain()
        reaped = pool.give_back(worker)
    output, seconds = talk.output.text, loop.time() - began
    if talk.output.is_flood:
        return Killed(
            f"the worker was stopped, because it printed far more than {limits.output} bytes", output, seconds
        )
    match reply:
        case None if not talk.was_confined:
            return Killed(f"the worker could not be confined, so it was given nothing: {output}", "", seconds)
        case dict():
            return Told(reply, output, seconds)
        case _Late():
            return TimedOut(limits.wall_s, output, seconds)
        case str():
            return Killed(reply, output, seconds)
        case None:
            return Killed(await _death(reaped, limits), output, seconds)


class _Late:
    """The clock ran out."""


async def _reply(talk: Conversation, data: bytes, limits: Limits, serve: Serve) -> Message | _Late | str | None:
    """The reply; or that the clock ran out, or why the worker is stopped; None where it died by itself."""
    try:
        async with asyncio.timeout(limits.wall_s) as clock:
            return await talk.hold(data, serve) if await talk.ready() else None
    except TimeoutError:
        if not clock.expired():
            raise
        return _Late()
    except ProtocolError as error:
        return f"the worker was stopped, because {error}"


async def _death(reaped: "asyncio.Future[tuple[dict[str, int], list[int]]]", limits: Limits) -> str:
    try:
        answer, _none = await asyncio.shield(reaped)
    except ZygoteEnded:
        return "the worker ended without an answer, because the sandbox's parent process ended"
    return _cause(answer["status"], limits)


def _cause(status: int, limits: Limits) -> str:
    if status >= 0:
        return f"the worker ended without an answer (exit status {status})"
    match -status:
        case signal.SIGXCPU:
            return f"the worker used more than {limits.cpu_s} s of processor time"
        case signal.SIGSEGV | signal.SIGBUS:
            return "the worker crashed (segmentation fault): recursion that is too deep for C, or broken native code"
        case signal.SIGKILL:
            return "the worker ended without an answer (killed: out of a limit, or it closed its channel)"
        case number:
            return f"the worker ended without an answer ({signal.Signals(number).name})"
