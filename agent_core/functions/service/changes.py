"""Planning of changes: every candidate goes through the gate, and a rejected one is kept as pending.

Nothing is written here. An admitted candidate becomes a plan with the new text of its file and the rows to store with
it: the gate's verdict and what the regression check found.
"""

import asyncio
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from agent_core.access.grants import Grants, Question
from agent_core.access.grants.content import called_names
from agent_core.base.errors import UnknownName, UsageError, WorkspaceError
from agent_core.base.offload import aside
from agent_core.base.problem import Evidence, Place, Problem, Severity
from agent_core.base.untrusted import block, one_line
from agent_core.registry.approved import without_stale_imports
from agent_core.registry.depends import (
    callees,
    callers,
    dependents,
    private_users,
    used_imports,
)
from agent_core.registry.function import signature
from agent_core.registry.module_edits import remove_function, withhold
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource, hash_of, path_of
from agent_core.storage import (
    BeginState,
    DropPending,
    FunctionStore,
    SaveMadeCode,
    SavePending,
    SaveVerdict,
)

from ..gate import CONTEXT, Candidate, Fix, Gate, Policy, Verdict
from ..gate.draft import unified_diff
from ..gate.examples import error_of, is_blank, predictions, with_example, with_returned_values
from ..gate.trial import UNGRANTED, Granted
from ..gate.verdict import REACHES_NOTHING, UNDEFINED
from . import change_texts, example_regression, file_sync
from .agent_folders import written_code
from .file_sync import FileSync, own_text
from .function_facts import known_function, unknown_function
from .grant_service import CandidateGrants, GrantService, change_of
from .judgment import (
    FAILED_EXAMPLES,
    UNSETTLED,
    Judgment,
    PendingCandidate,
    answer_of,
    judgment_on,
    marked_as_broken,
    pending_candidate,
    writer_of,
)
from .memgpt_functions import adapt
from .pins import Pins
from .plan import (
    USER,
    Author,
    ChangeSummary,
    Deed,
    Deletion,
    Dropped,
    FunctionWriter,
    PlannedChange,
    planned,
    refusal,
    with_once_more,
)

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

    def __init__(self, store: FunctionStore, gate: Gate, grants: GrantService, pins: Pins) -> None:
        self.gate = gate
        self._grants = grants
        self._store = store
        self._pins = pins

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
        candidate = replace(candidate, together=summary.author.together)
        candidate, fixes = await aside(len(candidate.code), self._translate, candidate)
        ground, existing = snapshot, snapshot.modules.get(candidate.module)
        if (
            existing is not None
            and candidate.around is not None
            and candidate.around != existing.text
        ):
            around = ModuleSource.of(candidate.module, candidate.around, existing.path)
            ground = snapshot.with_module(read_module(around))
        granting = self._grants.during(summary.author.approvals)
        granted = await granting.ungranted(ground, summary.author.agent)
        is_read = policy == "agent" and summary.author.by == "agent"
        verdict = await self.gate.judge(
            candidate, ground, policy, granted=granted, challenging=challenging, reading=is_read
        )
        candidate = _count_reading(candidate, verdict, summary.author)
        allowance = CandidateGrants()
        # What goes for a reason is asked about with the grants, or once the candidate has them.
        is_settled_later = bool(candidate.reason) and granting.can_ask
        proved = (
            verdict
            if is_settled_later
            else held_to_what_was_proved(candidate, verdict, snapshot, summary)
        )
        cannot_run = await self._calls_refused(verdict, ground)
        waits = policy == "agent" and proved.waits_for_packages
        if (waits or granting.asks(proved, summary)) and not cannot_run:
            tried = await self._tried(candidate, verdict, ground, policy, granting, summary)
            verdict = proved = tried or verdict
            waits = waits and not tried
        if granting.asks(proved, summary) and cannot_run:
            allowance = CandidateGrants(denied=cannot_run, is_all=True)
        elif summary.author.by == "agent" and await self._pins.holds(candidate.name):
            allowance = CandidateGrants()  # nobody is asked: it can only be proposed
        elif granting.asks(proved, summary):
            is_agents = is_settled_later and summary.author.by != "human"
            losses = _losses(candidate, verdict, snapshot, summary, "warns") if is_agents else []
            written = await written_code(self._store, granting.book, verdict, snapshot, summary)
            doubts = tuple(problem.message for problem in losses)
            allowance = await granting.for_candidate(verdict, ground, summary, written, doubts)
            if allowance.grants:
                owner = f"{candidate.module}.{candidate.name}"
                granted = await granting.granted(
                    allowance.grants, ground, owner, summary.author.agent
                )
                verdict = await self.gate.judge(
                    candidate, ground, policy, granted=granted, reading=is_read
                )
                candidate = _count_reading(candidate, verdict, summary.author)
        elif waits and (why := await granting.crowded(verdict, ground)):
            allowance = CandidateGrants(denied=why, is_all=True)
        verdict = replace(verdict, fixes=(*fixes, *verdict.fixes))
        if candidate.examples and verdict.admitted:
            candidate, verdict = await self._with_given(candidate, verdict, ground, policy, granted)
        if not allowance.denied:  # neither a yes nor a no is asked for again
            verdict = await self.settled(
                candidate, verdict, snapshot, summary, allowance.agreed, cannot_run
            )
        return await self.plan(candidate, verdict, snapshot, summary, allowance)

    async def _tried(
        self,
        candidate: Candidate,
        verdict: Verdict,
        snapshot: "Snapshot",
        policy: Policy,
        grants: GrantService,
        summary: ChangeSummary,
    ) -> Verdict | None:
        """Return the verdict that refuses a candidate with the packages that it would have, so that nobody is asked.

        They are tried before a yes if they are installed, and allowed for another function of the same agent.
        """
        packages = await grants.packages_of(summary.author.agent, snapshot)
        needed = Grants(
            packages=tuple(
                item for item in verdict.needs.packages if item in packages.grants.packages
            )
        )
        if not needed:
            return None
        terms = replace(await grants.ungranted(snapshot), grants=needed, access=packages.access)
        tried = await self.gate.judge(candidate, snapshot, policy, granted=terms)
        return None if tried.admitted or tried.lacks_only_grants else tried

    async def _calls_refused(self, verdict: Verdict, snapshot: "Snapshot") -> str:
        """Return why nobody is asked about a candidate: it calls what was rejected, so it could not run; or ""."""
        if verdict.reading is None or verdict.reading.function(verdict.name) is None:
            return ""
        after = snapshot.with_module(verdict.reading)
        function = after.functions.get(verdict.name)
        if function is None:
            return ""
        called = await asyncio.to_thread(called_names, function, after)
        refused = sorted(
            (called & (await self._store.all_pending()).keys()) - after.functions.keys()
        )
        if not refused:
            return ""
        names = ", ".join(f"`{name}`" for name in refused)
        return f"It calls {names}, which was rejected and is not there. Nobody was asked: make that first."

    def _translate(self, candidate: Candidate) -> tuple[Candidate, tuple[Fix, ...]]:
        """Return the candidate with its uses of another agent's `self` translated, as an import does."""
        if candidate.exact or not self.gate.rules.makes(CONTEXT):
            return candidate, ()
        adapted = adapt(candidate.code, candidate.path)
        if not adapted.mapped or any(
            problem.code == "foreign-import" for problem in adapted.problems
        ):
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
        if verdict.admitted and any(
            problem.code in FAILED_EXAMPLES for problem in verdict.problems
        ):
            verdict = replace(
                verdict, standing="draft"
            )  # a human may keep it, but its results are unproven
        verdict = self.held(candidate, verdict, snapshot, summary)
        if grants.denied:
            verdict = _without_grant(verdict, grants.denied, candidate.path)
        if not verdict.admitted or verdict.module_text is None:
            return await self._refusal_plan(
                candidate, _at_home(verdict, candidate), snapshot, summary, grants
            )
        existing = snapshot.modules.get(verdict.module)
        path = existing.path if existing else path_of(verdict.module)
        reading = verdict.reading or read_module(
            ModuleSource.of(verdict.module, verdict.module_text, path)
        )
        function = reading.function(verdict.name)
        assert function is not None
        verdict = _at_home(verdict, candidate, function)
        still_confirmed = await example_regression.confirmed(
            self._store, verdict.confirmed, before, function
        )
        verdict = replace(verdict, confirmed=still_confirmed)
        unpredicted = tuple(call for call in candidate.asked if call in verdict.confirmed)
        predicted = tuple(call for call in verdict.predicted if call not in unpredicted)
        verdict = replace(
            verdict, predicted=predicted, challenges=verdict.challenges or unpredicted
        )
        named = snapshot.functions.keys() & {*_WORD.findall(candidate.reason)} - {verdict.name}
        apart = sorted({*candidate.apart, *named})
        saved_verdict = {
            **verdict.to_json(),
            "by": summary.writer,
            "line": function.line,
            **({"apart": apart} if apart else {}),
        }
        begun = () if before or summary.goes_back else (BeginState(verdict.name),)
        written = await written_code(self._store, self._grants.book, verdict, snapshot, summary)
        made = (SaveMadeCode(written.agent, written.codes),) if written.codes else ()
        saved = SaveVerdict(function.body_hash, verdict.name, saved_verdict)
        broken = await marked_as_broken(self._store, verdict.breakages)
        writes = (saved, *made, DropPending(verdict.name), *begun, *broken)
        source = existing or ModuleSource(verdict.module, path, "", "")
        judgment = replace(Judgment.of(verdict), diff=_diff(verdict, snapshot))
        left_over = (
            _left_over(verdict.name, snapshot, snapshot.with_module(reading)) if before else []
        )
        told = await self._told(verdict, before) if before else []
        is_called = verdict.name in summary.author.together.called
        text = change_texts.admitted(
            verdict, function, summary.said, left_over, told, is_called=is_called
        )
        plan = replace(
            planned(text, judgment, source, reading, summary), breakages=verdict.breakages
        )
        plan = replace(plan, writes=(*plan.writes, *writes), one_call_grant=grants.one_call_grant)
        return replace(
            plan,
            new_grant=grants.new_grant,
            text="\n".join([plan.text, *change_texts.granted(grants.grants)]),
            was_agreed=grants.is_asked,
        )

    def held(
        self, candidate: Candidate, verdict: Verdict, snapshot: "Snapshot", summary: ChangeSummary
    ) -> Verdict:
        """Return the verdict held to what was proved.

        If the author gave a reason, a person is asked about what goes once nothing else is in the way: until then it is
        no obstacle.
        """
        can_ask = self._grants.during(summary.author.approvals).can_ask
        if not verdict.admitted and candidate.reason and can_ask and summary.author.by != "human":
            return verdict
        return held_to_what_was_proved(candidate, verdict, snapshot, summary)

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
        self,
        candidate: Candidate,
        verdict: Verdict,
        snapshot: "Snapshot",
        summary: ChangeSummary,
        agreed: Collection[str] = (),
        cannot_run: str = "",
    ) -> Verdict:
        """Return the verdict after the user decided what reader and author dispute, and what an agent drops.

        An agent is heard only with a reason. Without a user, what is disputed makes a draft, and nothing is dropped.
        What the user has `agreed` to is not asked again, and nothing is asked about what `cannot_run`.
        """
        disputed = [problem for problem in verdict.problems if problem.code in UNSETTLED]
        is_asked = bool(candidate.reason) and summary.author.by != "human"
        losses = _losses(candidate, verdict, snapshot, summary, "warns") if is_asked else []
        granting = self._grants.during(summary.author.approvals)
        if not verdict.admitted or not (disputed or losses) or not granting.can_ask:
            return verdict
        doubts = tuple(
            problem.message for problem in (*disputed, *losses) if problem.message not in agreed
        )
        if doubts and cannot_run:
            return _without_grant(verdict, cannot_run, candidate.path)
        if doubts:
            # With the whole difference: the sentence about what goes names the first few.
            diff = change_of(verdict, snapshot)
            question = Question.of_text(verdict.name, verdict.source, "join")
            denied = await granting.agreed(
                replace(question, why=summary.reason, diff=diff, doubts=doubts)
            )
            if denied:
                return _without_grant(verdict, denied, candidate.path)
        losses = [
            replace(problem, message=f"{problem.message}; it was agreed to", fix=None)
            for problem in losses
        ]
        problems = tuple(problem for problem in verdict.problems if problem not in disputed)
        return replace(
            verdict,
            standing="trial" if disputed else verdict.standing,
            problems=(*problems, *losses),
        )

    async def _with_given(
        self,
        candidate: Candidate,
        verdict: Verdict,
        snapshot: "Snapshot",
        policy: Policy = "agent",
        granted: Granted = UNGRANTED,
    ) -> tuple[Candidate, Verdict]:
        """Return the candidate and its verdict, with examples added to the docstring that were given and pass.

        These are the results that its author was asked to predict, and others if it has too few.
        """
        function = verdict.reading.function(verdict.name) if verdict.reading else None
        text = verdict.source
        due = [example for example in candidate.examples if example.call in candidate.asked]
        if function is not None and len({example.call for example in function.examples}) < _ENOUGH:
            due += [example for example in candidate.examples if example not in due][:_MOST_GIVEN]
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
        doubts = [
            problem for problem in verdict.problems if problem.code in ("unproven", *UNSETTLED)
        ]
        doubts = [problem for problem in doubts if problem not in after.problems]
        after = replace(after, fixes=verdict.fixes, problems=(*after.problems, *doubts))
        after = replace(
            after,
            confirmed=verdict.confirmed,
            standing=verdict.standing,
            predicted=verdict.predicted,
        )
        after = replace(
            after, disagreements=verdict.disagreements or after.disagreements, answer=verdict.answer
        )
        after = replace(
            after, stages=(*after.stages, *verdict.stages[len(after.stages) :])
        )  # the reader
        return (extended, after) if after.admitted else (candidate, verdict)

    async def _refusal_plan(
        self,
        candidate: Candidate,
        verdict: Verdict,
        snapshot: "Snapshot",
        summary: ChangeSummary,
        grants: CandidateGrants,
    ) -> PlannedChange:
        before, author = snapshot.functions.get(verdict.name), summary.author
        previous, judgment = (
            await pending_candidate(self._store, candidate.name),
            Judgment.of(verdict),
        )
        pending = PendingCandidate.of(candidate, before.body_hash if before else "", judgment)
        if (
            author.by == "agent"
            and author.turn
            and (previous is None or previous.agent == author.agent)
        ):
            pending = replace(pending, agent=author.agent)
        pending = replace(pending, turn=author.turn or None)
        is_sent_again = previous is not None and _sent_parts(previous) == _sent_parts(pending)
        is_repeat = is_sent_again and not author.together.is_once_more
        message, denied = change_texts.not_done(verdict, replaces=candidate.replaces), grants.denied
        waits_for = await self._unmade(verdict)
        if not grants.is_all:  # otherwise the findings would contradict it
            message = change_texts.refused(
                verdict, is_repeat=is_repeat, replaces=candidate.replaces, waits_for=waits_for
            )
        changed = [
            row for row in verdict.disagreements if example_regression.holds(before, row.call)
        ]
        promised = (
            change_texts.promised(changed)
            if verdict.can_be_confirmed and not candidate.reason
            else ""
        )
        return PlannedChange(
            "\n".join(
                filter(None, [message, promised, denied, change_texts.source_of_pending(verdict)])
            ),
            "refused",
            replace(judgment, denied=denied, diff=_diff(verdict, snapshot)),
            writes=(SavePending(candidate.name, pending.to_json()),),
            refused=candidate.name,
            is_waiting=bool(waits_for),
            excluded=change_texts.excluded(verdict, is_repeat=is_repeat),
            was_asked=grants.is_asked,
        )

    async def _told(self, verdict: Verdict, old_function: "Function") -> list[Problem]:
        """Return the notes that say nothing new: the version before had them."""
        earlier = await judgment_on(self._store, old_function.body_hash, old_function.name)
        said = {(problem.code, problem.message) for problem in earlier.problems} if earlier else ()
        return [each for each in verdict.problems if (each.code, each.message) in said]

    async def _unmade(self, verdict: Verdict) -> list[str]:
        """Return the candidates that are not made yet and that a candidate calls by name."""
        missing = [row.message.split("`")[1] for row in verdict.refusals if row.code == UNDEFINED]
        others = [name for name in missing if name != verdict.name]
        return [name for name in others if await pending_candidate(self._store, name) is not None]


