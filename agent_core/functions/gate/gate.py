"""The gate: runs the stages on a candidate or a saved file, and reports their findings.

The stages are data, in order of their cost: one list for a candidate, and one for a saved file; its functions pass
the other stages of a candidate later. Each stage adds findings, and none stops the next one, which decides itself
whether it can run. The verdict is computed here, from values.
"""

import ast
import asyncio
import time
from bisect import bisect_right
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeAlias

from agent_core.access.grants import NOTHING
from agent_core.access.grants.content import imported_with
from agent_core.access.grants.value import modules_of_workspace
from agent_core.base.offload import PER_ENTRY, aside, results_of
from agent_core.base.problem import Evidence, Place, Problem, ProblemsByLine, first_problems
from agent_core.base.records import dataclass, replace
from agent_core.registry.depends import (
    SpareFunctions,
    changed_functions,
    code_hash,
    running_with,
    uses,
    using_modules,
)
from agent_core.registry.function import Function, ModuleReading, attempt_mark
from agent_core.registry.registry import Snapshot
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource
from sandbox import Limits
from sandbox.wire.lines import kept_lines, lines_of

from ..search import FunctionSearch
from .autofix import fix
from .capability import capability, imported_at_the_top, needs_of_text, reach_in
from .conform import check as check_shape
from .conform import conform, undefined_names, weigh
from .draft import TOO_DEEP, Candidate, D, Draft, ExampleTrials
from .duplicate import Sameness, compare_functions, duplicate
from .examples import with_returned_values
from .fitted import check_fitted
from .meaning import judge_meaning
from .mutation import check_mutants
from .neighbours import caller_finding, differs, neighbours, try_callers
from .proof import ExampleResult, prove
from .proof import run as run_examples
from .read import read
from .reader import DescriptionReader
from .robust import robust
from .running import spare_functions, text_reaching
from .substance import check as check_substance
from .substance import substance
from .tree import function_in, parse
from .trial import (
    UNGRANTED,
    Granted,
    TrialTools,
    Workers,
    load,
    missing_package,
    try_module,
    with_types,
)
from .verdict import (
    DISPUTED,
    REACHES_NOTHING,
    TOO_FEW,
    UNPROVEN,
    Breakage,
    Disagreement,
    Look,
    ModuleVerdict,
    Policy,
    Rules,
    StageReport,
    Standing,
    Verdict,
)

_DRAFT: Final[Standing] = "draft"
_PROOF_LIMIT: Final = 16  # functions of a saved file that are proven at once


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedFile(Draft):
    """A saved file in the gate: a draft of the whole module, and the results for its functions."""

    source: ModuleSource
    previous: ModuleReading | None = None
    standings: tuple[tuple[str, Standing], ...] = ()
    disagreements: tuple[tuple[str, Disagreement], ...] = ()
    waiting: frozenset[str] = frozenset()  # the functions that lack a package

    @property
    def module(self) -> ModuleReading:
        """The file as the registry reads it."""
        assert self.reading is not None
        return self.reading

    @property
    def is_parsed(self) -> bool:
        """True if the file is valid Python."""
        return self.reading is not None and self.reading.parsed

    def verdict(self, reports: tuple[StageReport, ...]) -> ModuleVerdict:
        """Return the verdict: an importable file is admitted, unless the agent's policy applies and refuses it."""
        admitted = self.trial is not None and not (self.refuses and self.policy == "agent")
        verdict = ModuleVerdict(
            self.module, admitted, self.problems, reports, self.standings, self.disagreements
        )
        return replace(
            verdict, breakages=self.breakages, policy=self.policy, previous=self.previous
        )


def read_file(file: SavedFile) -> SavedFile:
    """Return the file as the registry reads it; its problems are weighed by the policy."""
    reading = read_module(file.source, file.rules.module_bytes)
    tree = parse(file.text) if reading.parsed else None
    file = replace(file, reading=reading, tree=tree if isinstance(tree, ast.Module) else None)
    return file.with_problems(weigh(problem, file) for problem in reading.problems)


