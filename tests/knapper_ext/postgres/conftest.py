"""The fixtures of the contract tests, which run on this database, too."""

from tests.storage.conftest import address, clock, comparing, open_again, store

__all__ = ["address", "clock", "comparing", "open_again", "store"]
