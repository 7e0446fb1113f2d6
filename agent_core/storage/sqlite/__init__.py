"""The store in one SQLite file: how it is opened, guarded, searched and recovered. Its tables are in `tables/`."""

from .recovery import adopt
from .store import SqliteStore

__all__ = ["SqliteStore", "adopt"]
