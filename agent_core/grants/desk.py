"""Where questions are put to a human: one after another, none twice, and the turn hears of each.

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

from .. import events
from .approval import Approver, Decision, Question

MOST_NOES, MOST_NOES_IN_A_TURN = 3, 6
Answered = tuple[Question, Decision]


class Ear(Protocol):
    """A turn in which questions come up."""

    id: str
    step: int

    @property
    def emit(self) -> Callable[[events.Event], None]:
        """Tells whoever listens to the turn."""


@dataclass(frozen=True, slots=True)
class _Turn:
    ear: Ear
    noes: list[Answered] = field(default_factory=list)


_TURN: ContextVar[_Turn | None] = ContextVar("turn", default=None)


@contextmanager
def heard_by(ear: Ear) -> Iterator[None]:
    """While this lasts, the questions that come up here are the turn's."""
    token = _TURN.set(_Turn(ear))
    try:
        yield
    finally:
        _TURN.reset(token)


class Desk:
    """Asks one human."""

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Lock()
        self._waiting: list[list[Answered]] = []  # for each that waits, what was answered meanwhile

    async def ask(self, question: Question, approver: Approver | None) -> Decision:
        """The human's answer; no, where nobody can be asked."""
        if approver is None:
            return self.close(question, Decision("no", by="policy"))
        meanwhile: list[Answered] = []
        self._waiting.append(meanwhile)
        try:
            async with self._one_at_a_time:
                known = _said_no(question) or _shared(question, meanwhile)
                if known is not None:
                    return self.close(question, known)
                _tell_asked(question)
                decision = await approver(question)
                for each in self._waiting:
                    each.append((question, decision))
                return self.close(question, decision)
        finally:
            self._waiting = [each for each in self._waiting if each is not meanwhile]

    @staticmethod
    def close(question: Question, decision: Decision) -> Decision:
        """Tell the turn what was answered; the same decision."""
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
    """What was answered to the same question while this one waited; a yes that is meant once is not shared."""
    same = replace(question, caller="")
    found = (given for one, given in meanwhile if given.answer == "yes" and replace(one, caller="") == same)
    return next(found, None)


def _said_no(question: Question) -> Decision | None:
    turn = _TURN.get()
    noes = turn.noes if turn else []
    earlier = next((given for one, given in noes if _is_same(question, one, given)), None)
    if earlier is not None:
        return replace(earlier, by="earlier")
    own = [_kinds(one) for one, _ in noes if one.function == question.function]
    is_often = any(sum(kind in kinds for kinds in own) >= MOST_NOES for kind in _kinds(question))
    return Decision("no", by="often") if is_often or len(noes) >= MOST_NOES_IN_A_TURN else None


def _kinds(question: Question) -> frozenset[str]:
    """The kinds of grants that a question is about; to join is one, too."""
    return frozenset(question.missing.to_json()) or frozenset({"join"})


def _is_same(question: Question, one: Question, given: Decision) -> bool:
    if given.word or not one.missing:
        return (question.function, question.version, question.missing) == (one.function, one.version, one.missing)
    return set(one.missing.sentences()) <= set(question.missing.sentences())


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
