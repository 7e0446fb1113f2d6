"""Grants: what a human lets a function reach. May touch `functions/grants.toml` and the user's key."""

from .approval import Answer, Approver, Decision, Question
from .value import NOTHING, Grants

__all__ = ["NOTHING", "Answer", "Approver", "Decision", "Grants", "Question"]
