"""An HTTP transport that calls an application in this process and streams its responses."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import httpx2
from starlette.types import ASGIApp, Message

_END: Final[dict[str, Any]] = {"type": "http.disconnect"}


class StreamingTransport(httpx2.AsyncBaseTransport):
    """Send requests without a socket. The client package's own transport buffers the whole response first."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return the response to a request; its body may still be streaming."""
        exchange = _Exchange(await request.aread())
        url = request.url
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": request.method,
            "headers": [(name.lower(), value) for name, value in request.headers.raw],
            "scheme": url.scheme,
            "path": url.path,
            "raw_path": url.raw_path.split(b"?")[0],
            "query_string": url.query,
            "server": (url.host, url.port),
            "client": ("127.0.0.1", 1),
            "root_path": "",
        }
        exchange.work = asyncio.create_task(exchange.run(self._app, scope))
        status, headers = await exchange.started
        return httpx2.Response(status, headers=headers, stream=exchange)


class _Exchange(httpx2.AsyncByteStream):
    """One request and its response."""

    def __init__(self, body: bytes) -> None:
        self._asked = [{"type": "http.request", "body": body, "more_body": False}]
        self._left = asyncio.Event()
        self._parts: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        self.started: asyncio.Future[tuple[int, list[tuple[bytes, bytes]]]] = (
            asyncio.get_running_loop().create_future()
        )
        self.work: asyncio.Task[None] | None = None

    async def run(self, app: ASGIApp, scope: dict[str, Any]) -> None:
        try:
            await app(scope, self._receive, self._send)
        except Exception as error:  # noqa: BLE001  (whoever asked gets it)
            if not self.started.done():
                self.started.set_exception(error)
        if not self._left.is_set():
            await self._parts.put(None)

    async def _receive(self) -> Message:
        if self._asked:
            return self._asked.pop()
        await self._left.wait()
        return _END

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started.set_result((message["status"], list(message["headers"])))
        elif message.get("body") and not self._left.is_set():
            await self._parts.put(message["body"])

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (part := await self._parts.get()) is not None:
            yield part

    async def aclose(self) -> None:
        """Close the response: the application receives a disconnect and ends."""
        self._left.set()
        while not self._parts.empty():
            self._parts.get_nowait()
        if self.work is not None:
            await self.work
