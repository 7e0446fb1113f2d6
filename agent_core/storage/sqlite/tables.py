"""The common part of the tables of each subject: methods run on the store's thread, and each write has one effect."""

from collections.abc import Callable, Coroutine, Iterable
from functools import singledispatch, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from ..subject import Write
from .connection import SqlSession

P = ParamSpec("P")
T = TypeVar("T")


class Tables(Protocol):
    """The tables of a subject. `SqliteStore`, which is all of them, runs their work."""

    async def _read(self, work: Callable[[SqlSession], T]) -> T:
        """Return the result of a query."""

    async def _write(self, work: Callable[[SqlSession], T]) -> T:
        """Return the result of a change, which is one transaction."""


def query(work: Callable[Concatenate[Any, SqlSession, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Turn a query in SQL into a method of the store."""

    @wraps(work)
    async def run(tables: Tables, /, *values: P.args, **named: P.kwargs) -> T:
        return await tables._read(lambda session: work(tables, session, *values, **named))

    return run


def change(work: Callable[Concatenate[Any, SqlSession, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Turn a change in SQL into a method of the store: one transaction."""

    @wraps(work)
    async def run(tables: Tables, /, *values: P.args, **named: P.kwargs) -> T:
        return await tables._write(lambda session: work(tables, session, *values, **named))

    return run


@singledispatch
def perform(write: Write, session: SqlSession) -> None:
    """Perform one write, inside a transaction of the caller; each module of tables registers its own."""
    raise NotImplementedError(type(write).__name__)


def apply(session: SqlSession, writes: Iterable[Write]) -> None:
    """Perform writes in order."""
    for write in writes:
        perform(write, session)
