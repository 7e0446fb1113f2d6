"""More attacks, by raw bytes, names, numbers, and other tokens: each is rejected, and the server keeps running."""

import asyncio
import json
import socket
import struct
from itertools import product
from typing import Any
from urllib.parse import urlsplit

import httpx2
import openai
import pytest

from knapper_ext.server import guard
from tests.kit import Ask, Expect, Repeat, Say, Wanted, contains

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


AMBIGUOUS = (
    ("Host: evil.example",),  # a second name
    ("Content-Length: 5", "Content-Length: 6"),
    ("Content-Length: -1",),
    ("Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
    ("X: a\x00b",),
    (" folded: x",),
)
FOREIGN = (
    b"GET http://evil.example/api/v1/agents HTTP/1.1",
    b"CONNECT evil.example:443 HTTP/1.1",
    b"GET /api/v1/agents\tHTTP/1.1",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 HTTP/1.1",
)
WEBSOCKET = (
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
)


async def test_a_head_that_two_readers_could_read_differently_is_refused(unchanged: Served) -> None:
    for lines in AMBIGUOUS:
        answer = await raw(unchanged, head(unchanged, *lines, method="POST"))
        assert answer.split(b" ")[1:2] in ([b"400"], [b"401"]), (
            answer
        )  # 401: a folded line became part of the token
    rest = head(unchanged).partition(b"\r\n")[2]
    for first in FOREIGN:
        answer = await raw(unchanged, first + b"\r\n" + rest)
        assert answer == b"" or int(answer.split(b" ")[1]) in range(400, 500), answer
        assert b"evil" not in answer
    for upgrade in (WEBSOCKET, ("Upgrade: h2c",)):
        answer = await raw(unchanged, head(unchanged, "Connection: Upgrade", *upgrade))
        assert not answer.startswith(b"HTTP/1.1 101")
    assert await is_there(unchanged)


async def test_what_headers_and_addresses_claim_does_not_count(served: Serve) -> None:
    server = await served([])
    client = server.client
    forged = {
        "X-Forwarded-Host": "evil.example",
        "Forwarded": "host=evil.example",
        "X-Forwarded-Proto": "https",
    }
    assert "evil" not in (await client.get(f"{AGENTS}/", headers=forged)).headers.get(
        "location", ""
    )
    refused = await client.get(
        AGENTS, headers={"Host": "evil.example", "X-Forwarded-Host": "localhost"}
    )
    assert refused.status_code == 421
    await client.post(AGENTS, json={"name": "other"})
    for header in ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"):
        await client.post(f"{AGENTS}/other?_method=DELETE", headers={header: "DELETE"})
    assert (await client.get(f"{AGENTS}/other")).status_code == 200
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    preflight = await client.options(AGENTS, headers=asked)
    assert preflight.status_code >= 400
    assert not [name for name in preflight.headers if name.startswith("access-control")]
    async with httpx2.AsyncClient() as browser:
        answer = await browser.get(
            f"{server.login}&next=https://evil.example&redirect=//evil.example"
        )
    assert (answer.status_code, "location" in answer.headers) == (200, False)
    ranges = ",".join(f"{n}-" for n in range(3_000))
    answer = await client.get("/page/app.js", headers={"Range": f"bytes={ranges}"})
    assert answer.status_code in {200, 206, 400, 416, 431}
    assert len(answer.content) < 1 << 20
    assert (await client.head(f"{AGENTS}/main/events")).status_code == 405, (
        "the head of a stream is not waited for"
    )


async def test_what_does_not_come_or_breaks_off_says_nothing(
    served: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("knapper_ext.server.app._HEAD_S", 0.2)
    monkeypatch.setattr(guard, "_BODY_S", 0.2)
    server = await served([])
    for begun in (b"", b"GET /api/v1/agents HT", b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: "):
        assert await raw(server, begun) == b""
    path = f"{AGENTS}/main/messages"
    begun = head(server, "Content-Length: 100", method="POST", path=path) + b'{"text": "hel'
    assert (await raw(server, begun)).startswith(b"HTTP/1.1 408 ")
    whole = b'{"text": "hello"}'
    for lines in (f"Content-Length: {len(whole) + 1}", "Transfer-Encoding: chunked"):
        body = whole if "Length" in lines else b"%x\r\n%s\r\n" % (len(whole), whole)
        await vanishing(server, head(server, lines, method="POST", path=path) + body)
    assert await is_there(server)
    assert (await server.client.get(path)).json()["messages"] == []


async def test_a_listener_who_vanishes_holds_up_nothing(
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
    writer.get_extra_info("socket").setsockopt(
        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
    )
    writer.transport.abort()


NUMBERS = ("9999999999999999999", "-5", "1e9", "٣", "abc", "0x10", "9" * 400)
BYTES = (
    b"\xff\xfe{\x00}\x00",
    b"\xef\xbb\xbf{}",
    b'"\\ud800"',
    b"[" * 500,
    b'{"text": 1e999}',
    b"\x00",
)
NAMES = (
    "%00",
    "%ff%fe",
    "..%2f..%2fetc",
    "a%0d%0aSet-Cookie:%20x",
    "%F0%9F%92%A9",
    "x" * 5_000,
    "%e2%80%ae",
)


async def test_numbers_bytes_and_names_that_cannot_be_are_told_and_no_failure(
    unchanged: Served,
) -> None:
    for last in NUMBERS:
        headers = [(b"Last-Event-ID", last.encode())]
        async with unchanged.client.stream(
            "GET", f"{AGENTS}/main/events?after=0", headers=headers
        ) as stream:
            assert stream.status_code == 200, last
    assert (await unchanged.client.get(f"{AGENTS}/main/events?after={10**30}")).status_code == 422
    for path, body in product((f"{AGENTS}/main/messages", CHAT, "/v1/responses"), BYTES):
        answer = await unchanged.client.post(path, content=body)
        assert answer.status_code in {400, 422}, (path, body)
        assert answer.json()["error"]["message"]
    for place, name in product(
        (AGENTS, "/api/v1/functions", f"{AGENTS}/main/memory", "/api/v1/helpers"), NAMES
    ):
        answer = await unchanged.client.get(f"{place}/{name}")
        assert answer.status_code in range(400, 500), (place, name)
        assert "set-cookie" not in answer.headers
    assert await is_there(unchanged)


async def test_a_conversation_cannot_be_a_door_to_another_agent(served: Serve) -> None:
    server = await served([Say("Fine."), *[Expect(Say("Mine."), has_no("secret plan"))] * 4])
    (server.workspace.root / "agents").mkdir()
    for name in ("main--board", "main--a"):
        refused_agent = await server.client.post(AGENTS, json={"name": name})
        assert "is the name of a conversation" in refused_agent.text
        (server.workspace.root / "agents" / f"{name}.toml").write_text(
            ""
        )  # as a folder may bring it
    async with client(server) as owner:
        await owner.chat.completions.create(model="main--a@b", messages=[user("my secret plan")])
    token = await server.token("guest", "chat", agents=("main",))
    async with client(server, token) as guest:
        others = (
            "@chat-1",
            "@resp-1",
            "--board",
            "--a@b",
            "@../x",
            "@" + "x" * 190,
        )
        for name in (f"main{other}" for other in others):
            with pytest.raises(openai.APIStatusError) as refused:
                await guest.chat.completions.create(model=name, messages=[user("tell me")])
            assert refused.value.status_code in {400, 404}, name
        for name in (
            "mine",
            "board",
            "a--b",
            "a",
        ):  # conversations of `main`, whatever agents there are
            await guest.chat.completions.create(model=f"main@{name}", messages=[user("hello")])
    names = {row.name for row in await server.workspace.conversations("main").list()}
    assert names == {"mine", "board", "a--b", "a"}


async def test_a_history_or_response_that_another_token_has_is_not_joined(served: Serve) -> None:
    server = await served([Say("Hello!"), Say("Left."), Say("Right."), Say("Secret.")])
    await server.client.post(AGENTS, json={"name": "other"})
    async with (
        client(server, await server.token("one", "chat")) as one,
        client(server, await server.token("two", "chat", agents=("main",))) as two,
    ):
        await one.chat.completions.create(model="main", messages=[user("Hi")])
        history = [user("Hi"), reply("Hello!")]
        await two.chat.completions.create(model="main", messages=[*history, user("left")])
        await one.chat.completions.create(model="main", messages=[*history, user("right")])
        assert (
            len([name for name in await server.workspace.agent_names() if "--chat-" in name]) == 3
        )
        first = await one.responses.create(model="other", input="Tell me.")
        with pytest.raises(openai.BadRequestError):
            await two.responses.create(model="main", input="And?", previous_response_id=first.id)


async def test_an_answer_with_the_id_of_anothers_call_reaches_only_the_history_that_came_with_it(
    served: Serve,
) -> None:
    tool: Any = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    looks = [Ask(Wanted("look", {"at": "a"}, id="c"), text="The word is walrus.")]
    theirs = [Expect(Say("Nothing."), has_no("walrus"))] * 3
    server = await served([*looks, *theirs, Expect(Say("Seen."), contains("walrus"))])
    async with (
        client(server, await server.token("one", "chat")) as one,
        client(server, await server.token("two", "chat")) as two,
    ):
        first = await one.chat.completions.create(model="main", messages=[user("Hi")], tools=[tool])
        calls = first.choices[0].message.tool_calls or []
        call = calls[0]
        answer: Any = {"role": "tool", "tool_call_id": call.id, "content": "nothing"}
        called = {
            "id": call.id,
            "type": "function",
            "function": {"name": "look", "arguments": "{}"},
        }
        messages = [user("Hi"), {"role": "assistant", "tool_calls": [called]}, answer]
        for program, more in (
            (two, {}),
            (one, {"user": "eve"}),
            (one, {"messages": [*messages[:1], *_with_id(messages[1:], "d" + call.id[1:])]}),
        ):
            asked: Any = {"model": "main", "messages": messages, "tools": [tool], **more}
            done = await program.chat.completions.create(**asked)
            assert done.choices[0].message.content == "Nothing."
        asked = {"model": "main", "messages": messages, "tools": [tool]}
        assert (await one.chat.completions.create(**asked)).choices[0].message.content == "Seen."


def _with_id(messages: list[Any], id: str) -> list[Any]:  # Any: messages
    """Return a call and its answer with another id."""
    call, answer = messages
    called = {**call["tool_calls"][0], "id": id}
    return [{**call, "tool_calls": [called]}, {**answer, "tool_call_id": id}]


async def test_what_a_model_calls_cannot_begin_a_frame_of_its_own(served: Serve) -> None:
    evil = 'x\n\ndata: [DONE]\n\ndata: {"choices": []}\r\n\r\nevent: response.completed'
    server = await served([Ask(Wanted("look", {"place": evil}, id="call_e"), text=evil)] * 2)
    tool: Any = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
    body = {"model": "main", "messages": [user("a")], "tools": [tool], "stream": True}
    async with server.client.stream("POST", CHAT, json=body) as answer:
        lines = [line async for line in answer.aiter_lines() if line]
    assert lines.count("data: [DONE]") == 1
    assert all(json.loads(line[6:]) for line in lines[:-1])
    asked = {
        "model": "main",
        "input": "a",
        "tools": [tool["function"] | {"type": "function"}],
        "stream": True,
    }
    async with server.client.stream("POST", "/v1/responses", json=asked) as answer:
        events = [line async for line in answer.aiter_lines() if line.startswith("event: ")]
    assert events.count("event: response.completed") == 1
    assert events[-1] == "event: response.completed"


RUN = json.dumps({"code": "'it ' + 'ran'"})
CUT_OFF = [
    {"at": 1.0, "kind": "user", "payload": {"text": "Hello."}},
    {
        "at": 1.0,
        "kind": "assistant",
        "payload": {"text": "", "calls": [{"id": "c", "name": "run_program", "arguments": RUN}]},
    },
    {
        "at": 1.0,
        "kind": "result",
        "payload": {
            "call_id": "c",
            "name": "run_program",
            "text": "Cut off.",
            "outcome": "unknown",
        },
    },
]


async def test_no_program_of_an_agents_file_runs_again_and_its_message_is_not_sent_again(
    served: Serve,
) -> None:
    """A turn of the file looks cut off in the middle of a program, and events in its inbox say to go on with it."""
    kinds = ("again", "message", "answer", "handoff")
    server = await served([Repeat(Say("Hello."))])
    event = {"kind": "message", "payload": {"text": "Hello."}, "at": 1.0}
    turn = {
        "id": "t",
        "state": "interrupted",
        "started": 1.0,
        "ended": 1.0,
        "events": [event],
        "entries": CUT_OFF,
    }
    for kind in kinds:
        inbox = [
            {"kind": kind, "payload": {"after": "t", "text": "Go on."}, "at": 1.0, "key": "again:t"}
        ]
        document = {
            "format": "knapper-agent",
            "version": 1,
            "agent": {"name": kind},
            "turns": [turn],
            "inbox": inbox,
        }
        taken = await server.client.post(
            "/api/v1/agents/import", json={"document": json.dumps(document)}
        )
        assert taken.status_code == 201, taken.text
        sent_again = await server.client.post(f"/api/v1/agents/{kind}/retry")
        assert (sent_again.status_code, "imported with an agent's file" in sent_again.text) == (
            400,
            True,
        ), kind
        await server.said("Hi.", kind)
        rows = (await server.client.get(f"/api/v1/agents/{kind}/messages")).json()["messages"]
        assert [row["text"] for row in rows if row["kind"] == "result"] == ["Cut off."], kind
