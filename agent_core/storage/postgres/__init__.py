"""The store in a PostgreSQL database that several machines may share. Its tables are in `tables/`."""

from .store import PostgresStore

__all__ = ["PostgresStore"]
