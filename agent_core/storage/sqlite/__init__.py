"""The store in one SQLite file: how it is opened, guarded, searched and recovered."""

from .recovery import adopt, set_aside
from .store import SqliteStore

__all__ = ["SqliteStore", "adopt", "set_aside"]
