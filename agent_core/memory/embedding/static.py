"""The default model: the average of one vector per word piece, with `wordllama`'s vectors. 0.06 ms a text.

The vectors are extracted from that package at build time (`setup.py`), as bytes and a factor for each piece, and
memory-mapped, not copied.
"""

import heapq
import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from agent_core.base.own_installation import reinstall_program
from sandbox.wire.strict_json import LOOSE, read_json

from .local import EmbeddingUnavailable, Encode, LocalEmbedder

DIMS = 256
_FOLDER: Final = Path(__file__).with_name("wordllama")
_SPACE: Final = "▁"
_WORD: Final = re.compile(f"{_SPACE}*[^{_SPACE}]+|{_SPACE}+")  # no piece crosses the end of a word
_LONGEST_KEPT: Final = 32  # characters of a word whose pieces are cached
_LONGEST: Final = 20_000  # characters of a text that are read: more words hardly change the average
_KEPT: Final = 50_000  # words; beyond that, the cache is cleared


def wordllama() -> LocalEmbedder:
    """Return the default model."""
    return LocalEmbedder(f"wordllama-l2-supercat/{DIMS}", "wordllama", _load)


def _load() -> Encode:
    numpy = import_module("numpy")
    try:
        pieces = WordPieces(read_json((_FOLDER / "pieces.json").read_bytes(), LOOSE))
        vectors = numpy.asarray(numpy.load(_FOLDER / "vectors.npy", mmap_mode="r"))
        factors = numpy.load(_FOLDER / "factors.npy")
    except OSError as error:
        said = f"`{error.filename}`, which holds the default embedding, cannot be read: {error.strerror}."
        raise EmbeddingUnavailable(said, fix=f"Type: {reinstall_program()}") from error

    def encode(texts: list[str]) -> Any:  # Any: a numpy matrix
        numbers = map(pieces.numbers, texts)
        rows = numpy.stack([(vectors[found] * factors[found]).mean(0) for found in numbers])
        return rows / numpy.linalg.norm(rows, axis=1, keepdims=True)

    return encode


class WordPieces:
    """The pieces of a vocabulary: pieces with lower numbers are joined first, and those of blanks last."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self._numbers = {piece: number for number, piece in enumerate(pieces)}
        self._ranks = {piece: number + len(pieces) * (not piece.strip(_SPACE)) for number, piece in enumerate(pieces)}
        self._of_words: dict[str, list[int]] = {}

    def numbers(self, text: str) -> list[int]:
        """Return the numbers of the pieces of a text's beginning; characters without a piece become bytes."""
        found: list[int] = []
        for word in _WORD.findall(_SPACE + text[:_LONGEST].replace(" ", _SPACE)):
            numbers = self._of_words.get(word)
            if numbers is None:
                numbers = [number for piece in self._join_pieces(word) for number in self._with_bytes(piece)]
                if len(word) <= _LONGEST_KEPT:
                    if len(self._of_words) >= _KEPT:
                        self._of_words.clear()
                    self._of_words[word] = numbers
            found += numbers
        return found

    def _join_pieces(self, word: str) -> list[str]:
        """Join neighbors into pieces, lowest number first, then leftmost, until no two neighbors form a piece."""
        pieces, end = list(word), len(word)
        before, after = list(range(-1, end - 1)), list(range(1, end + 1))
        waiting: list[tuple[int, int, int]] = []

        def offer(left: int, right: int) -> None:
            if left >= 0 and right < end and (rank := self._ranks.get(pieces[left] + pieces[right])) is not None:
                heapq.heappush(waiting, (rank, left, len(pieces[left]) + len(pieces[right])))

        for left in range(end - 1):
            offer(left, left + 1)
        while waiting:
            _rank, left, length = heapq.heappop(waiting)
            right = after[left]
            if not pieces[left] or right >= end or len(pieces[left]) + len(pieces[right]) != length:
                continue  # one of the two was joined with another meanwhile
            pieces[left] += pieces[right]
            pieces[right] = ""
            after[left] = after[right]
            if after[left] < end:
                before[after[left]] = left
            offer(before[left], left)
            offer(left, after[left])
        return [piece for piece in pieces if piece]

    def _with_bytes(self, piece: str) -> Iterator[int]:
        number = self._numbers.get(piece)
        if number is not None:
            yield number
        else:
            yield from (self._numbers[f"<0x{byte:02X}>"] for byte in piece.encode())
