"""Grants: what the user lets a function reach. This package may access `functions/grants.toml` and the user's key."""

from .approval import Answer, Approver, Decision, PendingQuestion, Question, says_what_to_do
from .book import Giving, GrantStore
from .desk import Answered, ApprovalQueue, Approvals
from .files import FileRequests, WantPath
from .permit import AccessResolver, Denied, Permit
from .value import NOTHING, Grants

__all__ = [
    "NOTHING",
    "AccessResolver",
    "Answer",
    "Answered",
    "ApprovalQueue",
    "Approvals",
    "Approver",
    "Decision",
    "Denied",
    "FileRequests",
    "Giving",
    "GrantStore",
    "Grants",
    "PendingQuestion",
    "Permit",
    "Question",
    "WantPath",
    "says_what_to_do",
]
