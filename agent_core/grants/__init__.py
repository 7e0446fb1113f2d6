"""Grants: what a human lets a function reach. May touch `functions/grants.toml` and the user's key."""

from .approval import Answer, Approver, Decision, Question
from .book import Giving, GrantBook
from .permit import Denied, Permit, Reach
from .value import NOTHING, Grants

__all__ = [
    "NOTHING",
    "Answer",
    "Approver",
    "Decision",
    "Denied",
    "Giving",
    "GrantBook",
    "Grants",
    "Permit",
    "Question",
    "Reach",
]
