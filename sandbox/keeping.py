"""Workers that are kept: the calls of one key go on in the same worker, one after another.

What a call leaves behind is there for the next of its key and for nobody else. Between two calls a worker stands
still, its threads too. Anything but a good return ends it, and so do other code, other reach, many calls, a long
rest, and whatever it says after its reply.
"""

import asyncio
import socket
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Final

from .calls import Call
from .launch import Worker
from .outcome import Outcome, Refused, Returned
from .policy import Limits
from .pool import Places, Pool, kernel_limits
from .protocol import Frame as Message
from .protocol import pack
from .running import NOBODY, Onlookers, Session, judged, told

MOST: Final = 8  # workers that rest at once
REST_S: Final = 600.0  # after which a worker that nobody calls ends

_HELD: ContextVar[frozenset[str]] = ContextVar("held", default=frozenset())


@dataclass(frozen=True, slots=True)
class Work:
    """One call, ready to be made; `seal` names all that must be the same for a worker to go on."""

    pool: Callable[[], Awaitable[Pool]]
    seal: Callable[[frozenset[str]], Hashable]  # of the modules that earlier calls asked for
    job: Message
    limits: Limits
    call: Call
    onlookers: Onlookers = NOBODY


@dataclass(slots=True)
class Kept:
    """What there is for one key: whose turn it is, and the worker while it rests."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    pool: Pool | None = None
    worker: Worker | None = None
    seal: Hashable = None
    asked: frozenset[str] = frozenset()
    calls: int = 0
    rest: asyncio.TimerHandle | None = None

    def end(self) -> None:
        """End the resting worker, if there is one."""
        worker = self.take()
        if worker is not None and self.pool is not None:
            self.pool.give_back(worker)

    def take(self) -> Worker | None:
        """The resting worker, which rests no more."""
        if self.rest is not None:
            self.rest.cancel()
        worker, self.worker, self.rest = self.worker, None, None
        if worker is not None:
            worker.go_on()
        return worker

    def lay_down(self, worker: Worker) -> None:
        """Let the worker rest: it stands still until it is taken."""
        worker.stop()
        self.worker = worker
        self.rest = asyncio.get_running_loop().call_later(REST_S, self.end)


class Keeper:
    """The workers of one sandbox that go on."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._is_closed = False

    async def call(self, key: str, work: Work) -> Outcome:
        """Make the call in the key's worker, when it is its turn."""
        if key in _HELD.get():
            return Refused("a stateful function has one worker, which is busy: it cannot be called by its own call")
        kept = self._kept.setdefault(key, Kept())
        async with kept.turn, self._places:
            self._kept[key] = kept
            self._kept.move_to_end(key)
            token = _HELD.set(_HELD.get() | {key})
            try:
                return await self._call(kept, work)
            finally:
                _HELD.reset(token)

    async def _call(self, kept: Kept, work: Work) -> Outcome:
        if kept.seal != work.seal(kept.asked) or kept.calls >= work.limits.calls or not _is_silent(kept.worker):
            kept.end()
        worker = kept.take()
        is_new = worker is None
        if worker is None:
            self._make_room()
            kept.pool = await work.pool()
            cpu_s = work.limits.cpu_s * work.limits.calls  # the kernel counts all calls of a process together
            worker = await kept.pool.take(kernel_limits(replace(work.limits, cpu_s=cpu_s)))
            kept.calls, kept.asked = 0, frozenset()
        assert kept.pool is not None
        work.call.know(kept.asked)
        async with Session(kept.pool, work.limits, worker, was_used=not is_new, onlookers=work.onlookers) as session:
            reply = await session.reply(lambda: session.talk.go_on(pack(work.job), work.call.serve))
            session.talk.output.empty()
            session.goes_on = isinstance(reply, dict) and reply.get("kind") == "returned" and session.talk.is_well
        outcome: Outcome | None = None
        try:
            outcome = await judged(await told(session, reply))
        finally:
            if session.goes_on:
                self._let_rest(kept, worker, work, stays=isinstance(outcome, Returned))
        return outcome

    def _let_rest(self, kept: Kept, worker: Worker, work: Work, *, stays: bool) -> None:
        kept.calls, kept.asked = kept.calls + 1, kept.asked | work.call.asked
        kept.seal = work.seal(kept.asked)
        kept.lay_down(worker)
        if not stays or self._is_closed:
            kept.end()

    def _make_room(self) -> None:
        for key in [key for key, kept in self._kept.items() if kept.worker is None and not kept.turn.locked()]:
            del self._kept[key]
        resting = [kept for kept in self._kept.values() if kept.worker is not None]
        for kept in resting[: max(0, len(resting) - MOST + 1)]:
            kept.end()

    def close(self) -> None:
        """End them all."""
        self._is_closed = True
        for kept in self._kept.values():
            kept.end()


def _is_silent(worker: Worker | None) -> bool:
    """Whether a resting worker is alive and said nothing after its last reply."""
    if worker is None:
        return False
    try:
        worker.channel.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
