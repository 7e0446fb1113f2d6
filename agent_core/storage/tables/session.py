"""The interface between tables and database: statements, transactions, and the database-specific indexes.

The SQL of the tables is the subset of SQLite's that PostgreSQL reads, too: `?` and `?1` for values, `json_each` for
lists, `true` for booleans, an upsert with an explicit conflict target. Each method of a session runs in the thread that
uses it.
"""

from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from agent_core.base.seal import Sealer

from ..subject import StoreClock

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


class Postings(Protocol):
    """The index of the words of rows: the rows for each token. Tokens contain their lane: see `word_index`."""

    def insert(self, session: Any, shelf: str, rows: Iterable[tuple[int, Sequence[str]]]) -> None:  # Any: its own kind
        """Store the tokens of rows that have none yet."""

    def delete(self, session: Any, shelf: str, seqs: Collection[int]) -> None:  # Any: as above
        """Delete the tokens of rows."""

    def row_counts(self, session: Any, shelf: str, tokens: Sequence[str]) -> dict[str, int]:  # Any: as above
        """Return the number of rows with each token, omitting tokens without rows."""

    def rebuild(self, session: Any) -> None:  # Any: as above
        """Delete all tokens; each lane is indexed again at its next search."""

    def holding(self, session: Any, shelf: str, token: str) -> str:  # Any: as above
        """Return the rows that contain a token, in order, as comma-separated text, which is cheaper than rows."""


class Vectors(Protocol):
    """The vectors of rows, and their comparison."""

    def save(self, session: Any, key: Key, vectors: Sequence[tuple[int, bytes]]) -> None:  # Any: as above
        """Store the vectors of rows; a later one replaces an earlier one."""

    def remove(self, session: Any, agent: str, shelf: str, seqs: Sequence[int]) -> None:  # Any: as above
        """Delete the vectors of rows, in every space."""

    def sweep(self, session: Any) -> None:  # Any: as above
        """Drop data that was derived from deleted vectors."""

    def trouble(self, session: Any) -> str:  # Any: as above
        """Return the reason why vectors cannot be searched; "" if they can."""

    def nearest(self, session: Any, key: Key, vector: bytes, limit: int) -> list[Hit]:  # Any: as above
        """Return the best rows by cosine."""

    def cosines(self, session: Any, key: Key, vector: bytes, seqs: Collection[int]) -> dict[int, float]:  # Any
        """Return the cosines of those rows that have a vector."""


class SqlSession(Protocol):
    """A connection in use by one thread, with the other resources that the tables need."""

    @property
    def clock(self) -> StoreClock:
        """The source of times and ids."""

    @property
    def keep_calls(self) -> int:
        """The number of calls per function that are kept individually."""

    @property
    def sealer(self) -> Sealer:
        """The sealer of rows that the user relies on."""

    @property
    def postings(self) -> Postings:
        """The words of rows."""

    @property
    def vectors(self) -> Vectors:
        """The vectors of rows."""

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

    def generation(self) -> str:
        """Return a mark that changes with every forgetting."""

    def number_on(self, table: str, column: str) -> None:
        """Make the database assign a column's next numbers after its highest one."""
