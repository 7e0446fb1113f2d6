"""A conversation of any length is read, held and sent a page at a time."""

import asyncio
import json
import socket
import sqlite3
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import pytest

from agent_core import Workspace
from agent_core.api.agent_host import Listening
from agent_core.base import events
from agent_core.operations.history_pages import MOST_HELD, PAGE_BYTES
from agent_core.storage import Entry, Store
from knapper_ext.server.guard import HeldPages
from sandbox import Sandbox
from tests.kit import Repeat, Say
from tests.kit.heartbeat import MOST_MS, stall_of
from tests.storage.support import begin, user

from .conftest import Serve, Served, ends

MAIN = "/api/v1/agents/main"
MESSAGES = f"{MAIN}/messages"
LARGE = 900_000
Fill: TypeAlias = Callable[[list[list[Entry]]], Awaitable[Served]]


async def say(store: Store, entries: list[Entry]) -> None:
    """Store a finished turn."""
    turn = await begin(store)
    await store.append(turn.id, turn.attempt, 0, entries)
    await store.finish(turn.id, turn.attempt)


@pytest.fixture
async def filled(tmp_path: Path, one_sandbox: Sandbox, served: Serve) -> Fill:
    """Start a server whose agent has had these turns."""

    async def start(turns: list[list[Entry]]) -> Served:
        async with Workspace.open(tmp_path, sandbox=one_sandbox) as workspace:
            for entries in turns:
                await say(workspace.store, entries)
        return await served([])

    return start


def large(number: int) -> list[Entry]:
    return [user(f"{number} " + "a" * LARGE), Entry("assistant", {"text": f"answer {number}"})]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def stall(server: Served, path: str, stack: ExitStack) -> None:
    """Send a request and read nothing of the response."""
    url = urlsplit(server.url)
    assert url.hostname is not None
    assert url.port is not None
    client = stack.enter_context(socket.create_connection((url.hostname, url.port)))
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    lines = (
        f"GET {path} HTTP/1.1",
        f"Host: {url.netloc}",
        f"Authorization: Bearer {server.key}",
        "",
        "",
    )
    client.sendall("\r\n".join(lines).encode())


async def settled_peak() -> int:
    """Return the most bytes that were held, once that has not grown for a while."""
    peaks = [tracemalloc.get_traced_memory()[1]]
    while len(peaks) < 100 and (len(peaks) < 20 or peaks[-20] < peaks[-1]):
        await asyncio.sleep(0.03)
        peaks.append(tracemalloc.get_traced_memory()[1])
    return peaks[-1]


@pytest.mark.parametrize(
    "path", [f"{MAIN}/events", MESSAGES, f"{MESSAGES}?last=50", f"{MAIN}/steps", "/api/v1/growth"]
)
async def test_many_clients_that_read_nothing_hold_a_few_pages_in_all(
    filled: Fill, stack: ExitStack, path: str
) -> None:
    server = await filled(
        [[Entry("assistant", {"text": "b" * LARGE}), *large(number)] for number in range(20)]
    )
    tracemalloc.start()
    try:
        for _ in range(12):
            stall(server, path, stack)
        peak = await settled_peak()
    finally:
        tracemalloc.stop()
    assert peak < 5 * MOST_HELD, "twelve copies of the conversation would be 400 MiB"
    # Others are served meanwhile, and a token that is not stalled reads everything.
    other = await server.as_("other", "chat")
    assert (await other.get(f"{MESSAGES}?last=1")).json()["messages"][0]["text"] == "answer 19"


async def test_a_stream_of_many_pages_has_every_event_once_and_in_order(filled: Fill) -> None:
    server = await filled([large(number) for number in range(9)])
    frames = await server.frames(ends(9))
    told = [data for _, data in frames if data is not None]
    begun = [data["message"].partition(" ")[0] for data in told if data["type"] == "turn_started"]
    assert begun == [str(number) for number in range(9)]
    assert [data["reply"] for data in told if data["type"] == "turn_ended"] == [
        f"answer {n}" for n in range(9)
    ]
    numbers = [number for number, _ in frames if number is not None]
    assert numbers == sorted(numbers)
    for last in numbers[3::7]:  # wherever a client goes on
        again = await server.frames(ends(sum(number > last for number in numbers[-1:])), after=last)
        assert again[0][0] == next(number for number in numbers if number > last)