def _count_reading(candidate: Candidate, verdict: Verdict, author: Author) -> Candidate:
    """Return the candidate with the reader's answer in the verdict; a new one counts as spent by the author."""
    answer, earlier = verdict.answer, candidate.answer
    if answer is None or (
        earlier is not None and answer.described == earlier.described and not earlier.error
    ):
        return candidate
    if author.spend is not None:
        author.spend(answer.prompt_tokens, answer.completion_tokens, answer.model)
    return replace(candidate, answer=answer)


def _left_over(name: str, snapshot: "Snapshot", new_snapshot: "Snapshot") -> list[str]:
    """Return the functions that a function used before a change, and that no function uses after it."""
    dropped = sorted({*callees(name, snapshot)} - {*callees(name, new_snapshot)})
    return [
        callee
        for callee in dropped
        if callee in new_snapshot.functions and not callers(callee, new_snapshot)
    ]


def _diff(verdict: Verdict, snapshot: "Snapshot") -> str:
    """Return the diff of a candidate to the function that it would replace; empty if it is new."""
    before = own_text(verdict.name, snapshot)
    return (
        unified_diff(before, verdict.source, f"{verdict.name}.py")
        if before and verdict.source
        else ""
    )


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
    addition = None if summary.goes_back else _addition(candidate, verdict, snapshot)
    if addition is not None and addition not in verdict.problems:
        verdict = replace(verdict, problems=(*verdict.problems, addition))
    if not problems or is_human:
        return replace(verdict, problems=(*verdict.problems, *problems))
    failed = {_STAGES_OF[problem.code] for problem in problems}
    stages = tuple(
        replace(stage, passed=stage.passed and stage.stage not in failed)
        for stage in verdict.stages
    )
    return replace(
        verdict, admitted=False, standing="", problems=(*verdict.problems, *problems), stages=stages
    )