def look(file: SavedFile) -> SavedFile:
    """Return the file with findings about its text: those of each function, then those of the module."""
    if not file.is_parsed:
        return file.skip("the file is not Python")
    if file.tree is None:
        return file
    after = file
    for function in file.module.functions:
        if node := function_in(file.text, function.name):
            after = after.with_findings("conform", check_shape(node))
            examples = [(example.call, example.expected) for example in function.examples]
            after = after.with_findings("substance", check_substance(node, examples))
    return capability(after.with_findings("conform", undefined_names(file, file.tree)))


async def try_import(file: SavedFile, trial_tools: TrialTools) -> SavedFile:
    """Return the file after an import in a worker; one that only needs a package is accepted, and proven later."""
    if not file.is_parsed:
        return file.skip("the file is not Python")
    reading, problems = await try_module(file.module, file.snapshot, trial_tools)
    if await aside(
        file.size, missing_package, file.module, problems, file.snapshot, file.rules.packages
    ):
        waiting = await aside(file.size, _waiting_functions, file)
        ready = [function for function in reading.functions if function.name not in waiting]
        reading = await with_types(reading, ready, file.snapshot, trial_tools)
        if any(
            function.unresolved for function in reading.functions
        ):  # the package may bring types, too
            mark = attempt_mark(reading.source.module, trial_tools.access.folders)
            reading = replace(reading, leans=(mark, *reading.leans))
        after = replace(
            file, reading=reading, trial=file.snapshot.with_module(reading), waiting=waiting
        )
        return after.with_problems(
            weigh(problem, file) for problem in reading.problems[len(file.module.problems) :]
        )
    unfit = reading.problems[
        len(file.module.problems) :
    ]  # functions that are left out, without their neighbors
    trial = None if problems else file.snapshot.with_module(reading)
    after = replace(file, reading=reading, trial=trial)
    return after.with_problems((*problems, *(weigh(problem, file) for problem in unfit)))


def _waiting_functions(file: SavedFile) -> frozenset[str]:
    """Return the functions of a file for which something is imported that needs a package they do not have."""
    after = file.snapshot.with_module(file.module)
    known = (*file.rules.packages, *sorted(modules_of_workspace(after)))
    waiting = set[str]()
    for function in file.module.functions:
        texts = (source.text for source in imported_with(function, after.modules).values())
        needed = frozenset[str]().union(*(imported_at_the_top(text, known) for text in texts))
        if not all(file.granted.gives("packages", project) for project in needed):
            waiting.add(function.name)
    return frozenset(waiting)


async def prove_changed(file: SavedFile, trial: TrialTools) -> SavedFile:
    """Return the file with the example results of functions that changed, directly or in code that they use."""
    if file.trial is None:
        return file.skip("the file could not be imported")
    snapshot = file.trial
    changed_names = await aside(file.size, _to_try_again, file, snapshot)
    names = [function.name for function in file.module.functions if function.name in changed_names]
    late = [name for name in names if name in file.waiting]
    file = replace(file, standings=(*file.standings, *((name, _DRAFT) for name in late)))
    names = [name for name in names if name not in file.waiting]
    verdict = file.verdict(())
    drafts = await aside(file.size, _drafts_of, names, verdict, snapshot, file.rules)

    async def prove_alone(draft: Draft) -> Draft:
        return await prove(replace(draft, problems=()), trial)

    problems: list[Problem] = []
    standings: list[tuple[str, Standing]] = []
    disagreements: list[tuple[str, Disagreement]] = []
    for draft in await results_of(prove_alone, drafts, _PROOF_LIMIT):
        failing = [problem for problem in draft.problems if problem.code.startswith("example-")]
        rows = [(problem.evidence[0], problem.where.line) for problem in failing]
        differing = [
            Disagreement(fact.call, fact.expected, fact.returned, line) for fact, line in rows
        ]
        standing: Standing = "trial" if draft.trials.agreed and not differing else _DRAFT
        problems += draft.problems
        standings.append((draft.candidate.name, standing))
        disagreements += ((draft.candidate.name, row) for row in differing)
    return replace(
        file.with_problems(problems),
        standings=(*file.standings, *standings),
        disagreements=(*file.disagreements, *disagreements),
    )


