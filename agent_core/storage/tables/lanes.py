"""Lanes: the scope of one search, which is an agent's words, or its vectors of one space, in one of the two stores.

Vectors are little-endian float32, with the same number of components throughout a lane.
"""

import json
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Final

from agent_core.base.errors import StorageError

from .session import Key, SqlSession

FLOAT: Final = 4  # bytes
WIDEST: Final = 8_192  # components, the limit of sqlite-vec
_SELECT = "select id, rows, done, upto from lane where agent = ? and shelf = ? and space = ?"
_GROW = (
    "update lane set rows = rows + ? where agent = ? and shelf = ? and space = ? returning id, rows, done, upto",
    "insert into lane (rows, agent, shelf, space) values (?, ?, ?, ?) returning id, rows, done, upto",
)
_SPACES = "select space, id, rows, done, upto from lane where agent = ? and shelf = ? and space <> ''"


@dataclass(frozen=True, slots=True)
class Lane:
    """The state of a lane: its number of rows, and how far they are indexed."""

    id: int
    rows: int
    done: int
    upto: int


def lane(session: SqlSession, key: Key) -> Lane | None:
    """Return the lane, or None if nothing was ever in it."""
    row = session.one(_SELECT, *key)
    return Lane(*row) if row else None


def grow(session: SqlSession, key: Key, count: int) -> Lane:
    """Add to a lane's number of rows, creating the lane if necessary, and return it."""
    update, insert = _GROW
    return Lane(*(session.one(update, count, *key) or session.all(insert, count, *key)[0]))


def advance(session: SqlSession, lane: Lane, done: int) -> None:
    """Record how far the rows are indexed."""
    session.all("update lane set done = ? where id = ?", done, lane.id)


def spaces(session: SqlSession, agent: str, shelf: str) -> list[tuple[Key, Lane]]:
    """Return the lanes of an agent's vectors in one of the two stores."""
    rows = session.all(_SPACES, agent, shelf)
    return [(Key(agent, shelf, space), Lane(*lane)) for space, *lane in rows]


def numbers(values: Sequence[int]) -> str:
    """Return numbers as one parameter for `in (select cast(value as integer) from json_each(?))`."""
    return json.dumps([*values])


def check_vectors(space: str, size: int, vectors: Iterable[tuple[int, bytes]]) -> None:
    """Reject vectors that a search cannot compare: it compares all vectors of a lane with one vector.

    `size` is that of the existing vectors in bytes; 0 if there are none.

    Raises:
        StorageError: a vector is invalid or has another size.
    """
    for seq, vector in vectors:
        components = array("f", vector) if len(vector) % FLOAT == 0 else ()
        if not (0 < len(components) <= WIDEST and isfinite(sum(components))):
            raise StorageError(f"The vector of row {seq} is none.")
        size = size or len(vector)
        if len(vector) != size:
            raise StorageError(
                f"Vectors of the space `{space}` have {size // FLOAT} components, and some of these have not.",
                fix="Give the vectors of each model and size a space of their own.",
            )
