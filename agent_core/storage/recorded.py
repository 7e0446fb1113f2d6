"""Recorded calls in SQL: the newest of each function with the answers they got, limited to a total number."""

import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from .connection import SqlSession, dump
from .rows import is_signed, parse_row, sign

MOST_OF_ONE, MOST = 20, 500
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SaveRecorded:
    """Keep a call so that it can be made again. `data` is JSON that only the recorder understands."""

    function: str
    outcome: str
    turn: str
    data: dict[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class RecordedRow:
    """One recorded call, identified by `n`."""

    n: int
    function: str
    outcome: str
    turn: str
    at: float
    data: dict[str, Any]  # Any: JSON


class Read(Protocol):
    """Callable that runs a query on the thread of the connection."""

    def __call__(self, work: Callable[..., T], *values: object) -> Awaitable[T]:
        """Return the result of the work."""


class Recorded:
    """Queries on recorded calls."""

    def __init__(self, read: Read) -> None:
        self._read = read

    async def call(self, n: int) -> RecordedRow | None:
        """Return one recorded call."""
        return await self._read(_call, n)

    async def calls(self, function: str = "", outcomes: tuple[str, ...] = ()) -> list[RecordedRow]:
        """Return recorded calls, newest first: all, those of a function, or those with one of these outcomes."""
        return await self._read(_calls, function, outcomes)


def save(session: SqlSession, write: SaveRecorded) -> None:
    """Keep one call and delete the oldest ones."""
    row = (write.function, write.outcome, write.turn, dump(write.data))
    number = session.all(
        "insert into recorded (function, outcome, turn, data, at, seal) values (?, ?, ?, ?, ?, ?) returning n",
        *(*row, session.clock.now(), sign(session.sealer, "recorded", *row)),
    )[0][0]
    session.all("delete from recorded where n <= ?", number - MOST)
    session.all(
        "delete from recorded where function = ?1 and n <= (select n from recorded where function = ?1"
        " order by n desc limit 1 offset ?2)",
        *(write.function, MOST_OF_ONE),
    )


def _call(session: SqlSession, n: int) -> RecordedRow | None:
    return next(_own(session, session.all(f"{_ROWS} where n = ?", n)), None)


def _calls(session: SqlSession, function: str, outcomes: tuple[str, ...]) -> list[RecordedRow]:
    rows = session.all(
        f"{_ROWS} where (?1 = '' or function = ?1) and {_AMONG} order by n desc",
        *(function, json.dumps(outcomes)),
    )
    return [*_own(session, rows)]


_AMONG = "(?2 = '[]' or outcome in (select value from json_each(?2)))"
_ROWS = "select n, function, outcome, turn, data, at, seal from recorded"


def _own(
    session: SqlSession, rows: list[tuple[Any, ...]]
) -> Iterator[RecordedRow]:  # Any: columns as SQLite types them
    """Yield the rows that this user's program wrote: readers rely on their shape."""
    for n, function, outcome, turn, data, at, seal in rows:
        if is_signed(session.sealer, seal, "recorded", function, outcome, turn, data):
            yield RecordedRow(n, function, outcome, turn, at, parse_row(data, dict))
