"""The store in a PostgreSQL database that several machines may share."""

from .store import PostgresStore

__all__ = ["PostgresStore"]
