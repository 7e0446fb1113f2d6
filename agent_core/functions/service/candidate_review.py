"""Turns a candidate into a plan: the gate's verdict, the regression check, and what is stored of both.

An admitted candidate becomes a plan with the new text of its file and its rows; a rejected one is kept as pending.
"""

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from agent_core.access.grants import Question
from agent_core.base.json_form import to_json
from agent_core.base.offload import aside
from agent_core.base.problem import Evidence, Place, Problem, Severity
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource, path_of
from agent_core.storage import BeginState, DropPending, FunctionStore, SavePending, SaveVerdict

from ..gate import CONTEXT, Candidate, Fix, Gate, GivenExample, Policy, Verdict
from ..gate.draft import unified_diff
from ..gate.examples import error_of, with_example, with_returned_values
from ..gate.trial import UNGRANTED, Granted
from ..gate.verdict import REACHES_NOTHING
from . import change_texts, example_regression
from .file_sync import own_text
from .grant_service import CandidateGrants, GrantService
from .judgment import FAILED_EXAMPLES, UNSETTLED, Judgment, PendingCandidate, judgment_on, pending_candidate
from .memgpt_functions import adapt
from .plan import ChangeSummary, PlannedChange, planned

if TYPE_CHECKING:
    from agent_core.registry.function import Function
    from agent_core.registry.registry import Snapshot

_ENOUGH = 2  # with this many examples in the docstring, none of the given ones is added
_MOST_GIVEN = 8
_WORD = re.compile(r"\w+")
_STAGES_OF = {
    example_regression.CODE: "examples",
    example_regression.CHECK_CODE: "conform",
    example_regression.USE_CODE: "capability",
}


