"""The order of the rows that a search of the conversation gathered. What computes is loaded with the first search."""

from importlib import import_module
from typing import Any

from ..embedding import Embedder
from .gathered import Evidence
from .weights import weights


class Weighing:
    """Sums the signals of rows by the weights of the model that made the vectors."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._words = embedder.lexicon if embedder else None
        self._lexicon: Any = None  # Any: a Lexicon, whose module is loaded late

    async def order(self, found: Evidence, recipe: str) -> list[int]:
        """The places of the rows, the best first; of equal ones the newest."""
        counts = weights("recall", recipe)
        scores = import_module(f"{__package__}.signals").summed(await self.signals(found), counts, len(found.rows))
        return sorted(range(len(scores)), key=lambda place: (-scores[place], -place))

    async def signals(self, found: Evidence) -> dict[str, Any]:  # Any: numpy arrays
        """Every signal by its name, a number for each row."""
        likeness = None
        if self._words is not None:
            self._lexicon = self._lexicon or import_module(f"{__package__}.lexicon").Lexicon(self._words)
            likeness = await self._lexicon.likeness(found.asked.words, {row.said.seq: row.words for row in found.rows})
        measured: dict[str, Any] = import_module(f"{__package__}.signals").measure(found, likeness)
        return measured
