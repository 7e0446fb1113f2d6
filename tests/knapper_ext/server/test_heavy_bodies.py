"""A 2 MiB request with hundreds of thousands of wrong parts is rejected while others are served."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from itertools import product
from typing import Any
from urllib.parse import urlsplit

import pytest

from agent_core.api.operations import MOST_KEYS, MOST_PROBLEMS
from knapper_ext.server.app import OPERATIONS
from knapper_ext.server.guard import MOST_LARGE, MOST_VALUES
from sandbox import Sandbox
from tests.kit import Repeat, Say, scripted
from tests.kit.drawing import sampled
from tests.kit.heartbeat import stall_of

from .conftest import Served, server
from .heavy_bodies import (
    CHAT,
    COMMANDS,
    MESSAGES,
    PUT_MANY,
    RESPONSES,
    Crowd,
    Heavy,
    all_of_them,
    crowds,
    large_answers,
    sources,
)

MOST_MS = 300.0  # CPU time without a break; the least of several tries, most of which take a tenth
MOST_ANSWER = 32 << 10
SOURCES = [*sources()]


@pytest.fixture(scope="module")
async def willing(
    tmp_path_factory: pytest.TempPathFactory, one_sandbox: Sandbox
) -> AsyncIterator[Served]:
    """A server whose model answers every request."""
    with scripted([Repeat(Say("done"))]) as model:
        async with server(tmp_path_factory.mktemp("willing"), model, one_sandbox) as started:
            await started.said("Hi.")  # so that there is an agent to search
            yield started


def request(served: Served, heavy: Heavy) -> bytes:
    """Return the bytes of a request."""
    lines = (
        f"{heavy.method} {heavy.path} HTTP/1.1",
        f"Host: {urlsplit(served.url).netloc}",
        f"Authorization: Bearer {served.key}",
        "Accept: application/json, text/event-stream",
        "Connection: close",
        f"Content-Length: {len(heavy.body)}",
        *heavy.headers,
    )
    return "\r\n".join([*lines, "", ""]).encode() + heavy.body


async def sent(served: Served, request: bytes) -> bytes:
    """Return the whole response to a request."""
    url = urlsplit(served.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    return answer


async def asked(served: Served, heavy: Heavy, times: int = 1) -> tuple[float, list[bytes]]:
    """Return the longest CPU time without a break while a request is answered, and the answers."""
    bytes_of_it, answers = request(served, heavy), list[bytes]()

    async def ask() -> None:
        answers[:] = await asyncio.gather(*(sent(served, bytes_of_it) for _ in range(times)))

    return (await stall_of(ask, within_s=120)).cpu_ms, answers


@pytest.mark.sampled
@pytest.mark.parametrize(
    "heavy",
    [pytest.param(heavy, id=heavy.name) for heavy in sampled([*all_of_them(), *SOURCES], 23)],
)
async def test_a_heavy_request_holds_up_nobody(willing: Served, heavy: Heavy) -> None:
    cpu_ms, (answer,) = await asked(willing, heavy)
    assert cpu_ms < MOST_MS
    assert answer[:12] in {b"HTTP/1.1 %d" % status for status in (200, 400, 404, 413, 422, 502)}, (
        answer[:300]
    )
    assert len(answer) < MOST_ANSWER or heavy in SOURCES, "a verdict repeats the source"


@pytest.mark.slow
@pytest.mark.sampled
async def test_neither_a_large_answer_nor_many_requests_at_once_hold_up_anybody(
    willing: Served,
) -> None:
    assert b" 200 " in (await sent(willing, request(willing, PUT_MANY)))[:20]
    rows = [Crowd(heavy.name, heavy, 1) for heavy in sampled(large_answers(), 4)]
    for crowd in [*rows, *sampled(crowds(), 4)]:
        cpu_ms, answers = await asked(willing, crowd.heavy, crowd.count)
        assert cpu_ms < MOST_MS, crowd.name
        statuses = {int(answer[9:12]) for answer in answers}
        assert statuses == {200} if crowd in rows else max(statuses) < 500, crowd.name


async def test_of_one_token_sixteen_large_requests_are_open_and_one_more_is_told_when_to_come_again(
    willing: Served,
) -> None:
    talk = '{"role":"user","content":"%s"},{"role":"assistant","content":"said"},' % (
        "word " * 60_000
    )
    body = f'{{"model":"main","messages":[{talk}{{"role":"user","content":"a"}}]}}'.encode()
    cpu_ms, answers = await asked(willing, Heavy("a history", CHAT, body), MOST_LARGE + 8)
    told = [answer for answer in answers if answer.startswith(b"HTTP/1.1 429")]
    assert len(told) == 8
    assert all(
        b"retry-after: 1" in answer and b"A token may have 16 requests" in answer for answer in told
    )
    assert sum(answer.startswith(b"HTTP/1.1 200") for answer in answers) == MOST_LARGE
    assert cpu_ms < MOST_MS


async def test_more_values_than_a_request_may_have_are_not_read(willing: Served) -> None:
    for path in (MESSAGES, CHAT, RESPONSES, COMMANDS, "/mcp"):
        many = await willing.client.post(path, content=b'{"a":[' + b"0," * MOST_VALUES + b"0]}")
        assert (many.status_code, many.json()["error"]["code"]) == (413, "too-large"), path
    prose = {"text": ", [{" * MOST_VALUES, "text_": 0}
    assert (await willing.client.post(MESSAGES, json=prose)).status_code == 422


async def test_at_most_twenty_problems_of_a_request_are_told_and_in_short(willing: Served) -> None:
    for count in (1, MOST_PROBLEMS, MOST_KEYS, MOST_KEYS + 1, 20_000):
        body = {f"k{number}{'x' * 3_000 if count < 100 else ''}": 0 for number in range(count)}
        problems = (await willing.client.post(MESSAGES, json=body)).json()["error"]["problems"]
        assert 1 <= len(problems) <= MOST_PROBLEMS
        assert all(len(problem["where"]) < 200 for problem in problems)
        if count > MOST_KEYS:
            assert len(problems) == 1
            assert f"{MOST_KEYS} entries" in problems[0]["message"]
    for path in (CHAT, RESPONSES):
        answer = await willing.client.post(
            path, json={"messages" * 30_000: 0, "model": {"k" * 30_000: {}}}
        )
        assert len(answer.content) < 2_000, path
        json.loads(answer.content)


@pytest.mark.sampled
async def test_a_list_of_wrong_elements_is_refused_by_its_first_in_every_operation(
    willing: Served,
) -> None:
    fields = [(operation, name) for operation in OPERATIONS for name in operation.body.model_fields]
    wrong: tuple[Any, ...] = (0, {}, None)
    for (operation, name), element in sampled(product(fields, wrong), 4):
        path = re.sub(r"\{\w+\}", "main", operation.path)
        answer = await willing.client.request(
            operation.method, path, json={name: [element] * 20_000}
        )
        assert answer.status_code in range(400, 500), (path, name)
        assert len(answer.json()["error"]["problems"]) <= MOST_PROBLEMS, (path, name)