class CandidateReview:
    """The review of candidates, which plans what follows from the gate's verdicts."""

    def __init__(self, store: FunctionStore, gate: Gate, grants: GrantService) -> None:
        self.gate = gate
        self._grants = grants
        self._store = store

    async def judged(
        self,
        candidate: Candidate,
        snapshot: "Snapshot",
        summary: ChangeSummary,
        policy: Policy = "agent",
        *,
        challenging: bool = False,
    ) -> PlannedChange:
        """Return the plan for a candidate. If it is `challenging`, the author can be asked to predict results."""
        candidate, fixes = await aside(len(candidate.code), self._translate, candidate)
        ground, existing = snapshot, snapshot.modules.get(candidate.module)
        if existing is not None and candidate.around is not None and candidate.around != existing.text:
            around = ModuleSource.of(candidate.module, candidate.around, existing.path)
            ground = snapshot.with_module(read_module(around))
        granting = self._grants.during(summary.author.approvals)
        granted = await granting.ungranted(ground)
        is_read = policy == "agent" and summary.author.by == "agent"
        verdict = await self.gate.judge(
            candidate, ground, policy, granted=granted, challenging=challenging, reading=is_read
        )
        answer = verdict.answer
        if answer is not None and answer is not candidate.answer and summary.author.spend is not None:
            summary.author.spend(answer.prompt_tokens, answer.completion_tokens, answer.model)
        allowance = CandidateGrants()
        # What goes for a reason is asked about once the candidate has its grants.
        is_settled_later = bool(candidate.reason) and granting.can_ask
        proved = verdict if is_settled_later else held_to_what_was_proved(candidate, verdict, snapshot, summary)
        if granting.asks(proved, summary):
            allowance = await granting.for_candidate(verdict, ground, summary)
            if allowance.grants:
                owner = f"{candidate.module}.{candidate.name}"
                granted = await granting.granted(allowance.grants, ground, owner)
                verdict = await self.gate.judge(candidate, ground, policy, granted=granted)
        verdict = replace(verdict, fixes=(*fixes, *verdict.fixes))
        if candidate.examples and verdict.admitted:
            candidate, verdict = await self._with_given(candidate, verdict, ground, policy, granted)
        if not allowance.denied:  # a no is not asked about again
            verdict = await self.settled(candidate, verdict, snapshot, summary)
        return await self.plan(candidate, verdict, snapshot, summary, allowance)

    def _translate(self, candidate: Candidate) -> tuple[Candidate, tuple[Fix, ...]]:
        """Return the candidate with its uses of another agent's `self` translated, as an import does."""
        if candidate.exact or not self.gate.rules.makes(CONTEXT):
            return candidate, ()
        adapted = adapt(candidate.code, candidate.path)
        if not adapted.mapped or any(problem.code == "foreign-import" for problem in adapted.problems):
            return candidate, ()
        return replace(candidate, code=adapted.text.lstrip("\n")), tuple(
            Fix(CONTEXT, *n) for n in adapted.mapped.values()
        )

    async def plan(
        self,
        candidate: Candidate,
        verdict: Verdict,
        snapshot: "Snapshot",
        summary: ChangeSummary,
        grants: CandidateGrants | None = None,
    ) -> PlannedChange:
        """Return the plan for a judged candidate with the user's grants."""
        grants = grants or CandidateGrants()
        before = snapshot.functions.get(verdict.name)
        if verdict.admitted and any(problem.code in FAILED_EXAMPLES for problem in verdict.problems):
            verdict = replace(verdict, standing="draft")  # a human may keep it, but its results are unproven
        verdict = held_to_what_was_proved(candidate, verdict, snapshot, summary)
        if grants.denied:
            verdict = _without_grant(verdict, grants.denied, candidate.path)
        if not verdict.admitted or verdict.module_text is None:
            return await self._refusal_plan(candidate, _at_home(verdict, candidate), snapshot, grants)
        existing = snapshot.modules.get(verdict.module)
        path = existing.path if existing else path_of(verdict.module)
        reading = verdict.reading or read_module(ModuleSource.of(verdict.module, verdict.module_text, path))
        function = reading.function(verdict.name)
        assert function is not None
        verdict = _at_home(verdict, candidate, function)
        verdict = replace(verdict, confirmed=await confirmed(self._store, verdict.confirmed, before, function))
        unpredicted = tuple(call for call in candidate.asked if call in verdict.confirmed)
        predicted = tuple(call for call in verdict.predicted if call not in unpredicted)
        verdict = replace(verdict, predicted=predicted, challenges=verdict.challenges or unpredicted)
        answers = [example for example in candidate.examples if example.call in verdict.predicted]
        named = snapshot.functions.keys() & {*_WORD.findall(candidate.reason)} - {verdict.name}
        apart = sorted({*candidate.apart, *named})
        saved_verdict = {
            **verdict.to_json(),
            "by": summary.writer,
            "line": function.line,
            **({"answers": to_json(answers)} if answers else {}),
            **({"apart": apart} if apart else {}),
        }
        begun = () if before or summary.goes_back else (BeginState(verdict.name),)
        writes = (SaveVerdict(function.body_hash, verdict.name, saved_verdict), DropPending(verdict.name), *begun)
        source = existing or ModuleSource(verdict.module, path, "", "")
        judgment = replace(Judgment.of(verdict), diff=_diff(verdict, snapshot))
        plan = planned(change_texts.admitted(verdict, function, summary.said), judgment, source, reading, summary)
        plan = replace(plan, writes=(*plan.writes, *writes), one_call_grant=grants.one_call_grant)
        return replace(
            plan, new_grant=grants.new_grant, text="\n".join([plan.text, *change_texts.granted(grants.grants)])
        )

    async def confirmed(
        self, candidate: Candidate, verdict: Verdict, snapshot: "Snapshot", *, reading: bool
    ) -> tuple[Candidate, Verdict]:
        """Return the candidate with the returned results instead of the expected ones, and the new verdict.

        `reading` asks the reader. If it doubts the description, the results are kept for the next attempt.
        """
        after = await self.gate.confirm(candidate, verdict, snapshot, reading=reading)
        if REACHES_NOTHING in {problem.code for problem in after.refusals}:
            return with_returned_values(candidate, verdict), after
        if not (after.admitted and candidate.asked):
            return candidate, after
        return await self._with_given(with_returned_values(candidate, verdict), after, snapshot)

    async def settled(
        self, candidate: Candidate, verdict: Verdict, snapshot: "Snapshot", summary: ChangeSummary
    ) -> Verdict:
        """Return the verdict after the user decided what reader and author dispute, and what an agent drops.

        An agent is heard only with a reason. Without a user, what is disputed makes a draft, and nothing is dropped.
        """
        disputed = [problem for problem in verdict.problems if problem.code in UNSETTLED]
        is_asked = bool(candidate.reason) and summary.author.by != "human"
        losses = _losses(candidate, verdict, snapshot, summary, "warns") if is_asked else []
        granting = self._grants.during(summary.author.approvals)
        if not verdict.admitted or not (disputed or losses) or not granting.can_ask:
            return verdict
        doubts = tuple(problem.message for problem in (*disputed, *losses))
        # With the whole difference: the sentence about what goes names the first few.
        diff = _diff(verdict, snapshot)
        question = Question(verdict.name, why=summary.reason, diff=diff, doubts=doubts, moment="join")
        denied = await granting.agreed(question)
        if denied:
            return _without_grant(verdict, denied, candidate.path)
        problems = tuple(problem for problem in verdict.problems if problem not in disputed)
        return replace(verdict, standing="trial" if disputed else verdict.standing, problems=(*problems, *losses))

    async def _with_given(
        self,
        candidate: Candidate,
        verdict: Verdict,
        snapshot: "Snapshot",
        policy: Policy = "agent",
        granted: Granted = UNGRANTED,
    ) -> tuple[Candidate, Verdict]:
        """Return the candidate and its verdict, with passing given examples added to the docstring if it has too few.

        Calls with results that its author was asked to predict are left out.
        """
        function = verdict.reading.function(verdict.name) if verdict.reading else None
        text = verdict.source
        given = [example for example in candidate.examples if example.call not in candidate.asked]
        due: list[GivenExample] = []
        if function is not None and len({example.call for example in function.examples}) < _ENOUGH:
            due = given[:_MOST_GIVEN]
        if function is None or not due:
            return candidate, verdict
        for example in due:
            if example_regression.holds(function, example.call) is None:
                # Of an error, only its type was promised.
                flag = "  # doctest: +IGNORE_EXCEPTION_DETAIL" if error_of(example.expected) else ""
                more = with_example(text, candidate.name, f"{example.call}{flag}", example.expected)
                text = text if isinstance(more, Problem) else more
        extended = replace(candidate, code=text, examples=(), exact=True)
        after = await self.gate.judge(extended, snapshot, policy, granted=granted)
        if after.can_be_confirmed:  # results within a tolerance are written as they were returned
            extended = replace(extended, code=with_returned_values(extended, after).code)
            after = await self.gate.judge(extended, snapshot, policy, granted=granted)
        doubts = [problem for problem in verdict.problems if problem.code in ("unproven", *UNSETTLED)]
        doubts = [problem for problem in doubts if problem not in after.problems]
        after = replace(after, fixes=verdict.fixes, problems=(*after.problems, *doubts))
        after = replace(after, confirmed=verdict.confirmed, standing=verdict.standing, predicted=verdict.predicted)
        after = replace(after, disagreements=verdict.disagreements or after.disagreements)
        return (extended, after) if after.admitted else (candidate, verdict)

    async def _refusal_plan(
        self, candidate: Candidate, verdict: Verdict, snapshot: "Snapshot", grants: CandidateGrants
    ) -> PlannedChange:
        before = snapshot.functions.get(verdict.name)
        previous, judgment = await pending_candidate(self._store, candidate.name), Judgment.of(verdict)
        pending = PendingCandidate.of(candidate, before.body_hash if before else "", judgment)
        is_repeat = previous is not None and _sent_parts(previous) == _sent_parts(pending)
        message, denied = change_texts.not_done(verdict, replaces=candidate.replaces), grants.denied
        if not grants.is_human:  # otherwise only the user's answer matters
            message = change_texts.refused(verdict, is_repeat=is_repeat, replaces=candidate.replaces)
        changed = [row for row in verdict.disagreements if example_regression.holds(before, row.call)]
        promised = change_texts.promised(changed) if verdict.can_be_confirmed and not candidate.reason else ""
        return PlannedChange(
            "\n".join(filter(None, [message, promised, denied, change_texts.source_of_pending(verdict)])),
            "refused",
            replace(judgment, denied=denied, diff=_diff(verdict, snapshot)),
            writes=(SavePending(candidate.name, pending.to_json()),),
            refused=candidate.name,
            excluded=change_texts.excluded(verdict, is_repeat=is_repeat),
        )


