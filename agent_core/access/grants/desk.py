"""The queue of questions for the user: one at a time, none twice, and the turn is notified of each.

A no holds for the rest of its turn, so that nobody is asked until they tire: a plain one for whatever asks for the
same or more, one with a word for the same code. After a few noes to one function and kind of grant, or some more to
anything, nothing further is asked in that turn.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Protocol

from agent_core.base import events

from .approval import Approver, Decision, Question

MOST_NOES, MOST_NOES_IN_A_TURN = 3, 6
Answered = tuple[Question, Decision]


class TurnSink(Protocol):
    """A turn in which questions come up."""

    id: str
    step: int

    @property
    def emit(self) -> Callable[[events.Event], None]:
        """A function that reports an event to the turn's listeners."""


@dataclass(frozen=True, slots=True)
class _Turn:
    ear: TurnSink
    noes: list[Answered] = field(default_factory=list)


_TURN: ContextVar[_Turn | None] = ContextVar("turn", default=None)


@contextmanager
def heard_by(ear: TurnSink) -> Iterator[None]:
    """Report the questions that come up in the block to this turn."""
    token = _TURN.set(_Turn(ear))
    try:
        yield
    finally:
        _TURN.reset(token)


class ApprovalQueue:
    """A queue of questions to one user."""

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Lock()
        self._waiting: list[list[Answered]] = []  # for each that waits, what was answered meanwhile

    async def ask(self, question: Question, approver: Approver | None) -> Decision:
        """Ask the user and return the answer, which is no if nobody can be asked."""
        if approver is None:
            return self.close(question, Decision("no", by="policy"))
        meanwhile: list[Answered] = []
        self._waiting.append(meanwhile)
        try:
            async with self._one_at_a_time:
                prior_decision = _said_no(question) or _shared(question, meanwhile)
                if prior_decision is not None:
                    return self.close(question, prior_decision)
                _tell_asked(question)
                decision = await approver(question)
                for answers in self._waiting:
                    answers.append((question, decision))
                return self.close(question, decision)
        finally:
            self._waiting = [entry for entry in self._waiting if entry is not meanwhile]

    @staticmethod
    def close(question: Question, decision: Decision) -> Decision:
        """Report the answer to the turn, and return the same decision."""
        turn = _TURN.get()
        if turn is not None:
            if decision.answer == "no" and decision.by == "human":
                turn.noes.append((question, decision))
            turn.ear.emit(
                events.GrantAnswered(
                    turn=turn.ear.id,
                    step=turn.ear.step,
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


def _shared(question: Question, meanwhile: Iterable[Answered]) -> Decision | None:
    """Return the answer given to the same question while this one waited. A yes for one call only is not shared."""
    same = replace(question, caller="")
    decisions = (
        decision for prior, decision in meanwhile if decision.answer == "yes" and replace(prior, caller="") == same
    )
    return next(decisions, None)


def _said_no(question: Question) -> Decision | None:
    turn = _TURN.get()
    noes = turn.noes if turn else []
    earlier = next((decision for prior, decision in noes if _is_same(question, prior, decision)), None)
    if earlier is not None:
        return replace(earlier, by="earlier")
    own = [_kinds(prior) for prior, _ in noes if prior.function == question.function]
    is_often = any(sum(kind in kinds for kinds in own) >= MOST_NOES for kind in _kinds(question))
    return Decision("no", by="often") if is_often or len(noes) >= MOST_NOES_IN_A_TURN else None


def _kinds(question: Question) -> frozenset[str]:
    """Return the kinds of grants that a question is about; joining counts as a kind, too."""
    return frozenset(question.missing.to_json()) or frozenset({"join"})


def _is_same(question: Question, prior: Question, decision: Decision) -> bool:
    if decision.word or not prior.missing:
        return (question.function, question.version, question.missing) == (prior.function, prior.version, prior.missing)
    return set(prior.missing.sentences()) <= set(question.missing.sentences())


def _tell_asked(question: Question) -> None:
    turn = _TURN.get()
    if turn is not None:
        turn.ear.emit(
            events.GrantAsked(
                turn=turn.ear.id,
                step=turn.ear.step,
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
            )
        )