def _to_try_again(file: SavedFile, snapshot: Snapshot) -> set[str]:
    """Return the functions of the file that may return other results now."""
    own, before = _different(file), _before(file)
    offered = [function.name for function in file.module.functions]
    return (
        {*offered}
        if before is None
        else own.intersection(offered) | changed_functions(offered, before, snapshot)
    )


def _different(file: SavedFile) -> set[str]:
    """Return the functions that are new, deleted, or changed."""
    old = (
        {function.name: function.body_hash for function in file.previous.functions}
        if file.previous
        else {}
    )
    new = {function.name: function.body_hash for function in file.module.functions}
    return {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}


def _before(file: SavedFile) -> Snapshot | None:
    """Return the snapshot with the previous version of the file."""
    if file.previous is None or file.snapshot.readings.get(file.source.module) is file.previous:
        return file.snapshot if file.previous else None
    return file.snapshot.with_module(file.previous)


async def try_users(file: SavedFile, trial: TrialTools) -> SavedFile:
    """Return the file with its effect on functions in other modules that use it, and a note of what was checked."""
    before, now = _before(file), file.trial
    if before is None or now is None:
        return file.skip("nothing uses the file yet")
    users = await aside(len(before.functions) * PER_ENTRY, _changed_users, file, before, now)
    if not users:
        return file.skip("what uses the file is unchanged")
    file, found = await try_callers(file, users, before, now, trial)
    different = _different(file)  # in the order of the file, deleted ones last
    names = [function.name for function in file.module.functions if function.name in different]
    changed = [*names, *sorted(different - {*names})]
    for broken in found:
        used_names = uses(broken.caller, now)
        name = next((name for name in changed if name in used_names), changed[0] if changed else "")
        finding = caller_finding(broken, name or file.source.module)
        function = file.module.function(name)
        file = file.with_findings(
            "neighbours", [replace(finding, line=function.line if function else 0)]
        )
        breakage = Breakage(name, broken.caller, code_hash(broken.caller, now), differs(broken))
        file = replace(file, breakages=(*file.breakages, breakage))
    return file


def _changed_users(file: SavedFile, snapshot: Snapshot, new_snapshot: Snapshot) -> list[str]:
    """Return the functions of other modules that use the file and may return other results now."""
    modules = {*using_modules(file.source.module, snapshot)}
    if not modules:
        return []
    functions = snapshot.functions.items()
    others = [name for name, function in functions if function.module in modules]
    changed = changed_functions(others, snapshot, new_snapshot)
    return [name for name in others if name in changed]


def _drafts_of(
    names: Sequence[str], verdict: ModuleVerdict, snapshot: Snapshot, rules: Rules
) -> list[Draft]:
    judged = JudgedFile(verdict, snapshot, rules)
    drafts = (judged.draft_of(name, is_whole=False) for name in names)
    return [draft for draft in drafts if draft is not None]


