"""What the tables need of a database: statements, transactions, and the indexes that each database has in its own way.

The SQL of the tables is SQLite's as far as PostgreSQL reads it, too: `?` and `?1` for values, `json_each` for lists,
`true` for booleans, an upsert that names what conflicts. Each method of a session runs in the thread that uses it.
"""

from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeAlias

from agent_core.base.seal import Sealer

from ..memory_store import Hit
from ..subject import StoreClock

Row: TypeAlias = tuple[Any, ...]  # Any: columns as the database types them


class Key(NamedTuple):
    """The name of a lane; `space` is empty for words."""

    agent: str
    shelf: str
    space: str = ""


class Postings(Protocol):
    """Where the words of rows are kept: which rows hold a token. Tokens name their lane: see `word_index`."""

    def insert(self, session: Any, shelf: str, rows: Iterable[tuple[int, Sequence[str]]]) -> None:  # Any: its own kind
        """Keep the tokens of rows that have none yet."""

    def delete(self, session: Any, shelf: str, seqs: Collection[int]) -> None:  # Any: as above
        """Delete the tokens of rows."""

    def row_counts(self, session: Any, shelf: str, tokens: Sequence[str]) -> dict[str, int]:  # Any: as above
        """Return in how many rows each token is, without those that are in none."""

    def rebuild(self, session: Any) -> None:  # Any: as above
        """Delete all tokens; each lane is indexed anew when it is searched next."""

    def holding(self, session: Any, shelf: str, token: str) -> str:  # Any: as above
        """Return the rows that hold a token, in order, between commas: of many a text is far cheaper than rows."""


class Vectors(Protocol):
    """The vectors of rows, and what compares them."""

    def save(self, session: Any, key: Key, vectors: Sequence[tuple[int, bytes]]) -> None:  # Any: as above
        """Keep the vectors of rows; a later one takes the place of an earlier."""

    def remove(self, session: Any, agent: str, shelf: str, seqs: Sequence[int]) -> None:  # Any: as above
        """Delete the vectors of rows, in every space."""

    def sweep(self, session: Any) -> None:  # Any: as above
        """Drop what was derived from vectors that are gone."""

    def trouble(self, session: Any) -> str:  # Any: as above
        """Return why vectors cannot be searched; an empty text where they can be."""

    def nearest(self, session: Any, key: Key, vector: bytes, limit: int) -> list[Hit]:  # Any: as above
        """Return the best rows by cosine."""

    def cosines(self, session: Any, key: Key, vector: bytes, seqs: Collection[int]) -> dict[int, float]:  # Any
        """Return the cosines of those rows that have a vector."""


class SqlSession(Protocol):
    """A connection in use by one thread, and what the tables need besides."""

    @property
    def clock(self) -> StoreClock:
        """What provides times and ids."""

    @property
    def keep_calls(self) -> int:
        """The number of calls of a function that are kept one by one."""

    @property
    def sealer(self) -> Sealer:
        """What seals the rows that the user believes."""

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
        """Run a statement for each of the rows of values, and return what it returned, in order."""

    def together(self, *statements: tuple[object, ...]) -> list[list[Row]]:
        """Run statements, each a text and its values, in one trip to the database; return what each returned."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Read everything in this block from one moment."""

    def rehearsal(self) -> AbstractContextManager[None]:
        """Take back all that this block writes."""

    def transaction(self) -> AbstractContextManager[None]:
        """Commit all of this block or nothing, as if nobody else wrote meanwhile."""

    def unsynced(self) -> AbstractContextManager[None]:
        """Commit this block without waiting for the disk: it outlives the program, if not the machine."""

    def generation(self) -> str:
        """Return a mark that changes with every forgetting."""

    def number_on(self, table: str, column: str) -> None:
        """Have the numbers that the database assigns to a column go on after the highest."""
