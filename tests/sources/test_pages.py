"""A page is fetched from where the human said, and never from where a page or a name could lead."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from agent_core.access.broker import Broker, FetchCaps
from agent_core.memory.sources import Unreadable
from agent_core.memory.sources.places import MOST_BYTES
from agent_core.memory.sources.web import fetch
from tests.broker.servers import Request, redirect, reply, serving

from .support import desk

PAGE = b"<!doctype html><h1>Herons</h1><p>They fish at dusk."


def page(_request: Request) -> bytes:
    return reply(PAGE, Content_Type="text/html; charset=utf-8")


def leading(**answers: Sequence[str]) -> Broker:
    """Return a broker that resolves names to these addresses."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        return answers[host.partition(".")[0]]

    return Broker(FetchCaps(), resolve)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_page_of_this_machine_is_read_where_the_url_names_it(tmp_path: Path, host: str) -> None:
    async with serving(page) as server, desk(tmp_path) as at:
        url = f"http://{host}:{server.port}/birds"
        (report,) = await at.sources.add(url)
        (row,) = await at.passages()
        assert (report.kind, row.source, row.place) == ("html", url, "Herons")
        assert report.notes == ("It was read from this machine, as the URL says.",)


@pytest.mark.parametrize(
    ("host", "says"),
    [
        pytest.param("10.0.0.1", "a private address", id="private"),
        pytest.param("169.254.169.254", "a link-local address", id="a cloud's own"),
        pytest.param("[::ffff:10.0.0.1]", "a private address", id="private, in IPv6"),
        pytest.param("0.0.0.0", "an unspecified address", id="unspecified"),
        pytest.param(
            "intranet.example", "intranet.example is 192.168.1.5, a private address", id="a name of a private one"
        ),
        pytest.param("rebinding.example", "a loopback address", id="a name of this machine"),
        pytest.param("both.example", "a loopback address", id="a name of a public one and this machine"),
        pytest.param("user@example.org", "password before an @", id="a user"),
        pytest.param("2130706433", "not a host name", id="an address as a number"),
    ],
)
async def test_an_address_that_is_not_public_is_not_fetched_from(host: str, says: str) -> None:
    names = leading(intranet=["192.168.1.5"], rebinding=["127.0.0.1"], both=["93.184.216.34", "127.0.0.1"])
    with pytest.raises(Unreadable, match=says.replace("[", r"\[")):
        await fetch(f"http://{host}/", MOST_BYTES, names)


@pytest.mark.parametrize(
    "location",
    [
        pytest.param("http://127.0.0.1:{port}/", id="an address of this machine"),
        pytest.param("http://localhost:{port}/", id="the name of this machine"),
        pytest.param("http://[::1]:{port}/", id="its address in IPv6"),
        pytest.param("http://10.0.0.1/", id="a private address"),
        pytest.param("http://inside.example:{port}/", id="a name of this machine's"),
        pytest.param("file:///etc/passwd", id="a file"),
        pytest.param("gopher://example.org/", id="another scheme"),
    ],
)
async def test_a_redirect_never_leads_to_where_no_human_pointed(location: str) -> None:
    async with serving(page) as canary:
        there = location.format(port=canary.port)
        async with serving(lambda _: redirect(there)) as server:
            with pytest.raises(Unreadable):
                await fetch(f"http://127.0.0.1:{server.port}/", MOST_BYTES, leading(inside=["127.0.0.1"]))
        assert canary.connections == 0


async def test_a_redirect_within_the_same_server_is_followed() -> None:
    def answer(request: Request) -> bytes:
        return page(request) if request.path == "/there" else redirect("/there")

    async with serving(answer) as server:
        found = await fetch(f"http://127.0.0.1:{server.port}/here", MOST_BYTES)
    assert (found.data, found.guess[-6:]) == (PAGE, "/there")


async def test_redirects_without_end_are_given_up() -> None:
    async with serving(lambda _: redirect("/again")) as server:
        with pytest.raises(Unreadable, match="redirected more than 5 times"):
            await fetch(f"http://127.0.0.1:{server.port}/", MOST_BYTES)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        pytest.param(reply(b"gone", 404), "answered 404", id="not there"),
        pytest.param(reply(b"x" * 3000), "1000 bytes", id="too large"),
        pytest.param(reply(b"x", Content_Encoding="gzip"), "compressed", id="packed unasked"),
        pytest.param(b"HTTP/9 no\r\n\r\n", "rules of HTTP", id="no HTTP"),
        pytest.param(reply(b"x")[:-1], "could not be fetched", id="cut short"),
    ],
)
async def test_an_answer_that_cannot_be_used_is_an_error(answer: bytes, says: str) -> None:
    async with serving(lambda _: answer) as server:
        with pytest.raises(Unreadable, match=says):
            await fetch(f"http://127.0.0.1:{server.port}/", 1000)


async def test_nothing_of_this_machine_is_lent_to_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with serving(page) as server:
        await fetch(f"http://127.0.0.1:{server.port}/a?b=c#d", MOST_BYTES)
        (request,) = server.asked
        assert request.path == "/a?b=c"
        assert not {"cookie", "authorization"} & {name.lower() for name in request.headers}