class JudgedFile:
    """The functions of a judged file as drafts for the deferred stages, each as if it had come alone.

    What all of them need is looked up once: a file may have a thousand.
    """

    def __init__(self, verdict: ModuleVerdict, snapshot: Snapshot, rules: Rules) -> None:
        """Prepare the file of a verdict, which the snapshot already has."""
        self.size = len(verdict.reading.source.text)
        self._verdict = verdict
        self._snapshot = snapshot
        self._rules = replace(rules, off=frozenset("*"))
        self._standings = dict(verdict.standings)
        judged = [
            function for function in verdict.reading.functions if function.name in self._standings
        ]
        judged.sort(key=lambda function: function.line)
        self._names, self._lines = [each.name for each in judged], [each.line for each in judged]
        self._replaced = (
            {function.name for function in verdict.previous.functions}
            if verdict.previous
            else set[str]()
        )
        self._problems = ProblemsByLine(verdict.problems)
        self._spare = spare_functions(verdict.reading.source.text)

    def draft_of(self, name: str, *, is_whole: bool = True) -> Draft | None:
        """Return a function as a draft. Its examples have already run. None if the snapshot does not have this file.

        Unless it `is_whole`, functions that show nothing more than others are left out of the tree.

        Among copies in one file, the first one is kept: it is not compared with functions that are judged after it.
        """
        reading, snapshot = self._verdict.reading, self._snapshot
        function = reading.function(name)
        if function is None or snapshot.modules.get(reading.source.module) != reading.source:
            return None
        text = "".join(kept_lines(reading.source.text)[function.line - 1 : function.end_line])
        running = running_with(
            reading.source.text, name, SpareFunctions() if is_whole else self._spare, keeps_own=True
        )
        reaching = text_reaching(reading.source.text, name)
        return Draft(
            Candidate(
                name,
                text,
                function.module,
                replaces=name in self._replaced,
                file=function.path,
                exact=True,
            ),
            self._verdict.policy,
            self._rules,
            snapshot,
            text,
            ast.Module(running, []),
            self._problems.between(function.line, function.end_line),
            own=reading,
            reading=reading,
            trial=snapshot,
            trials=ExampleTrials(
                len(function.examples) if self._standings.get(name) == "trial" else 0
            ),
            apart=frozenset(self._names[bisect_right(self._lines, function.line) :]),
            needs=needs_of_text(reaching, self._rules.packages) if reaching else NOTHING,
        )


Run: TypeAlias = Callable[[D, TrialTools], Awaitable[D]]


@dataclass(frozen=True, slots=True)
class Stage(Generic[D]):
    """One check of the gate.

    `parallel`: it runs at the same time as the previous stage, and only its findings and report are used. `deferred`: a
    save does not wait for it. `passed` determines whether a draft passed, if this does not follow from the findings.
    The findings of a stage refuse unless `verdict.py` lists the stage or the finding as advice.
    """

    name: str
    run: Run[D]
    parallel: bool = False
    deferred: bool = False
    passed: Callable[[D], bool] | None = None


def on_text(judge: Callable[[D], D], name: str = "") -> Run[D]:
    """Return what a stage runs that needs no worker. `name`: the stage, if `judge` is called otherwise."""

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
    Stage("duplicate", duplicate, deferred=True),
    Stage("capability", on_text(capability)),
    Stage("import", load),
    Stage("examples", prove),
    Stage("fitted", check_fitted, deferred=True),
    Stage("mutation", check_mutants, deferred=True),
    Stage("robust", robust, parallel=True, deferred=True),
    Stage("neighbours", neighbours),
)
"""The stages of a candidate. The `deferred` ones also judge each function of a saved file, later; any other needs its
own place in `look` (text alone) or `FILE_STAGES` to judge a saved file. What only warns is in `verdict.py`.
"""

READER: Stage[Draft] = Stage("reader", judge_meaning)
"""The last stage, used if the author can answer or a reader is asked."""


def _is_clean(file: SavedFile) -> bool:
    return not file.refuses


FILE_STAGES: tuple[Stage[SavedFile], ...] = (
    Stage("read", on_text(read_file), passed=lambda file: file.is_parsed),
    Stage(
        "text", on_text(look, "substance"), passed=_is_clean
    ),  # conform, substance and capability
    Stage("import", try_import),
    Stage("examples", prove_changed, passed=_is_clean),
    Stage("neighbours", try_users, passed=_is_clean),
)
"""The stages of a saved file before it is accepted. Skipped stages are not reported."""


