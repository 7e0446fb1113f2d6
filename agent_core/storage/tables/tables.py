"""The common part of the tables: a method is a unit of work on a session, and a change is one transaction."""

import re
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import singledispatch, wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from agent_core.base.errors import IntegrityError

from ..subject import SaveText, Write, content_hash, dump
from .session import SqlSession

P = ParamSpec("P")
T = TypeVar("T")


def query(work: Callable[Concatenate[Any, SqlSession, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Turn a query in SQL into a method of the store."""

    @wraps(work)
    async def run(tables: "Tables", /, *values: P.args, **named: P.kwargs) -> T:
        return await tables._read(lambda session: work(tables, session, *values, **named))

    return run


def change(work: Callable[Concatenate[Any, SqlSession, P], T]) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Turn a change in SQL into a method of the store: one transaction."""

    @wraps(work)
    async def run(tables: "Tables", /, *values: P.args, **named: P.kwargs) -> T:
        return await tables._write(lambda session: work(tables, session, *values, **named))

    return run


class Tables:
    """The tables of one database, whose subclass runs the work, and the methods that every subject has."""

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

    @abstractmethod
    async def now(self) -> float:
        """Return the time of the store's clock, in seconds since the epoch."""

    @query
    def text(self, session: SqlSession, hash: str) -> str | None:
        """Return the text stored under this content hash, verified against it."""
        row = session.one("select text from text where hash = ?", hash)
        return check_text(hash, row[0]) if row else None

    @change
    def apply(self, session: SqlSession, writes: Sequence[Write]) -> None:
        """Apply writes outside of a turn, in one transaction; `TurnStore.append` applies them within a turn.

        Raises:
            ManifestConflict: a compare-and-set among them failed.
        """
        apply(session, writes)


@singledispatch
def perform(write: Write, session: SqlSession) -> None:
    """Perform one write, inside a transaction of the caller; each subject registers its own writes."""
    raise NotImplementedError(type(write).__name__)


def apply(session: SqlSession, writes: Iterable[Write]) -> None:
    """Perform writes in order."""
    for write in writes:
        perform(write, session)


@perform.register
def _save_text(save: SaveText, session: SqlSession) -> None:
    keep_text(session, content_hash(save.text), save.text)


def keep_text(session: SqlSession, hash: str, text: str) -> None:
    """Store a text under its content hash, unless it is stored already."""
    session.all("insert into text (hash, text) values (?, ?) on conflict do nothing", hash, text)


def check_text(hash: str, text: str) -> str:
    """Return a stored text.

    Raises:
        IntegrityError: the text has another content hash.
    """
    if content_hash(text) != hash:
        raise IntegrityError(f"The stored text {hash[:12]} is not what its hash says.", fix="Restore the state file.")
    return text


_HASH: Final = re.compile(r"[0-9a-f]{64}")
LARGEST_NUMBER: Final = (1 << 63) - 1
"""The largest number that a column holds."""
_AT_ONCE: Final = 500  # entries
_NAMES_TEXTS: Final = (
    "select payload, seq from entry where (kind = 'request' or instr(payload, '\"whole\"') > 0) and seq < ?"
    " order by seq desc limit ?"
)
_UNNAMED: Final = (
    "delete from text where hash in (select value from json_each(?)) and hash not in (select version from manifest)"
    " and hash not in (select version from change where version is not null)"
)


def text_hashes(rows: Iterable[Sequence[Any]]) -> set[str]:  # Any: other columns
    """Return the hashes of texts in the payloads of entries, which are the first column."""
    return {name for payload, *_ in rows for name in _HASH.findall(payload)}


def drop_texts(session: SqlSession, hashes: set[str]) -> None:
    """Delete the texts of these hashes that nothing refers to any longer."""
    unnamed, rows = set(hashes), [("", LARGEST_NUMBER)]
    while unnamed and rows:  # newest first: most texts are in a recent entry, too
        rows = session.all(_NAMES_TEXTS, rows[-1][1], _AT_ONCE)
        unnamed -= text_hashes(rows)
    if unnamed:
        session.all(_UNNAMED, dump(sorted(unnamed)))
