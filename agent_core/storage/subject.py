"""The common part of every subject of the store: its clock, its texts, and the writes that change it."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class Write:
    """A change of the store as a value: it rides on a journal entry or is applied alone.

    All writes of one `append` or `apply` are one transaction: every one of them happens, or none.
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class SaveText(Write):
    """Keep a text once under its content hash (instructions, a list of functions shown, …)."""

    text: str


def content_hash(text: str) -> str:
    """Return the name of a text: the SHA-256 of its UTF-8 form, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


class StoreClock(Protocol):
    """The part of `agent_core.base.clock.Clock` that the store needs, so that tests can pass in less."""

    def now(self) -> float:
        """Return the seconds since the epoch."""

    def new_id(self) -> str:
        """Return a new uuid7."""


class Subject(Protocol):
    """The methods that every subject has."""

    async def now(self) -> float:
        """Return the time of the store's clock, in seconds since the epoch."""

    async def text(self, hash: str) -> str | None:
        """Return the text stored under this content hash."""

    async def apply(self, writes: Sequence[Write]) -> None:
        """Apply writes outside of a turn, in one transaction; `TurnStore.append` applies them in one.

        Raises:
            ManifestConflict: a compare-and-set among them failed.
        """