async def confirmed(
    store: FunctionStore, newest: tuple[str, ...], old_function: "Function | None", function: "Function"
) -> tuple[str, ...]:
    """Return the calls with returned results that were accepted, now or earlier, and are still promised."""
    calls = [*newest]
    for earlier in filter(None, (old_function, function)):
        if not (earlier.examples and function.examples):
            continue  # without examples, no accepted result can remain
        verdict = await judgment_on(store, earlier.body_hash, earlier.name)
        calls += example_regression.still_there(verdict.confirmed if verdict else (), earlier, function)
    return tuple(dict.fromkeys(calls))


def _diff(verdict: Verdict, snapshot: "Snapshot") -> str:
    """Return the diff of a candidate to the function that it would replace; empty if it is new."""
    before = own_text(verdict.name, snapshot)
    return unified_diff(before, verdict.source, f"{verdict.name}.py") if before and verdict.source else ""


def held_to_what_was_proved(
    candidate: Candidate, verdict: Verdict, snapshot: "Snapshot", summary: ChangeSummary
) -> Verdict:
    """Return the verdict with findings on examples, checks and granted uses that the previous version had.

    Only a human may drop them: by changing the function, or by a yes to the agent's reason, which is in the verdict.
    """
    if any(problem.code in _STAGES_OF for problem in verdict.problems):
        return verdict
    is_human = summary.author.by == "human"
    problems = _losses(candidate, verdict, snapshot, summary, "warns" if is_human else "refuses")
    if not problems or is_human:
        return replace(verdict, problems=(*verdict.problems, *problems))
    failed = {_STAGES_OF[problem.code] for problem in problems}
    stages = tuple(replace(stage, passed=stage.passed and stage.stage not in failed) for stage in verdict.stages)
    return replace(verdict, admitted=False, standing="", problems=(*verdict.problems, *problems), stages=stages)


