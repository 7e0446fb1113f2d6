"""The gate: runs the stages over a candidate or a saved file, and reports their findings.

The stages are data, in the order of their cost; each one adds to what is known and none stops the
next, which judges for itself whether it can still run. The verdict is made here, from values.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from sandbox import Limits
from sandbox.wire.lines import lines_of

from agent_core.base.offload import aside
from agent_core.base.problem import Place, Problem
from agent_core.registry.function import Function, ModuleReading
from agent_core.registry.snapshot import Snapshot
from agent_core.registry.source import ModuleSource
from .clones.index import Alike
from .clones.kept import IndexStore
from .mutation.stage import check_mutants
from .candidate import Candidate, Policy
from .capability import capability
from .confirm import with_returned_values
from .conform import conform
from .draft import TOO_DEEP, Draft
from .duplicate import duplicate
from .autofix import fix
from .neighbours import neighbours
from .proof import ExampleResult, prove, run
from .read import read
from .robust import robust
from .rules import Rules
from .saved import look, prove_changed, read_saved, try_import, try_users
from .second import STAGES as SECOND
from .second import draft_of
from .substance import substance
from .trial import UNGRANTED, Granted, TrialTools, Workers, load
from .verdict import Look, ModuleVerdict, StageReport, Standing, Verdict

Run = Callable[[Draft, TrialTools], Awaitable[Draft]]


@dataclass(frozen=True, slots=True)
class Stage:
    """One check of the gate; `concurrent` with the one before if neither needs the other's result."""

    name: str
    run: Run
    beside: bool = False


def on_text(judge: Callable[[Draft], Draft]) -> Run:
    """Return a stage that needs no worker."""

    async def run_here(draft: Draft, bench: TrialTools) -> Draft:
        try:
            return await aside(draft.size, judge, draft)
        except RecursionError:
            return draft.with_findings(judge.__name__, [TOO_DEEP])

    return run_here


STAGES: tuple[Stage, ...] = (
    Stage("read", on_text(read)),
    Stage("fix", on_text(fix)),
    Stage("conform", on_text(conform)),
    Stage("substance", on_text(substance)),
    Stage("duplicate", duplicate),
    Stage("capability", on_text(capability)),
    Stage("import", load),
    Stage("examples", prove),
    Stage("mutation", check_mutants),
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
        shelf: IndexStore | None = None,
    ) -> None:
        self._bench = TrialTools(sandbox, limits or Limits(), Alike(shelf))
        self._rules = rules or Rules()
        self._stages = stages

    @property
    def rules(self) -> Rules:
        """The rules by which it judges."""
        return self._rules

    async def judge(
        self, candidate: Candidate, snapshot: Snapshot, policy: Policy = "agent", *, granted: Granted = UNGRANTED
    ) -> Verdict:
        """Return the verdict on a function and its place in a module, with every problem that was found.

        Of what is `granted` its workers have the packages, the time and the memory, and nothing of the world outside.
        """
        text = candidate.code.replace("\r\n", "\n").replace("\r", "\n")
        rules = replace(self._rules, off=frozenset("*")) if candidate.exact else self._rules
        draft = Draft(candidate, rules.policy(policy), rules, snapshot, text)
        draft = replace(draft, granted=granted.grants, guarded=granted.guarded, approval_mode=granted.approval_mode)
        bench = self._bench.granted(granted)
        reports = []
        for stages in _at_once(self._stages):
            draft, stage_reports = await _ask_all(stages, draft, bench)
            reports += stage_reports
        return _verdict(draft, tuple(reports))

    async def judge_module(
        self,
        source: ModuleSource,
        snapshot: Snapshot,
        policy: Policy = "human",
        *,
        previous: ModuleReading | None = None,
        granted: Granted = UNGRANTED,
    ) -> ModuleVerdict:
        """Return the verdict on a saved file; examples only run again if what `previous` had, or used, has changed.

        `granted` is what its functions have together, by the entries that propose it, with what is installed of it.
        """
        clock = _Clock()
        size = len(source.text)
        saved = await aside(size, read_saved, source, snapshot, self._rules, self._rules.policy(policy), previous)
        saved, bench = replace(saved, granted=granted.grants), self._bench.granted(granted)
        clock.note("read", passed=saved.reading.parsed)
        if saved.reading.parsed:
            saved = await aside(size, look, saved)
            clock.note("text", passed=not saved.refuses)
            saved = await try_import(saved, bench)
            clock.note("import", passed=saved.is_loaded)
        if saved.is_loaded:
            saved = await prove_changed(saved, bench)
            clock.note("examples", passed=not saved.refuses)
            saved, note = await try_users(saved, bench)
            if note:
                clock.note("neighbours", passed=not saved.refuses, note=note)
        admitted = saved.is_loaded and not (saved.refuses and saved.policy == "agent")
        verdict = ModuleVerdict(saved.reading, admitted, saved.problems, clock.reports, saved.standings)
        return replace(verdict, disagreements=saved.disagreements, breakages=saved.breakages)

    async def look_closer(  # noqa: PLR0913 - as `judge_module`, plus the name
        self,
        name: str,
        verdict: ModuleVerdict,
        snapshot: Snapshot,
        policy: Policy = "human",
        *,
        previous: ModuleReading | None = None,
        granted: Granted = UNGRANTED,
    ) -> Look:
        """Return the findings of the stages that a save does not wait for; the snapshot already has the file."""
        ground = self._rules.policy(policy), self._rules
        draft = draft_of(name, verdict, snapshot, ground, previous)
        if draft is None:
            return Look(name)
        before, reports, bench = len(draft.problems), list[StageReport](), self._bench.granted(granted)
        for stage in (stage for stage in self._stages if stage.name in SECOND):
            draft, report = await _ask(stage, draft, bench)
            reports.append(report)
        return Look(name, draft.problems[before:], tuple(reports), draft.survivors)

    async def confirm(self, candidate: Candidate, verdict: Verdict, snapshot: Snapshot) -> Verdict:
        """Return the verdict on the same source with the returned results, marked as confirmed.

        Without an example that agreed by itself the function joins as a draft.
        """
        if not verdict.can_be_confirmed:
            message = "there is nothing to confirm: more than a written result stands against this candidate"
            fix = "fix the problems that are listed, with edit_function"
            problem = Problem("cannot-confirm", message, Place(candidate.path), fix)
            return replace(verdict, problems=(*verdict.problems, problem))
        confirmed = tuple(disagreement.call for disagreement in verdict.to_confirm)
        after = await self.judge(with_returned_values(candidate, verdict), snapshot)
        after = replace(after, fixes=(*verdict.fixes, *after.fixes), confirmed=confirmed)
        if verdict.agreed or not after.admitted:
            return after
        message = f"no example of `{after.name}` agreed before its results were confirmed, so it joins as a draft"
        return replace(
            after,
            standing="draft",
            problems=(*after.problems, Problem("unproven", message, Place(candidate.path), None, "warns")),
        )

    async def run_examples(
        self, function: Function, snapshot: Snapshot, granted: Granted = UNGRANTED
    ) -> tuple[ExampleResult, ...]:
        """Run the examples of an existing function again."""
        bench = self._bench.granted(granted)
        return await run(function.examples, function.module, snapshot, bench, returns=function.returns)


