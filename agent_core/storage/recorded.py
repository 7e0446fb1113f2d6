"""Recorded calls in SQL: the newest of each function, with what they got, and no more than a number of all."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from .connection import Session, dump, parse_row

MOST_OF_ONE, MOST = 20, 500
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SaveRecorded:
    """Keep a call, so that it can be made again; `data` is JSON, and only the recorder knows what it holds."""

    function: str
    outcome: str
    turn: str
    data: dict[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class RecordedRow:
    """One recorded call; `n` names it."""

    n: int
    function: str
    outcome: str
    turn: str
    at: float
    data: dict[str, Any]  # Any: JSON


class Read(Protocol):
    """Runs a question where the connection is."""

    def __call__(self, work: Callable[..., T], *values: object) -> Awaitable[T]:
        """What it returns."""


class Recorded:
    """What can be asked of recorded calls."""

    def __init__(self, read: Read) -> None:
        self._read = read

    async def call(self, n: int) -> RecordedRow | None:
        """One of them."""
        return await self._read(_call, n)

    async def calls(self, function: str = "", outcomes: tuple[str, ...] = ()) -> list[RecordedRow]:
        """All, those of a function, those that ended in one of these ways; the newest first."""
        return await self._read(_calls, function, outcomes)


def save(session: Session, write: SaveRecorded) -> None:
    """Keep one; the oldest go."""
    number = session.all(
        "insert into recorded (function, outcome, turn, at, data) values (?, ?, ?, ?, ?) returning n",
        *(write.function, write.outcome, write.turn, session.clock.now(), dump(write.data)),
    )[0][0]
    session.all("delete from recorded where n <= ?", number - MOST)
    session.all(
        "delete from recorded where function = ?1 and n <= (select n from recorded where function = ?1"
        " order by n desc limit 1 offset ?2)",
        *(write.function, MOST_OF_ONE),
    )


def _call(session: Session, n: int) -> RecordedRow | None:
    row = session.one("select n, function, outcome, turn, at, data from recorded where n = ?", n)
    return _row(row) if row else None


def _calls(session: Session, function: str, outcomes: tuple[str, ...]) -> list[RecordedRow]:
    rows = session.all(
        "select n, function, outcome, turn, at, data from recorded where (?1 = '' or function = ?1)"
        " and (?2 = '[]' or outcome in (select value from json_each(?2))) order by n desc",
        *(function, json.dumps(outcomes)),
    )
    return [_row(row) for row in rows]


def _row(row: tuple[Any, ...]) -> RecordedRow:  # Any: columns as SQLite types them
    n, function, outcome, turn, at, data = row
    return RecordedRow(n, function, outcome, turn, at, parse_row(data))