def _losses(
    candidate: Candidate, verdict: Verdict, snapshot: "Snapshot", summary: ChangeSummary, severity: Severity
) -> list[Problem]:
    """Return the findings on examples, checks and granted uses that the candidate no longer has."""
    before = snapshot.functions.get(verdict.name)
    after = verdict.reading.function(verdict.name) if verdict.reading else None
    if before is None or after is None or summary.goes_back:
        return []
    where, old = Place(candidate.path), own_text(verdict.name, snapshot) or ""
    dropped = example_regression.problem(before, after, severity, where)
    lost = example_regression.proved_problems(before, after, old, verdict.source, verdict.needs, severity, where)
    return [*([dropped] if dropped else []), *lost]


def _at_home(verdict: Verdict, candidate: Candidate, function: "Function | None" = None) -> Verdict:
    """Return the verdict with its problems at lines of the function's file, or of its own text without a file."""
    if candidate.file:
        return verdict
    text = function and read_module(ModuleSource.of("text", verdict.source, candidate.path)).function(verdict.name)
    path, begins = function.path if function else "", text.line if text else 0
    shift = function.line - begins if function and text else 0

    def moved(place: Place) -> Place:
        return Place(path, place.line + shift, place.column) if place.line >= begins else Place(path)

    problems = (
        replace(problem, where=moved(problem.where)) if problem.where.path == candidate.path else problem
        for problem in verdict.problems
    )
    return replace(verdict, problems=tuple(problems))


def _sent_parts(pending: PendingCandidate) -> tuple[object, ...]:
    return pending.code, pending.module, pending.reason, pending.examples


def _without_grant(verdict: Verdict, denied: str, path: str) -> Verdict:
    """Return the verdict on an admitted candidate that the user did not approve."""
    if not verdict.admitted:
        return verdict
    said = (Evidence(denied),)
    problem = Problem("needs-yes", denied, Place(path), "ask the human what is wrong with it", evidence=said)
    return replace(verdict, admitted=False, standing="", problems=(*verdict.problems, problem))
