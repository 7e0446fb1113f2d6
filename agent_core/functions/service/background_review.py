"""The background review: after a save, it runs the stages that the save does not wait for, one function at a time.

Saves take precedence: while one is processed, no review runs, and an interrupted review starts over. A newer version of
a function replaces an older one in the queue. Findings are stored and reported; without findings, nothing is reported.
Functions that wait for a package are judged again when the user grants it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from agent_core.base.errors import KnapperError
from agent_core.base.problem import Place, Problem
from agent_core.storage import FunctionStore, SaveVerdict

from .judgment import judgment_on
from .loaded_files import verdict_on

if TYPE_CHECKING:  # the gate is loaded with the first saved file
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Registry, Snapshot

    from ..gate import Gate, ModuleVerdict
    from .package_grants import PackageGrants

Tell = Callable[[str, Sequence[Problem]], None]
_QUIET_S = 0.2  # some editors save twice, the second time formatted
_MOST = 40  # functions in the queue: checking out a branch is not an edit


class BackgroundReview:
    """The queue of functions to review, and the task that reviews them."""

    def __init__(
        self,
        store: FunctionStore,
        registry: "Registry",
        gate: "Callable[[], Gate]",
        packages: "Callable[[], PackageGrants]",
        tell: Tell,
    ) -> None:
        self._store = store
        self._registry = registry
        self._gate = gate
        self._packages = packages
        self._tell = tell
        self._waiting: dict[str, ModuleVerdict] = {}
        self._told: dict[str, set[tuple[str, str]]] = {}  # the last findings, not to be reported again
        self._left: dict[str, str] = {}  # functions that did not fit into the queue, with their paths
        self._news = asyncio.Event()
        self._saves = 0
        self._looking: tuple[str, asyncio.Task[None]] | None = None
        self._is_open = False

    def ask(self, verdict: "ModuleVerdict") -> None:
        """Queue a review of the functions of a saved file that may return other results now."""
        for name, _ in verdict.standings if self._is_open else ():
            self._left.pop(name, None)
            if name not in self._waiting and len(self._waiting) >= _MOST:
                self._left[name] = verdict.reading.source.path
                continue
            self._waiting[name] = verdict
            if self._looking and self._looking[0] == name:
                self._looking[1].cancel()
        self._news.set()

    @contextmanager
    def put_off(self) -> Iterator[None]:
        """Postpone reviews while a save is processed."""
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
        """Run requested reviews while the block runs; drop those that are left at the end."""
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
                if self._left:
                    (name, path), more = next(iter(self._left.items())), len(self._left) - 1
                    message = "not checked for copies, weak examples and breaking arguments, because many were saved"
                    fix = "knapper functions check functions"
                    problem = Problem("not-looked-at", f"{message} at once", Place(path), fix, "warns")
                    self._left.clear()
                    self._tell(f"{name} and {more} more" if more else name, [problem])
                while self._waiting and not self._saves and not self._news.is_set():
                    name, request = next(iter(self._waiting.items()))
                    self._looking = name, group.create_task(self._look(name, request))
                    await asyncio.wait([self._looking[1]])
                    self._looking = None

    async def _look(self, name: str, verdict: "ModuleVerdict") -> None:
        """Report the findings on one function if it still exists and is unchanged."""
        try:
            findings = await self._find_problems(name, verdict)
        except KnapperError as error:
            findings = [Problem("not-looked-at", str(error), Place(_function(verdict, name).path), severity="warns")]
        if self._waiting.get(name) is verdict:
            del self._waiting[name]
            told = self._told.setdefault(name, set())
            news = [problem for problem in findings if _finding(problem) not in told]
            told.update(map(_finding, findings))
            if news:
                self._tell(name, news)

    async def _find_problems(self, name: str, module_verdict: "ModuleVerdict") -> Sequence[Problem]:
        snapshot = self._registry.snapshot()
        if not self._is_there(name, module_verdict):
            return ()
        verdict = replace(module_verdict, reading=snapshot.readings[snapshot.functions[name].module])
        granted = await self._packages().of_text(verdict.reading.source.text)
        look = await self._gate().look_closer(name, verdict, snapshot, granted)
        if not self._is_there(name, module_verdict):
            return ()
        problems = tuple(replace(problem, severity="warns") for problem in look.problems)  # it was accepted
        own = _function(module_verdict, name)
        known = await judgment_on(self._store, own.body_hash, name)
        if known is not None:
            names = {stage.stage for stage in look.stages}
            known = replace(
                known,
                problems=(*(problem for problem in known.problems if problem not in problems), *problems),
                stages=(*(stage for stage in known.stages if stage.stage not in names), *look.stages),
                survivors=look.survivors,
            )
            await self._store.apply([SaveVerdict(own.body_hash, name, known.to_json())])
        return problems

    def _is_there(self, name: str, verdict: "ModuleVerdict") -> bool:
        current, own = self._registry.snapshot().functions.get(name), _function(verdict, name)
        return current is not None and (current.module, current.body_hash) == (own.module, own.body_hash)


def _finding(problem: Problem) -> tuple[str, str]:
    """Return the identity of a finding; weak examples are reported once, whichever change of the body they miss."""
    return problem.code, "" if problem.code == "weak-examples" else problem.message


def _function(verdict: "ModuleVerdict", name: str) -> "Function":
    return next(function for function in verdict.reading.functions if function.name == name)


class LateProof:
    """A second judgment on a draft of a saved file, with the packages that are granted by now."""

    def __init__(self, store: FunctionStore, gate: "Callable[[], Gate]", packages: "PackageGrants") -> None:
        self._store = store
        self._gate = gate
        self._packages = packages

    async def __call__(self, function: "Function", snapshot: "Snapshot") -> None:
        """Run the examples of a function if it is a draft of a saved file, and store its standing."""
        before = await judgment_on(self._store, function.body_hash, function.name)
        if before is None or before.by != "human" or before.standing != "draft" or not function.examples:
            return
        source = snapshot.modules[function.module]
        granted = replace(await self._packages.of_text(source.text), approval_mode="calling")
        verdict = await self._gate().judge_module(source, snapshot, "human", granted=granted)
        standing = dict(verdict.standings).get(function.name)
        if standing is None:
            return
        kept = {"confirmed": [*before.confirmed], "thumb": before.thumb, "note": before.note}
        judged = {**verdict_on(function, verdict), **kept, "standing": standing}
        await self._store.apply([SaveVerdict(function.body_hash, function.name, judged)])
