"""The common part of the tables: a method is a unit of work on a session, and a change is one transaction."""

from abc import abstractmethod
from collections.abc import Callable, Coroutine, Iterable
from functools import singledispatch, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from ..subject import Write
from .session import SqlSession

P = ParamSpec("P")
T = TypeVar("T")


class Tables:
    """Tables of one database, whose subclass runs the work."""

    @abstractmethod
    async def _write(self, work: Callable[[SqlSession], T]) -> T:
        """Run work in a transaction; every failure says what, where and how to fix it."""

    @abstractmethod
    async def _read(self, work: Callable[[SqlSession], T]) -> T:
        """Run work that writes nothing, or begins its own transactions."""

    def _ownership_query(self, _agent: str) -> tuple[object, ...]:
        """Return a query that yields a row unless another process has taken over an agent; here it always does."""
        return ("select 1",)

    def _of_others(self) -> str:
        """Return a query for the agents that only other processes can run now; "" if the database has none."""
        return ""


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
    """Perform one write, inside a transaction of the caller; each module of tables registers its own writes."""
    raise NotImplementedError(type(write).__name__)


def apply(session: SqlSession, writes: Iterable[Write]) -> None:
    """Perform writes in order."""
    for write in writes:
        perform(write, session)
