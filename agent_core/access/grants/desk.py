"""The questions to the user: one at a time, none twice, and the turn is notified of each.

A refusal holds for the rest of its turn, so that repeated questions cannot wear the user down: a plain one for every
request for the same or more, one with a message for the same code. After a few refusals for one function and kind of
grant, or some more in total, nothing further is asked in that turn.

A question in a turn is stored as a row while it is pending: the first answer by its id counts.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Protocol

from agent_core.base import events
from agent_core.storage import ApprovalStore, QuestionRow

from .approval import Approver, Decision, Question

if TYPE_CHECKING:
    from agent_core.base.receipt import Fact

MOST_NOES, MOST_NOES_IN_A_TURN = 3, 6
_LOOK_S: Final = 0.2  # between two checks whether a question was answered elsewhere
Answered = tuple[Question, Decision]


class TurnSink(Protocol):
    """A turn in which questions arise."""

    id: str
    step: int
    agent: str

    @property
    def on_behalf_of(self) -> str:
        """The agent that began it, or called it as a helper."""

    def note_done(self, fact: "Fact", name: str) -> None:
        """Record something that was done, for the receipt."""

    def ask_nobody(self) -> None:
        """Answer all questions with no for the rest of the turn."""

    @property
    def emit(self) -> Callable[[events.Event], None]:
        """A function that reports an event to the turn's listeners."""


class ApprovalQueue:
    """A queue of questions to one approver; without one, every answer is no."""

    def __init__(
        self, approver: Approver | None = None, store: ApprovalStore | None = None, wait_s: float | None = None
    ) -> None:
        """Create the queue; `wait_s` is how long to wait for an answer in a turn that another agent began."""
        self.approver = approver
        self.rows = store
        self.wait_s = wait_s
        self.one_at_a_time = asyncio.Lock()
        self.waiting: list[list[Answered]] = []  # for each waiting question, the answers since it began to wait

    def asking(self, approver: Approver | None) -> "ApprovalQueue":
        """Return a queue of questions to another approver."""
        return ApprovalQueue(approver, self.rows, self.wait_s)


