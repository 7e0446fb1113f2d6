"""The common part of the tables: a method is a unit of work on a session, and a change is one transaction.

A session is the interface to the database: statements, transactions, and the database-specific indexes. The SQL of the
tables is the subset of SQLite's that PostgreSQL reads, too: `?` and `?1` for values, `json_each` for lists, `true` for
booleans, an upsert with an explicit conflict target. Each method of a session runs in the thread that uses it.
"""

import re
from abc import abstractmethod
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import singledispatch, wraps
from inspect import signature
from typing import (
    Any,
    Concatenate,
    Final,
    Literal,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
)

from agent_core.base.errors import IntegrityError
from agent_core.base.records import dataclass
from agent_core.base.seal import Sealer

from .names import agent_named, agent_of
from .subject import SaveText, StoreClock, Write, content_hash, dump, rows_of

P = ParamSpec("P")
T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]  # Any: columns as the database types them
Shelf: TypeAlias = Literal["recall", "archival"]
"""The two searchable stores: messages and passages."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A result of a search: a row's `seq`, and a score that is higher for a better match."""

    seq: int
    score: float


class Key(NamedTuple):
    """The name of a lane; `space` is empty for words."""

    agent: str
    shelf: str
    space: str = ""


class SearchIndex(Protocol):
    """The indexes of the words of rows and of their vectors. Tokens contain their lane: see `search_index`."""

    def insert(
        self, session: Any, shelf: str, rows: Iterable[tuple[int, Sequence[str]]]
    ) -> None:  # Any: its own kind
        """Store the tokens of rows that have none yet."""

    def delete(self, session: Any, shelf: str, seqs: Collection[int]) -> None:  # Any: as above
        """Delete the tokens of rows."""

    def row_counts(
        self, session: Any, shelf: str, tokens: Sequence[str]
    ) -> dict[str, int]:  # Any: as above
        """Return the number of rows with each token, omitting tokens without rows."""

    def rebuild(self, session: Any) -> None:  # Any: as above
        """Delete all tokens; each lane is indexed again at its next search."""

    def holding(self, session: Any, shelf: str, token: str) -> str:  # Any: as above
        """Return the rows that contain a token, in order, as comma-separated text, which is cheaper than rows."""

    def save(
        self, session: Any, key: Key, vectors: Sequence[tuple[int, bytes]]
    ) -> None:  # Any: as above
        """Store the vectors of rows; a later one replaces an earlier one."""

    def remove(
        self, session: Any, agent: str, shelf: str, seqs: Sequence[int]
    ) -> None:  # Any: as above
        """Delete the vectors of rows, in every space."""

    def sweep(self, session: Any) -> None:  # Any: as above
        """Drop data that was derived from deleted vectors."""

    def trouble(self, session: Any) -> str:  # Any: as above
        """Return the reason why vectors cannot be searched; "" if they can."""

    def nearest(
        self, session: Any, key: Key, vector: bytes, limit: int
    ) -> list[Hit]:  # Any: as above
        """Return the best rows by cosine."""

    def cosines(
        self, session: Any, key: Key, vector: bytes, seqs: Collection[int]
    ) -> dict[int, float]:  # Any
        """Return the cosines of those rows that have a vector."""


class SqlSession(Protocol):
    """A connection in use by one thread, with the other resources that the tables need."""

    @property
    def clock(self) -> StoreClock:
        """The source of times and ids."""

    @property
    def sealer(self) -> Sealer:
        """The sealer of rows that the user relies on."""

    @property
    def index(self) -> SearchIndex:
        """The words of rows, and their vectors."""

    def all(self, sql: str, *values: object) -> list[Row]:
        """Return every row."""

    def one(self, sql: str, *values: object) -> Row | None:
        """Return the first row."""

    def many(self, sql: str, rows: Iterable[Sequence[object]]) -> list[Row]:
        """Run a statement for each row of values, and return the resulting rows in order."""

    def together(self, *statements: tuple[object, ...]) -> list[list[Row]]:
        """Run statements, each a text and its values, in one round trip; return the rows of each."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Read everything in this block from one consistent snapshot."""

    def rehearsal(self) -> AbstractContextManager[None]:
        """Roll back everything that this block writes."""

    def transaction(self) -> AbstractContextManager[None]:
        """Commit this block as a whole or not at all, isolated from other writers."""

    def unsynced(self) -> AbstractContextManager[None]:
        """Commit this block without waiting for the disk: it survives the end of the program, if not of the machine."""

    def tables(self) -> list[str]:
        """Return the names of all tables."""

    def generation(self) -> str:
        """Return a mark that changes with every forgetting."""

    def number_on(self, table: str, column: str) -> None:
        """Make the database assign a column's next numbers after its highest one."""


def query(
    work: Callable[Concatenate[Any, SqlSession, P], T],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Turn a query in SQL into a method of the store."""

    @wraps(work)
    async def run(tables: "Tables", /, *values: P.args, **named: P.kwargs) -> T:
        return await tables._read(lambda session: named_work(tables, session, *values, **named))

    named_work = _naming(work)
    return run


def change(
    work: Callable[Concatenate[Any, SqlSession, P], T],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Turn a change in SQL into a method of the store: one transaction."""

    @wraps(work)
    async def run(tables: "Tables", /, *values: P.args, **named: P.kwargs) -> T:
        return await tables._write(lambda session: named_work(tables, session, *values, **named))

    named_work = _naming(work)
    return run


def _naming(
    work: Callable[Concatenate[Any, SqlSession, P], T],
) -> Callable[Concatenate[Any, SqlSession, P], T]:
    """Have an error about a row that does not fit name the agent, if the work has one."""
    parameters = [*signature(work).parameters]
    name = next((name for name in ("agent", "line") if name in parameters), None)
    if name is None:
        return work
    place = parameters.index(name) - 2

    def run(tables: Any, session: SqlSession, /, *values: P.args, **named: P.kwargs) -> T:
        whose = str(named.get(name, values[place] if len(values) > place else ""))
        with rows_of(agent_of(whose)):
            return work(tables, session, *values, **named)

    return run


class Tables:
    """The tables of one database, whose subclass runs the work, and the methods that every subject has."""

    @abstractmethod
    async def _write(self, work: Callable[[SqlSession], T]) -> T:
        """Run work in a transaction; every failure says what, where and how to fix it."""

    @abstractmethod
    async def _read(self, work: Callable[[SqlSession], T]) -> T:
        """Run work that writes nothing, or begins its own transactions."""

    def _ownership_query(self, _line: str) -> tuple[object, ...]:
        """Return a query that yields a row unless another process took over a conversation; here it always does."""
        return ("select 1",)

    def _of_others(self) -> str:
        """Return a query for the lines that only other processes can run now; "" if the database has none."""
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
    """Perform writes in order.

    Raises:
        UsageError: one of them would store something under a name that no agent can have.
    """
    for write in writes:
        for name in write.stored_under():
            agent_named(name)
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
        raise IntegrityError(
            f"The stored text {hash[:12]} is not what its hash says.", fix="Restore the state file."
        )
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
