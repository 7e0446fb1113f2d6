"""How a client's requests travel: what every way has to do, and the one over HTTP."""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Final, Protocol

import httpx2

from agent_core.base.errors import KnapperError
from agent_core.base.untrusted import one_line
from sandbox.wire.foreign import LOOSE, Malformed, read_json

from ..server.failures import ApiRefusal

Query = Mapping[str, str | int | bool]
_TIMEOUT: Final = httpx2.Timeout(600.0, connect=10.0)
_SILENCE_S: Final = 60.0  # on a stream that has a comment every 15 s


class ConnectionLost(KnapperError):
    """The server cannot be reached, or the connection broke off."""

    code = "connection"


class Wire(Protocol):
    """The way from a client to the operations."""

    async def ask(self, method: str, path: str, query: Query, body: object) -> Any:  # Any: JSON
        """Return the answer to a request.

        Raises:
            ApiRefusal: it was refused, or failed; says why.
            ConnectionLost: there is no answer.
        """

    def stream(self, path: str, after: int) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of an event stream, beginning after a number.

        Raises:
            ApiRefusal: it was refused; says why.
            ConnectionLost: it broke off.
        """

    async def aclose(self) -> None:
        """End the connection."""


class HttpWire:
    """Requests to a server."""

    def __init__(self, url: str, token: str, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        self._url = url.rstrip("/")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx2.AsyncClient(
            base_url=self._url, headers=headers, timeout=_TIMEOUT, transport=transport, follow_redirects=False
        )

    async def ask(self, method: str, path: str, query: Query, body: object) -> Any:  # Any: JSON
        """Return the answer to a request."""
        params = {key: str(value) for key, value in query.items()}
        content = None if body is None else json.dumps(body).encode("utf-8", "replace")
        headers = {} if body is None else {"Content-Type": "application/json"}
        try:
            answer = await self._client.request(method, path, params=params, content=content, headers=headers)
        except httpx2.HTTPError as error:
            raise self._lost(error) from error
        return _result(answer.status_code, answer.content)

    async def stream(self, path: str, after: int) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of an event stream."""
        timeout = httpx2.Timeout(_SILENCE_S)
        try:
            async with self._client.stream("GET", path, params={"after": str(after)}, timeout=timeout) as answer:
                if answer.status_code != 200:
                    _result(answer.status_code, await answer.aread())
                async with aclosing(answer.aiter_raw()) as parts:
                    async for part in parts:
                        yield part
        except httpx2.HTTPError as error:
            raise self._lost(error) from error
        raise ConnectionLost(f"{self._url} has ended the stream.", fix="Is the server running?")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    def _lost(self, error: httpx2.HTTPError) -> ConnectionLost:
        reason = one_line(str(error)) or type(error).__name__
        return ConnectionLost(f"{self._url} cannot be reached: {reason.rstrip('.')}.", fix="Is the server running?")


def _result(status: int, content: bytes) -> Any:  # Any: JSON
    try:
        document = read_json(content, LOOSE)
    except Malformed:
        document = None
    if 200 <= status < 300 and document is not None:
        return document
    raise ApiRefusal.read(status, document)