async def pages(
    server: Served, name: str, place: Callable[[dict[str, Any]], int], query: str
) -> list[Any]:
    """Return the pages of a conversation."""
    found, more = list[Any](), f"?{query}"
    while more:
        answer = await server.client.get(MESSAGES + more)
        assert len(answer.content) <= 2 * PAGE_BYTES
        found.append(answer.json())
        more = f"?{query}&{name}={place(found[-1])}" if found[-1]["more"] else ""
    return found


async def test_a_conversation_is_read_page_by_page_in_both_directions(filled: Fill) -> None:
    server = await filled([large(number) for number in range(7)])
    forward = await pages(server, "after", lambda page: int(page["after"]), "count=100")
    backward = await pages(
        server, "before", lambda page: int(page["messages"][0]["seq"]), "last=100"
    )
    rows = [row for page in forward for row in page["messages"]]
    assert rows == [row for page in backward[::-1] for row in page["messages"]]
    assert [row["text"][:8] for row in rows if row["kind"] == "assistant"] == [
        f"answer {n}" for n in range(7)
    ]
    assert len(forward) > 2
    assert len(backward) > 2


async def test_an_entry_that_is_larger_than_a_page_is_cut_and_can_be_had_whole(
    filled: Fill,
) -> None:
    text = "word " * 1_500_000
    calls = [{"id": "c", "name": "f", "arguments": json.dumps({"text": text})}]
    turn = [
        user("hello"),
        Entry("assistant", {"text": text, "calls": calls}),
        Entry("result", {"call_id": "c", "name": "f", "text": ""}),
    ]
    server = await filled([turn, large(1)])
    found = await pages(server, "after", lambda page: int(page["after"]), "count=9")
    _, cut, *_ = [row for page in found for row in page["messages"]]
    assert cut["text"].startswith("word word")
    assert cut["text"].endswith(cut["cut"])
    assert "characters of `text`" in cut["cut"]
    assert cut["calls"][0]["name"] == "f"
    place = cut["cut"].rpartition("GET ")[2].rstrip("]")
    whole = (await server.client.get(place)).json()["messages"]
    assert [(row["text"], row["calls"]) for row in whole] == [(text, calls)]
    told = [data for _, data in await server.frames(ends(2)) if data is not None]
    assert [data["text"] for data in told if data["type"] == "text"] == [cut["text"], "answer 1"]
    steps = (await server.client.get(f"{MAIN}/steps")).json()["steps"]
    assert [(step["calls"], step["text"][:9]) for step in steps] == [
        (["f"], "word word"),
        ([], "answer 1"),
    ]


async def test_a_reader_waits_until_another_of_its_token_has_read() -> None:
    held = HeldPages()
    with held.of_request("me") as mine, held.of_request("you") as yours:
        release = await mine(MOST_HELD)
        await yours(MOST_HELD)
        with held.of_request("me") as again:
            waiting = asyncio.ensure_future(again(PAGE_BYTES))
            await asyncio.sleep(0)
            assert not waiting.done()
            release()
            await asyncio.wait_for(waiting, 5)
    with held.of_request("me") as later:
        await asyncio.wait_for(later(MOST_HELD), 5)


async def test_a_listener_that_reads_nothing_holds_a_bounded_part_of_what_happens() -> None:
    live, saved = Listening(reads_journal=True), Listening(reads_journal=True)
    for number in range(40):
        live.hear(events.MessageAdded(turn="", message=f"{number} {'a' * LARGE}"))
        live.hear(events.Text(turn="t", step=number, text="b" * 10_000))
        saved.hear(
            events.CallAnswered(
                turn="t",
                call_id=str(number),
                name="f",
                text="c" * LARGE,
                outcome="returned",
                seconds=0.0,
                detail={"more": "d" * LARGE},
                seq=number + 1,
            )
        )
    assert (live.is_behind, saved.is_behind) == (True, False), "what is on disk is read there"
    held = [[event async for event in all_of(listening)] for listening in (live, saved)]
    assert [sum(len(str(event.to_json())) for event in row) < 2 << 20 for row in held] == [
        True,
        True,
    ]
    assert [event.seq for event in held[1]] == [number + 1 for number in range(40)]


async def all_of(listening: Listening) -> AsyncIterator[events.Event]:
    """Yield all that is queued."""
    while (event := await listening.next(0.01)) is not None:
        yield event


