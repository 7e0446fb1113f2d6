"""Messages to paused agents, compared with as many requests to an echo that stores nothing.

The requests are encoded before the clock starts and written unchanged over a few connections that stay open: on two
cores, a client that did more would dominate the measurement.
"""

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import httpx2

from agent_core.workspace.state_store import opened_state

from .measure import Row

EACH: Final = 250
"""The posts per token: it may send 400 requests at once, and then 100 a second."""
_AT_ONCE: Final = 16
_SLICE: Final = (
    250  # requests per slice, alternating with the echo, so that a busy moment affects both
)


class _Line:
    """A connection that stays open."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, requests: Iterator[bytes]) -> None:
        """Send the requests one after another, and await the answer to each."""
        for request in requests:
            self._writer.write(request)
            head = await self._reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            body = await self._reader.readexactly(length)
            assert head.startswith(b"HTTP/1.1 202 "), head + body

    async def close(self) -> None:
        """Close it."""
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()


async def many_posts(
    clients: Sequence[httpx2.AsyncClient], echo: httpx2.AsyncClient, count: int, folder: Path
) -> Row:
    """Time messages to paused agents, one agent per client, against requests that store nothing."""
    agents = [await _paused(clients[0], f"reader{number}") for number in range(len(clients))]
    posts, echoes = [], []
    for number in range(count):
        place, body = number % len(clients), {"text": f"message {number}"}
        posts.append(_encoded(clients[place], f"/api/v1/agents/{agents[place]}/messages", body))
        echoes.append(_encoded(echo, "/taken", body))
    posted = echoed = 0.0
    async with AsyncExitStack() as stack:
        ours, theirs = await _lines(stack, clients[0]), await _lines(stack, echo)
        for start in range(0, count, _SLICE):
            echoed += await _timed(theirs, echoes[start : start + _SLICE])
            posted += await _timed(ours, posts[start : start + _SLICE])
    async with opened_state(folder) as state:
        kept = sum([len(await state.store.waiting(name)) for name in agents])
    assert kept == count, f"{kept} of {count} posts were kept"
    what = f"a post, of {count} ({count / posted:.0f} a second)"
    reference = f"Starlette echo {echoed / count * 1000:.2f} ms ({count / echoed:.0f})"
    return Row(what, posted / count * 1000, reference, posted / echoed)


async def _paused(client: httpx2.AsyncClient, name: str) -> str:
    for path, body in (("/api/v1/agents", {"name": name}), (f"/api/v1/agents/{name}/pause", {})):
        answer = await client.post(path, json=body)
        assert answer.status_code < 300, answer.text
    return name


def _encoded(client: httpx2.AsyncClient, path: str, body: object) -> bytes:
    content = json.dumps(body).encode()
    lines = [
        f"POST {path} HTTP/1.1",
        f"host: {client.base_url.netloc.decode()}",
        f"content-length: {len(content)}",
    ]
    if token := client.headers.get("authorization"):
        lines.append(f"authorization: {token}")
    return "\r\n".join([*lines, "content-type: application/json", "", ""]).encode() + content


async def _lines(stack: AsyncExitStack, client: httpx2.AsyncClient) -> list[_Line]:
    address = urlsplit(str(client.base_url))
    lines = []
    for _ in range(_AT_ONCE):
        lines.append(_Line(*await asyncio.open_connection(address.hostname, address.port)))
        stack.push_async_callback(lines[-1].close)
    return lines


async def _timed(lines: list[_Line], requests: list[bytes]) -> float:
    began, left = time.perf_counter(), iter(requests)
    await asyncio.gather(*(line.send(left) for line in lines))
    return time.perf_counter() - began
