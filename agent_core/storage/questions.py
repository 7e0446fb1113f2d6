"""Questions to the user in SQL: pending until somebody answers one by its id, or its turn ends.

The first answer counts, whoever gives it. Only rows and answers that this user's program wrote are believed.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from .connection import SqlSession, dump
from .rows import is_signed, parse_row, sign

T = TypeVar("T")
_DECISION: Final = {"answer": str, "word": str, "by": str}
_ENDED: Final = {"answer": "no", "word": "", "by": "ended"}


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """A pending question. `question` is JSON that only the one who asks understands."""

    id: str
    agent: str
    turn: str
    question: dict[str, Any]  # Any: JSON
    asked_at: float = 0.0


class StoreRun(Protocol):
    """Callable that runs work on the thread of the connection."""

    def __call__(self, work: Callable[..., T], *values: object) -> Awaitable[T]:
        """Return the result of the work."""


class Questions:
    """Queries and changes of pending questions."""

    def __init__(self, read: StoreRun, write: StoreRun) -> None:
        self._read = read
        self._write = write

    async def ask(self, row: QuestionRow) -> None:
        """Store a question, with the time of now."""
        await self._write(_ask, row)

    async def pending(self) -> list[QuestionRow]:
        """Return the questions that nobody has answered, oldest first."""
        return await self._read(_pending)

    async def answer(self, id: str, decision: dict[str, str]) -> bool:
        """Store the answer to a question. Return False if there is no such question, or it has one already."""
        return await self._write(_answer, id, decision)

    async def decision(self, id: str) -> dict[str, str] | None:
        """Return the answer that a question was given, or None as long as it is pending."""
        return await self._read(_decided, id)

    async def settle(self, turn: str) -> None:
        """Answer no to the pending questions of a turn that has ended."""
        await self._write(_settle, turn)


def _ask(session: SqlSession, row: QuestionRow) -> None:
    values = (row.id, row.agent, row.turn, dump(row.question))
    session.all(
        "insert into question (id, agent, turn, question, asked_at, seal) values (?, ?, ?, ?, ?, ?)",
        *(*values, session.clock.now(), sign(session.sealer, "question", *values)),
    )


def _pending(session: SqlSession) -> list[QuestionRow]:
    rows = session.all(
        "select id, agent, turn, question, asked_at, seal from question where decision is null order by seq"
    )
    return [
        QuestionRow(id, agent, turn, parse_row(text, dict), asked_at)
        for id, agent, turn, text, asked_at, seal in rows
        if is_signed(session.sealer, seal, "question", id, agent, turn, text)
    ]


def _answer(session: SqlSession, id: str, decision: dict[str, str]) -> bool:
    text = dump(decision)
    rows = session.all(
        "update question set decision = ?, answered_at = ?, answer_seal = ?"
        " where id = ? and decision is null returning id",
        *(text, session.clock.now(), sign(session.sealer, "answer", id, text), id),
    )
    return bool(rows)


def _decided(session: SqlSession, id: str) -> dict[str, str] | None:
    row = session.one("select decision, answer_seal from question where id = ?", id)
    if row is None or row[0] is None or not is_signed(session.sealer, row[1], "answer", id, row[0]):
        return None
    decision: dict[str, str] = parse_row(row[0], _DECISION)
    return decision


def _settle(session: SqlSession, turn: str) -> None:
    for (id,) in session.all("select id from question where turn = ? and decision is null", turn):
        _answer(session, id, _ENDED)
