"""The gate: runs the stages over a candidate or a saved file, and says what they found.

The stages are data, in the order of their cost; each one adds to what is known and none stops the
next, which judges for itself whether it can still run. The verdict is made here, from values.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from sandbox import Limits

from ..problem import Place, Problem
from ..registry.function import Function, Reading
from ..registry.snapshot import Snapshot
from ..registry.source import Source
from .alike.index import Alike
from .alike.kept import Shelf
from .bite import bite
from .candidate import Candidate, Policy
from .capability import capability
from .confirm import with_returned_values
from .conform import conform
from .draft import TOO_DEEP, Draft
from .duplicate import duplicate
from .mend import mend
from .neighbours import neighbours
from .proof import ExampleResult, prove, run
from .read import read
from .robust import robust
from .rules import Rules
from .saved import look, prove_changed, read_saved, try_import, try_users
from .second import STAGES as SECOND
from .second import draft_of
from .substance import substance
from .trial import Bench, Workers, load
from .verdict import Look, ModuleVerdict, StageReport, Standing, Verdict

Run = Callable[[Draft, Bench], Awaitable[Draft]]


@dataclass(frozen=True, slots=True)
class Stage:
    """One question that the gate asks; `beside` the one before it where neither needs the other's answer."""

    name: str
    run: Run
    beside: bool = False


def on_text(judge: Callable[[Draft], Draft]) -> Run:
    """A stage that needs no worker."""

    async def run_here(draft: Draft, bench: Bench) -> Draft:
        try:
            return judge(draft)
        except RecursionError:
            return draft.with_findings(judge.__name__, [TOO_DEEP])

    return run_here


STAGES: tuple[Stage, ...] = (
    Stage("read", on_text(read)),
    Stage("mend", on_text(mend)),
    Stage("conform", on_text(conform)),
    Stage("substance", on_text(substance)),
    Stage("duplicate", duplicate),
    Stage("capability", on_text(capability)),
    Stage("import", load),
    Stage("examples", prove),
    Stage("bite", bite),
    Stage("robust", robust, beside=True),
    Stage("neighbours", neighbours),
)


