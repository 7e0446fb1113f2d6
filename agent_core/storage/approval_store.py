"""Approvals in the store: what the user allowed a function to reach, and pending questions about it."""

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
    """A pending question. `question` is JSON that only its sender interprets."""

    id: str
    agent: str
    turn: str
    question: dict[str, Any]  # Any: JSON
    asked_at: float = 0.0


@dataclass(frozen=True, slots=True)
class SaveYes(Write):
    """The user's approval of what a function may reach, for the content with this digest. A later one replaces it.

    `content` and `grants` are JSON text; `seal` proves that this user approved it here.
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
    """The approvals of a user, and the questions to them. The first answer to a question counts."""

    async def ask_user(self, row: QuestionRow) -> None:
        """Store a question with the current time, unless a person has already answered one with its id."""

    async def pending_questions(self) -> list[QuestionRow]:
        """Return the questions that nobody has answered, oldest first."""

    async def answer_question(self, id: str, decision: dict[str, str]) -> bool:
        """Store the answer to a question. Return False if there is no such question, or it already has an answer."""

    async def decision(self, id: str) -> dict[str, str] | None:
        """Return the answer to a question, or None while it is pending."""

    async def settle_questions(self, turn: str) -> None:
        """Answer no to the pending questions of a turn that has ended."""

    async def yeses(self) -> list[YesRow]:
        """Return every approval of what a function may reach, the newest last. The reader checks the seals."""
