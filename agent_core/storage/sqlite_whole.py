"""`Wholes` on SQLite: agents whole, on the thread and the connection of a store."""

from . import moving
from .sqlite import SqliteStore
from .whole import Moved, WholeAgent


class SqliteWholes:
    """Agents whole, of one store."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    async def names(self) -> list[str]:
        """Every agent that anything is kept of."""
        return await self._store._read(moving.names)

    async def read(self, agent: str) -> WholeAgent | None:
        """All that is kept of an agent."""
        return await self._store._read(moving.read, agent)

    async def write(self, whole: WholeAgent, *, share: bool = False, drop: bool = False) -> Moved:
        """Put an agent in."""
        return await self._store._write(moving.write, whole, share, drop)
