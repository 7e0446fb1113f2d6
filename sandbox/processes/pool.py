"""Workers of one plan: a zygote that is started on first use, and a few spare workers.

Spares are forked after a call has ended, so that they do not compete with a call that someone waits for. They have
the default limits; workers with other limits are forked on demand.
"""

import asyncio
import contextlib
import shutil
from collections import deque
from dataclasses import replace

from ..confine.plan import Rlimits, ZygotePlan
from ..policy import Limits
from .launch import Answer, LayerFailed, ThreadsLeft, Worker, Zygote, ZygoteEnded

MAX_ATTEMPTS = 2
START_S = 120.0  # timeout for a zygote's start with its preloaded packages
SETTLE_S = 0.2  # time for a spare with a third-party package to warm up
SPARES = 2  # a saved function is compiled in one worker and imported in another, in quick succession


def kernel_limits(limits: Limits) -> Rlimits:
    """Return the part of a call's limits that the kernel enforces."""
    return Rlimits(limits.cpu_s, limits.memory, limits.file_size, limits.open_files)


class Pool:
    """A pool that lends workers. If its zygote has died, the next `take` starts another."""

    def __init__(self, plan: ZygotePlan, *, spare: bool = True) -> None:
        self.plan = plan
        self.zygote: Zygote | None = None
        self.taken = 0
        self._default = kernel_limits(Limits())
        self._keeps_spare = spare
        self._spares: deque[Answer] = deque()
        self._starting = asyncio.Lock()

    async def started(self) -> Zygote:
        """Return the running zygote, and start one if necessary."""
        async with self._starting:
            if self.zygote is None or self.zygote.ended:
                if self.zygote is not None:
                    self._discard_spares(self.zygote)
                    await self.zygote.aclose()
                self.zygote = await self._start()
            return self.zygote

    async def _start(self) -> Zygote:
        """Start a zygote. If packages leave threads running in it, start one whose workers import them instead."""
        try:
            async with asyncio.timeout(START_S):
                return await Zygote.start(self.plan)
        except ThreadsLeft:
            self.plan = replace(self.plan, access=replace(self.plan.access, preload=()))
            return await self._start()
        except TimeoutError as error:
            subject = ", ".join(self.plan.access.preload) or "its parent process"
            raise LayerFailed("start", f"{subject} took more than {START_S:.0f} s to be imported") from error

    async def take(self, rlimits: Rlimits) -> Worker:
        """Return a worker for exclusive use. The caller must give it back in any case."""
        self.taken += 1  # before any await: a pool with a waiting caller is not idle
        try:
            for _attempt in range(MAX_ATTEMPTS - 1):
                with contextlib.suppress(ZygoteEnded):
                    return await self._collect(rlimits)
            return await self._collect(rlimits)
        except BaseException:
            self.taken -= 1
            raise

    async def _collect(self, rlimits: Rlimits) -> Worker:
        zygote = await self.started()
        has_spare = self._spares and rlimits == self._default
        worker = await zygote.collect(self._spares.popleft() if has_spare else zygote.order(rlimits))
        if zygote.imports:
            worker.go_on()
        return worker

    def give_back(self, worker: Worker) -> Answer:
        """Kill the worker. Soon afterwards, it is reaped, its scratch folder emptied, and a spare forked."""
        self.taken -= 1
        reaped = worker.zygote.release(worker)  # not `self.zygote`, which may be another one by now
        asyncio.get_running_loop().call_soon(self.refill)
        return reaped

    def refill(self) -> None:
        """Fork spare workers up to `SPARES`."""
        if self.zygote is None or self.zygote.ended or not self._keeps_spare:
            return
        while len(self._spares) < SPARES:
            self._spares.append(spare := self.zygote.order(self._default, ahead=True))
            if self.zygote.imports:
                asyncio.get_running_loop().call_later(SETTLE_S, self._let_rest, spare)

    def _let_rest(self, answer: Answer) -> None:
        """Pause a spare worker until it is taken, so that packages do no background work before its call."""
        if answer in self._spares and answer.done() and answer.exception() is None:
            worker = answer.result()[1]
            if worker is not None:
                worker.stop()

    def _discard_spares(self, zygote: Zygote) -> None:
        while self._spares:
            self._spares.popleft().add_done_callback(zygote.discard)

    async def aclose(self) -> None:
        """End the zygote and its workers, and remove its scratch folders if they are on disk."""
        if self.zygote is None:
            return
        self._keeps_spare = False
        self._discard_spares(self.zygote)
        await asyncio.sleep(0)
        await self.zygote.aclose()
        await asyncio.to_thread(shutil.rmtree, self.plan.scratch_folder, ignore_errors=True)


class Places:
    """A limit of the calls that run at once. A call gives up its place while it waits for another call."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._queue: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        while self._free <= 0:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._queue.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn in self._queue:
                    self._queue.remove(turn)
                elif self._free > 0:
                    self._wake()
                raise
        self._free -= 1

    async def __aexit__(self, *_error: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Release a place."""
        self._free += 1
        self._wake()

    def resume(self) -> None:
        """Take the place back without waiting. The limit may be exceeded for a moment."""
        self._free -= 1

    def _wake(self) -> None:
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
