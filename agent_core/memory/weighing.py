"""Ranking of the rows that a search of the conversation collected. The numeric code is loaded with the first search."""

from importlib import import_module
from typing import Any

from .embedding import Embedder
from .evidence import Evidence
from .weights import weights


class Weighing:
    """A ranker that sums the signals of rows, weighted for the model that made the vectors."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._words = embedder.lexicon if embedder else None
        self._lexicon: Any = None  # Any: a Lexicon; its module is loaded late

    async def order(self, evidence: Evidence, recipe: str) -> list[int]:
        """Return the positions of the rows, best first; among equal rows the newest first."""
        counts = weights("recall", recipe)
        scores = import_module(f"{__package__}.signals").summed(
            await self.signals(evidence), counts, len(evidence.rows)
        )
        return sorted(range(len(scores)), key=lambda place: (-scores[place], -place))

    async def signals(self, evidence: Evidence) -> dict[str, Any]:  # Any: numpy arrays
        """Return every signal by name, with one number per row."""
        likeness = None
        if self._words is not None:
            self._lexicon = self._lexicon or import_module(f"{__package__}.lexicon").Lexicon(self._words)
            likeness = await self._lexicon.likeness(
                evidence.question.words, {row.utterance.seq: row.words for row in evidence.rows}
            )
        measured: dict[str, Any] = import_module(f"{__package__}.signals").measure(evidence, likeness)
        return measured
