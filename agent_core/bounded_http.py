"""Answers of a model's endpoint, within bounds: whoever sends may send without end, or what unpacks to too much."""

from collections.abc import AsyncIterator
from typing import Final

import httpx2

MOST_BYTES: Final = 8 << 20  # of an answer
MOST_ERROR_BYTES: Final = 64 << 10  # of an error, whose rest is not read
PLAIN: Final = {"Accept-Encoding": "identity"}
"""The header that asks for an answer as it is."""


class Unbounded(httpx2.HTTPError):
    """An answer that is not read, or not to its end; the message goes behind the endpoint's address."""


async def bound(response: httpx2.Response) -> None:
    """Keep what is read of a response within bounds: a hook of the HTTP client.

    Raises:
        Unbounded: the answer is packed, although none was asked for.
    """
    coding = response.headers.get("content-encoding", "").strip().lower()
    if coding not in ("", "identity"):
        raise Unbounded(f"packed its answer ({coding[:20]!r}), which was not asked for and is not unpacked")
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Bounded(response.stream, is_error=response.is_error)


class _Bounded(httpx2.AsyncByteStream):
    """A body of which no more than may be is read: of an error its beginning, of an answer all or nothing."""

    def __init__(self, body: httpx2.AsyncByteStream, *, is_error: bool) -> None:
        self._body = body
        self._is_error = is_error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MOST_ERROR_BYTES if self._is_error else MOST_BYTES
        async for part in self._body:
            yield part[:left]
            left -= len(part)
            if left < 0 and self._is_error:
                return
            if left < 0:
                raise Unbounded(f"sent more than {MOST_BYTES >> 20} MiB in one answer, which was not read to its end")

    async def aclose(self) -> None:
        """Close the connection's side of it."""
        await self._body.aclose()
