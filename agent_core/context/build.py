"""Builds the prompt from system message and history, and computes how much of the window each may take.

All of the history is sent: what would not fit was summarised before, and stays in storage.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agent_core.base.messages import Message, System
from agent_core.base.settings import MemorySettings
from agent_core.model.request import FunctionShown

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
    """The token budget of a request: the window, and the part of it that the reply needs.

    `fixed` is what stands before the conversation, in bytes: the system message, and what the model in use writes
    next to it, mainly the functions. `correction`: how many tokens the endpoint reported for each that was estimated.
    """

    window: int
    reply: int
    fixed: int
    correction: float = 1.0

    def tokens(self, size: int) -> int:
        """Return about how many tokens a prompt of this many bytes has, including the fixed prefix."""
        return int((self.fixed + size) / BYTES_PER_TOKEN * self.correction)

    def most(self, settings: MemorySettings) -> int:
        """Return the prompt size in tokens at which the conversation is compacted: the reply must fit next to it."""
        return int(min(self.window * settings.compact_at, max(self.window - self.reply, self.window // 4)))

    def warned_at(self, settings: MemorySettings) -> int:
        """Return the prompt size in tokens at which the model is warned: before compaction, even if the reply needs
        much room.
        """
        share = min(settings.warn_at / settings.compact_at, 1)
        return int(min(self.window * settings.warn_at, self.most(settings) * share))

    def room(self, settings: MemorySettings) -> int:
        """Return the number of bytes that the conversation may take."""
        return max(int(self.most(settings) * BYTES_PER_TOKEN / self.correction) - self.fixed, _LEAST_ROOM)

    def page_chars(self, settings: MemorySettings, answer_chars: int) -> int:
        """Return how many characters of one message are shown."""
        return max(min(settings.page_chars, answer_chars, int(self.window * BYTES_PER_TOKEN * _PAGE)), 200)


def tail_bytes(room: int) -> int:
    """Return how many bytes of the newest messages a compaction leaves unchanged."""
    return int(room * _TAIL)


def summary_chars(room: int) -> int:
    """Return how long a summary may be."""
    return min(max(int(room * _SUMMARY), _LEAST_SUMMARY), _MOST_SUMMARY)


@dataclass(frozen=True, slots=True)
class RequestPrompt:
    """The content of one request; `tokens` is an estimate."""

    messages: tuple[Message, ...]
    functions: tuple[FunctionShown, ...]
    tokens: int


def build(
    system: Sequence[System], history: History, functions: tuple[FunctionShown, ...], budget: Budget
) -> RequestPrompt:
    """Return the prompt: the system message, the functions and the conversation."""
    return RequestPrompt((*system, *history), functions, budget.tokens(history.size))
