"""The store in one SQLite file. Each module of tables has the SQL of one subject; `store.py` is their sum."""

from .recovery import adopt
from .store import SqliteStore

__all__ = ["SqliteStore", "adopt"]
