"""Lanes: the scope of one search, which is an agent's words, or its vectors of one space, in one of the two stores."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from .session import Key, SqlSession

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
