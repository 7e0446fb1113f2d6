"""Keeps a conversation within the window: warns the model once, then has the older part summarized.

What comes of it is an entry of the running turn, so that a restart finds the same context.
"""

from collections.abc import Sequence
from typing import Any, Final, Protocol

from agent_core.base.settings import MemorySettings
from agent_core.storage import Entry

from .build import Budget, summary_chars, tail_bytes
from .compact import AskFor, CompactionOrder, summarised
from .history import PRESSURE, History, Summary

KIND: Final = "summary"
_WORTH: Final = 0.7  # of the room must be filled, or a compaction would win nothing
_LEAST_MATERIAL: Final = 2_000


class Journal(Protocol):
    """An open turn, as far as compaction needs it."""

    history: History

    async def append(self, entries: Sequence[Entry]) -> Any:  # Any: nothing is done with it
        """Write entries to disk and add them to the history."""

    def warn(self, message: str) -> None:
        """Show a warning to the user."""


class Room:
    """Makes room in the conversation of one agent."""

    def __init__(self, settings: MemorySettings, compaction: str = "") -> None:
        self._settings = settings
        self._style = compaction or settings.compaction

    async def make(self, turn: Journal, budget: Budget, ask: AskFor) -> bool:
        """Warn the model or compact the conversation if it is time; return whether it was compacted."""
        used, most, room = budget.tokens(turn.history.size), budget.most(self._settings), budget.room(self._settings)
        if used >= most and turn.history.size >= room * _WORTH:
            await self.compact(turn, budget, ask)
            return True
        if used >= budget.warned_at(self._settings) and not turn.history.warned:
            await turn.append([Entry("notice", {"text": PRESSURE.text})])
        return False

    async def compact(self, turn: Journal, budget: Budget, ask: AskFor, share: float = 1.0) -> Summary | None:
        """Replace the older part by a summary; what stays takes at most this share of its limit."""
        history, room = turn.history, int(budget.room(self._settings) * share)
        tail = min(tail_bytes(room), history.size // 2)
        order = CompactionOrder(tail, summary_chars(room), max(room, _LEAST_MATERIAL), self._style)
        summary = await summarised(history, order, ask)
        if summary is not None:
            await turn.append([Entry(KIND, summary[0].payload())])
            before = history.summary.covers if history.summary else 0
            history.compact(*summary)
            turn.warn(
                f"The oldest {summary[0].covers - before:,} messages in the context are a summary now;"
                " all of them can be searched."
            )
        history.fit(room)
        return summary[0] if summary else None
