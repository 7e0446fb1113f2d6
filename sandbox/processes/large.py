"""The large values of one conversation with a worker, in the host: those that arrive, and those that are sent.

No more than a piece is in memory. While a value arrives, the worker may send nothing else: so it cannot learn a secret
that the masks of the value do not have yet.
"""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Final, TypeVar

from ..errors import ProtocolError
from ..policy import Limits
from ..wire.caps import MOST_NAME
from ..wire.claims import within
from ..wire.large import (
    ALL_IN_ONE_CALL,
    MAX_PIECE_FRAME,
    Large,
    LargeValues,
    LargeWriter,
    ValueGone,
)
from ..wire.protocol import Frame, pack
from ..wire.values import Encoded, Value, large_in, read

T = TypeVar("T")
_MOST_VALUES: Final = 5_000  # of one call


class LargeExchange:
    """The exchange of large values in one conversation; without `values` to keep them, none is accepted."""

    def __init__(self, values: LargeValues | None, limits: Limits) -> None:
        self._values = values
        self._limits = limits
        self._writer: LargeWriter | None = None
        self._size = self._all = 0
        self.received: list[Large] = []

    @property
    def most(self) -> int:
        """The size in bytes that a large value may have; 0 if there are none."""
        return 0 if self._values is None else self._limits.value

    def most_bytes(self, of_others: int) -> int:
        """Return the cap on a frame from the worker, given that of frames that are no pieces."""
        return of_others if self._values is None else max(of_others, MAX_PIECE_FRAME)

    async def take(self, frame: Frame) -> bool:
        """Take a part of a large value. Return False for any other frame.

        Raises:
            ProtocolError: the frame is not allowed here, or the value is too large.
        """
        match frame:
            case {"kind": "piece", "text": str(text)} if self._values is not None:
                size = len(text) if text.isascii() else len(text.encode())
                self._size += size
                self._all += size
                within("bytes of a large value", self._size, self._limits.value)
                within("bytes of large values", self._all, ALL_IN_ONE_CALL * self._limits.value)
                if self._writer is None:
                    within("large values", len(self.received) + 1, _MOST_VALUES)
                    self._writer = self._values.receive()
                await _done(self._writer.write(text))
                return True
            case {"kind": "large", "type": str(kind), "count": int() | None as count} if (
                self._writer is not None
            ):
                within("characters of a type", len(kind), MOST_NAME)
                writer, self._writer, self._size = self._writer, None, 0
                self.received.append(
                    await _done(writer.finish(kind if kind.isidentifier() else "value", count))
                )
                return True
            case {"kind": "piece" | "large"}:
                raise ProtocolError("it sent a large value, or a part of one, where none may be")
            case _ if self._writer is not None:
                raise ProtocolError("it sent something else in the middle of a large value")
            case _:
                return False

    def read(self, encoded: Encoded) -> Value:
        """Return a value that the worker sent; large ones in it are those that arrived before."""
        return read(encoded, self.received)

    async def send(self, data: bytes, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Send the large values in a packed frame, and the frame.

        Raises:
            ValueGone: one of them is not kept any longer. The frame was not sent, but pieces may have been.
        """
        for digest in large_in(data):
            if self._values is None:
                raise ValueGone("a large value cannot be passed on here")
            async with aclosing(self._values.pieces(digest)) as pieces:
                async for piece in pieces:
                    await send(pack({"kind": "piece", "text": piece}))
            await send(pack({"kind": "large", "digest": digest}))
        await send(data)

    async def close(self) -> None:
        """Keep nothing of a value that has not arrived completely."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            await writer.drop()


async def _done(keeping: Awaitable[T]) -> T:
    try:
        return await keeping
    except OSError as error:
        raise ProtocolError(
            f"a large value of it could not be kept: {error.strerror or error}"
        ) from error
