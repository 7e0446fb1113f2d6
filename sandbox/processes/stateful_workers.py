"""Stateful workers: the calls of one key run in the same worker, one after another.

The state that a call leaves behind is available only to the next call of the same key. Between two calls, the worker
and its threads are paused. A worker ends after any outcome but a return, when its code, access or limits change, after
many calls, after a long rest, and if it sends something after its reply.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Final

from ..outcome import Outcome, Refused, Returned
from ..policy import Limits
from ..wire.protocol import Frame as Message
from ..wire.protocol import pack
from .calls import CallServer
from .ends import WorkerEnd, WorkerPool
from .pool import Places, kernel_limits
from .worker_session import NOBODY, StreamListeners, WorkerSession, judged, session_result

MOST: Final = 8  # resting workers
REST_S: Final = 600.0  # time without a call after which a worker ends

_HELD: ContextVar[frozenset[str]] = ContextVar("held", default=frozenset())


@dataclass(frozen=True, slots=True)
class KeptCall:
    """One call, ready to run. `seal` returns a key that must be unchanged to reuse a worker."""

    pool: Callable[[], Awaitable[WorkerPool]]
    seal: Callable[[frozenset[str]], Hashable]  # given the modules that earlier calls asked for
    job: Message
    limits: Limits
    call: CallServer
    onlookers: StreamListeners = NOBODY


@dataclass(slots=True)
class StatefulWorker:
    """The state of one key: the lock for its calls, and the worker while it rests."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    pool: WorkerPool | None = None
    worker: WorkerEnd | None = None
    seal: Hashable = None
    requested_modules: frozenset[str] = frozenset()
    calls: int = 0
    rest_timer: asyncio.TimerHandle | None = None

    def end(self) -> None:
        """End the resting worker, if there is one."""
        worker = self.take()
        if worker is not None and self.pool is not None:
            self.pool.give_back(worker)

    def take(self) -> WorkerEnd | None:
        """Wake the resting worker and return it, or None if there is none."""
        if self.rest_timer is not None:
            self.rest_timer.cancel()
        worker, self.worker, self.rest_timer = self.worker, None, None
        if worker is not None:
            worker.go_on()
        return worker

    def lay_down(self, worker: WorkerEnd) -> None:
        """Pause the worker until it is taken, and end it after `REST_S`."""
        worker.stop()
        self.worker = worker
        self.rest_timer = asyncio.get_running_loop().call_later(REST_S, self.end)


class StatefulWorkers:
    """The stateful workers of one sandbox."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._kept: OrderedDict[str, StatefulWorker] = OrderedDict()
        self._is_closed = False

    async def call(self, key: str, kept: KeptCall) -> Outcome:
        """Run the call in the key's worker, after the earlier calls of the same key."""
        if key in _HELD.get():
            return Refused("a stateful function has one worker, which is busy: it cannot be called by its own call")
        slot = self._kept.setdefault(key, StatefulWorker())
        async with slot.turn, self._places:
            self._kept[key] = slot
            self._kept.move_to_end(key)
            token = _HELD.set(_HELD.get() | {key})
            try:
                return await self._call(slot, kept)
            finally:
                _HELD.reset(token)

    async def _call(self, stateful_worker: StatefulWorker, kept: KeptCall) -> Outcome:
        if (
            stateful_worker.seal != kept.seal(stateful_worker.requested_modules)
            or stateful_worker.calls >= kept.limits.calls
            or not (stateful_worker.worker is not None and stateful_worker.worker.is_silent())
        ):
            stateful_worker.end()
        worker = stateful_worker.take()
        is_new = worker is None
        if worker is None:
            for key in [key for key, slot in self._kept.items() if slot.worker is None and not slot.turn.locked()]:
                del self._kept[key]
            resting = [slot for slot in self._kept.values() if slot.worker is not None]
            for resting_slot in resting[: max(0, len(resting) - MOST + 1)]:
                resting_slot.end()
            stateful_worker.pool = await kept.pool()
            cpu_s = kept.limits.cpu_s * kept.limits.calls  # the kernel's limit is for the process, with all its calls
            worker = await stateful_worker.pool.take(kernel_limits(replace(kept.limits, cpu_s=cpu_s)))
            stateful_worker.calls, stateful_worker.requested_modules = 0, frozenset()
        assert stateful_worker.pool is not None
        kept.call.know(stateful_worker.requested_modules)
        async with WorkerSession(
            stateful_worker.pool, kept.limits, worker, was_used=not is_new, listeners=kept.onlookers
        ) as session:
            reply = await session.reply(lambda: session.conversation.go_on(pack(kept.job), kept.call.serve))
            session.conversation.output.empty()
            session.stays_alive = (
                isinstance(reply, dict) and reply.get("kind") == "returned" and session.conversation.is_well
            )
        outcome: Outcome | None = None
        try:
            outcome = await judged(await session_result(session, reply))
        finally:
            if session.stays_alive:
                self._let_rest(stateful_worker, worker, kept, stays=isinstance(outcome, Returned))
        return outcome

    def _let_rest(self, stateful_worker: StatefulWorker, worker: WorkerEnd, kept: KeptCall, *, stays: bool) -> None:
        stateful_worker.calls, stateful_worker.requested_modules = (
            stateful_worker.calls + 1,
            stateful_worker.requested_modules | kept.call.asked,
        )
        stateful_worker.seal = kept.seal(stateful_worker.requested_modules)
        stateful_worker.lay_down(worker)
        if not stays or self._is_closed:
            stateful_worker.end()

    def close(self) -> None:
        """End all resting workers."""
        self._is_closed = True
        for slot in self._kept.values():
            slot.end()