def _losses(
    candidate: Candidate,
    verdict: Verdict,
    snapshot: "Snapshot",
    summary: ChangeSummary,
    severity: Severity,
) -> list[Problem]:
    """Return the findings on examples, checks and granted uses that the candidate no longer has."""
    before = snapshot.functions.get(verdict.name)
    after = verdict.reading.function(verdict.name) if verdict.reading else None
    if before is None or after is None or summary.goes_back:
        return []
    where, old = Place(candidate.path), own_text(verdict.name, snapshot) or ""
    dropped = None
    if _addition(candidate, verdict, snapshot) is None:
        dropped = example_regression.problem(before, after, severity, where)
    lost = example_regression.proved_problems(
        before, after, old, verdict.source, verdict.needs, severity, where
    )
    return [*([dropped] if dropped else []), *lost]


def _addition(candidate: Candidate, verdict: Verdict, snapshot: "Snapshot") -> Problem | None:
    """Return the note that results only got new keys, if whatever uses the function agrees with that."""
    before = snapshot.functions.get(verdict.name)
    after = verdict.reading.function(verdict.name) if verdict.reading else None
    if before is None or after is None:
        return None
    users = {*dependents([verdict.name], snapshot)} - {verdict.name}
    if not users <= verdict.upheld:
        return None
    return example_regression.addition(before, after, verdict.source, Place(candidate.path))


