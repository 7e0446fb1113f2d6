"""Large values: sent as JSON text in pieces before the frame that refers to them, and never parsed in the host.

A worker refers to a value that it has sent by its number in this conversation, so it can name no other. The host
refers to one by its digest. Type and number of items are claims of the worker; nothing is decided by them.
"""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Final, Protocol

from ..errors import SandboxError

PIECE: Final = 128 << 10  # characters
MAX_PIECE_FRAME: Final = 1 << 20  # bytes, whatever characters a piece has
PART: Final = (
    64 << 10
)  # characters of an argument that goes in its frame, even if the frame is too large
ALL_IN_ONE_CALL: Final = 16  # times the limit of one value: limit for all values that a call sends
_MIB: Final = 1 << 20


class ValueGone(SandboxError):
    """A large value is not kept any longer. The message says why, and what to do."""


@dataclass(frozen=True, slots=True, repr=False)
class Large:
    """A large value in the host: the SHA-256 and the size in bytes of its JSON, the name of its type, and its items.

    `beginning` is that of its JSON, if it has just arrived.
    """

    digest: str
    size: int
    kind: str = field(default="value", compare=False)
    count: int | None = field(default=None, compare=False)
    beginning: str = field(default="", compare=False)

    @property
    def words(self) -> str:
        """The type, items and size for a reader: `list with 15,000 items, 1.9 MiB`."""
        items = {"str": "characters", "bytes": "bytes"}.get(self.kind, "items")
        count = "" if self.count is None else f" with {self.count:,} {items}"
        return f"{self.kind}{count}, {mib(self.size)}"

    def __repr__(self) -> str:
        return f"<{self.words}, SHA-256 {self.digest}>"


def mib(size: int) -> str:
    """Return a number of bytes in MiB, with one decimal below 10."""
    return f"{size / _MIB:.1f} MiB" if size < 10 * _MIB else f"{size / _MIB:.0f} MiB"


class LargeWriter(Protocol):
    """Receives one large value."""

    async def write(self, text: str) -> None:
        """Add a piece of its JSON."""

    async def finish(self, kind: str, count: int | None) -> Large:
        """Keep the value, and return it."""

    async def drop(self) -> None:
        """Keep nothing."""


class LargeValues(Protocol):
    """Keeps large values in the host."""

    def receive(self) -> LargeWriter:
        """Return a writer for one value."""

    def pieces(self, digest: str) -> AsyncGenerator[str, None]:
        """Return the pieces of a kept value.

        Raises:
            ValueGone: it is not kept, or no longer what it was.
        """