class Gate:
    """The judge of candidates and saved files, with the rules and the sandbox in which code is tried."""

    def __init__(
        self,
        workers: Workers,
        *,
        limits: Limits | None = None,
        rules: Rules | None = None,
        stages: tuple[Stage[Draft], ...] = STAGES,
        reader: DescriptionReader | None = None,
        search: FunctionSearch | None = None,
    ) -> None:
        """Create the gate; `reader` is a model that only sees descriptions.

        `search` is used to check that a function's description finds it.
        """
        self._trial = TrialTools(workers, limits or Limits(), reader=reader, finder=search)
        self.rules = rules or Rules()
        self._stages = stages

    @property
    def has_reader(self) -> bool:
        """True if a model can be asked about descriptions."""
        return self._trial.reader is not None

    def limits_of(self, granted: Granted) -> Limits:
        """Return the limits within which code with these grants is tried."""
        return self._trial.granted(granted).limits

    async def judge(
        self,
        candidate: Candidate,
        snapshot: Snapshot,
        policy: Policy = "agent",
        *,
        granted: Granted = UNGRANTED,
        challenging: bool = False,
        reading: bool = False,
    ) -> Verdict:
        """Return the verdict on a function and its place in a module, with every problem that was found.

        Workers get the packages, time and memory in `granted`, but no access to the outside. With `challenging`, the
        author can be asked to predict results; with `reading`, the reader is asked.
        """
        text = candidate.code.replace("\r\n", "\n").replace("\r", "\n")
        rules = replace(self.rules, off=frozenset("*")) if candidate.exact else self.rules
        apart, names = (
            candidate.apart,
            [*snapshot.functions] if candidate.replaces and policy == "import" else [],
        )
        if candidate.name in names:
            apart = tuple(
                names[names.index(candidate.name) + 1 :]
            )  # of imported copies, keep the first
        draft = Draft(
            *(candidate, rules.policy(policy), rules, snapshot, text),
            is_challenging=challenging,
            is_read=reading,
            apart=frozenset(apart),
            granted=granted.grants,
            guarded=granted.guarded,
            approval_mode=granted.approval_mode,
        )
        stages = (*self._stages, READER) if challenging or reading else self._stages
        draft, results = await _run(stages, draft, self._trial.granted(granted))
        return await aside(draft.size, _verdict, draft, tuple(report for _, report in results))

    async def judge_module(
        self,
        source: ModuleSource,
        snapshot: Snapshot,
        policy: Policy = "human",
        *,
        previous_reading: ModuleReading | None = None,
        granted: Granted = UNGRANTED,
    ) -> ModuleVerdict:
        """Return the verdict on a saved file; examples only run if their code differs from `previous_reading`.

        `granted` are the combined proposed grants of its functions, with their installed packages.
        """
        candidate = Candidate("", source.text, source.module, file=source.path, exact=True)
        file = SavedFile(
            *(candidate, self.rules.policy(policy), self.rules, snapshot, source.text),
            source=source,
            previous=previous_reading,
            granted=granted.grants,
            approval_mode=granted.approval_mode,
        )
        file, results = await _run(FILE_STAGES, file, self._trial.granted(granted))
        return file.verdict(tuple(report for after, report in results if not after.skipped))

    def judged_file(self, verdict: ModuleVerdict, snapshot: Snapshot) -> "JudgedFile":
        """Return a judged file, which the snapshot has, for a closer look at its functions."""
        return JudgedFile(verdict, snapshot, self.rules)

    async def look_closer(
        self,
        name: str,
        judged_file: "JudgedFile",
        granted: Granted = UNGRANTED,
        *,
        reading: bool = False,
    ) -> Look:
        """Return the findings of the deferred stages on a function of a file. With `reading`, the reader is asked."""
        draft = await aside(judged_file.size, judged_file.draft_of, name)
        if draft is None:
            return Look(name)
        known = len(draft.problems)
        stages = [replace(stage, parallel=False) for stage in self._stages if stage.deferred] + [
            READER
        ] * reading
        draft, results = await _run(
            stages, replace(draft, is_read=reading), self._trial.granted(granted)
        )
        reports = tuple(report for _, report in results)
        return Look(name, first_problems(draft.problems[known:]), reports, draft.answer)

    async def try_import(self, source: ModuleSource, snapshot: Snapshot) -> Problem | None:
        """Return why a module cannot be imported next to the others, including missing packages; None if it can."""
        _, problems = await try_module(read_module(source), snapshot, self._trial)
        return next(iter(problems), None)

    async def read_again(
        self, reading: ModuleReading, snapshot: Snapshot, granted: Granted = UNGRANTED
    ) -> ModuleReading:
        """Return the reading of a good module, with its schemas updated to the current types of other modules.

        If a function no longer has a schema, its last one is kept.
        """
        fresh = read_module(reading.source, self.rules.module_bytes)
        trial = self._trial.granted(granted)
        resolved, problems = await try_module(fresh, snapshot, trial)
        mark = attempt_mark(reading.source.module, trial.access.folders)
        if problems:
            return replace(reading, leans=(mark, *resolved.leans))
        now = {function.name: function for function in resolved.functions}
        last = {function.name: function for function in reading.functions}
        kept = [now.get(each.name) or last.get(each.name) for each in fresh.functions]
        lines = {function.line for name, function in last.items() if name not in now}
        unfit = resolved.problems[len(fresh.problems) :]
        left_out = tuple(problem for problem in unfit if problem.where.line not in lines)
        return replace(
            resolved,
            functions=tuple(function for function in kept if function is not None),
            problems=(*fresh.problems, *left_out),
            leans=(mark, *resolved.leans) if len(left_out) < len(unfit) else resolved.leans,
        )

    async def confirm(
        self, candidate: Candidate, verdict: Verdict, snapshot: Snapshot, *, reading: bool = False
    ) -> Verdict:
        """Return the verdict on the same source with the returned results, marked as confirmed.

        If it is admitted, its disagreements are those that this settled. Without an example that agreed by itself, the
        function becomes a draft. With `reading`, the reader is asked.
        """
        if not verdict.can_be_confirmed:
            message = "there is nothing to confirm: more than a written result stands against this candidate"
            fix = "fix the problems that are listed, with edit_function"
            evidence = (
                Evidence(
                    ", ".join(refusal.code for refusal in verdict.refusals) or "it was not refused"
                ),
            )
            problem = Problem(
                "cannot-confirm", message, Place(candidate.path), fix, evidence=evidence
            )
            return replace(verdict, problems=(*verdict.problems, problem))
        settled = verdict.to_confirm
        confirmed = tuple(disagreement.call for disagreement in settled)
        after = await self.judge(
            with_returned_values(candidate, verdict), snapshot, reading=reading
        )
        after = replace(after, disagreements=settled) if after.admitted else after
        after = replace(after, fixes=(*verdict.fixes, *after.fixes), confirmed=confirmed)
        if verdict.agreed or not after.admitted:
            return after
        message = f"no example of `{after.name}` agreed before its results were confirmed, so it is added as a draft"
        calls = tuple(
            Evidence(call=row.call, returned=row.returned, expected=row.expected) for row in settled
        )
        problem = Problem("unproven", message, Place(candidate.path), None, "warns", calls)
        return replace(after, standing="draft", problems=(*after.problems, problem))

    async def run_examples(
        self, function: Function, snapshot: Snapshot, granted: Granted = UNGRANTED
    ) -> tuple[ExampleResult, ...]:
        """Run the examples of an existing function again, and mark those that need another grant."""
        trial = self._trial.reading(granted)
        return await run_examples(function.examples, function, snapshot, trial, granted)

    async def compare(
        self,
        first_function: Function,
        second_function: Function,
        snapshot: Snapshot,
        *,
        is_strict: bool = False,
        more: tuple[object, ...] = (),
        fixed_in: Snapshot | None = None,
    ) -> Sameness:
        """Return whether two existing functions give the same results on the examples of both.

        If it `is_strict`, other calls are compared as well. The second function gets `more` arguments at the end; or it
        is the first one in the snapshot `fixed_in`, and may then return where the first did not.
        """
        texts, fixed, wall_s = (
            snapshot.modules,
            fixed_in.modules if fixed_in else None,
            self.rules.fitted_s,
        )
        functions = first_function, second_function
        return await compare_functions(
            *functions, texts, wall_s, self._trial, is_strict=is_strict, more=more, fixed_in=fixed
        )