async def test_an_agent_that_cannot_be_read_is_listed_and_deleted_and_costs_nobody_else_anything(
    tmp_path: Path, one_sandbox: Sandbox, served: Serve
) -> None:
    async with Workspace.open(tmp_path, sandbox=one_sandbox) as workspace:
        await say(workspace.store, [user("mine")])
        turn = await begin(workspace.store, "guest")
        await workspace.store.append(
            turn.id, turn.attempt, 0, [Entry("assistant", {"reasoning": {}})]
        )
        await workspace.store.finish(turn.id, turn.attempt)
    server = await served([])
    refused = await server.client.get("/api/v1/agents/guest/messages")
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "misfit")
    assert "agents delete guest" in refused.json()["error"]["fix"]
    assert [row["text"] for row in (await server.client.get(MESSAGES)).json()["messages"]] == [
        "mine"
    ]
    assert {
        row["name"] for row in (await server.client.get("/api/v1/agents")).json()["agents"]
    } >= {"main", "guest"}
    deleted = await server.client.post(
        "/api/v1/commands", json={"words": ["agents", "delete", "guest", "-y"]}
    )
    assert deleted.status_code == 200, deleted.text
    assert "guest" not in await server.workspace.store.agent_names(), deleted.text
    assert not [*(tmp_path / ".knapper").glob("*.corrupt-*")]


SPENT = (
    "insert into spent (id, at, turn, line, unattended, model, prompt, cached, completion, most_in, most_out)"
    " values (?, ?, ?, ?, 0, ?, 3000, 2000, 300, 0, 0)"
)


@pytest.mark.parametrize("by", ["day", "agent", "conversation", "turn"])
async def test_the_costs_of_a_year_are_summed_in_the_store(
    served: Serve, tmp_path: Path, by: str
) -> None:
    server = await served([])
    day = 86_400.0
    newest = 1_700_000_000.0
    with closing(sqlite3.connect(tmp_path / ".knapper" / "state.db")) as state, state:
        rows = ((n, newest - n * day / 300, n // 5, f"m{n % 2}") for n in range(100_000)[::-1])
        state.executemany(SPENT, ((f"r{n}", at, f"t{t}", "main", m) for n, at, t, m in rows))
    reader = await server.as_("reader", "read")
    body = {"words": ["cost", "", by]}
    assert (await reader.post("/api/v1/commands", json=body)).status_code == 200  # it imports
    tracemalloc.start()
    try:
        answer = await reader.post("/api/v1/commands", json=body)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20, "the requests themselves would be 30 MiB and more"
    document = answer.json()["document"]
    assert document["total"]["steps"] == 100_000
    assert document["total"]["prompt"] == 300_000_000
    assert document["unpriced"] == ["m0", "m1"]
    shown = [(row["agent"], row["steps"]) for row in document["rows"]]
    if by == "turn":
        assert shown == [(f"t{n}", 5) for n in range(30)[::-1]]
    elif by == "day":
        assert [steps for _, steps in shown[1:-1]] == [300] * 28
        assert shown == sorted(shown)
    else:
        assert shown == [("main", 100_000)]

    async def ask() -> None:
        assert (await reader.post("/api/v1/commands", json=body)).status_code == 200

    assert (await stall_of(ask)).cpu_ms <= MOST_MS


def _parts(count: int) -> dict[str, Any]:
    return {f"a{n}": {"type": "string"} for n in range(count)}


def _deep(depth: int, wide: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"anyOf": [schema, *[{"type": "null"}] * wide]}
    return {"a": schema}


def _choices(count: int) -> dict[str, Any]:
    one = [
        {"type": "object", "required": [f"k{n}"], "properties": {f"k{n}": {"const": n}}}
        for n in range(count)
    ]
    return {"a": {"anyOf": one}}


@pytest.mark.parametrize(
    "properties", [_parts(2_150), _deep(17, 110), _choices(550)], ids=["parts", "deep", "choices"]
)
async def test_the_shape_that_a_reply_must_have_is_read_beside_the_loop(
    served: Serve, properties: dict[str, Any]
) -> None:
    server = await served([Repeat(Say("{}"))])
    client = await server.as_("shaper", "chat")
    body = {"text": "hello", "result": {"type": "object", "properties": properties}}

    async def send() -> None:
        assert (await client.post(MESSAGES, json=body)).status_code in (202, 400)

    await server.client.post(MESSAGES, json={"text": "hello"})
    assert (await stall_of(send)).cpu_ms <= MOST_MS
