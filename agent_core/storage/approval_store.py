"""Approvals in the store: what the user allowed a function to reach."""

from dataclasses import dataclass
from typing import Protocol

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
    """The approvals of a user."""

    async def yeses(self) -> list[YesRow]:
        """Return every approval of what a function may reach, the newest last. The reader checks the seals."""
