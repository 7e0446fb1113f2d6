"""Redirects, headers and bodies: what leaves the host for a function, what never does, and what is logged of it."""

import stat
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent_core.access.broker import Broker
from agent_core.access.broker.broker import MOST_LOG_BYTES, RequestLog
from sandbox import RequestRefused
from tests.broker.reach import Reach, refusal, value
from tests.broker.servers import Certificate, Request, Server, redirect, reply, serving

LOCATIONS = {
    "another port": "http://localhost:{canary}/",
    "an address": "http://127.0.0.1:{canary}/",
    "no scheme": "//127.0.0.1:{canary}/",
    "userinfo": "http://localhost:{granted}@127.0.0.1:{canary}/",
    "a backslash": "/\\127.0.0.1:{canary}/",
    "two backslashes": "\\\\127.0.0.1:{canary}/",
    "metadata": "http://169.254.169.254/",
    "a file": "file:///etc/passwd",
    "no URL": "http://[::1",
    "itself": "{back}",
}


async def test_a_redirect_is_checked_as_the_first_request(canary: Server) -> None:
    leads = list[str]()

    def leave(request: Request) -> bytes:
        back = f"http://localhost:{granted.port}/"
        return redirect(leads[-1].format(granted=granted.port, canary=canary.port, back=back))

    async with serving(leave) as granted:
        for name, location in LOCATIONS.items():
            granted.asked.clear()
            leads.append(location)
            async with Broker().session("weather", (f"localhost:{granted.port}",)) as session:
                try:
                    answer = await session.answer(
                        "fetch", {"url": f"http://localhost:{granted.port}/", "follow": True}
                    )
                except RequestRefused:
                    answer = {"failed": "refused"}
            assert (
                answer["failed"] == "refused" or "redirected more than 5 times" in answer["message"]
            ), name
            asked = 1 if answer["failed"] == "refused" else 6
            assert (len(granted.asked), canary.connections) == (asked, 0), name


async def test_a_redirect_out_of_tls_is_refused(server: Server, trusted: Certificate) -> None:
    async with serving(
        lambda _: redirect(f"http://localhost:{server.port}/"), tls=trusted.server()
    ) as secure:
        hosts = (f"localhost:{secure.port}", f"localhost:{server.port}")
        async with Broker(tls=trusted.client).session("weather", hosts) as session:
            words = await refusal(session, url=f"https://localhost:{secure.port}/", follow=True)
    assert words.endswith("out of TLS")
    assert server.connections == 0


async def test_a_redirect_keeps_what_the_rfc_says_and_no_credentials() -> None:
    for method, status, then, body in (
        ("POST", 301, "GET", b""),
        ("POST", 302, "GET", b""),
        ("PUT", 302, "PUT", b"x"),
        ("DELETE", 303, "GET", b""),
        ("HEAD", 303, "HEAD", b""),
        ("POST", 307, "POST", b"x"),
        ("PATCH", 308, "PATCH", b"x"),
    ):
        async with (
            serving() as server,
            serving(partial(led, f"http://localhost:{server.port}/to", status)) as first,
        ):
            hosts = (f"localhost:{first.port}", f"localhost:{server.port}")
            headers = [
                ["authorization", "Bearer s"],
                ["Cookie", "a=b"],
                ["X-Mine", "y"],
                ["Content-Type", "text/x"],
            ]
            asked = {
                "method": method,
                "headers": headers,
                "follow": True,
                "body": b"" if method == "HEAD" else b"x",
            }
            async with Broker().session("weather", hosts) as session:
                await session.answer("fetch", {**asked, "url": f"http://localhost:{first.port}/"})
        (arrived,) = server.asked
        assert (arrived.line, arrived.body) == (f"{then} /to HTTP/1.1", body), (method, status)
        assert {"authorization", "cookie"}.isdisjoint(arrived.headers), (method, status)
        assert (arrived.headers["x-mine"], "content-type" in arrived.headers) == (
            "y",
            then == method,
        ), (method, status)
        assert first.asked[0].headers["authorization"] == "Bearer s"


def led(place: str, status: int, _request: Request) -> bytes:
    return redirect(place, status)


