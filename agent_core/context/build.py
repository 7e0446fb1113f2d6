"""History + system message → prompt, and how much of the window each may take.

All of the history is sent: what would not fit was summarised before, and stays in storage.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ..messages import Message, System
from ..model.request import FunctionShown
from ..settings import MemorySettings
from .history import History

# Measured on mixed text, code and JSON; corrected by what the endpoint reports.
BYTES_PER_TOKEN: Final = 3.4
_TAIL: Final = 1 / 3  # of the room for the conversation stays word for word at a compaction
_SUMMARY: Final = 1 / 4
_MOST_SUMMARY: Final = 8_000
_LEAST_SUMMARY: Final = 600
_PAGE: Final = 1 / 4  # of the window, for one message
_LEAST_ROOM: Final = 1_000


@dataclass(frozen=True, slots=True)
class Budget:
    """What a request may hold: the window and what the reply needs of it, both in tokens.

    `fixed` is what stands before the conversation, in bytes: the system message, and what the model in use writes
    beside it, the functions above all. `correction`: how many tokens the endpoint reported for each that was estimated.
    """

    window: int
    reply: int
    fixed: int
    correction: float = 1.0

    def tokens(self, size: int) -> int:
        """About how many tokens a prompt of so many bytes has, and what stands before it."""
        return int((self.fixed + size) / BYTES_PER_TOKEN * self.correction)

    def most(self, settings: MemorySettings) -> int:
        """The tokens of prompt at which the conversation is compacted: the reply must fit beside them."""
        return int(min(self.window * settings.compact_at, max(self.window - self.reply, self.window // 4)))

    def warned_at(self, settings: MemorySettings) -> int:
        """The tokens of prompt at which the model is warned: before that, also where the reply needs much room."""
        share = min(settings.warn_at / settings.compact_at, 1)
        return int(min(self.window * settings.warn_at, self.most(settings) * share))

    def room(self, settings: MemorySettings) -> int:
        """The bytes that the conversation may have."""
        return max(int(self.most(settings) * BYTES_PER_TOKEN / self.correction) - self.fixed, _LEAST_ROOM)

    def page_chars(self, settings: MemorySettings, answer_chars: int) -> int:
        """How much of one message is shown."""
        return max(min(settings.page_chars, answer_chars, int(self.window * BYTES_PER_TOKEN * _PAGE)), 200)


def tail_bytes(room: int) -> int:
    """How much of the newest messages stays as it is at a compaction."""
    return int(room * _TAIL)


def summary_chars(room: int) -> int:
    """How long a summary may be."""
    return min(max(int(room * _SUMMARY), _LEAST_SUMMARY), _MOST_SUMMARY)


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request's content; `tokens` is an estimate."""

    messages: tuple[Message, ...]
    functions: tuple[FunctionShown, ...]
    tokens: int


def build(system: Sequence[System], history: History, functions: tuple[FunctionShown, ...], budget: Budget) -> Prompt:
    """The system message, the functions and the conversation."""
    return Prompt((*system, *history), functions, budget.tokens(history.size))