async def _ask_all(stages: Sequence[Stage], draft: Draft, bench: TrialTools) -> tuple[Draft, list[StageReport]]:
    """Run stages at the same time and return the draft with their findings; only the first may change the draft
    otherwise.
    """
    if len(stages) == 1:
        after, report = await _ask(stages[0], draft, bench)
        return after, [report]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_ask(stage, draft, bench)) for stage in stages[1:]]
        after, report = await _ask(stages[0], draft, bench)
    results = [task.result() for task in tasks]
    more = [problem for sibling, _ in results for problem in sibling.problems[len(draft.problems) :]]
    reports = [report, *(replace(other_report, beside=True) for _, other_report in results)]
    return replace(after, problems=(*after.problems, *more)), reports


async def _ask(stage: Stage, draft: Draft, bench: TrialTools) -> tuple[Draft, StageReport]:
    started = time.perf_counter()
    after = await stage.run(replace(draft, note="", skipped=False), bench)
    problems = after.problems[len(draft.problems) :]
    passed = not after.skipped and not any(problem.severity == "refuses" for problem in problems)
    return after, StageReport(stage.name, passed, time.perf_counter() - started, after.note)


def _at_once(stages: Sequence[Stage]) -> list[list[Stage]]:
    groups: list[list[Stage]] = []
    for stage in stages:
        if groups and stage.beside:
            groups[-1].append(stage)
        else:
            groups.append([stage])
    return groups


class _Clock:
    """Measures the time between the stages of a saved file."""

    def __init__(self) -> None:
        self.reports: tuple[StageReport, ...] = ()
        self._since = time.perf_counter()

    def note(self, stage: str, *, passed: bool, note: str = "") -> None:
        now = time.perf_counter()
        self.reports += (StageReport(stage, passed, now - self._since, note),)
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
        fixes=draft.fixes,
        problems=draft.problems,
        stages=reports,
        source=draft.text,
        module_text=source.text if source else None,
        disagreements=draft.trials.disagreements,
        agreed=draft.trials.agreed,
        reading=draft.reading,
        survivors=draft.survivors,
        offered=draft.trials.offered,
        needs=draft.needs,
        asking=tuple(_lines(draft)),
    )


def _lines(draft: Draft) -> Iterator[tuple[int, str]]:
    written = lines_of(draft.text)
    yield from ((line, written[line - 1].strip()) for line in draft.asking if 0 < line <= len(written))