class Gate:
    """Judges candidates and saved files; holds the sandbox in which they are tried, and the rules."""

    def __init__(
        self,
        sandbox: Workers,
        *,
        limits: Limits | None = None,
        rules: Rules | None = None,
        stages: tuple[Stage, ...] = STAGES,
        shelf: Shelf | None = None,
    ) -> None:
        self._bench = Bench(sandbox, limits or Limits(), Alike(shelf))
        self._rules = rules or Rules()
        self._stages = stages

    @property
    def rules(self) -> Rules:
        """The rules that it judges by."""
        return self._rules

    async def judge(self, candidate: Candidate, snapshot: Snapshot, policy: Policy = "agent") -> Verdict:
        """The verdict on one function and its place in a module, with every problem that was found."""
        text = candidate.code.replace("\r\n", "\n").replace("\r", "\n")
        rules = replace(self._rules, off=frozenset("*")) if candidate.exact else self._rules
        draft = Draft(candidate, rules.policy(policy), rules, snapshot, text)
        reports = []
        for stages in _at_once(self._stages):
            draft, found = await self._ask_all(stages, draft)
            reports += found
        return _verdict(draft, tuple(reports))

    async def _ask_all(self, stages: Sequence[Stage], draft: Draft) -> tuple[Draft, list[StageReport]]:
        """The draft with what stages found that are asked at once, the first of which may add to it otherwise, too."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._ask(stage, draft)) for stage in stages[1:]]
            after, report = await self._ask(stages[0], draft)
        beside = [task.result() for task in tasks]
        more = [problem for other, _ in beside for problem in other.problems[len(draft.problems) :]]
        reports = [report, *(replace(one, beside=True) for _, one in beside)]
        return replace(after, problems=(*after.problems, *more)), reports

    async def _ask(self, stage: Stage, draft: Draft) -> tuple[Draft, StageReport]:
        started = time.perf_counter()
        after = await stage.run(replace(draft, note="", skipped=False), self._bench)
        found = after.problems[len(draft.problems) :]
        passed = not after.skipped and not any(problem.severity == "refuses" for problem in found)
        return after, StageReport(stage.name, passed, time.perf_counter() - started, after.note)

    async def judge_module(
        self, source: Source, snapshot: Snapshot, policy: Policy = "human", *, previous: Reading | None = None
    ) -> ModuleVerdict:
        """The verdict on a saved file; examples run again only where what `previous` had, or used, is another."""
        clock = _Clock()
        saved = read_saved(source, snapshot, self._rules, self._rules.policy(policy), previous)
        clock.note("read", passed=saved.reading.parsed)
        if saved.reading.parsed:
            saved = look(saved)
            clock.note("text", passed=not saved.refuses)
            saved = await try_import(saved, self._bench)
            clock.note("import", passed=saved.is_loaded)
        if saved.is_loaded:
            saved = await prove_changed(saved, self._bench)
            clock.note("examples", passed=not saved.refuses)
            saved, said = await try_users(saved, self._bench)
            if said:
                clock.note("neighbours", passed=not saved.refuses, said=said)
        admitted = saved.is_loaded and not (saved.refuses and saved.policy == "agent")
        found = ModuleVerdict(saved.reading, admitted, saved.problems, clock.reports, saved.standings)
        return replace(found, disagreements=saved.disagreements, breakages=saved.breakages)

    async def look_closer(
        self,
        name: str,
        verdict: ModuleVerdict,
        snapshot: Snapshot,
        policy: Policy = "human",
        *,
        previous: Reading | None = None,
    ) -> Look:
        """What the stages that a save is not held up for find in a function of it; the snapshot has the file."""
        ground = self._rules.policy(policy), self._rules
        draft = draft_of(name, verdict, snapshot, ground, previous)
        if draft is None:
            return Look(name)
        before, reports = len(draft.problems), list[StageReport]()
        for stage in (one for one in self._stages if one.name in SECOND):
            draft, report = await self._ask(stage, draft)
            reports.append(report)
        return Look(name, draft.problems[before:], tuple(reports), draft.survivors)

    async def confirm(self, candidate: Candidate, verdict: Verdict, snapshot: Snapshot) -> Verdict:
        """The verdict on the same source with the results that came back, marked as confirmed.

        Without an example that agreed by itself the function joins as a draft.
        """
        if not verdict.can_be_confirmed:
            what = "there is nothing to confirm: more than a written result stands against this candidate"
            mend = "mend the problems that are listed, with edit_function"
            problem = Problem("cannot-confirm", what, Place(candidate.path), mend)
            return replace(verdict, problems=(*verdict.problems, problem))
        confirmed = tuple(one.call for one in verdict.to_confirm)
        after = await self.judge(with_returned_values(candidate, verdict), snapshot)
        after = replace(after, mends=(*verdict.mends, *after.mends), confirmed=confirmed)
        if verdict.agreed or not after.admitted:
            return after
        what = f"no example of `{after.name}` agreed before its results were confirmed, so it joins as a draft"
        return replace(
            after,
            standing="draft",
            problems=(*after.problems, Problem("unproven", what, Place(candidate.path), None, "warns")),
        )

    async def run_examples(self, function: Function, snapshot: Snapshot) -> tuple[ExampleResult, ...]:
        """The examples of a function that is already there, run anew."""
        return await run(function.examples, function.module, snapshot, self._bench, returns=function.returns)


def _at_once(stages: Sequence[Stage]) -> list[list[Stage]]:
    found: list[list[Stage]] = []
    for stage in stages:
        if found and stage.beside:
            found[-1].append(stage)
        else:
            found.append([stage])
    return found


class _Clock:
    """Takes the time between the stages of a saved file."""

    def __init__(self) -> None:
        self.reports: tuple[StageReport, ...] = ()
        self._since = time.perf_counter()

    def note(self, stage: str, *, passed: bool, said: str = "") -> None:
        now = time.perf_counter()
        self.reports += (StageReport(stage, passed, now - self._since, said),)
        self._since = now


def _verdict(draft: Draft, reports: tuple[StageReport, ...]) -> Verdict:
    admitted = not any(problem.severity == "refuses" for problem in draft.problems)
    standing: Standing = "" if not admitted else "draft" if draft.trials.is_unproven else "trial"
    source = draft.reading.source if draft.reading else None
    return Verdict(
        name=draft.candidate.name,
        module=draft.candidate.module,
        admitted=admitted,
        standing=standing,
        version=source.version if source else "",
        mends=draft.mends,
        problems=draft.problems,
        stages=reports,
        source=draft.text,
        module_text=source.text if source else None,
        disagreements=draft.trials.disagreements,
        agreed=draft.trials.agreed,
        reading=draft.reading,
        survivors=draft.survivors,
        offered=draft.trials.offered,
    )