async def _run(
    stages: Sequence[Stage[D]], draft: D, trial: TrialTools
) -> tuple[D, list[tuple[D, StageReport]]]:
    """Return the draft after all stages, and each stage's own draft and report."""
    rounds: list[list[Stage[D]]] = []
    for stage in stages:
        if rounds and stage.parallel:
            rounds[-1].append(stage)
        else:
            rounds.append([stage])
    results: list[tuple[D, StageReport]] = []
    for first, *others in rounds:
        if not others:  # outside a task group, so that an error keeps its class
            draft, report = await _ask(first, draft, trial)
            results.append((draft, report))
            continue
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_ask(stage, draft, trial)) for stage in others]
            after, report = await _ask(first, draft, trial)
        siblings = [
            task.result() for task in tasks
        ]  # of these, only the findings and the reports count
        more = [
            problem
            for sibling, _ in siblings
            for problem in sibling.problems[len(draft.problems) :]
        ]
        results += [
            (after, report),
            *((sibling, replace(other, beside=True)) for sibling, other in siblings),
        ]
        draft = after.with_problems(more)
    return draft, results


async def _ask(stage: Stage[D], draft: D, trial: TrialTools) -> tuple[D, StageReport]:
    started = time.perf_counter()
    after = await stage.run(replace(draft, note="", skipped=False, late=False), trial)
    problems = after.problems[len(draft.problems) :]
    passed = not after.skipped and not any(problem.severity == "refuses" for problem in problems)
    passed = (stage.passed(after) if stage.passed else passed) and not after.late
    return after, StageReport(
        stage.name, passed, time.perf_counter() - started, after.note, late=after.late
    )


