"""What a search keeps in memory of a lane: read from its sheets once, and brought up to date before each search.

The lane's two counts say what is new, whoever wrote it. It goes with the connection.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import StorageError
from .connection import Session
from .sheets import Key, Lane, lane

Array: TypeAlias = npt.NDArray[Any]  # Any: the type of its numbers, which each use names
MOST_KEPT = 1_000_000  # rows of all lanes: 300 MB if all are vectors of 256 components
BINS, SHARES = 1024, (0.75, 0.5, 0.25, 0)
K = TypeVar("K", bound="Kept")


class Pile:
    """An array that grows at its end."""

    def __init__(self, kind: str, *width: int) -> None:
        self._held: Array = np.empty((0, *width), kind)
        self._count = 0

    @property
    def rows(self) -> Array:
        """What is there."""
        return self._held[: self._count]

    def add(self, rows: Array) -> None:
        """More of it; a place for a quarter more is kept, so that one row seldom copies all."""
        count = self._count + len(rows)
        if count > len(self._held):
            grown = np.empty((count + count // 4, *self._held.shape[1:]), self._held.dtype)
            grown[: self._count] = self.rows
            self._held = grown
        self._held[self._count : count] = rows
        self._count = count


class Kept(ABC):
    """The rows of a lane by their numbers: which `seq` each is, and whether it is still there."""

    item = 1
    """Bytes of an item."""

    def __init__(self) -> None:
        self.seqs, self.live = Pile("<i8"), Pile("?")
        self.state = Lane(0, 0, 0)

    def follow(self, session: Session, now: Lane) -> None:
        """Read what is new."""
        if now == self.state:
            return
        sheets = session.all(
            "select first, seqs, sizes, body from sheet where lane = ? and first + count > ? order by first",
            *(now.id, self.state.rows),
        )
        for first, seqs, sizes, body in sheets:
            self._take(max(0, self.state.rows - first), (seqs, sizes, body))
        went = session.all("select seq, upto from gone where lane = ? and n >= ?", now.id, self.state.gone)
        if went:
            self._lose(dict(went))
        self.state = now
        self.settle(lost=bool(went))

    def _take(self, skip: int, sheet: tuple[bytes, bytes, bytes]) -> None:
        seqs, sizes = np.frombuffer(sheet[0], "<i8"), np.frombuffer(sheet[1], "<u2")
        body = sheet[2][int(sizes[:skip].sum(dtype=np.int64)) * self.item :]
        self.add(sizes[skip:], body)
        self.seqs.add(seqs[skip:])
        self.live.add(np.ones(len(seqs) - skip, bool))

    def _lose(self, went: dict[int, int]) -> None:
        for number in np.flatnonzero(np.isin(self.seqs.rows, [*went])).tolist():
            if number < went[int(self.seqs.rows[number])]:
                self.live.rows[number] = False

    @abstractmethod
    def add(self, sizes: Array, body: bytes) -> None:
        """Rows that come behind those that are there."""

    @abstractmethod
    def settle(self, *, lost: bool) -> None:
        """All that is new has been added."""


def kept(session: Session, key: Key, kind: type[K]) -> K | None:
    """The lane as it is now; None for one that nothing was ever in."""
    with session.snapshot():
        now = lane(session, key)
        if now is None:
            return None
        found = session.kept.pop(key, None)
        if not isinstance(found, kind) or found.state.id != now.id:
            found = kind()
        try:
            found.follow(session, now)
        except ValueError as error:
            raise StorageError(
                f"What is searched of agent `{key.agent}` cannot be read: {error}.",
                mend="Export the agent and import it under another name: it is made anew.",
            ) from error
    session.kept[key] = found
    _make_room(session.kept)
    return found


def _make_room(lanes: dict[Hashable, object]) -> None:
    """What was searched longest ago goes first; the last stays, however large."""
    rows = {key: one.state.rows for key, one in lanes.items() if isinstance(one, Kept)}
    for key in [*rows][:-1]:
        if sum(rows.values()) <= MOST_KEPT:
            return
        del lanes[key], rows[key]


def best(scores: Array, count: int) -> Array:
    """The numbers of the highest scores, all of them above 0, best first; of equal ones the newest.

    Few are near the highest. Of these a histogram says which come into question: numpy's partition takes ten times as
    long where many are equal.
    """
    top = scores.max(initial=0)
    for share in SHARES:
        numbers = np.flatnonzero(scores > share * top)
        if len(numbers) >= count:
            break
    found = scores[numbers]
    if len(found) > count:
        places = (found * (BINS / float(found.max()))).astype("<i4")
        above = np.bincount(places, minlength=BINS + 2)[::-1].cumsum()
        chosen = places > BINS - int(np.searchsorted(above, count))
        numbers, found = numbers[chosen], found[chosen]
    return numbers[np.lexsort((-numbers, -found))][:count]
