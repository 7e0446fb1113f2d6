"""Hostile answers, limits, calls that end in any way, and a human who is asked: every fetch ends."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from agent_core.access.broker import Broker, FetchCaps
from agent_core.access.call_exit import CallExit
from sandbox import FunctionCall, Job, Killed, Raised, RequestRefused, Returned, Sandbox, TimedOut
from sandbox.policy import Limits
from tests.broker.reach import Handler, Reach, refusal
from tests.broker.servers import Request, Server, serving
from tests.sandbox.support import modules

ANSWERS = {
    "huge headers": b"HTTP/1.1 200 -\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
    "large headers": b"HTTP/1.1 200 -\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
    "no HTTP": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "nothing": b"",
    "a line that ends too soon": b"HTTP/1.1 200",
    "a switch of protocols": b"HTTP/1.1 101 -\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nmore",
    "two lengths": b"HTTP/1.1 200 -\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "a folded null": b"HTTP/1.1 200 -\r\nX: a\0b\r\n\r\n",
}


async def test_a_hostile_answer_is_an_error_and_no_more() -> None:
    answers = list[bytes]()
    async with serving(lambda _: answers[-1]) as server:
        for name, answer in ANSWERS.items():
            answers.append(answer)
            async with Broker().session("weather", (f"localhost:{server.port}",)) as session:
                got = await session.answer("fetch", {"url": f"http://localhost:{server.port}/"})
                assert (got["failed"] in {"response", "connection"}, session.open) == (True, 0), (
                    name
                )


async def test_a_body_that_is_sent_ahead_is_held_no_further_than_its_cap() -> None:
    async with Broker(FetchCaps(request=100)).session("weather", ()) as session:
        await session.answer("fetch_send", {"data": b"x" * 60})
        with pytest.raises(RequestRefused, match="100 of them at most"):
            await session.answer("fetch_send", {"data": b"x" * 60})
        await session.answer("fetch_send", {"data": b"x" * 60})  # the excess was dropped


async def drip(_request: Request) -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 -\r\n\r\n"
    for _number in range(10_000):
        yield b"x" * 60_000
        await asyncio.sleep(0)


CAPS = [
    pytest.param(
        FetchCaps(response=1 << 20),
        "for piece in get(): pass",
        "OSError",
        "1048576 bytes",
        id="response",
    ),
    pytest.param(
        FetchCaps(request_s=0.3),
        "r = get()\nwhile r.read(60_000): time.sleep(0.05)",
        "TimeoutError",
        "in time",
        id="time",
    ),
    pytest.param(FetchCaps(call_s=0.0), "get()", "TimeoutError", "in time", id="time of the call"),
    pytest.param(
        FetchCaps(requests=3),
        "for _ in range(4): get().close()",
        "PermissionError",
        "3 requests",
        id="requests",
    ),
    pytest.param(
        FetchCaps(streams=2),
        "a, b, c = get(), get(), get()",
        "PermissionError",
        "2 responses",
        id="streams",
    ),
    pytest.param(
        FetchCaps(request=99_999),
        "get(method='POST', body='x' * 100_000)",
        "PermissionError",
        "99999",
        id="request",
    ),
]


@pytest.mark.parametrize(("caps", "body", "kind", "words"), CAPS)
async def test_a_cap_ends_what_is_beyond_it_in_words(
    reach: Reach, caps: FetchCaps, body: str, kind: str, words: str
) -> None:
    async with serving(drip) as server:
        text = f"import time\nget = lambda **more: self.fetch('http://localhost:{server.port}/', **more)\n{body}"
        outcome = await reach(text, f"localhost:{server.port}", broker=Broker(caps))
    assert isinstance(outcome, Raised)
    assert (outcome.failure.type, words in outcome.failure.message) == (kind, True), outcome.failure


async def stall(_request: Request) -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 -\r\n\r\n"
    while True:
        yield b"x"
        await asyncio.sleep(0.02)


ENDS = [
    pytest.param("return 1", Returned, id="returned"),
    pytest.param("raise ValueError", Raised, id="raised"),
    pytest.param("import os\nos._exit(1)", Killed, id="died"),
    pytest.param("r.read()", TimedOut, id="timed out"),
    pytest.param("while True: pass", TimedOut, id="hung"),
]


@pytest.mark.parametrize(("end", "kind"), ENDS)
async def test_a_stream_is_closed_however_its_call_ends(
    sandbox: Sandbox, end: str, kind: type
) -> None:
    async with serving(stall) as server:
        text = (
            f"def go(self):\n    r = self.fetch('http://localhost:{server.port}/')\n    r.read(1)\n"
        )
        text += "".join(f"    {line}\n" for line in end.splitlines())
        async with Broker().session("weather", (f"localhost:{server.port}",)) as session:
            limits, handler = Limits(wall_s=1.0), Handler(session)
            outcome = await sandbox.run(
                Job(
                    modules(web=text), "web", FunctionCall("go", {}), limits=limits, handler=handler
                )
            )
        assert isinstance(outcome, kind), outcome
        assert (session.open, server.connections) == (0, 1)
        async with asyncio.timeout(10):
            await server.quiet.wait()


async def test_a_human_who_is_asked_live_decides_for_the_rest_of_the_call(
    server: Server, canary: Server
) -> None:
    asked: list[str] = []

    async def want(place: str) -> bool:
        asked.append(place)
        await asyncio.sleep(0.3)
        return place.endswith(f":{server.port}")

    async with Broker(FetchCaps(call_s=0.25, request_s=0.25)).session(
        "weather", (), CallExit(want_host=want)
    ) as session:
        for _ in range(2):
            assert (await session.answer("fetch", {"url": f"http://localhost:{server.port}/"}))[
                "status"
            ] == 200
            assert "may not reach" in await refusal(session, url=f"http://localhost:{canary.port}/")
    assert asked == [f"localhost:{server.port}", f"localhost:{canary.port}"]
    assert canary.connections == 0


async def test_a_human_is_asked_for_three_hosts_of_a_call_and_no_more() -> None:
    asked: list[str] = []

    async def want(place: str) -> bool:
        asked.append(place)
        return False

    async with Broker().session("weather", (), CallExit(want_host=want)) as session:
        for number in range(9):
            assert await refusal(session, url=f"http://{number}.example.org/") != ""
    assert asked == ["0.example.org", "1.example.org", "2.example.org"]
