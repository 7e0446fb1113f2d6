"""The cost of a brokered fetch: `self.fetch` of a worker, compared with the host's own fetch by the same client.

Both open a new connection to one local server each time. The worker is already running: the benchmark `sandbox`
measures its start. `python -m benchmarks.fetch`
"""

import asyncio
import hashlib
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import httpx2

from agent_core.access.broker import Broker, FetchSession
from sandbox import Code, FunctionCall, Job, RequestHandler, Returned, Sandbox

from .measure import Row, in_turn, median_ms, options, ratio, show, timed

ROUNDS = 40
EACH = 20  # fetches per round, so the figure excludes a worker's start
SIZE = 10_000
AIM = 3.0
TEXT = """
import time

def fetch_often(self, url: str, times: int) -> float:
    self.fetch(url).read()
    began = time.perf_counter()
    for _number in range(times):
        self.fetch(url).read()
    return time.perf_counter() - began
"""
CODE = Code("web", TEXT, "functions/web.py", hashlib.sha256(TEXT.encode()).hexdigest())
_RESPONSE = (
    f"HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\nConnection: close\r\n\r\n".encode() + b"x" * SIZE
)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(_RESPONSE)
    await writer.drain()
    writer.close()
    await writer.wait_closed()


async def by_host(url: str) -> float:
    """Return the seconds of one fetch by the host."""

    async def often() -> None:
        unkept = httpx2.Limits(max_keepalive_connections=0)
        async with httpx2.AsyncClient(verify=False, trust_env=False, limits=unkept) as client:
            for _number in range(EACH):
                assert len((await client.get(url)).content) == SIZE

    return await timed(often()) / EACH


def by_function(sandbox: Sandbox, url: str, host: str) -> Callable[[], Awaitable[float]]:
    """Return the seconds of one fetch by a function, by its own clock."""

    async def act() -> float:
        async with Broker().session("fetch_often", (host,)) as session:
            arguments = {"url": url, "times": EACH}
            outcome = await sandbox.run(
                Job(
                    {"web": CODE},
                    "web",
                    FunctionCall("fetch_often", arguments),
                    handler=handler(session),
                )
            )
        assert isinstance(outcome, Returned), outcome
        return float(outcome.value) / EACH

    return act


def handler(session: FetchSession) -> RequestHandler:
    async def answer(name: str, arguments: dict[str, Any], /) -> Any:
        return await session.answer(name, arguments)

    return answer


async def bench(rounds: int) -> list[Row]:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(await asyncio.start_server(serve, "127.0.0.1", 0))
        sandbox = await stack.enter_async_context(await Sandbox.start())
        host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        url = f"http://{host}/"
        acts = {"host": lambda: by_host(url), "function": by_function(sandbox, url, host)}
        taken = await in_turn(acts, rounds, warm_up=2)
    times = ratio(taken, "function", "host")
    return [
        Row(
            "brokered fetch of 10 kB from a local server",
            median_ms(taken["function"]),
            "by the host",
            times,
            AIM,
        )
    ]


if __name__ == "__main__":
    given = options(__doc__, ROUNDS)
    show(asyncio.run(bench(given.rounds)), as_json=given.json)
    sys.exit(0)
