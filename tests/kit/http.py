"""A minimal HTTP/1.1 server on its own thread, with whole or chunked responses."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True)
class Request:
    """One request of a client."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Answer:
    """The response that a handler writes: `send` for a whole one, or `begin`, `write` and `end` for a chunked one."""

    _writer: asyncio.StreamWriter
    broken: bool = field(default=False)

    async def send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        lengths = {
            "Content-Type": "application/json",
            **(headers or {}),
            "Content-Length": str(len(body)),
        }
        self._writer.write(_head(status, lengths) + body)
        await self._writer.drain()

    def begin(self, content_type: str) -> None:
        self._writer.write(
            _head(200, {"Content-Type": content_type, "Transfer-Encoding": "chunked"})
        )

    async def write(self, part: bytes) -> None:
        """Write one part, split into two chunks as networks do."""
        half = len(part) // 2
        for torn in filter(None, (part[:half], part[half:])):
            self._writer.write(f"{len(torn):x}\r\n".encode() + torn + b"\r\n")
        await self._writer.drain()

    async def end(self) -> None:
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    def cut(self) -> None:
        """Break the connection."""
        self.broken = True
        self._writer.close()


Handler: TypeAlias = Callable[[Request, Answer], Awaitable[None]]


class Server:
    """Serves on a free loopback port until closed."""

    def __init__(self, handler: Handler, *, port: int = 0) -> None:
        self._handler = handler
        self.connections = 0
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="scripted-model", daemon=True
        )
        self._thread.start()
        starting = asyncio.start_server(self._accept, "127.0.0.1", port, limit=1 << 26)
        self._server = asyncio.run_coroutine_threadsafe(starting, self._loop).result(5)
        self.port: int = self._server.sockets[0].getsockname()[1]

    @property
    def active(self) -> int:
        return len(self._tasks)

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    async def _stop(self) -> None:
        # asyncio leaves a connection open that arrived just before the server closes: stop listening, accept the last
        # connections, and only then close.
        for listening in self._server.sockets:
            self._loop.remove_reader(listening.fileno())
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(others, timeout=0.01)
        self._server.close()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._serve(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            request = await _read(reader)
            answer = Answer(writer)
            await self._handler(request, answer)
            if (
                answer.broken
                or request.headers.get("connection") == "close"
                or "1.0" in request.headers[":version"]
            ):
                return


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, path, version = head[0].split(" ")
    headers = {
        name.lower(): value.strip()
        for name, _, value in (line.partition(":") for line in head[1:] if line)
    }
    headers[":version"] = version
    return Request(
        method, path, headers, await reader.readexactly(int(headers.get("content-length", "0")))
    )


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = [
        f"HTTP/1.1 {status} -",
        *(f"{name}: {value}" for name, value in headers.items()),
        "",
        "",
    ]
    return "\r\n".join(lines).encode("latin-1")
