"""A page is fetched from where the human said, and never from where a page or a name could lead."""

from collections.abc import Callable, Sequence
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


def answering(answer: bytes) -> Callable[[Request], bytes]:
    return lambda _: answer


def leading(**answers: Sequence[str]) -> Broker:
    """Return a broker that resolves names to these addresses."""

    async def resolve(host: str, port: int) -> Sequence[str]:
        return answers[host.partition(".")[0]]

    return Broker(FetchCaps(), resolve)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_page_of_this_machine_is_read_where_the_url_names_it(
    tmp_path: Path, host: str
) -> None:
    async with serving(page) as server, desk(tmp_path) as at:
        url = f"http://{host}:{server.port}/birds"
        (report,) = await at.sources.add(url)
        (row,) = await at.passages()
        assert (report.kind, row.source, row.place) == ("html", url, "Herons")
        assert report.notes == ("It was read from this machine, as the URL says.",)


async def test_an_address_that_is_not_public_is_not_fetched_from() -> None:
    rows: list[tuple[str, str]] = [
        ("10.0.0.1", "a private address"),
        ("169.254.169.254", "a link-local address"),
        ("[::ffff:10.0.0.1]", "a private address"),
        ("intranet.example", "intranet.example is 192.168.1.5, a private address"),
        ("both.example", "a loopback address"),
        ("user@example.org", "password before an @"),
    ]
    for host, says in rows:
        names = leading(
            intranet=["192.168.1.5"], rebinding=["127.0.0.1"], both=["93.184.216.34", "127.0.0.1"]
        )
        with pytest.raises(Unreadable, match=says.replace("[", r"\[")):
            await fetch(f"http://{host}/", MOST_BYTES, names)


async def test_a_redirect_never_leads_to_where_no_human_pointed() -> None:
    async with serving(page) as canary:
        own = [
            f"http://{host}:{canary.port}/"
            for host in ("127.0.0.1", "localhost", "[::1]", "inside.example")
        ]
        for there in [*own, "http://10.0.0.1/", "file:///etc/passwd", "gopher://example.org/"]:
            async with serving(answering(redirect(there))) as server:
                with pytest.raises(Unreadable):
                    await fetch(
                        f"http://127.0.0.1:{server.port}/",
                        MOST_BYTES,
                        leading(inside=["127.0.0.1"]),
                    )
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


async def test_an_answer_that_cannot_be_used_is_an_error() -> None:
    answers = [
        (reply(b"gone", 404), "answered 404"),
        (reply(b"x" * 3000), "1000 bytes"),
        (reply(b"x", Content_Encoding="gzip"), "compressed"),
        (b"HTTP/9 no\r\n\r\n", "rules of HTTP"),
        (reply(b"x")[:-1], "could not be fetched"),
    ]
    for answer, says in answers:
        async with serving(answering(answer)) as server:
            with pytest.raises(Unreadable, match=says):
                await fetch(f"http://127.0.0.1:{server.port}/", 1000)


async def test_nothing_of_this_machine_is_lent_to_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with serving(page) as server:
        await fetch(f"http://127.0.0.1:{server.port}/a?b=c#d", MOST_BYTES)
        (request,) = server.asked
        assert request.path == "/a?b=c"
        assert not {"cookie", "authorization"} & {name.lower() for name in request.headers}
