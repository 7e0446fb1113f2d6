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
    began, reply, reason = loop.time(), None, ""
    try:
        async with asyncio.timeout(limits.wall_s) as clock:
            confined = await talk.ready()
            reply = await talk.hold(data, serve) if confined else None
            reason = "" if confined else "the worker could not be confined, so it was given nothing"
    except TimeoutError:
        if not clock.expired():
            raise
    except ProtocolError as error:
        reason = f"the worker was stopped, because {error}"
    finally:
        loop.remove_reader(worker.output)
        talk.output.drain()
        reaped = pool.give_back(worker)
    output, seconds = talk.output.text, loop.time() - began
    if reply is not None and not talk.output.is_flood:
        return Told(reply, output, seconds)
    if clock.expired():
        return TimedOut(limits.wall_s, output, seconds)
    if talk.output.is_flood:
        reason = f"the worker was stopped, because it printed far more than {limits.output} bytes"
    return Killed(reason or await _death(reaped, limits), output, seconds)


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
