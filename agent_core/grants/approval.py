"""The question that is put to a human before a function gets what it needs, and the answer."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from .value import NOTHING, Grants

Answer: TypeAlias = Literal["once", "yes", "no"]


@dataclass(frozen=True, slots=True)
class Question:
    """What a function lacks: `why` is the model's reason, `lines` are those of its text that need it.

    `granted` is what the version before had, `diff` what became different since; `is_again` says that nothing new is
    asked for, and only the content is new. Texts are a model's: they are shown as untrusted.
    """

    function: str
    missing: Grants = NOTHING
    granted: Grants = NOTHING
    why: str = ""
    lines: tuple[tuple[int, str], ...] = ()
    diff: str = ""
    version: str = ""
    is_again: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """A human's answer: for the next call alone, for good, or not; `word` is for the model."""

    answer: Answer
    word: str = ""


Approver: TypeAlias = Callable[[Question], Awaitable[Decision]]
"""Puts a question to a human; where there is none, nobody is asked and the answer is no."""