def _verdict(draft: Draft, reports: tuple[StageReport, ...]) -> Verdict:
    admitted = not draft.refuses
    is_bare = (
        draft.policy == "human" and not draft.trials.agreed and draft.shows(*TOO_FEW)
    )  # same as for a saved file
    is_unsettled = draft.policy != "human" and draft.shows(DISPUTED, REACHES_NOTHING)
    is_draft = (
        is_bare
        or is_unsettled
        or draft.trials.is_unproven
        or (draft.policy != "human" and draft.shows(*UNPROVEN))
    )
    standing: Standing = "" if not admitted else "draft" if is_draft else "trial"
    source = draft.reading.source if draft.reading else None
    written, agreed = lines_of(draft.text), {call for call, _value in draft.trials.values}
    return Verdict(
        name=draft.candidate.name,
        module=draft.candidate.module,
        admitted=admitted,
        standing=standing,
        version=source.version if source else "",
        fixes=draft.fixes,
        problems=first_problems(draft.problems),
        stages=reports,
        source=draft.text,
        module_text=source.text if source else None,
        disagreements=draft.trials.disagreements,
        agreed=draft.trials.agreed,
        reading=draft.reading,
        offered=draft.trials.offered,
        challenges=draft.challenges,
        predicted=tuple(call for call in draft.candidate.asked if call in agreed),
        answer=draft.answer or draft.candidate.answer,
        needs=draft.needs,
        reach=reach_in(source.text if source else draft.text, draft.candidate.name, draft.needs),
        asking=tuple(
            (line, written[line - 1].strip()) for line in draft.asking if 0 < line <= len(written)
        ),
        breakages=draft.breakages,
        upheld=draft.upheld,
    )