@dataclass(slots=True)
class Approvals:
    """The questions of one turn: the approver, the turn to notify, and the user's refusals in it.

    Outside of a turn, nobody is notified, and refusals are not remembered.
    """

    queue: ApprovalQueue
    turn: TurnSink | None = None
    refusals: list[Answered] = field(default_factory=list)

    async def ask(self, question: Question) -> Decision:
        """Ask the user and return the answer, which is no if nobody can be asked."""
        queue, approver = self.queue, self.queue.approver
        if self.turn is not None and self.turn.on_behalf_of:
            question = replace(question, asker=self.turn.agent, whom=self.turn.on_behalf_of)
        if approver is None:
            return self.close(question, Decision("no", by="policy"))
        meanwhile: list[Answered] = []
        queue.waiting.append(meanwhile)
        try:
            async with queue.one_at_a_time:
                prior_decision = self._prior_decision(question, meanwhile)
                if prior_decision is not None:
                    return self.close(question, prior_decision)
                decision = await self._decision(question, approver)
                for answers in queue.waiting:
                    answers.append((question, decision))
                return self.close(question, decision)
        finally:
            queue.waiting = [entry for entry in queue.waiting if entry is not meanwhile]

    def close(self, question: Question, decision: Decision) -> Decision:
        """Report the answer to the turn, and return the same decision."""
        if self.turn is not None:
            if decision.answer == "no" and decision.by == "human":
                self.refusals.append((question, decision))
            if decision.by == "human":
                what = " and ".join(question.missing.sentences()) or "join"
                self.turn.note_done("asked", f"may {question.function} {what}? {decision.answer}")
            self.turn.emit(
                events.GrantAnswered(
                    turn=self.turn.id,
                    step=self.turn.step,
                    question=question.id,
                    function=question.function,
                    says=tuple(question.missing.sentences()),
                    answer=decision.answer,
                    word=decision.word,
                    by=decision.by,
                    command=question.command if decision.by == "policy" else "",
                )
            )
        return decision

    async def _decision(self, question: Question, approver: Approver) -> Decision:
        """Return the first answer: the approver's, or one that was given by the question's id."""
        turn, queue, rows = self.turn, self.queue, self.queue.rows
        agent, asker = (turn.agent, turn.id) if turn is not None else ("", question.id)
        limit = asyncio.timeout(queue.wait_s if question.whom else None)
        try:
            if rows is not None:
                await rows.ask_user(QuestionRow(question.id, agent, asker, question.to_json()))
                if (before := await rows.decision(question.id)) is not None:  # given to a process that has ended
                    return Decision.from_json(before)
            if turn is not None:
                turn.emit(asking(question, turn.id, turn.step))
            async with limit:
                return await (_first_answer(question, approver, rows) if rows is not None else approver(question))
        except TimeoutError:
            if turn is None or not limit.expired():
                raise
            turn.ask_nobody()
            return Decision("no", by="policy")
        finally:
            if rows is not None:
                await rows.settle_questions(asker)

    def _prior_decision(self, question: Question, meanwhile: Iterable[Answered]) -> Decision | None:
        """Return the answer that holds without asking: an earlier no, or what was answered while this one waited."""
        code = (question.function, question.version, question.missing)
        for prior, decision in self.refusals:
            if decision.word or not prior.missing:
                is_same = (prior.function, prior.version, prior.missing) == code
            else:
                is_same = set(prior.missing.sentences()) <= set(question.missing.sentences())
            if is_same:
                return replace(decision, by="earlier")
        own = [_kinds(prior) for prior, _ in self.refusals if prior.function == question.function]
        is_often = any(sum(kind in kinds for kinds in own) >= MOST_NOES for kind in _kinds(question))
        if is_often or len(self.refusals) >= MOST_NOES_IN_A_TURN:
            return Decision("no", by="often")
        same = replace(question, caller="")
        answers = (
            decision for prior, decision in meanwhile if decision.answer == "yes" and replace(prior, caller="") == same
        )
        return next(answers, None)  # an approval for one call is not shared


async def _first_answer(question: Question, approver: Approver, store: ApprovalStore) -> Decision:
    """Return the stored answer: the approver's, unless someone else was first."""
    here = asyncio.ensure_future(approver(question))
    elsewhere = asyncio.create_task(_answered_elsewhere(question.id, store))
    try:
        await asyncio.wait((here, elsewhere), return_when=asyncio.FIRST_COMPLETED)
        if elsewhere.done():
            return elsewhere.result()
        decision = here.result()
        await store.answer_question(question.id, decision.to_json())
        stored = await store.decision(question.id)  # None if someone else wrote to the row
        return decision if stored is None else Decision.from_json(stored)
    finally:
        here.cancel()
        elsewhere.cancel()
        await asyncio.gather(here, elsewhere, return_exceptions=True)


async def _answered_elsewhere(id: str, store: ApprovalStore) -> Decision:
    """Wait until the row of a question has an answer, and return it."""
    while (decision := await store.decision(id)) is None:  # noqa: ASYNC110 - another process answers it
        await asyncio.sleep(_LOOK_S)
    return Decision.from_json(decision)


def _kinds(question: Question) -> frozenset[str]:
    """Return the kinds of grants that a question is about; joining is a kind, too."""
    return frozenset(question.missing.to_json()) or frozenset({"join"})


def asking(question: Question, turn: str, step: int = 0) -> events.GrantAsked:
    """Return the event of a question."""
    return events.GrantAsked(
        turn=turn,
        step=step,
        question=question.id,
        function=question.function,
        moment=question.moment,
        says=tuple(question.missing.sentences()),
        missing=question.missing.to_json(),
        granted=question.granted.to_json(),
        why=question.why,
        lines=question.lines,
        diff=question.diff,
        version=question.version,
        is_again=question.is_again,
        installs=question.installs,
        doubts=question.doubts,
        command=question.command,
        caller=question.caller,
        whom=question.whom,
    )
