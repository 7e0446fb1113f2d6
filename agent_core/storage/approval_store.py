"""Approvals in the store: what the user allowed a function to reach, and the questions about it that are pending."""

from dataclasses import dataclass
from typing import Any, Protocol

from .subject import Subject, Write


@dataclass(frozen=True, slots=True)
class YesRow:
    """An approval by the user as it is stored. See `SaveYes`."""

    function: str
    digest: str
    content: str
    grants: str
    by: str
    seal: str
    at: float


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """A pending question. `question` is JSON that only the one who asks understands."""

    id: str
    agent: str
    turn: str
    question: dict[str, Any]  # Any: JSON
    asked_at: float = 0.0


@dataclass(frozen=True, slots=True)
class SaveYes(Write):
    """The user's approval of what a function may reach, for the content that the digest names. A later one replaces it.

    `content` and `grants` are JSON text; `seal` proves that this user gave it here.
    """

    function: str
    digest: str
    content: str
    grants: str
    by: str
    seal: str


@dataclass(frozen=True, slots=True)
class DropYes(Write):
    """Delete every approval of a function, or the one for this content."""

    function: str
    digest: str = ""


class ApprovalStore(Subject, Protocol):
    """The approvals of a user, and the questions to them. The first answer to a question counts, whoever gives it."""

    async def ask_user(self, row: QuestionRow) -> None:
        """Store a question, with the time of now. One of this id that a person has answered keeps its answer."""

    async def pending_questions(self) -> list[QuestionRow]:
        """Return the questions that nobody has answered, oldest first."""

    async def answer_question(self, id: str, decision: dict[str, str]) -> bool:
        """Store the answer to a question. Return False if there is no such question, or it has one already."""

    async def decision(self, id: str) -> dict[str, str] | None:
        """Return the answer that a question was given, or None as long as it is pending."""

    async def settle_questions(self, turn: str) -> None:
        """Answer no to the pending questions of a turn that has ended."""

    async def yeses(self) -> list[YesRow]:
        """Return every approval of what a function may reach, the newest last. The reader checks the seals."""
