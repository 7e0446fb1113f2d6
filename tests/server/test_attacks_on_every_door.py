"""More attacks, by raw bytes, names, numbers, and other tokens: each is rejected, and the server keeps running."""

import asyncio
import json
import socket
import struct
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai
import pytest

from agent_core.interfaces.server import guard
from tests.kit import Ask, Expect, Repeat, Say, Wanted

from .conftest import Serve, Served, end_of
from .programs import client, has_no, reply, user

AGENTS = "/api/v1/agents"
CHAT = "/v1/chat/completions"
PATIENCE_S = 60.0


async def raw(server: Served, text: bytes) -> bytes:
    """Return the server's answer to raw bytes, until it closes or a whole head has arrived."""
    place = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write(text)
    await writer.drain()
    try:
        async with asyncio.timeout(PATIENCE_S):
            return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as ended:
        return ended.partial
    finally:
        writer.close()


async def is_there(server: Served) -> bool:
    """Check whether the server still answers."""
    return (await server.client.get("/api/v1/status")).status_code == 200


def head(server: Served, *lines: str, method: str = "GET", path: str = AGENTS) -> bytes:
    """Return a request with a valid token and these header lines."""
    auth = server.client.headers["authorization"]
    host = urlsplit(server.url).netloc
    rows = [f"{method} {path} HTTP/1.1", f"Host: {host}", f"Authorization: {auth}", *lines, "", ""]
    return "\r\n".join(rows).encode("latin-1")


@pytest.mark.parametrize(
    "lines",
    [
        ("Host: evil.example",),  # a second name
        ("Content-Length: 5", "Content-Length: 6"),
        ("Content-Length: -1",),
        ("Content-Length: +5",),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
        ("Transfer-Encoding: gzip",),
        ("Bad Name: x",),
        ("X: a\x00b",),
        (" folded: x",),
    ],
)
async def test_a_head_that_two_readers_could_read_differently_is_refused(
    unchanged: Served, lines: tuple[str, ...]
) -> None:
    answer = await raw(unchanged, head(unchanged, *lines, method="POST"))
    assert answer.split(b" ")[1:2] in ([b"400"], [b"401"]), answer  # 401: a folded line became part of the token
    assert await is_there(unchanged)


@pytest.mark.parametrize(
    "first",
    [
        b"GET http://evil.example/api/v1/agents HTTP/1.1",
        b"GET //evil.example/api/v1/agents HTTP/1.1",
        b"CONNECT evil.example:443 HTTP/1.1",
        b"TRACE /api/v1/agents HTTP/1.1",
        b"GET /api/v1/agents\tHTTP/1.1",
        b"get /api/v1/agents HTTP/1.1",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 HTTP/1.1",
    ],
)
async def test_a_request_that_is_none_of_ours_is_refused(unchanged: Served, first: bytes) -> None:
    rest = head(unchanged).partition(b"\r\n")[2]
    answer = await raw(unchanged, first + b"\r\n" + rest)
    assert answer == b"" or int(answer.split(b" ")[1]) in range(400, 500), answer
    assert b"evil" not in answer
    assert await is_there(unchanged)


async def test_names_that_a_proxy_could_have_given_are_not_believed(served: Serve) -> None:
    server = await served([])
    forged = {"X-Forwarded-Host": "evil.example", "Forwarded": "host=evil.example", "X-Forwarded-Proto": "https"}
    answer = await server.client.get(f"{AGENTS}/", headers=forged)
    assert "evil" not in answer.headers.get("location", "")
    refused = await server.client.get(AGENTS, headers={"Host": "evil.example", "X-Forwarded-Host": "localhost"})
    assert refused.status_code == 421


async def test_another_address_in_a_header_does_not_give_more_guesses(served: Serve) -> None:
    server = await served([])
    async with httpx2.AsyncClient(base_url=server.url) as stranger:
        answers = [
            await stranger.get(
                AGENTS,
                headers={
                    "Authorization": f"Bearer tw_{n:08x}_x",
                    "X-Forwarded-For": f"10.0.0.{n}",
                    "X-Real-IP": "1.1.1.1",
                },
            )
            for n in range(24)
        ]
    assert {answer.status_code for answer in answers[21:]} == {429}


async def test_a_method_in_a_header_does_not_count(served: Serve) -> None:
    server = await served([])
    await server.client.post(AGENTS, json={"name": "other"})
    for header in ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"):
        await server.client.post(f"{AGENTS}/other?_method=DELETE", headers={header: "DELETE"})
    assert (await server.client.get(f"{AGENTS}/other")).status_code == 200


