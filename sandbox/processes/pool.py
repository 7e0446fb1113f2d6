"""Pools of workers: each has a zygote, which is started on first use, and a few spare workers.

Spares are forked after a call has ended, so that they do not compete with a call that someone waits for. They have
the default limits; workers with other limits are forked on demand. A larger zygote is slower to fork, so packages (and
asyncio) have separate zygotes: a call gets the lean pool, or one with a zygote that has preloaded packages. Idle ones
end when there are too many.
"""

import asyncio
import contextlib
import os
import shutil
import sys
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeAlias

from ..access import NOTHING, Access, Identities
from ..confine import mounts
from ..confine.plan import Rlimits, ZygotePlan
from ..policy import Limits
from . import cgroup
from .compilation import Compiled, imported_names
from .launch import Answer, LayerFailed, ThreadsLeft, Worker, Zygote, ZygoteEnded

START_S = 120.0  # timeout for a zygote's start with its preloaded packages
SETTLE_S = 0.2  # time for a spare with a third-party package to warm up
SPARES = (
    2  # a saved function is compiled in one worker and imported in another, in quick succession
)
_MAX_POOLS: Final = 6  # pools without access, and as many with access
REST_S: Final = 600.0  # time without a call after which a pool with access ends
_SLOW_TO_IMPORT: Final = "asyncio"

# preloaded names, bytes of scratch, access, identities of its paths, limits of its zygote
_Key: TypeAlias = tuple[tuple[str, ...], int, Access, Identities, Rlimits | None]


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
            raise LayerFailed(
                "start", f"{subject} took more than {START_S:.0f} s to be imported"
            ) from error

    async def take(self, rlimits: Rlimits) -> Worker:
        """Return a worker for exclusive use. The caller must give it back in any case."""
        self.taken += 1  # before any await: a pool with a waiting caller is not idle
        try:
            with contextlib.suppress(ZygoteEnded):
                return await self._collect(rlimits)
            return await self._collect(rlimits)
        except BaseException:
            self.taken -= 1
            raise

    async def _collect(self, rlimits: Rlimits) -> Worker:
        zygote = await self.started()
        has_spare = self._spares and rlimits == self._default
        worker = await zygote.collect(
            self._spares.popleft() if has_spare else zygote.order(rlimits)
        )
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


class Pools:
    """The pools of one sandbox. Those without access may belong to another sandbox (`shared`)."""

    def __init__(self, plan: ZygotePlan, lean_pool: Pool, shared: "Pools | None" = None) -> None:
        self.lean = lean_pool
        self._plan = plan
        self._shared = shared
        self._made = 0
        self._pools: OrderedDict[_Key, Pool] = OrderedDict()
        if shared is None:
            self._pools[(), plan.scratch, NOTHING, (), None] = lean_pool
        self._rests: dict[_Key, asyncio.TimerHandle] = {}
        self._ending: set[asyncio.Task[None]] = set()

    async def get(self, ahead: tuple[str, ...], limits: Limits, access: Access = NOTHING) -> Pool:
        """Return the pool with these preloaded names, limits and access."""
        ceiling = _ceiling(limits) if access.packages else None
        key = (ahead, limits.scratch, access, access.identities, ceiling)
        if self._shared is not None and _is_default(key):
            return await self._shared.get(ahead, limits)
        if key not in self._pools:
            peers = [other for other in self._pools if _is_default(other) == _is_default(key)]
            idle = [
                other
                for other in peers
                if self._pools[other] is not self.lean and not self._pools[other].taken
            ]
            if idle and len(peers) >= _MAX_POOLS:
                await self._pools.pop(idle[0]).aclose()
        if key not in self._pools:  # another call may have created it meanwhile
            self._pools[key] = Pool(self._plan_for(ahead, limits.scratch, access, ceiling))
        self._pools.move_to_end(key)
        if not _is_default(key):
            self._expect_rest(key)
        return self._pools[key]

    def _expect_rest(self, key: _Key) -> None:
        """End the pool when it has not been used for `REST_S`."""
        if key in self._rests:
            self._rests[key].cancel()
        self._rests[key] = asyncio.get_running_loop().call_later(REST_S, self._end_if_idle, key)

    def _end_if_idle(self, key: _Key) -> None:
        del self._rests[key]
        pool = self._pools.get(key)
        if pool is not None and pool.taken:
            self._expect_rest(key)
        elif pool is not None:
            del self._pools[key]
            self._ending.add(task := asyncio.ensure_future(pool.aclose()))
            task.add_done_callback(self._ending.discard)

    def _plan_for(
        self, ahead: tuple[str, ...], scratch: int, access: Access, ceiling: Rlimits | None
    ) -> ZygotePlan:
        self._made += 1
        plan = self._plan
        return replace(
            plan,
            readable=plan.readable + mounts.granted_files(access.packages),
            packages=plan.packages | dict(access.packages),
            preload=plan.preload + ahead,
            scratch=scratch,
            scratch_folder=f"{plan.scratch_folder}-{self._made}",
            access=replace(access, preload=()) if plan.covers else access,
            ceiling=ceiling,
            guarded=(*plan.guarded, *plan.readable, sys.prefix, str(Path(__file__).parents[1])),
            owner=_owner(access, plan) if plan.user is not None else None,
        )

    def ahead_for(self, closure: Mapping[str, Compiled], text: str) -> tuple[str, ...]:
        """Return the names to preload for this code. `text` is code that runs in addition to the module."""
        names = {name.split(".", 1)[0] for name in imported_names(closure)}
        packages = [name for name in self._plan.packages if name not in self._plan.preload]
        heavy = any(name in names or name in text for name in packages)
        return ((_SLOW_TO_IMPORT,) if _SLOW_TO_IMPORT in names else ()) + (
            tuple(packages) if heavy else ()
        )

    def resources(self) -> dict[str, str]:
        """Return the limits on memory, pids and CPU of all workers of a zygote together, and their maximum number."""
        zygote = self.lean.zygote
        group = cgroup.Group() if zygote is None else zygote.group
        return cgroup.described(group) | {
            "workers": f"at most {self._plan.slots} at a time from one zygote"
        }

    def __len__(self) -> int:
        return len(self._pools) + (len(self._shared) if self._shared else 0)

    async def aclose(self) -> None:
        """End all pools except shared ones."""
        for timer in self._rests.values():
            timer.cancel()
        await asyncio.gather(*self._ending)
        for pool in self._pools.values():
            await pool.aclose()


def _is_default(key: _Key) -> bool:
    _ahead, _scratch, access, _identities, _ceiling = key
    return access == NOTHING


def _ceiling(limits: Limits) -> Rlimits:
    """Return the limits for a package during its import: at least the default ones, which spare workers have."""
    own, default = kernel_limits(limits), kernel_limits(Limits())
    return Rlimits(
        cpu_s=0,  # none: CPU time is counted per worker
        memory=max(own.memory, default.memory),
        file_size=max(own.file_size, default.file_size),
        open_files=max(own.open_files, default.open_files),
    )


def _owner(access: Access, plan: ZygotePlan) -> tuple[int, int] | None:
    """Return the owner of the granted files; if the host is root, workers with access to them run as that user.

    Without a private root, the same applies to packages: only the owner may have access to their parent folders.
    """
    folders = () if "namespaces" in plan.layers else tuple(folder for _, folder in access.packages)
    for path in (*access.paths, *folders):
        try:
            facts = os.lstat(path)
        except OSError:  # the zygote reports it with details
            continue
        return facts.st_uid, facts.st_gid
    return None


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
