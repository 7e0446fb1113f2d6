"""`python -m benchmarks.server`: the server compared with a plain Starlette echo in the same run.

A streamed turn asks an instant endpoint; it is journaled and synced, the echo stores nothing. Then: posts to paused
agents, so that only the posting counts; 200 event streams with one stuck reader; and `--kills` times, a server that is
killed in mid-stream, restarted, and asked for what follows the last event.
"""

import argparse
import asyncio
import json
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx2

from agent_core.api.identity import SCOPES
from tests.kit import Repeat, Say, scripted

from . import fake_endpoint, served
from .measure import Row, show, timed
from .posts import EACH, many_posts

ROOT: Final = Path(__file__).parents[1]
_STREAMS: Final = 200
_POSTS: Final = 1_000
_TOKENS: Final = 4  # at most 64 streams per token
_PATIENCE_S: Final = 300.0
_MESSAGES: Final = "/api/v1/agents/main/messages"
_END: Final = "turn_ended"
_WORDS: Final = " ".join(f"word{number}" for number in range(30))
Numbered = tuple[int, str]  # the number of an event, and its type


@dataclass
class Serving:
    """A server in a subprocess."""

    url: str
    process: subprocess.Popen[str]
    clients: list[httpx2.AsyncClient]

    @property
    def client(self) -> httpx2.AsyncClient:
        """A client of the server."""
        return self.clients[0]

    def resident(self) -> int:
        """Return the server's resident memory in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("utf-8")
        return int(status.partition("VmRSS:")[2].split()[0]) * 1024


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server", description=__doc__)
    parser.add_argument("--rounds", type=int, default=200, help="streamed turns")
    parser.add_argument("--streams", type=int, default=_STREAMS, help="event streams at once")
    parser.add_argument("--posts", type=int, default=_POSTS, help="messages that are posted")
    parser.add_argument(
        "--kills", type=int, default=3, help="how often the server is killed in mid-stream"
    )
    parser.add_argument(
        "--json", action="store_true", help="one JSON document instead of the table"
    )
    given = parser.parse_args()
    show(
        asyncio.run(bench(given.rounds, given.streams, given.posts, given.kills)),
        as_json=given.json,
    )


async def bench(rounds: int, streams: int, posts: int, kills: int) -> list[Row]:
    """Return the figures."""
    tokens = max(_TOKENS, -(-posts // EACH))
    async with AsyncExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-", dir=Path.cwd()))
        )
        model = f"{stack.enter_context(fake_endpoint.running())}/0/v1"
        echo = await stack.enter_async_context(
            httpx2.AsyncClient(base_url=_echo(stack), timeout=_PATIENCE_S)
        )
        server = await stack.enter_async_context(
            serving(folder, model, await prepared(folder, tokens))
        )
        rows = await _turns(server, echo, rounds)
        rows += await _many_streams(server, streams)
        rows.append(await many_posts(server.clients, echo, posts, folder))
    return [*rows, await _kills(kills)] if kills else rows


async def _turns(server: Serving, echo: httpx2.AsyncClient, rounds: int) -> list[Row]:
    """Time streamed turns and echoes, alternating."""
    ours: list[float] = []
    theirs: list[float] = []
    body = {
        "model": "main@bench",
        "messages": [{"role": "user", "content": "Go on."}],
        "stream": True,
    }
    for number in range(rounds + 5):
        turn = await timed(_drained(server.client, "/v1/chat/completions", body))
        echoed = await timed(_drained(echo, "/echo", {"text": "Done."}))
        if number >= 5:
            ours.append(turn)
            theirs.append(echoed)
    rows = []
    for name, share in (("p50", 0.5), ("p95", 0.95)):
        turn, echoed = _quantile(ours, share), _quantile(theirs, share)
        reference = f"Starlette echo {echoed * 1000:.1f} ms"
        rows.append(Row(f"streamed turn, {name}", turn * 1000, reference, turn / echoed))
    return rows


async def _many_streams(server: Serving, count: int) -> list[Row]:
    """Compare a turn that many streams receive, one of them stuck, with a turn that one stream receives."""
    alone = await _heard_by(server, 1, slow=False)
    before = server.resident()
    held: list[int] = []
    many = await _heard_by(server, count, slow=True, held=held)
    each = max(held[0] - before, 0) / count / 1024
    return [
        Row(
            f"turn heard by {count} streams, one stuck",
            many * 1000,
            f"by one {alone * 1000:.1f} ms",
            many / alone,
        ),
        Row("memory of an open stream", each, unit="KiB"),
    ]


async def _heard_by(
    server: Serving, count: int, *, slow: bool, held: list[int] | None = None
) -> float:
    """Return the seconds from a message until all readers have received the end of its turn."""
    ready = [asyncio.Event() for _ in range(count)]
    async with AsyncExitStack() as stack:
        if slow:
            client = server.clients[0]
            await stack.enter_async_context(client.stream("GET", "/api/v1/agents/main/events"))
        after = (await server.client.post(_MESSAGES, json={"text": "First."})).json()["after"]
        await _until_end(server.client, after)
        after += 1 << 20  # the end of that turn
        readers = [
            asyncio.create_task(_until_end(server.clients[place % _TOKENS], after, ready[place]))
            for place in range(count)
        ]
        for event in ready:
            await event.wait()
        if held is not None:
            held.append(server.resident())
        began = time.perf_counter()
        await server.client.post(_MESSAGES, json={"text": "Second."})
        await asyncio.gather(*readers)
        return time.perf_counter() - began


async def _until_end(
    client: httpx2.AsyncClient, after: int, ready: asyncio.Event | None = None
) -> None:
    async with client.stream(
        "GET", "/api/v1/agents/main/events", params={"after": after}
    ) as answer:
        assert answer.status_code == 200, await answer.aread()
        if ready is not None:
            ready.set()
        async for line in answer.aiter_lines():
            if '"turn_ended"' in line:
                return
    raise AssertionError("the stream ended before its turn")


async def _kills(count: int) -> Row:
    """Kill the server in mid-stream and resume after the last event; raise if one is missing or comes twice."""
    chosen, faults = random.Random(19), Counter[str]()
    with (
        tempfile.TemporaryDirectory(prefix="bench-", dir=Path.cwd()) as name,
        scripted([Repeat(Say(_WORDS, pause_s=0.05))]) as model,
    ):
        folder = Path(name)
        tokens = await prepared(folder, 1)
        killed, after = 0, 0
        before: list[Numbered] | None = None  # the events received of the interrupted turn
        while before is not None or killed < count:
            async with serving(folder, model.base_url, tokens) as server:
                if before is not None:
                    heard = [
                        *before,
                        *await _frames(server.client, before[-1][0] if before else after),
                    ]
                    whole = await _frames(server.client, after)
                    faults["missing"] += sum((Counter(whole) - Counter(heard)).values())
                    faults["twice"] += sum((Counter(heard) - Counter(whole)).values())
                    before = None
                if killed < count:
                    posted = await server.client.post(_MESSAGES, json={"text": f"Go on, {killed}."})
                    after = posted.json()["after"]
                    before = await _frames(server.client, after, chosen.randrange(1, 20))
                    server.process.kill()
            if before and before[-1][1] == _END:
                before = None  # the turn ended before the kill
            killed += before is not None
    assert not faults.total(), f"{count} kills: {dict(faults)}"
    return Row("kill -9 in mid-stream, none missing, none twice", count, unit="times")


async def _frames(
    client: httpx2.AsyncClient, after: int, most: int = sys.maxsize
) -> list[Numbered]:
    """Return the numbered events after a number, until the turn has ended or `most` frames have arrived."""
    frames: list[Numbered] = []
    number, seen = 0, 0
    headers = {"Last-Event-ID": str(after)}
    async with client.stream("GET", "/api/v1/agents/main/events", headers=headers) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("id: "):
                number = int(line[4:])
            elif line.startswith("data: ") or (not line and number):
                kind = json.loads(line[6:])["type"] if line else "moved on"
                seen += 1
                if number:
                    frames.append((number, kind))
                number = 0
                if kind == _END or seen >= most:
                    return frames
    return frames


async def prepared(folder: Path, tokens: int) -> list[str]:
    """Create a workspace and return this many tokens with all scopes."""
    ours = [sys.executable, "-m", "knapper", "-C", str(folder)]
    await asyncio.to_thread(
        subprocess.run, [*ours, "init", str(folder)], cwd=ROOT, capture_output=True, check=True
    )
    return [await asyncio.to_thread(_token, ours, f"bench-{number}") for number in range(tokens)]


@asynccontextmanager
async def serving(folder: Path, model: str, tokens: list[str]) -> AsyncIterator[Serving]:
    """Run a server of a workspace."""
    command = [
        sys.executable,
        "-m",
        "knapper",
        "-C",
        str(folder),
        "serve",
        "--json",
        "--port",
        "0",
    ]
    with _started([*command, "--base-url", model, "--model", "scripted"]) as process:
        assert process.stdout is not None
        url = json.loads(await asyncio.to_thread(process.stdout.readline))["url"]
        async with AsyncExitStack() as stack:
            clients = []
            for token in tokens:
                headers, limits = (
                    {"Authorization": f"Bearer {token}"},
                    httpx2.Limits(max_connections=None),
                )
                client = httpx2.AsyncClient(
                    base_url=url, headers=headers, timeout=_PATIENCE_S, limits=limits
                )
                clients.append(await stack.enter_async_context(client))
            yield Serving(url, process, clients)


@contextmanager
def _started(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait(60)


def _token(ours: list[str], name: str) -> str:
    scopes = [part for scope in SCOPES for part in ("--scope", scope)]
    command = [*ours, "tokens", "add", name, *scopes, "--json"]
    added = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return str(json.loads(added.stdout)["token"])


def _echo(stack: AsyncExitStack) -> str:
    return stack.enter_context(served.running("benchmarks.echo"))


async def _drained(client: httpx2.AsyncClient, path: str, body: object) -> None:
    async with client.stream("POST", path, json=body) as answer:
        assert answer.status_code == 200, await answer.aread()
        async for _ in answer.aiter_raw():
            pass


def _quantile(seconds: list[float], share: float) -> float:
    return statistics.quantiles(seconds, n=100, method="inclusive")[round(share * 100) - 1]


if __name__ == "__main__":
    main()
