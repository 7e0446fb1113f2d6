"""Size limits for responses of a model's endpoint: a sender may send without end, or data that unpacks to too much."""

from collections.abc import AsyncIterator
from typing import Final

import httpx2

MOST_BYTES: Final = 8 << 20  # of an answer
MOST_ERROR_BYTES: Final = 64 << 10  # of an error; the rest is not read
PLAIN: Final = {"Accept-Encoding": "identity"}
"""The header that asks for an answer as it is."""


class Unbounded(httpx2.RequestError):
    """A response that is not read, or not to its end; the message follows the endpoint's address."""


async def bound(response: httpx2.Response) -> None:
    """Limit how much of a response is read; a hook of the HTTP client.

    Raises:
        Unbounded: the answer is packed, although none was asked for.
    """
    coding = response.headers.get("content-encoding", "").strip().lower()
    if coding not in ("", "identity"):
        raise Unbounded(f"packed its answer ({coding[:20]!r}), which was not asked for and is not unpacked")
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Bounded(response.stream, is_error=response.is_error)


class _Bounded(httpx2.AsyncByteStream):
    """A response body that is read up to a limit: the beginning of an error, all or nothing of an answer."""

    def __init__(self, body: httpx2.AsyncByteStream, *, is_error: bool) -> None:
        self._body = body
        self._is_error = is_error

    async def __aiter__(self) -> AsyncIterator[bytes]:
        remaining = MOST_ERROR_BYTES if self._is_error else MOST_BYTES
        async for part in self._body:
            yield part[:remaining]
            remaining -= len(part)
            if remaining < 0 and self._is_error:
                return
            if remaining < 0:
                raise Unbounded(f"sent more than {MOST_BYTES >> 20} MiB in one answer, which was not read to its end")

    async def aclose(self) -> None:
        """Close the connection's side of the body."""
        await self._body.aclose()
