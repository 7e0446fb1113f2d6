"""The gate: runs the stages over a candidate or a saved file, and says what they found.

The stages are data, in the order of their cost; each one adds to what is known and none stops the
next, which judges for itself whether it can still run. The verdict is made here, from values.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from sandbox import Limits, Sandbox

from ..registry.function import Function
from ..registry.snapshot import Snapshot
from .candidate import Candidate, Policy
from .capability import capability
from .conform import conform
from .draft import Draft
from .mend import mend
from .proof import ExampleResult, prove, run
from .read import read
from .rules import Rules
from .substance import substance
from .trial import Bench, load
from .verdict import StageReport, Standing, Verdict

Run = Callable[[Draft, Bench], Awaitable[Draft]]


@dataclass(frozen=True, slots=True)
class Stage:
    """One question that the gate asks."""

    name: str
    run: Run


def on_text(judge: Callable[[Draft], Draft]) -> Run:
    """A stage that needs no worker."""

    async def run_here(draft: Draft, bench: Bench) -> Draft:
        return judge(draft)

    return run_here


STAGES: tuple[Stage, ...] = (
    Stage("read", on_text(read)),
    Stage("mend", on_text(mend)),
    Stage("conform", on_text(conform)),
    Stage("substance", on_text(substance)),
    Stage("capability", on_text(capability)),
    Stage("import", load),
    Stage("examples", prove),
)


class Gate:
    """Judges candidates and saved files; holds the sandbox in which they are tried, and the rules."""

    def __init__(
        self,
        sandbox: Sandbox,
        *,
        limits: Limits | None = None,
        rules: Rules | None = None,
        stages: tuple[Stage, ...] = STAGES,
    ) -> None:
        self._bench = Bench(sandbox, limits or Limits())
        self._rules = rules or Rules()
        self._stages = stages

    async def judge(self, candidate: Candidate, snapshot: Snapshot, policy: Policy = "agent") -> Verdict:
        """The verdict on one function and its place in a module, with every problem that was found."""
        text = candidate.code.replace("\r\n", "\n").replace("\r", "\n")
        draft = Draft(candidate, self._rules.policy(policy), self._rules, snapshot, text)
        reports = []
        for stage in self._stages:
            draft, report = await self._ask(stage, draft)
            reports.append(report)
        return _verdict(draft, tuple(reports))

    async def _ask(self, stage: Stage, draft: Draft) -> tuple[Draft, StageReport]:
        started = time.perf_counter()
        after = await stage.run(replace(draft, note="", skipped=False), self._bench)
        found = after.problems[len(draft.problems) :]
        passed = not after.skipped and not any(problem.severity == "refuses" for problem in found)
        return after, StageReport(stage.name, passed, time.perf_counter() - started, after.note)

    async def run_examples(self, function: Function, snapshot: Snapshot) -> tuple[ExampleResult, ...]:
        """The examples of a function that is already there, run anew."""
        return await run(function.examples, function.module, snapshot, self._bench)


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
    )
