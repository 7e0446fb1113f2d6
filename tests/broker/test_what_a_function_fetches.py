"""`self.fetch` in a real worker, from real servers."""

import asyncio
import gzip
import json
import logging
import ssl
from collections.abc import AsyncIterator

import pytest

from agent_core.access.broker import Broker, FetchCaps
from sandbox import Raised
from tests.broker.reach import Names, Reach, value
from tests.broker.servers import Certificate, Request, Server, reply, serving

PLENTY = 3 << 20


def echo(request: Request) -> bytes:
    told = {
        "line": request.line,
        "headers": request.headers,
        "body": request.body.decode("latin-1"),
    }
    return reply(
        json.dumps(told).encode(),
        Content_Type="application/json; charset=utf-8",
        X_One="1",
        x_one="2",
    )


async def test_a_granted_host_answers_by_the_names_that_clients_have(
    reach: Reach, server: Server
) -> None:
    url = f"http://localhost:{server.port}/a?b=c"
    body = f"""
    import re
    with self.fetch("{url}") as response:
        first = response.status, response.headers["CONTENT-type"], response.url, response.text(), response.ok
    response, called = self.fetch("{url}"), self.fetch("{url}").text("latin-1")
    same = response.text == response.text() == response.content.decode() and type(response.text()) is str
    more = response.text, re.sub("l+", "L", response.text), response.status_code, response.text.upper()
    return first, called, same, more
    """
    first = (200, "text/plain", url, "hello", True)
    expected = (first, "hello", True, ("hello", "heLo", 200, "HELLO"))
    assert value(await reach(body, f"localhost:{server.port}")) == expected


async def test_method_headers_and_body_reach_the_server_as_given(reach: Reach) -> None:
    async with serving(echo) as server:
        body = f"""
        url = "http://127.0.0.1:{server.port}/räume?q=a b"
        response = self.fetch(url, method="put", headers={{"X-Mine": "é"}}, body="ü" * 50_000)
        return response.json(), response.headers.get_all("x-one"), dict(response.headers)["X-One"]
        """
        told, each, joined = value(await reach(body, f"127.0.0.1:{server.port}"))
    assert told["line"] == "PUT /r%C3%A4ume?q=a%20b HTTP/1.1"
    assert told["headers"]["host"] == f"127.0.0.1:{server.port}"
    assert told["headers"]["x-mine"] == "é"
    assert told["body"].encode("latin-1").decode() == "ü" * 50_000
    assert (each, joined) == (["1", "2"], "1, 2")


async def test_a_long_body_arrives_piece_by_piece(reach: Reach) -> None:
    async with serving(lambda _: reply(b"x" * PLENTY)) as server:
        body = f"""
        sizes = [len(piece) for piece in self.fetch("http://127.0.0.1:{server.port}/")]
        again = self.fetch("http://127.0.0.1:{server.port}/")
        return sum(sizes), max(sizes), len(again.read(5)), len(again.read(100_000)), len(again.read()), again.read()
        """
        total, most, *parts = value(await reach(body, f"127.0.0.1:{server.port}"))
    assert (total, parts) == (PLENTY, [5, 100_000, PLENTY - 100_005, b""])
    assert most <= 64 << 10


async def test_a_packed_response_is_unpacked_in_the_worker_up_to_the_cap(reach: Reach) -> None:
    packed = gzip.compress(b"one ") + gzip.compress(b"two") + b"\0" * 9
    bomb = gzip.compress(b"\0" * (8 << 20))
    async with serving(
        lambda asked: reply(bomb if "bomb" in asked.path else packed, Content_Encoding="gzip")
    ) as server:
        place = f"127.0.0.1:{server.port}"
        assert (
            value(await reach(f'return self.fetch("http://{place}/").text()', place)) == "one two"
        )
        assert server.asked[0].headers["accept-encoding"] == "gzip"
        body = f'return len(self.fetch("http://{place}/bomb").read())'
        outcome = await reach(body, place, broker=Broker(FetchCaps(decoded=1 << 20)))
    assert isinstance(outcome, Raised)
    assert (outcome.failure.type, "unpacks to more than 1048576" in outcome.failure.message) == (
        "OSError",
        True,
    )


async def test_what_is_no_json_is_shown_as_it_begins(reach: Reach, server: Server) -> None:
    outcome = await reach(
        f'self.fetch("http://127.0.0.1:{server.port}/").json()', f"127.0.0.1:{server.port}"
    )
    assert isinstance(outcome, Raised)
    assert "answered 200 with no JSON" in outcome.failure.message
    assert "b'hello'" in outcome.failure.message or "'hello'" in outcome.failure.message


@pytest.mark.parametrize(
    "trusts", [pytest.param(True, id="another name"), pytest.param(False, id="nobody's signature")]
)
async def test_a_certificate_that_proves_nothing_ends_the_fetch(
    reach: Reach, trusted: Certificate, trusts: bool
) -> None:
    host = "other.example.org" if trusts else "api.example.org"
    broker = Broker(
        resolve=Names(["127.0.0.1"]), tls=trusted.client if trusts else ssl.create_default_context
    )
    async with serving(tls=trusted.server()) as server:
        body = f'self.fetch("https://{host}:{server.port}/")'
        outcome = await reach(
            body, f"{host}:{server.port}", f"127.0.0.1:{server.port}", broker=broker
        )
        assert server.asked == []
    assert isinstance(outcome, Raised)
    assert (outcome.failure.type, "certificate" in outcome.failure.message.lower()) == (
        "SSLError",
        True,
    )


@pytest.mark.parametrize(
    ("host", "kind"),
    [
        pytest.param("localhost:9", "ConnectionError", id="nobody listens"),
        pytest.param("gone.invalid", "gaierror", id="no such name"),
    ],
)
async def test_a_failure_on_the_way_is_the_error_of_the_standard_library(
    reach: Reach, host: str, kind: str
) -> None:
    outcome = await reach(f'self.fetch("http://{host}/")', host)
    assert isinstance(outcome, Raised)
    assert outcome.failure.type == kind
    assert host.partition(":")[0] in outcome.failure.message


async def test_a_response_that_nobody_holds_is_closed_for_the_next_one(reach: Reach) -> None:
    async with serving(lambda _: reply(b"x" * PLENTY)) as server:
        url = f"http://localhost:{server.port}/"
        body = f'''
        kept = self.fetch("{url}", method="HEAD")
        statuses = [self.fetch("{url}").status for _ in range(20)]
        return statuses, kept.read(), kept.status
        '''
        assert value(await reach(body, f"localhost:{server.port}")) == ([200] * 20, b"", 200)


async def silence(_request: Request) -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 -\r\n"
    await asyncio.sleep(30)


async def test_a_server_that_says_nothing_costs_the_time_that_was_asked(reach: Reach) -> None:
    async with serving(silence) as server:
        url = f"http://localhost:{server.port}/"
        outcome = await reach(f'self.fetch("{url}", timeout=0.2)', f"localhost:{server.port}")
    assert isinstance(outcome, Raised)
    assert outcome.failure.type == "TimeoutError"


async def test_one_line_a_request_says_who_asked_where_and_how_much(
    reach: Reach, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "knapper.broker")
    place = f"localhost:{server.port}"
    await reach(
        f'self.fetch("http://{place}/a/b?token=hidden").read(); self.fetch("http://127.0.0.1/")',
        place,
    )
    first, second = (record.getMessage().rpartition(",")[0] for record in caplog.records)
    assert first == f"weather: GET {place}/a/b: 200, 5 bytes"
    assert second == "weather: GET 127.0.0.1/: refused, 0 bytes"
