"""The second look at what a human saved: the stages that a save is not held up for, behind it, one function at a time.

A save goes first: while it is taken nothing is looked at, and what was being looked at begins anew. A newer version
of a function takes the place of the older. What is found is kept and told; where nothing is found, nothing is said.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace

from ..errors import ToolwrightError
from ..gate import Gate, Look, ModuleVerdict
from ..problem import Place, Problem
from ..registry.function import Function, Reading
from ..registry.registry import Registry
from ..storage import SaveVerdict, Store
from .packing import Packing

Tell = Callable[[str, Sequence[Problem]], None]
_QUIET_S = 0.2  # an editor that formats saves twice
_MOST = 40  # functions that wait: a branch that is checked out is no edit


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A function that is to be looked at: as it was saved, and what its file was before."""

    verdict: ModuleVerdict
    previous: Reading | None

    def function(self, name: str) -> Function:
        return next(each for each in self.verdict.reading.functions if each.name == name)


class SecondLook:
    """What is still to be looked at, and who does it."""

    def __init__(self, store: Store, registry: Registry, gate: Gate, packing: Packing, tell: Tell) -> None:
        self._store = store
        self._registry = registry
        self._gate = gate
        self._packing = packing
        self._tell = tell
        self._waiting: dict[str, _Wanted] = {}
        self._left: dict[str, str] = {}  # what came when too many waited, with its path
        self._news = asyncio.Event()
        self._saves = 0
        self._looking: tuple[str, asyncio.Task[None]] | None = None
        self._is_open = False

    def ask(self, verdict: ModuleVerdict, previous: Reading | None) -> None:
        """Look at the functions of a saved file that may give another result than before, as soon as there is time."""
        for name, _ in verdict.standings if self._is_open else ():
            self._left.pop(name, None)
            if name not in self._waiting and len(self._waiting) >= _MOST:
                self._left[name] = verdict.reading.source.path
                continue
            self._waiting[name] = _Wanted(verdict, previous)
            if self._looking and self._looking[0] == name:
                self._looking[1].cancel()
        self._news.set()

    @contextmanager
    def put_off(self) -> Iterator[None]:
        """While a save is taken."""
        self._saves += 1
        if self._looking:
            self._looking[1].cancel()
        try:
            yield
        finally:
            self._saves -= 1
            self._news.set()

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Look at what is asked for; at the end what is left is dropped."""
        self._is_open = True
        work = asyncio.create_task(self._work())
        try:
            yield
        finally:
            self._is_open = False
            work.cancel()
            (ended,) = await asyncio.gather(work, return_exceptions=True)
            if isinstance(ended, Exception):
                raise ended

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                await self._news.wait()
                self._news.clear()
                await asyncio.sleep(_QUIET_S)
                self._tell_left()
                while self._waiting and not self._saves and not self._news.is_set():
                    name, wanted = next(iter(self._waiting.items()))
                    self._looking = name, group.create_task(self._look(name, wanted))
                    await asyncio.wait([self._looking[1]])
                    self._looking = None

    def _tell_left(self) -> None:
        if self._left:
            (name, path), more = next(iter(self._left.items())), len(self._left) - 1
            what = "not looked at for copies, weak examples and what breaks them, as many came at once"
            problem = Problem("not-looked-at", what, Place(path), "toolwright functions check functions", "warns")
            self._left.clear()
            self._tell(f"{name} and {more} more" if more else name, [problem])

    async def _look(self, name: str, wanted: _Wanted) -> None:
        """What is told of one function, if it is still there and the same when it is known."""
        try:
            found = await self._found(name, wanted)
        except ToolwrightError as error:
            found = [Problem("not-looked-at", str(error), Place(wanted.function(name).path), severity="warns")]
        if self._waiting.get(name) is wanted:
            del self._waiting[name]
            if found:
                self._tell(name, found)

    async def _found(self, name: str, wanted: _Wanted) -> Sequence[Problem]:
        snapshot = self._registry.snapshot()
        if not self._is_there(name, wanted):
            return ()
        verdict = replace(wanted.verdict, reading=snapshot.readings[snapshot.functions[name].module])
        granted = await self._packing.of_text(verdict.reading.source.text)
        found = await self._gate.look_closer(name, verdict, snapshot, previous=wanted.previous, granted=granted)
        if not self._is_there(name, wanted):
            return ()
        problems = tuple(replace(one, severity="warns") for one in found.problems)  # it was taken, strict or not
        await self._keep(wanted.function(name), replace(found, problems=problems))
        return problems

    def _is_there(self, name: str, wanted: _Wanted) -> bool:
        held, own = self._registry.snapshot().functions.get(name), wanted.function(name)
        return held is not None and (held.module, held.body_hash) == (own.module, own.body_hash)

    async def _keep(self, function: Function, found: Look) -> None:
        """Add what was found to the verdict that is on disk."""
        said = await self._store.verdict(function.body_hash, function.name)
        if said is not None:
            problems, stages = [one.to_json() for one in found.problems], found.stages_json()
            names = {one["stage"] for one in stages}
            problems = [*(one for one in said["problems"] if one not in problems), *problems]
            stages = [*(one for one in said["stages"] if one["stage"] not in names), *stages]
            survivors = [one.to_json() for one in found.survivors]
            said = {**said, "problems": problems, "stages": stages, "survivors": survivors}
            await self._store.apply([SaveVerdict(function.body_hash, function.name, said)])