NONSENSE: dict[str, dict[str, Any]] = {
    "CRLF in a header": {"headers": [["X", "a\r\nHost: evil"]]},
    "a line feed in a header": {"headers": [["X", "a\nB: c"]]},
    "a null in a header": {"headers": [["X", "a\0"]]},
    "CRLF in a header's name": {"headers": [["X: a\r\nY", "b"]]},
    "a space in a header's name": {"headers": [["Transfer-Encoding ", "chunked"]]},
    "a header beyond Latin-1": {"headers": [["X", "☃"]]},
    "huge headers": {"headers": [["X", "a" * 70_000]]},
    "many headers": {"headers": [["X", "a"]] * 20_000},
    "headers that are none": {"headers": {"X": "a"}},
    "a header of three": {"headers": [["X", "a", "b"]]},
    "CRLF in the method": {"method": "GET / HTTP/1.1\r\nHost: evil\r\n\r\nGET"},
    "CONNECT": {"method": "CONNECT"},
    "TRACE": {"method": "TRACE"},
    "OPTIONS": {"method": "OPTIONS"},
    "a method that is none": {"method": 7},
    "a body that is none": {"body": "text"},
    "a body too large": {"body": b"x" * ((8 << 20) + 1)},
    "a timeout that is none": {"timeout": "soon"},
    "a timeout of nothing": {"timeout": 0},
    "an endless timeout": {"timeout": float("inf")},
    "a URL that is none": {"url": 5},
    "no URL": {"url": None},
}


async def test_what_cannot_be_sent_is_refused_in_words(server: Server) -> None:
    for name, asked in NONSENSE.items():
        async with Broker().session("weather", (f"localhost:{server.port}",)) as session:
            assert (
                await refusal(session, **{"url": f"http://localhost:{server.port}/", **asked}) != ""
            ), name
    assert server.connections == 0


async def test_what_frames_a_message_is_never_the_functions_to_say(server: Server) -> None:
    framing = [
        "Host",
        "Connection",
        "Transfer-Encoding",
        "Content-Length",
        "TE",
        "Upgrade",
        "Expect",
    ]
    async with Broker().session("weather", (f"localhost:{server.port}",)) as session:
        headers = [[name, "evil"] for name in [*framing, "Proxy-Authorization"]]
        await session.answer(
            "fetch",
            {"url": f"http://localhost:{server.port}/", "headers": headers, "method": "POST"},
        )
    (arrived,) = server.asked
    assert "evil" not in arrived.headers.values()
    assert arrived.headers["host"] == f"localhost:{server.port}"


async def test_nothing_of_the_hosts_own_environment_is_lent(
    server: Server, canary: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    (tmp_path / ".netrc").write_text("machine localhost login me password secret\n")
    for name, text in {"HOME": str(tmp_path), "NETRC": str(tmp_path / ".netrc")}.items():
        monkeypatch.setenv(name, text)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{canary.port}")
    async with Broker().session("weather", (f"localhost:{server.port}",)) as session:
        await session.answer("fetch", {"url": f"http://localhost:{server.port}/"})
    assert "authorization" not in server.asked[0].headers
    assert (server.connections, canary.connections) == (1, 0)


async def test_a_cookie_that_one_response_set_goes_with_no_other_request(reach: Reach) -> None:
    async with serving(lambda _: reply(Set_Cookie="a=b")) as server:
        get = f'self.fetch("http://localhost:{server.port}/").headers["Set-Cookie"]'
        assert value(await reach(f"{get}; return {get}", f"localhost:{server.port}")) == "a=b"
        assert all("cookie" not in request.headers for request in server.asked)


def kept(folder: Path) -> RequestLog:
    return RequestLog(folder, lambda text: text.replace("s3cret", "[secret KEY]"), lambda: 0.5)


def test_a_line_of_the_private_file_has_time_and_mask_and_no_control_character(
    tmp_path: Path,
) -> None:
    kept(tmp_path)("weather: GET a.b/s3cret\x1b[2J\nother: GET c.d/: 200")
    text = (tmp_path / "requests.log").read_text()
    assert (
        text
        == "1970-01-01T00:00:00.500Z weather: GET a.b/[secret KEY]\\x1b[2J\\nother: GET c.d/: 200\n"
    )
    assert stat.S_IMODE((tmp_path / "requests.log").stat().st_mode) == 0o600


def test_a_full_file_makes_room_and_the_one_before_goes(tmp_path: Path) -> None:
    (tmp_path / "requests.log").write_text("x" * (MOST_LOG_BYTES - 10))
    (tmp_path / "requests.log.1").write_text("oldest")
    log = kept(tmp_path)
    log("first")
    log("second")
    assert [line.split()[1] for line in (tmp_path / "requests.log").read_text().splitlines()] == [
        "first",
        "second",
    ]
    assert (tmp_path / "requests.log.1").read_text().startswith("xxx")


def test_a_link_in_its_place_is_not_written_through_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "else").write_text("kept")
    (tmp_path / "requests.log").symlink_to(tmp_path / "else")
    kept(tmp_path)("weather: GET a.b/")
    assert (tmp_path / "else").read_text() == "kept"
