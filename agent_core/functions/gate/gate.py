"""The gate: runs the stages over a candidate or a saved file, and reports their findings.

The stages are data, in the order of their cost: one list for a candidate, one for a saved file, of which the functions
then pass the candidate's other stages. Each one adds to what is known and none stops the next, which judges for
itself whether it can still run. The verdict is made here, from values.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeAlias

from agent_core.base.offload import aside
from agent_core.base.problem import Evidence, Place, Problem
from agent_core.registry.schema import read_module
from sandbox import Limits
from sandbox.wire.lines import lines_of

from .autofix import REPAIRS, fix
from .capability import capability, reach_in
from .conform import conform
from .draft import TOO_DEEP, D, Draft
from .duplicate import Sameness, compared, duplicate
from .examples.example_text import with_returned_values
from .fitted import check_fitted
from .meaning import judge_meaning
from .mutation import check_mutants
from .neighbours import neighbours
from .proof import EXCUSED, ExampleResult, prove, rerun
from .read import FIXES as READ_FIXES
from .read import read
from .robust import robust
from .rules import CONTEXT, DISPUTED, REACHES_NOTHING, UNPROVEN, Rules
from .saved_file import SavedFile, draft_of, look, prove_changed, read_file, try_import, try_users
from .substance import substance
from .trial import UNGRANTED, Granted, TrialTools, Workers, load, try_module
from .verdict import TOO_FEW, Look, ModuleVerdict, StageReport, Standing, Verdict

if TYPE_CHECKING:
    from agent_core.registry.function import Function, ModuleReading
    from agent_core.registry.snapshot import Snapshot
    from agent_core.registry.source import ModuleSource

    from ..search import FunctionSearch
    from .candidate import Candidate, Policy
    from .reader import DescriptionReader

Run: TypeAlias = Callable[[D, TrialTools], Awaitable[D]]
FIXES = frozenset([*READ_FIXES, *(repair.code for repair in REPAIRS), CONTEXT, EXCUSED])
"""The codes of all fixes."""


@dataclass(frozen=True, slots=True)
class Stage(Generic[D]):
    """One check of the gate.

    It is `beside` the one before if neither needs the other's result; a save does not wait for one that comes
    `after_save`. `passed` tells whether a draft passed, if the stage's own findings do not say so.
    """

    name: str
    run: Run[D]
    beside: bool = False
    after_save: bool = False
    passed: Callable[[D], bool] | None = None


def on_text(judge: Callable[[D], D], name: str = "") -> Run[D]:
    """Return a stage that needs no worker. `name` is the stage that says that a text is nested too deeply."""

    async def run_here(draft: D, trial: TrialTools) -> D:
        try:
            return await aside(draft.size, judge, draft)
        except RecursionError:
            return draft.with_findings(name or judge.__name__, [TOO_DEEP])

    return run_here


STAGES: tuple[Stage[Draft], ...] = (
    Stage("read", on_text(read)),
    Stage("fix", on_text(fix)),
    Stage("conform", on_text(conform)),
    Stage("substance", on_text(substance)),
    Stage("duplicate", duplicate, after_save=True),
    Stage("capability", on_text(capability)),
    Stage("import", load),
    Stage("examples", prove),
    Stage("fitted", check_fitted, after_save=True),
    Stage("mutation", check_mutants, after_save=True),
    Stage("robust", robust, beside=True, after_save=True),
    Stage("neighbours", neighbours),
)
"""The stages of a candidate. Those that come `after_save` also judge each function of a saved file, later."""

READER: Stage[Draft] = Stage("reader", judge_meaning)
"""The last stage, where there is an author who can answer, or a reader is asked for."""


def _is_clean(file: SavedFile) -> bool:
    return not file.refuses


FILE_STAGES: tuple[Stage[SavedFile], ...] = (
    Stage("read", on_text(read_file), passed=lambda file: file.is_parsed),
    Stage("text", on_text(look, "substance"), passed=_is_clean),  # conform, substance and capability
    Stage("import", try_import),
    Stage("examples", prove_changed, passed=_is_clean),
    Stage("neighbours", try_users, passed=_is_clean),
)
"""The stages of a saved file before it is taken. What one skips is not reported."""


class Gate:
    """Judges candidates and saved files; holds the sandbox in which they are tried, and the rules."""

    def __init__(
        self,
        workers: Workers,
        *,
        limits: Limits | None = None,
        rules: Rules | None = None,
        stages: tuple[Stage[Draft], ...] = STAGES,
        reader: "DescriptionReader | None" = None,
        search: "FunctionSearch | None" = None,
    ) -> None:
        """Create the gate; `reader` is a model that is shown descriptions alone.

        By the `search`, a function is held to be found by what it says of itself.
        """
        self._trial = TrialTools(workers, limits or Limits(), reader=reader, finder=search)
        self._rules = rules or Rules()
        self._stages = stages

    @property
    def has_reader(self) -> bool:
        """True if there is a model that can be asked about descriptions."""
        return self._trial.reader is not None

    @property
    def rules(self) -> Rules:
        """The rules by which it judges."""
        return self._rules

    async def judge(
        self,
        candidate: "Candidate",
        snapshot: "Snapshot",
        policy: "Policy" = "agent",
        *,
        granted: Granted = UNGRANTED,
        challenging: bool = False,
        reading: bool = False,
    ) -> Verdict:
        """Return the verdict on a function and its place in a module, with every problem that was found.

        Of what is `granted` its workers have the packages, the time and the memory, and nothing of the world outside.
        If it is `challenging`, its author can be asked to predict results; if it is `reading`, the reader is asked.
        """
        text = candidate.code.replace("\r\n", "\n").replace("\r", "\n")
        rules = replace(self._rules, off=frozenset("*")) if candidate.exact else self._rules
        draft = Draft(candidate, rules.policy(policy), rules, snapshot, text)
        draft = replace(draft, granted=granted.grants, guarded=granted.guarded, approval_mode=granted.approval_mode)
        draft = replace(draft, is_challenging=challenging, is_read=reading)
        if policy == "import" and candidate.name in (names := [*snapshot.functions] if candidate.replaces else []):
            later = names[names.index(candidate.name) + 1 :]  # of copies that come together the first stays
            draft = replace(draft, apart=frozenset(later))
        trial = self._trial.granted(granted)
        reports = []
        for stages in _at_once((*self._stages, READER) if challenging or reading else self._stages):
            draft, stage_reports = await _ask_all(stages, draft, trial)
            reports += stage_reports
        return await aside(draft.size, _verdict, draft, tuple(reports))

    async def judge_module(
        self,
        source: "ModuleSource",
        snapshot: "Snapshot",
        policy: "Policy" = "human",
        *,
        previous_reading: "ModuleReading | None" = None,
        granted: Granted = UNGRANTED,
    ) -> ModuleVerdict:
        """Return the verdict on a saved file; examples run again only where `previous_reading` was another.

        `granted` is what its functions have together, by the entries that propose it, with what is installed of it.
        """
        file = SavedFile.of(source, snapshot, self._rules.policy(policy), self._rules, previous_reading)
        file = replace(file, granted=granted.grants, approval_mode=granted.approval_mode)
        trial, reports = self._trial.granted(granted), list[StageReport]()
        for stage in FILE_STAGES:
            file, report = await _ask(stage, file, trial)
            reports += [] if file.skipped else [report]
        return file.verdict(tuple(reports))

    async def look_closer(
        self,
        name: str,
        verdict: ModuleVerdict,
        snapshot: "Snapshot",
        granted: Granted = UNGRANTED,
        *,
        reading: bool = False,
    ) -> Look:
        """Return the findings of the stages that a save does not wait for; the snapshot already has the file.

        If it is `reading`, the reader is asked, too.
        """
        draft = draft_of(name, verdict, snapshot, self._rules)
        if draft is None:
            return Look(name)
        before, reports, trial = len(draft.problems), list[StageReport](), self._trial.granted(granted)
        draft = replace(draft, is_read=reading)
        for stage in (*(stage for stage in self._stages if stage.after_save), *([READER] if reading else [])):
            draft, report = await _ask(stage, draft, trial)
            reports.append(report)
        return Look(name, draft.problems[before:], tuple(reports), draft.survivors, draft.answer)

    async def try_import(self, source: "ModuleSource", snapshot: "Snapshot") -> Problem | None:
        """Return why a module cannot be imported next to the others, a package that it lacks included."""
        _, problems = await try_module(read_module(source), snapshot, self._trial)
        return next(iter(problems), None)

    async def read_again(self, reading: "ModuleReading", snapshot: "Snapshot") -> "ModuleReading":
        """Return the reading of a good module with the schemas that types of other modules have by now.

        A function that no longer has one keeps the last.
        """
        fresh = read_module(reading.source, self._rules.module_bytes, modules=snapshot.modules)
        resolved, problems = await try_module(fresh, snapshot, self._trial)
        return replace(reading, leans=fresh.leans) if problems else resolved

    async def confirm(self, candidate: "Candidate", verdict: Verdict, snapshot: "Snapshot") -> Verdict:
        """Return the verdict on the same source with the returned results, marked as confirmed; if it is admitted, its
        disagreements are those that this settled.

        Without an example that agreed by itself the function joins as a draft.
        """
        if not verdict.can_be_confirmed:
            message = "there is nothing to confirm: more than a written result stands against this candidate"
            fix = "fix the problems that are listed, with edit_function"
            evidence = (Evidence(", ".join(refusal.code for refusal in verdict.refusals) or "it was not refused"),)
            problem = Problem("cannot-confirm", message, Place(candidate.path), fix, evidence=evidence)
            return replace(verdict, problems=(*verdict.problems, problem))
        settled = verdict.to_confirm
        confirmed = tuple(disagreement.call for disagreement in settled)
        is_read = candidate.answer is not None
        after = await self.judge(with_returned_values(candidate, verdict), snapshot, reading=is_read)
        after = replace(after, disagreements=settled) if after.admitted else after
        after = replace(after, fixes=(*verdict.fixes, *after.fixes), confirmed=confirmed)
        if verdict.agreed or not after.admitted:
            return after
        message = f"no example of `{after.name}` agreed before its results were confirmed, so it is added as a draft"
        calls = tuple(Evidence(call=row.call, returned=row.returned, expected=row.expected) for row in settled)
        problem = Problem("unproven", message, Place(candidate.path), None, "warns", calls)
        return replace(after, standing="draft", problems=(*after.problems, problem))

    async def run_examples(
        self, function: "Function", snapshot: "Snapshot", granted: Granted = UNGRANTED
    ) -> tuple[ExampleResult, ...]:
        """Run the examples of an existing function again, and say which of them lack a grant."""
        return await rerun(function, snapshot, self._trial.reading(granted), granted.grants)

    async def compare(self, first_function: "Function", second_function: "Function", snapshot: "Snapshot") -> Sameness:
        """Return whether two existing functions give the same results, on the examples of both."""
        return await compared(first_function, second_function, snapshot.modules, self._rules.fitted_s, self._trial)


async def _ask_all(stages: Sequence[Stage[D]], draft: D, trial: TrialTools) -> tuple[D, list[StageReport]]:
    """Run stages at the same time and return the draft with their findings; only the first may change the draft
    otherwise.
    """
    if len(stages) == 1:
        after, report = await _ask(stages[0], draft, trial)
        return after, [report]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_ask(stage, draft, trial)) for stage in stages[1:]]
        after, report = await _ask(stages[0], draft, trial)
    results = [task.result() for task in tasks]
    more = [problem for sibling, _ in results for problem in sibling.problems[len(draft.problems) :]]
    reports = [report, *(replace(other_report, beside=True) for _, other_report in results)]
    return after.with_problems(more), reports


async def _ask(stage: Stage[D], draft: D, trial: TrialTools) -> tuple[D, StageReport]:
    started = time.perf_counter()
    after = await stage.run(replace(draft, note="", skipped=False, late=False), trial)
    problems = after.problems[len(draft.problems) :]
    passed = not after.skipped and not any(problem.severity == "refuses" for problem in problems)
    passed = (stage.passed(after) if stage.passed else passed) and not after.late
    return after, StageReport(stage.name, passed, time.perf_counter() - started, after.note, late=after.late)


def _at_once(stages: Sequence[Stage[D]]) -> list[list[Stage[D]]]:
    groups: list[list[Stage[D]]] = []
    for stage in stages:
        if groups and stage.beside:
            groups[-1].append(stage)
        else:
            groups.append([stage])
    return groups


def _predicted(draft: Draft) -> tuple[str, ...]:
    """Return the calls whose results the author predicted as they came back."""
    agreed = {call for call, _value in draft.trials.values}
    return tuple(call for call in draft.candidate.asked if call in agreed)


def _verdict(draft: Draft, reports: tuple[StageReport, ...]) -> Verdict:
    admitted = not draft.refuses
    is_bare = draft.policy == "human" and not draft.trials.agreed and draft.shows(*TOO_FEW)  # as a saved file has it
    is_unsettled = draft.policy != "human" and draft.shows(DISPUTED, REACHES_NOTHING)
    is_draft = (
        is_bare or is_unsettled or draft.trials.is_unproven or (draft.policy == "import" and draft.shows(*UNPROVEN))
    )
    standing: Standing = "" if not admitted else "draft" if is_draft else "trial"
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
        challenges=draft.challenges,
        predicted=_predicted(draft),
        answer=draft.answer or draft.candidate.answer,
        needs=draft.needs,
        reach=reach_in(source.text if source else draft.text, draft.candidate.name, draft.needs),
        asking=tuple(_lines(draft)),
    )


def _lines(draft: Draft) -> Iterator[tuple[int, str]]:
    written = lines_of(draft.text)
    yield from ((line, written[line - 1].strip()) for line in draft.asking if 0 < line <= len(written))