async def test_a_preflight_of_another_site_is_promised_nothing(served: Serve) -> None:
    server = await served([])
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    answer = await server.client.options(AGENTS, headers=asked)
    assert answer.status_code >= 400
    assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_a_login_leads_nowhere_else(served: Serve) -> None:
    server = await served([])
    async with httpx2.AsyncClient() as browser:
        answer = await browser.get(f"{server.login}&next=https://evil.example&redirect=//evil.example")
    assert (answer.status_code, "location" in answer.headers) == (200, False)


async def test_many_ranges_of_a_file_of_the_page_are_answered_at_once(served: Serve) -> None:
    server = await served([])
    ranges = ",".join(f"{n}-" for n in range(3_000))
    answer = await server.client.get("/page/app.js", headers={"Range": f"bytes={ranges}"})
    assert answer.status_code in {200, 206, 400, 416, 431}
    assert len(answer.content) < 1 << 20


async def test_the_head_of_a_stream_is_not_waited_for(served: Serve) -> None:
    server = await served([])
    assert (await server.client.head(f"{AGENTS}/main/events")).status_code == 405


async def test_a_head_that_does_not_come_closes_the_connection(served: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_core.interfaces.server.app._HEAD_S", 0.2)
    server = await served([])
    for begun in (b"", b"GET /api/v1/agents HT", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "):
        assert await raw(server, begun) == b""
    assert await is_there(server)


async def test_a_body_that_comes_too_slowly_is_refused(served: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "_BODY_S", 0.2)
    server = await served([])
    begun = head(server, "Content-Length: 100", method="POST", path=f"{AGENTS}/main/messages") + b'{"text": "hel'
    assert (await raw(server, begun)).startswith(b"HTTP/1.1 408 ")
    assert await said(server) == []


async def test_a_body_that_breaks_off_says_nothing(served: Serve) -> None:
    server = await served([])
    whole = b'{"text": "hello"}'
    for lines in (f"Content-Length: {len(whole) + 1}", "Transfer-Encoding: chunked"):
        body = whole if "Length" in lines else b"%x\r\n%s\r\n" % (len(whole), whole)
        await vanishing(server, head(server, lines, method="POST", path=f"{AGENTS}/main/messages") + body)
    assert await is_there(server)
    assert await said(server) == []


async def test_a_listener_who_vanishes_or_never_reads_holds_up_nothing(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "MOST_STREAMS", 2)
    server = await served([Repeat(Say("word " * 2_000))])
    listens = head(server, path=f"{AGENTS}/main/events")
    for _ in range(4):  # more than one token may have at once
        await vanishing(server, listens, b"HTTP/1.1 200 ")
    place = urlsplit(server.url)
    _, stuck = await asyncio.open_connection(place.hostname, place.port, limit=1)
    stuck.write(listens)
    await stuck.drain()
    assert end_of(await server.said("hello"))["reason"] == "replied"
    stuck.close()


async def vanishing(server: Served, text: bytes, until: bytes = b"") -> None:
    """Send bytes, wait until they are answered, and abort the connection."""
    place = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write(text)
    await writer.drain()
    if until:
        assert await reader.readexactly(len(until)) == until
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def said(server: Served) -> list[dict[str, Any]]:  # Any: JSON
    """Return the default agent's conversation."""
    answer = await server.client.get(f"{AGENTS}/main/messages")
    messages: list[dict[str, Any]] = answer.json()["messages"]
    return messages


async def test_a_connection_is_upgraded_to_nothing_else(served: Serve) -> None:
    server = await served([])
    key = (
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    )
    assert not (await raw(server, head(server, *key))).startswith(b"HTTP/1.1 101")
    assert not (await raw(server, head(server, "Connection: Upgrade", "Upgrade: h2c"))).startswith(b"HTTP/1.1 101")
    assert await is_there(server)


@pytest.mark.parametrize("last", ["9999999999999999999", "-5", "1e9", "٣", "abc", "0x10", "9" * 400])
async def test_a_number_of_an_event_that_cannot_be_is_no_failure(unchanged: Served, last: str) -> None:
    headers = [(b"Last-Event-ID", last.encode())]
    async with unchanged.client.stream("GET", f"{AGENTS}/main/events?after=0", headers=headers) as answer:
        assert answer.status_code == 200
    assert (await unchanged.client.get(f"{AGENTS}/main/events?after={10**30}")).status_code == 422
    assert await is_there(unchanged)


@pytest.mark.parametrize(
    "body", [b"\xff\xfe{\x00}\x00", b"\xef\xbb\xbf{}", b'"\\ud800"', b"[" * 500, b'{"text": 1e999}', b"\x00"]
)
@pytest.mark.parametrize("path", [f"{AGENTS}/main/messages", CHAT, "/v1/responses"])
async def test_bytes_that_are_no_request_are_told(unchanged: Served, path: str, body: bytes) -> None:
    answer = await unchanged.client.post(path, content=body)
    assert answer.status_code in {400, 422}
    assert answer.json()["error"]["message"]


async def test_a_conversation_cannot_be_a_door_to_another_agent(served: Serve) -> None:
    server = await served([Expect(Say("Mine."), has_no("secret plan")), Say("Fine.")])
    await server.client.post(AGENTS, json={"name": "main--board"})
    await server.client.post(AGENTS, json={"name": "main--a"})
    async with client(server) as owner:
        await owner.chat.completions.create(model="main--a@b", messages=[user("nothing yet")])
    token = await server.token("guest", "chat", agents=("main",))
    async with client(server, token) as guest:
        for name in (
            "main@board",
            "main@a--b",
            "main@a",
            "main@chat-1",
            "main--board",
            "main--a@b",
            "main@../x",
            "main@" + "x" * 190,
        ):
            with pytest.raises(openai.APIStatusError) as refused:
                await guest.chat.completions.create(model=name, messages=[user("tell me")])
            assert refused.value.status_code in {400, 404}, name
        await guest.chat.completions.create(model="main@mine", messages=[user("hello")])


async def test_a_history_that_another_token_has_is_not_joined(served: Serve) -> None:
    server = await served([Say("Hello!"), Say("Left."), Say("Right.")])
    await server.client.get(AGENTS)
    async with (
        client(server, await server.token("one", "chat")) as one,
        client(server, await server.token("two", "chat")) as two,
    ):
        await one.chat.completions.create(model="main", messages=[user("Hi")])
        history = [user("Hi"), reply("Hello!")]
        await two.chat.completions.create(model="main", messages=[*history, user("left")])
        await one.chat.completions.create(model="main", messages=[*history, user("right")])
    names = [name for name in await server.workspace.agent_names() if "--chat-" in name]
    assert len(names) == 2


async def test_a_response_of_another_agent_cannot_be_continued(served: Serve) -> None:
    server = await served([Say("Secret.")])
    await server.client.post(AGENTS, json={"name": "other"})
    async with client(server) as owner:
        first = await owner.responses.create(model="other", input="Tell me.")
    async with client(server, await server.token("guest", "chat", agents=("main",))) as guest:
        with pytest.raises(openai.BadRequestError):
            await guest.responses.create(model="main", input="And?", previous_response_id=first.id)


async def test_streams_of_chats_are_counted_too(served: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "MOST_STREAMS", 1)
    server = await served([Repeat(Say("One two three four five.", pause_s=0.2))])
    async with client(server) as program:
        stream = await program.chat.completions.create(model="main", messages=[user("a")], stream=True)
        await anext(stream)
        for create in (
            program.chat.completions.create(model="main", messages=[user("b")], stream=True),
            program.responses.create(model="main", input="b", stream=True),
        ):
            with pytest.raises(openai.RateLimitError):
                await create
        await stream.close()


async def test_what_a_model_calls_cannot_begin_a_frame_of_its_own(served: Serve) -> None:
    evil = 'x\n\ndata: [DONE]\n\ndata: {"choices": []}\r\n\r\nevent: response.completed'
    server = await served([Ask(Wanted("look", {"place": evil}, id="call_e"), text=evil)] * 2)
    tool: Any = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    body = {"model": "main", "messages": [user("a")], "tools": [tool], "stream": True}
    async with server.client.stream("POST", CHAT, json=body) as answer:
        lines = [line async for line in answer.aiter_lines() if line]
    assert lines.count("data: [DONE]") == 1
    assert all(json.loads(line[6:]) for line in lines[:-1])
    asked = {"model": "main", "input": "a", "tools": [tool["function"] | {"type": "function"}], "stream": True}
    async with server.client.stream("POST", "/v1/responses", json=asked) as answer:
        events = [line async for line in answer.aiter_lines() if line.startswith("event: ")]
    assert events.count("event: response.completed") == 1
    assert events[-1] == "event: response.completed"


@pytest.mark.parametrize(
    "name", ["%00", "%ff%fe", "..%2f..%2fetc", "a%0d%0aSet-Cookie:%20x", "%F0%9F%92%A9", "x" * 5_000, "%e2%80%ae"]
)
async def test_no_name_in_a_path_brings_a_failure_or_a_header(unchanged: Served, name: str) -> None:
    for path in (
        f"{AGENTS}/{name}",
        f"/api/v1/functions/{name}",
        f"{AGENTS}/main/memory/{name}",
        f"/api/v1/helpers/{name}",
    ):
        answer = await unchanged.client.get(path)
        assert answer.status_code in range(400, 500), path
        assert "set-cookie" not in answer.headers