def _at_home(verdict: Verdict, candidate: Candidate, function: "Function | None" = None) -> Verdict:
    """Return the verdict with its problems at lines of the function's file, or of its own text without a file."""
    if candidate.file:
        return verdict
    text = function and read_module(
        ModuleSource.of("text", verdict.source, candidate.path)
    ).function(verdict.name)
    path, begins = function.path if function else "", text.line if text else 0
    shift = function.line - begins if function and text else 0

    def moved(place: Place) -> Place:
        return (
            Place(path, place.line + shift, place.column) if place.line >= begins else Place(path)
        )

    problems = (
        replace(problem, where=moved(problem.where))
        if problem.where.path == candidate.path
        else problem
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
    problem = Problem(
        "needs-yes", denied, Place(path), "ask the human what is wrong with it", evidence=said
    )
    return replace(verdict, admitted=False, standing="", problems=(*verdict.problems, problem))


class ChangePlanner:
    """The planner of changes to functions."""

    def __init__(
        self,
        store: FunctionStore,
        files: FileSync,
        review: CandidateReview,
        writer: Callable[[], FunctionWriter | None],
    ) -> None:
        """Create the planner; the `writer`, if there is one, writes the functions that agents ask for."""
        self._writer = writer
        self._store = store
        self._files = files
        self._review = review
        self._registry = files.registry

    async def create(
        self, candidate: Candidate, author: Author, policy: Policy = "agent"
    ) -> PlannedChange:
        """Plan a new function, or a pending one that is sent again."""
        try:
            snapshot = await self._files.settled(candidate.module, "", self._registry.snapshot())
        except WorkspaceError as error:
            return await self._late(candidate, author, error)
        holder = snapshot.functions.get(candidate.name)
        if holder is not None:
            text = (
                f"`{candidate.name}` exists already, in {holder.path}: {signature(holder)}\n"
                f"{holder.description}\n"
                f"Call it if it does what is needed. To change it use edit_function or replace_function; "
                f"for something else choose another name."
            )
            fix = "change the one that is there, or choose another name"
            problem = Problem(
                "name-taken", f"`{candidate.name}` exists already", Place(holder.path), fix
            )
            detail = {
                "name": candidate.name,
                "module": candidate.module,
                "problems": [problem.to_json()],
            }
            return PlannedChange(text, "refused", Judgment.from_json({**detail, "admitted": False}))
        writer = self._writer() if author.request is not None else None
        if writer is not None:
            own = candidate.code, candidate.reason
            return await writer.write(
                candidate.name,
                author,
                own,
                lambda code, by: self.create(replace(candidate, code=code), by, policy),
            )
        work = ChangeSummary("created", candidate.name, author, candidate.reason)
        asked = await self._asked_before(candidate, None)
        plan = await self._review.judged(asked, snapshot, work, policy, challenging=True)
        replan, late = (
            partial(self.create, candidate, author, policy),
            partial(self._late, candidate, author),
        )
        plan = with_once_more(
            plan, candidate.code, author, snapshot, lambda by: self.create(candidate, by, policy)
        )
        return self._files.repeatable(plan, replan, late=late)

    async def replace(
        self, name: str, code: str, reason: str, author: Author, how: str = "replaced"
    ) -> PlannedChange:
        """Plan new source for an existing function or a rejected candidate. `reason` is the author's."""
        if name in author.unread and name in self._registry.snapshot().functions:
            return await self._keep_beside(
                Candidate(name, code, self._module_of(name, None), reason),
                author,
                file_sync.changed(name),
            )
        return await self._plan_replacement(name, code, reason, author, how)

    async def _plan_replacement(
        self, name: str, code: str, reason: str, author: Author, how: str
    ) -> PlannedChange:
        writer = self._writer() if author.request is not None else None
        if writer is not None:
            return await writer.write(
                name,
                author,
                (code, reason),
                lambda code, by: self._plan_replacement(name, code, reason, by, how),
            )
        before = self._registry.snapshot()
        pending = await pending_candidate(self._store, name)
        module = self._module_of(name, pending)
        if pending and (author.turn or author.by == "human"):  # tending continues nobody's work
            reason = reason or pending.reason
        candidate = Candidate(name, code, module, reason)
        try:
            snapshot = await self._files.settled(module, name, before)
        except WorkspaceError as error:
            return await self._late(candidate, author, error)
        candidate = replace(candidate, replaces=name in snapshot.functions)
        work = ChangeSummary(
            "changed" if candidate.replaces else "created", name, author, reason or f"{how} {name}"
        )
        candidate = await self._asked_before(candidate, snapshot.functions.get(name))
        plan = await self._review.judged(candidate, snapshot, work, challenging=True)
        replan = partial(self._plan_replacement, name, code, reason, author, how)
        again = lambda by: self._plan_replacement(name, code, reason, by, how)  # noqa: E731 - beside its like
        plan = with_once_more(plan, code, author, snapshot, again)
        late = partial(self._late, candidate, author)
        return self._files.repeatable(plan, replan, name, snapshot, late)

    async def edit(
        self, name: str, edits: Sequence[tuple[str, str]], reason: str, author: Author
    ) -> PlannedChange:
        """Plan the replacement of passages in the pending candidate, or in the function if there is none.

        A candidate of an earlier turn comes second to a function that stands. Each edit is an old text, which occurs
        once, and a new one. All are made before the result is judged.
        """
        pending = await pending_candidate(self._store, name)
        if pending and pending.conflict is not None and self._hash(name):
            pending = None  # after a conflict, both authors work on the text on disk
        texts = [pending.text] if pending else []
        is_of_candidate = bool(pending)
        if not pending or self._hash(name):
            is_of_candidate = bool(pending) and author.turn in ("", pending.turn if pending else "")
            standing = [self.source(name), self._with_imports(name)]
            texts = [*texts, *standing] if is_of_candidate else [*standing, *texts]
        made = [change_texts.edited(text, edits) for text in texts]
        code = next((text for text in made if isinstance(text, str)), None)
        if code is None:
            problem = made[0]
            assert isinstance(problem, Problem), "none of the texts has the places"
            which = (
                "The rejected candidate" if is_of_candidate else "The function, below its imports,"
            )
            shown = block(texts[0] if is_of_candidate else self._with_imports(name), 6_000)
            return refusal(name, f"Nothing was changed: {problem.message}. {which} reads:\n{shown}")
        if pending and self._is_stale(name, pending):
            candidate = Candidate(name, code, pending.module, reason or pending.reason)
            return await self._keep_beside(candidate, author, file_sync.changed(name))
        return await self._plan_replacement(name, code, reason, author, "edit of")

    async def confirm(
        self, name: str, reason: str, author: Author, expected: Sequence[str] = ()
    ) -> PlannedChange:
        """Plan a pending candidate with the values that were returned, if only expected results disagreed.

        If its author is asked to predict results, `expected` are these, in the order of the calls.
        """
        pending = await pending_candidate(self._store, name)
        if pending is None:
            return refusal(
                name, f"No candidate named `{name}` was rejected, so there is nothing to confirm."
            )
        snapshot = await self._files.settled(pending.module, name, self._registry.snapshot())
        candidate = _candidate(name, pending, reason, replaces=name in snapshot.functions)
        if self._is_stale(name, pending):
            return await self._keep_beside(candidate, author, file_sync.changed(name))
        work = ChangeSummary(
            "changed" if candidate.replaces else "created", name, author, candidate.reason
        )
        replan = partial(self.confirm, name, reason, author, expected)
        if pending.asked and (expected or pending.verdict.challenges):
            plan = await self._plan_prediction(candidate, pending, expected, snapshot, work)
            return self._files.repeatable(plan, replan, name, snapshot)
        # A small reader is often wrong, and a small author is not asked for reasons.
        stands_by = reason or (candidate.answer is not None and candidate.answer.is_small)
        if stands_by and {problem.code for problem in pending.verdict.refusals} == {
            REACHES_NOTHING
        }:
            candidate = replace(candidate, insists=True)
        is_read = author.by == "agent"
        verdict = await self._review.gate.judge(candidate, snapshot, reading=is_read)
        if verdict.can_be_confirmed:
            candidate, verdict = await self._review.confirmed(
                candidate, verdict, snapshot, reading=is_read
            )
        verdict = await self._review.settled(candidate, verdict, snapshot, work)
        final_verdict = self._review.held(candidate, verdict, snapshot, work)
        if not final_verdict.admitted:
            judgment = Judgment.of(final_verdict)
            waiting = PendingCandidate.of(candidate, pending.over or "", judgment)
            is_doubted = REACHES_NOTHING in {problem.code for problem in final_verdict.refusals}
            return PlannedChange(
                change_texts.unconfirmed(final_verdict, candidate.replaces),
                "refused",
                judgment,
                writes=(SavePending(name, waiting.to_json()),) if is_doubted else (),
                refused=name,
                excluded=frozenset() if is_doubted else frozenset({"confirm_function"}),
            )
        plan = await self._review.plan(candidate, verdict, snapshot, work)
        return self._files.repeatable(plan, replan, name, snapshot)

    async def _plan_prediction(
        self,
        candidate: Candidate,
        pending: PendingCandidate,
        expected: Sequence[str],
        snapshot: "Snapshot",
        summary: ChangeSummary,
    ) -> PlannedChange:
        """Plan a candidate with the results that its author predicts, or ask for the predictions again."""
        calls, function = pending.verdict.challenges or pending.asked or (), own_function(candidate)
        given = [
            text
            for text in expected
            if function is not None and not is_blank(text, function.returns)
        ]
        if summary.author.by == "human" and expected and len(expected) != len(calls):
            named = ", ".join(one_line(call, 200) for call in calls)
            raise UsageError(
                f"Expected {len(calls)} results, but got {len(expected)}.",
                fix=f"Give the results of {named}, in this order.",
            )
        if len(given) != len(calls) or function is None:
            text = change_texts.ask_for_results(candidate.name, calls, given=len(given))
            return PlannedChange(text, "refused", pending.verdict, refused=candidate.name)
        answered = predictions(calls, given, function.returns)
        others = [example for example in candidate.examples if example.call not in calls]
        candidate = replace(candidate, examples=(*others, *answered))
        return await self._review.judged(candidate, snapshot, summary, challenging=True)

    async def _asked_before(
        self, candidate: Candidate, old_function: "Function | None"
    ) -> Candidate:
        """Return the candidate with what is known from its last review.

        This is a reader's answer, the calls that its author was asked about, and the answers that still fit.
        """
        pending = await pending_candidate(self._store, candidate.name)
        if pending is None:
            before = (
                await judgment_on(self._store, old_function.body_hash, old_function.name)
                if old_function
                else None
            )
            if before is None:
                return candidate
            apart = tuple(before.document.get("apart") or ())
            return replace(candidate, answer=answer_of(before), asked=before.predicted, apart=apart)
        candidate = replace(candidate, answer=answer_of(pending.verdict))
        if not pending.asked:
            return candidate
        then, now = (
            own_function(_candidate(candidate.name, pending, "", replaces=False)),
            own_function(candidate),
        )
        if (
            then is None
            or now is None
            or [*then.parameters["properties"]] != [*now.parameters["properties"]]
        ):
            return candidate
        answers = [example for example in pending.examples if example.call in pending.asked]
        kept = [
            example for example in answers if example_regression.holds(now, example.call) is None
        ]
        return replace(candidate, asked=pending.asked, examples=(*candidate.examples, *kept))

    async def granted(self, name: str, grants: "Grants", version: str = "") -> PlannedChange:
        """Plan a pending candidate that only needs grants, with the grants that the user gave it."""
        pending = await pending_candidate(self._store, name)
        if pending is None:
            raise UsageError(
                f"No candidate named `{name}` is waiting.", fix="create_function makes one."
            )
        snapshot = await self._files.settled(pending.module, name, self._registry.snapshot())
        file_sync.require_same(name, version, hash_of(pending.content_in(snapshot)))
        candidate = _candidate(name, pending, "", replaces=name in snapshot.functions)
        work = ChangeSummary(
            "changed" if candidate.replaces else "created",
            name,
            USER,
            candidate.reason,
            preset_grants=grants,
        )
        plan = await self._review.judged(candidate, snapshot, work)
        return self._files.repeatable(
            plan, partial(self.granted, name, grants, version), name, snapshot
        )

    async def join(self, name: str) -> PlannedChange:
        """Plan a pending candidate as a person joins it. Who wrote it stays its author.

        Raises:
            UsageError: there is no candidate with this name.
        """
        pending = await pending_candidate(self._store, name)
        if pending is None:
            raise UsageError(
                f"No candidate named `{name}` is waiting.", fix="Next: knapper functions pending"
            )
        snapshot = await self._files.settled(pending.module, name, self._registry.snapshot())
        before = snapshot.functions.get(name)
        candidate = _candidate(name, pending, "", replaces=before is not None)
        if self._is_stale(name, pending):
            return await self._keep_beside(candidate, USER, file_sync.changed(name))
        wrote = ""
        if before is None or await writer_of(before, self._store) == "agent":
            wrote = "agent"  # what a person wrote stays theirs, also with a change that they join
        deed: Deed = "created" if before is None else "changed"
        work = ChangeSummary(deed, name, USER, candidate.reason, wrote=wrote)
        plan = await self._review.judged(candidate, snapshot, work)
        return self._files.repeatable(plan, partial(self.join, name), name, snapshot)

    async def delete(self, name: str, author: Author) -> PlannedChange:
        """Plan the deletion of a function from its module. The module's file is deleted with its last function.

        If other code, such as its package, needs its text, the text stays and is no longer offered as a function.
        """
        before = self._registry.snapshot()
        module = known_function(name, before).module
        file_sync.require_read(name, author, self.source(name))
        snapshot = await self._files.settled(module, name, before)
        function = snapshot.functions[name]
        users = await asyncio.to_thread(callers, name, snapshot)
        if users:
            text = f"`{name}` was not deleted, because these use it: {', '.join(users)}. Change or delete them first."
            plan = PlannedChange(text, "refused", Deletion(None, name, callers=tuple(users)))
            return with_once_more(plan, "", author, snapshot, partial(self.delete, name), users)
        source = snapshot.modules[function.module]
        private = await asyncio.to_thread(private_users, name, snapshot)
        needing = tuple(snapshot.modules[module].path for module in private)
        remaining_text = (
            withhold(source.text, {name}) if needing else remove_function(source.text, name)
        )
        if isinstance(remaining_text, str):
            others = snapshot.modules.values()
            remaining_text = await asyncio.to_thread(
                without_stale_imports, source.text, remaining_text, function.module, others
            )
        if isinstance(remaining_text, Problem):
            raise WorkspaceError(
                f"`{name}` cannot be taken out of {source.path}: {remaining_text.message}.",
                fix=remaining_text.fix or "",
            )
        remaining_source = ModuleSource.of(function.module, remaining_text, source.path)
        reading = (
            await aside(len(remaining_text), read_module, remaining_source)
            if remaining_text.strip()
            else None
        )
        detail = Deletion(name, name, function.module, source.version, needed_by=needing)
        text = f"`{name}` was deleted from {source.path}. Its versions are kept in the history."
        if needing:
            text = f"`{name}` is not offered any more; its text stays in {source.path}, for {', '.join(needing)}."
        plan = replace(
            planned(text, detail, source, reading, ChangeSummary("deleted", name, author)),
            revoked=name,
        )
        return self._files.repeatable(plan, partial(self.delete, name, author), name, snapshot)

    def _with_imports(self, name: str) -> str:
        """Return the source of a function below the imports of its module that it uses."""
        source = self.source(name)
        snapshot = self._registry.snapshot()
        imports = used_imports(snapshot.functions[name], snapshot)
        return "\n".join(imports) + f"\n\n\n{source}" if imports else source

    def source(self, name: str) -> str:
        """Return the source of a function with the comments above it; a change replaces both."""
        text = own_text(name, self._registry.snapshot())
        if text is None:
            raise unknown_function(name, self._registry.snapshot().functions)
        return text

    async def drop(self, name: str) -> PlannedChange:
        """Plan to discard a pending candidate. A file on disk is not changed.

        Raises:
            UsageError: there is no candidate with this name.
        """
        pending = await pending_candidate(self._store, name)
        if pending is None:
            raise UsageError(
                f"No candidate named `{name}` was rejected.", fix="Nothing was changed."
            )
        text = f"The candidate for `{name}` was discarded."
        return PlannedChange(
            text, "returned", Dropped(name, pending.verdict), writes=(DropPending(name),)
        )

    def _module_of(self, name: str, pending: PendingCandidate | None) -> str:
        function = self._registry.snapshot().functions.get(name)
        if function is not None:
            return function.module
        if pending is None:
            raise UnknownName(f"There is no function `{name}`.", fix="create_function makes one.")
        return pending.module

    def _hash(self, name: str) -> str:
        function = self._registry.snapshot().functions.get(name)
        return function.body_hash if function else ""

    def _is_stale(self, name: str, pending: PendingCandidate) -> bool:
        """Return whether the function has changed since the candidate for it was kept."""
        return pending.over is not None and pending.over != self._hash(name)

    async def _late(
        self, candidate: Candidate, author: Author, error: WorkspaceError
    ) -> PlannedChange:
        """Keep an agent's candidate that would overwrite what someone else saved.

        Raises:
            WorkspaceError: the author is a human, who still has the text.
        """
        if author.by == "human":
            raise error
        return await self._keep_beside(candidate, author, error)

    async def _keep_beside(
        self, candidate: Candidate, author: Author, error: WorkspaceError
    ) -> PlannedChange:
        """Keep a candidate as pending next to what someone else saved. The answer shows both."""
        name, now = candidate.name, self._registry.snapshot()
        author.unread.read(name)
        candidate = replace(candidate, replaces=name in now.functions)
        verdict = await self._review.gate.judge(candidate, now)
        theirs = self._files.saved(candidate.module, name)
        return file_sync.kept(candidate, verdict, error, theirs, self._hash(name))


def _candidate(name: str, pending: PendingCandidate, reason: str, *, replaces: bool) -> Candidate:
    candidate = Candidate(
        name, pending.text, pending.module, reason or pending.reason, pending.examples, replaces
    )
    return replace(candidate, asked=pending.asked or (), answer=answer_of(pending.verdict))


def own_function(candidate: Candidate) -> "Function | None":
    """Return the function in a candidate's text, read without its module."""
    return read_module(ModuleSource.of(candidate.module, candidate.code)).function(candidate.name)
