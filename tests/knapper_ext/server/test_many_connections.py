"""A client that opens many connections, sends long heads or guesses tokens locks out only itself."""

import asyncio
import json
import resource
from collections.abc import Iterator
from contextlib import AsyncExitStack, suppress
from urllib.parse import urlsplit

import httpx2
import pytest

from agent_core.api.identity import SCOPES
from knapper_ext.server import app, guard
from knapper_ext.server.app import ServeOptions
from tests.kit import Repeat, Say
from tests.kit.drawing import sampled

from .conftest import Serve, Served, ends

AGENTS = "/api/v1/agents"
CHAT = "/v1/chat/completions"
EVENTS = f"{AGENTS}/main/events"
_DESCRIPTORS = 4_000


@pytest.fixture(autouse=True)
def many_descriptors() -> Iterator[None]:
    """Let this process have both ends of a thousand connections; a user's usual limit is 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < _DESCRIPTORS:
        pytest.skip(f"needs {_DESCRIPTORS} open files, and {hard} are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, _DESCRIPTORS), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def place(server: Served) -> tuple[str, int]:
    """Return the address on which the server listens."""
    url = urlsplit(server.url)
    assert url.hostname is not None
    assert url.port is not None
    return url.hostname, url.port


async def status_of(server: Served, head: bytes) -> int:
    """Return the status of the response to a head."""
    reader, writer = await asyncio.open_connection(*place(server))
    try:
        async with asyncio.timeout(60):
            writer.write(head)
            return int((await reader.readline()).split(b" ")[1])
    finally:
        writer.close()


def head_of(server: Served, size: int, path: str = "/api/v1/status", fill: bytes = b"a") -> bytes:
    """Return a request with a valid token and a head of this many bytes."""
    lines = f"GET {path} HTTP/1.1\r\nHost: {urlsplit(server.url).netloc}\r\nAuthorization: Bearer {server.key}\r\n"
    begun = lines.encode() + b"X-Long: "
    count, rest = divmod(size - len(begun) - 5, len(fill))
    return begun + fill * count + b"a" * rest + b"b\r\n\r\n"


@pytest.mark.sampled
@pytest.mark.parametrize(
    "begun",
    sampled(
        [b"POST /login HTTP/1.1\r\nContent-Length: 9\r\n", b"", b"GET / HTTP/1.1\r\nHost: "], 3
    ),
)
async def test_a_thousand_connections_without_a_token_keep_nobody_out(
    served: Serve, begun: bytes
) -> None:
    server = await served([])
    crowd = [await asyncio.open_connection(*place(server)) for _ in range(300)]
    for _, writer in crowd:
        writer.write(begun)
    crowd += [await asyncio.open_connection(*place(server)) for _ in range(700)]
    async with httpx2.AsyncClient(base_url=server.url, timeout=5) as newcomer:
        assert (await newcomer.get("/openapi.json")).status_code == 401
        right = {"Authorization": f"Bearer {server.key}"}
        assert (await newcomer.get("/api/v1/status", headers=right)).status_code == 200
    assert sum(not reader.at_eof() for reader, _ in crowd) <= app._MOST_STRANGERS
    async with asyncio.timeout(30):
        while sum(not reader.at_eof() for reader, _ in crowd) > app._OF_AN_ADDRESS:  # noqa: ASYNC110 - timers of the server
            await asyncio.sleep(0.1)
    for _, writer in crowd:
        writer.close()


async def test_a_connection_that_showed_a_good_token_stays_however_many_come_without_one(
    served: Serve,
) -> None:
    server = await served([])
    assert (await server.client.get("/api/v1/status")).status_code == 200
    reader, writer = await asyncio.open_connection(*place(server))
    writer.write(head_of(server, 400))
    await reader.readuntil(b"}")
    crowd = [await asyncio.open_connection(*place(server)) for _ in range(2 * app._OF_AN_ADDRESS)]
    writer.write(head_of(server, 400))
    async with asyncio.timeout(30):
        assert b" 200 " in await reader.readuntil(b"\r\n")
    for _, other in [*crowd, (reader, writer)]:
        other.close()


async def test_a_head_may_have_32_kib_and_no_byte_more(unchanged: Served) -> None:
    for fill in (b"a", b" ", b"\r\nX: a"):
        for size, status in ((32 << 10, 200), ((32 << 10) + 1, 400), (40_000, 400), (70_000, 400)):
            assert await status_of(unchanged, head_of(unchanged, size, fill=fill)) == status, (
                fill,
                size,
            )
    assert (
        await status_of(unchanged, head_of(unchanged, 40_000, "/api/v1/status?" + "a" * 39_000))
        == 400
    )
    reader, writer = await asyncio.open_connection(*place(unchanged))
    writer.write(head_of(unchanged, 300) + head_of(unchanged, 40_000))
    async with asyncio.timeout(30):
        answers = await reader.read()
    assert [answers.count(b"HTTP/1.1 %d " % status) for status in (200, 400)] == [1, 1], (
        "also behind another"
    )
    writer.close()


async def test_wrong_tokens_brake_only_wrong_tokens(served: Serve) -> None:
    server = await served([])
    async with httpx2.AsyncClient(base_url=server.url) as stranger:
        wrong = [
            {
                "Authorization": f"Bearer tw_{n:08x}_x",
                "X-Forwarded-For": f"10.0.0.{n}",
                "X-Real-IP": "1.1.1.1",
            }
            for n in range(40)
        ]
        answers = [await stranger.get(AGENTS, headers=headers) for headers in wrong]
        assert [answer.status_code for answer in answers[:20]] == [401] * 20
        assert answers[-1].status_code == 429
        right = {"Authorization": f"Bearer {server.key}"}
        assert (await stranger.get(AGENTS, headers=right)).status_code == 200
        assert (
            await stranger.get(AGENTS, headers={"Authorization": "Bearer tw_0_x"})
        ).status_code == 429


async def test_a_token_has_no_more_streams_than_it_may_at_once(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "MOST_STREAMS", 4)
    server = await served([Repeat(Say("One two three four five six seven.", pause_s=0.3))])
    said = {"role": "user", "content": "a"}
    asked = {
        "events": ("GET", EVENTS, None),
        "chat": ("POST", CHAT, {"model": "main", "messages": [said], "stream": True}),
        "responses": ("POST", "/v1/responses", {"model": "main", "input": "a", "stream": True}),
    }
    for kind, (method, path, body) in asked.items():
        client = await server.as_(kind, *SCOPES)
        async with AsyncExitStack() as stack:
            streams = await asyncio.gather(
                *(
                    stack.enter_async_context(client.stream(method, path, json=body))
                    for _ in range(9)
                )
            )
            statuses = sorted(answer.status_code for answer in streams)
        assert statuses == [200] * 4 + [429] * 5, kind
        async with client.stream("GET", EVENTS) as again:
            assert again.status_code == 200, kind


def large_head(
    server: Served, key: str, size: int, path: str = "/api/v1/functions/slugify/call"
) -> bytes:
    """Return the head of a request with a large body."""
    rows = (
        f"POST {path} HTTP/1.1",
        f"Host: {urlsplit(server.url).netloc}",
        f"Authorization: Bearer {key}",
    )
    return "\r\n".join([*rows, f"Content-Length: {size}", "Connection: close", "", ""]).encode()


async def test_large_bodies_of_a_token_wait_for_each_other_and_for_no_other_token(
    served: Serve,
) -> None:
    server = await served([])
    other, size = await server.token("other", "chat"), guard._LARGE + 1
    body = b" " * size
    async with asyncio.timeout(30):
        begun = [await asyncio.open_connection(*place(server)) for _ in range(guard._LARGE_AT_ONCE)]
        for _, writer in begun:
            writer.write(large_head(server, server.key, size))
        waiting, sender = await asyncio.open_connection(*place(server))
        sender.write(large_head(server, server.key, size) + body)
        reader, writer = await asyncio.open_connection(*place(server))
        writer.write(large_head(server, other, size) + body)
        assert b" 422 " in await reader.readline()
        assert (await server.client.get("/api/v1/status")).status_code == 200
        answer = asyncio.create_task(waiting.readline())
        assert not (await asyncio.wait([answer], timeout=0.2))[0]
        begun[0][1].write(body)
        assert b" 422 " in await answer
    for _, opened in [*begun, (waiting, sender), (reader, writer)]:
        opened.close()


async def test_who_has_no_token_sends_no_large_body_and_waits_for_no_other_stranger(
    unchanged: Served,
) -> None:
    async with httpx2.AsyncClient(
        base_url=unchanged.url, headers={"Origin": unchanged.url}
    ) as stranger:
        for size in (17_000, 1 << 20):
            refused = await stranger.post("/login", json={"code": "a" * size})
            assert (refused.status_code, refused.json()["error"]["code"]) == (413, "too-large")
        wrong = await stranger.post("/login", json={"code": "a" * 1_000})
        assert wrong.status_code not in (200, 413)
    rows = (
        "POST /login HTTP/1.1",
        f"Host: {urlsplit(unchanged.url).netloc}",
        f"Origin: {unchanged.url}",
    )
    head = "\r\n".join([*rows, "Transfer-Encoding: chunked", "Connection: close", "", ""]).encode()
    async with asyncio.timeout(10):
        begun = [
            await asyncio.open_connection(*place(unchanged))
            for _ in range(guard._LARGE_AT_ONCE + 1)
        ]
        for _, writer in begun:
            writer.write(head)
        reader, writer = begun[-1]
        writer.write(b"0\r\n\r\n")
        assert await reader.readline()
    for _, opened in begun:
        opened.close()


async def test_a_large_body_keeps_its_place_only_until_its_turn_has_begun(served: Serve) -> None:
    server = await served([Repeat(Say("One two three four five six.", pause_s=0.4))])
    text = "word " * (guard._LARGE // 5 + 1)
    chats = [
        server.client.post(
            CHAT, json={"model": f"main@c{n}", "messages": [{"role": "user", "content": text}]}
        )
        for n in range(2 * guard._LARGE_AT_ONCE)
    ]
    running = [asyncio.create_task(chat) for chat in chats]
    async with asyncio.timeout(60):
        while len(server.model.requests) < len(running):  # noqa: ASYNC110 - the model tells nobody
            await asyncio.sleep(0.02)
        assert (await server.client.get("/api/v1/status")).json()["running"] == ["main"]
        assert {(await chat).status_code for chat in running} == {200}


def chunked(server: Served, key: str, pieces: bytes, path: str = CHAT) -> bytes:
    """Return a request whose body is sent in these pieces."""
    lines = [
        f"POST {path} HTTP/1.1",
        f"Host: {urlsplit(server.url).netloc}",
        "Transfer-Encoding: chunked",
    ]
    return (
        "\r\n".join([*lines, *([f"Authorization: Bearer {key}"] if key else []), "", ""]).encode()
        + pieces
    )


async def test_a_body_in_some_hundred_pieces_is_read_and_no_longer(
    served: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    server = await served([Say("Hello.")])
    body = json.dumps(
        {"model": "main", "messages": [{"role": "user", "content": "a" * 300}]}
    ).encode()
    pieces = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    assert await status_of(server, chunked(server, server.key, pieces)) == 200
    for path, key in (("/login", ""), (CHAT, server.key)):
        reader, writer = await asyncio.open_connection(*place(server))
        writer.write(chunked(server, key, b"1\r\na\r\n" * 100_000, path))
        async with asyncio.timeout(10):
            with suppress(ConnectionError):
                answer = await reader.read()
                assert answer.split(b" ", 2)[1] in (b"400", b"413"), path
        writer.close()
    caplog.clear()
    reader, writer = await asyncio.open_connection(*place(server))
    writer.write(chunked(server, "", b"1\r\na\r\n"))
    async with asyncio.timeout(10):
        assert b" 401 " in await reader.readline()
        writer.write(b"no chunk\r\n")  # no longer HTTP after its answer: it ends the connection
        await reader.read()
    writer.close()
    assert not caplog.records


async def test_connections_of_a_token_end_only_each_other(served: Serve) -> None:
    server = await served([])
    other = await server.token("other", "read")
    crowd = [await asyncio.open_connection(*place(server)) for _ in range(2)]
    for _ in range(1_100):
        reader, writer = await asyncio.open_connection(*place(server))
        writer.write(head_of(server, 400))
        await reader.readuntil(b"}")
        crowd.append((reader, writer))
    async with httpx2.AsyncClient(
        base_url=server.url, headers={"Authorization": f"Bearer {other}"}
    ) as client:
        assert (await client.get("/api/v1/status")).status_code == 200
        assert (await client.get("/", headers={"Authorization": ""})).status_code == 200
    is_open = [reader.exception() is None and not reader._eof for reader, _ in crowd]  # type: ignore[attr-defined]
    assert is_open[:2] == [True, True]  # other clients' connections
    assert sum(is_open[2:]) <= guard.MOST_REQUESTS
    for _, writer in crowd:
        writer.close()


async def test_requests_whose_clients_have_left_are_over(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "MOST_REQUESTS", 2)
    server = await served([Say("Yes.")] * 2)
    await server.begin_as_before("desk")
    await server.client.post(f"{AGENTS}/main--desk/pause")
    chat = {"model": "main@desk", "messages": [{"role": "user", "content": "a"}]}
    asked = ((CHAT, chat), ("/v1/responses", {"model": "main@desk", "input": "b"}))
    for count, (path, body) in enumerate(asked, 1):
        asking = asyncio.create_task(server.client.post(path, json=body))
        while len(await server.workspace.store.waiting("main--desk")) < count:  # noqa: ASYNC110 - it is on disk
            await asyncio.sleep(0.01)
        asking.cancel()
    async with asyncio.timeout(10):
        while (  # noqa: ASYNC110 - as a client would
            resumed := await server.client.post(f"{AGENTS}/main--desk/resume")
        ).status_code == 429:
            await asyncio.sleep(0.05)
    assert resumed.status_code == 200
    await server.frames(ends(2), agent="main--desk")


async def test_wrong_tokens_from_all_addresses_of_one_network_are_those_of_one_sender(
    served: Serve,
) -> None:
    server = await served([], ServeOptions(port=0, is_behind_proxy=True))
    wrong = {"Authorization": "Bearer tw_0_x"}

    async def status_from(address: str, token: dict[str, str]) -> int:
        return (
            await server.client.get(AGENTS, headers={**token, "X-Forwarded-For": address})
        ).status_code

    assert [await status_from(f"2001:db8:0:1::{n:x}", wrong) for n in range(30)][-1] == 429
    assert await status_from("2001:db8:0:2::1", wrong) == 401
    assert await status_from("2001:db8:0:1::1", {"Authorization": f"Bearer {server.key}"}) == 200
    for one, other in (
        ("192.0.2.1", "::ffff:192.0.2.1"),
        ("2001:db8:0:1::1", "2001:db8:0:1:ffff::7"),
    ):
        assert guard.network(one) == guard.network(other)
        assert guard.network(one) not in (
            guard.network("192.0.2.2"),
            guard.network("2001:db8:0:2::1"),
        )
