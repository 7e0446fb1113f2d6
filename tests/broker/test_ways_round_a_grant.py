"""What a hostile function would try at the broker; each row looks at a server that must not be reached."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from agent_core.broker import Broker, Caps
from sandbox import Killed, Raised, RequestRefused, Returned, Sandbox, TimedOut
from sandbox.policy import Limits
from tests.broker.reach import Handler, Names, Reach, refusal, value
from tests.broker.servers import Certificate, Request, Server, redirect, reply, serving
from tests.sandbox.support import modules

GRANTED = "localhost:{granted}"
# {granted} is the port of the server that was granted, {canary} the one of the server that was not.
SPELLINGS = {
    "another port": "http://localhost:{canary}/",
    "the address of the name": "http://127.0.0.1:{granted}/../@127.0.0.1:{canary}/",
    "an address": "http://127.0.0.1:{canary}/",
    "a decimal address": "http://2130706433:{canary}/",
    "an octal address": "http://0177.0.0.1:{canary}/",
    "a hexadecimal address": "http://0x7f000001:{canary}/",
    "hexadecimal parts": "http://0x7f.0x0.0x0.0x1:{canary}/",
    "a short address": "http://127.1:{canary}/",
    "a zero": "http://0:{canary}/",
    "an address with a dot": "http://127.0.0.1.:{canary}/",
    "IPv6": "http://[::1]:{canary}/",
    "IPv6-mapped": "http://[::ffff:127.0.0.1]:{canary}/",
    "IPv6-mapped in hexadecimal": "http://[::ffff:7f00:1]:{canary}/",
    "IPv4-compatible": "http://[::127.0.0.1]:{canary}/",
    "a zone": "http://[fe80::1%25lo]:{canary}/",
    "a bare zone": "http://[::1%lo]:{canary}/",
    "userinfo": "http://localhost:{granted}@127.0.0.1:{canary}/",
    "userinfo with an escape": "http://localhost:{granted}%40127.0.0.1:{canary}/",
    "a backslash": "http://127.0.0.1:{canary}\\@localhost:{granted}/",
    "a backslash before the path": "http://127.0.0.1:{canary}\\.localhost/",
    "circled digits": "http://①②⑦.⓪.⓪.①:{canary}/",
    "full-width digits": "http://１２７.0.0.1:{canary}/",
    "ideographic dots": "http://127。0。0。1:{canary}/",
    "escaped digits": "http://%31%32%37.0.0.1:{canary}/",
    "a full-width port": "http://localhost:１２/",
    "a port with a sign": "http://localhost:+{canary}/",
    "a port too large": "http://localhost:{overflow}/",
    "a name's dot and port": "http://LOCALHOST.:{canary}/",
    "a suffix of the name": "http://evil.localhost:{granted}/",
    "a longer name": "http://localhost.evil.example:{granted}/",
    "CRLF in the path": "http://localhost:{granted}/ HTTP/1.1\r\nHost: 127.0.0.1:{canary}\r\n\r\nGET /",
    "a line feed in the host": "http://localhost\n:{granted}/",
    "a tab in the host": "http://local\thost:{granted}/",
    "a null": "http://localhost\0.evil:{granted}/",
    "a line separator": "http://localhost:{granted}/\u2028",
    "a mark of direction": "http://localhost:{granted}/\u202e",
    "a leading space": " http://127.0.0.1:{canary}/",
    "a lone surrogate": "http://localhost:{granted}/\ud800",
    "no scheme": "//127.0.0.1:{canary}/",
    "a file": "file:///etc/passwd",
    "ftp": "ftp://127.0.0.1:{canary}/",
    "gopher": "gopher://127.0.0.1:{canary}/_GET",
    "a scheme within": "url:http://127.0.0.1:{canary}/",
    "no host": "http:///127.0.0.1:{canary}/",
    "one slash": "http:/127.0.0.1:{canary}/",
    "metadata": "http://169.254.169.254/latest/meta-data/",
    "a very long URL": "http://localhost:{granted}/{long}",
    "a very long host": "http://{long}.localhost:{granted}/",
}


@pytest.mark.parametrize("url", [pytest.param(url, id=name) for name, url in SPELLINGS.items()])
async def test_no_spelling_of_a_url_leads_beside_the_grant(server: Server, canary: Server, url: str) -> None:
    ports = {"granted": server.port, "canary": canary.port, "overflow": 65536 + canary.port, "long": "a" * 10_000}
    async with Broker().session("weather", (GRANTED.format(**ports),)) as session:
        assert await refusal(session, url=url.format(**ports)) != ""
    assert (server.connections, canary.connections) == (0, 0)


async def test_the_same_spellings_are_refused_to_a_function_in_a_worker(
    reach: Reach, server: Server, canary: Server
) -> None:
    ports = {"granted": server.port, "canary": canary.port, "overflow": 65536 + canary.port, "long": "a" * 10_000}
    urls = [url.format(**ports) for name, url in SPELLINGS.items() if name != "a lone surrogate"]
    body = f"""
    import http.client, urllib.request
    got = []
    for url in {urls!r}:
        for get in (self.fetch, urllib.request.urlopen):
            try:
                with get(url) as response:
                    got.append((url, response.status))
            except (OSError, ValueError, http.client.InvalidURL):
                pass
    return got
    """
    got = value(await reach(body, GRANTED.format(**ports)))
    # urllib sends no fragment, reads a file of the cage, and makes one host of a port with a sign: none is the canary
    assert canary.connections == 0, got
    assert all("127.0.0.1" not in url for url, _ in got), got


RESOLVED = {
    "loopback": ["127.0.0.1"],
    "all of loopback": ["127.9.8.7"],
    "IPv6 loopback": ["::1"],
    "IPv6-mapped": ["::ffff:127.0.0.1"],
    "NAT64": ["64:ff9b::7f00:1"],
    "6to4": ["2002:7f00:1::"],
    "private": ["10.0.0.1"],
    "private too": ["172.31.0.1"],
    "home": ["192.168.1.1"],
    "unique local": ["fd00::1"],
    "link-local": ["fe80::1%lo"],
    "metadata": ["169.254.169.254"],
    "IPv6 metadata": ["fd00:ec2::254"],
    "a carrier's": ["100.64.0.1"],
    "unspecified": ["0.0.0.0"],
    "multicast": ["224.0.0.1"],
    "broadcast": ["255.255.255.255"],
    "benchmarks": ["198.18.0.1"],
    "one among public ones": ["93.184.216.34", "127.0.0.1"],
}


@pytest.mark.parametrize("addresses", [pytest.param(found, id=name) for name, found in RESOLVED.items()])
@pytest.mark.parametrize("grant", ["api.example.org", "*.example.org"])
async def test_a_name_that_resolves_inwards_is_refused(addresses: Sequence[str], grant: str) -> None:
    async with Broker(resolve=Names(addresses)).session("weather", (grant,)) as session:
        words = await refusal(session, url="http://api.example.org/")
    assert "only where the address itself was granted too: --network" in words


@pytest.mark.parametrize(
    ("url", "hosts", "addresses"),
    [
        pytest.param("http://localhost:{port}/", ("localhost:{port}",), ["127.0.0.1"], id="localhost"),
        pytest.param("http://LocalHost.:{port}/", ("LOCALHOST:{port}",), ["127.0.0.1"], id="case and dot"),
        pytest.param("http://127.0.0.1:{port}/", ("127.0.0.1:{port}",), [], id="an address"),
        pytest.param("http://[::ffff:127.0.0.1]:{port}/", ("127.0.0.1:{port}",), [], id="the same, wrapped"),
        pytest.param("http://nas:{port}/", ("nas:{port}", "127.0.0.1:{port}"), ["127.0.0.1"], id="both"),
        pytest.param(
            "http://a.b.nas.home:{port}/", ("*.nas.home:{port}", "127.0.0.1:{port}"), ["127.0.0.1"], id="wild"
        ),
        pytest.param(
            "http://bücher.example:{port}/",
            ("xn--bcher-kva.example:{port}", "127.0.0.1:{port}"),
            ["127.0.0.1"],
            id="IDN",
        ),
        pytest.param("http://nas:{port}#@evil/", ("nas:{port}", "127.0.0.1:{port}"), ["127.0.0.1"], id="a fragment"),
    ],
)
async def test_what_a_human_named_is_reached(
    server: Server, url: str, hosts: Sequence[str], addresses: Sequence[str]
) -> None:
    granted = tuple(host.format(port=server.port) for host in hosts)
    async with Broker(resolve=Names(addresses)).session("weather", granted) as session:
        answer = await session.answer("fetch", {"url": url.format(port=server.port)})
    assert (answer["status"], len(server.asked)) == (200, 1)


UNGRANTED = [
    pytest.param("*.example.org", "http://example.org/", id="the name above a wild one"),
    pytest.param("*.example.org", "http://badexample.org/", id="no part of a name"),
    pytest.param("*.org", "http://api.example.org/", id="too wide"),
    pytest.param("*", "http://api.example.org/", id="everything"),
    pytest.param("*.0.0.1", "http://127.0.0.1/", id="a wild address"),
    pytest.param("api.example.org", "http://api.example.org:8080/", id="a port that was not said"),
    pytest.param("api.example.org:8080", "http://api.example.org/", id="another port than was said"),
    pytest.param("localhost:0", "http://localhost/", id="no port"),
    pytest.param("", "http://localhost/", id="an empty grant"),
    pytest.param("http://localhost", "http://localhost/", id="a URL in the place of a host"),
]


@pytest.mark.parametrize(("grant", "url"), UNGRANTED)
async def test_a_grant_is_for_what_it_says_and_no_more(grant: str, url: str) -> None:
    names = Names(["127.0.0.1"])
    async with Broker(resolve=names).session("weather", (grant,)) as session:
        words = await refusal(session, url=url)
    place = url.removeprefix("http://").removesuffix("/")
    assert words.endswith(f"a human grants it with `toolwright functions grant weather --network {place}`")
    assert names.asked == []


async def test_a_name_is_resolved_once_and_the_checked_address_is_connected_to(server: Server) -> None:
    names = Names(["127.0.0.1"], ["127.0.0.2"])
    async with serving(address="127.0.0.2", port=server.port) as rebound:
        hosts = (f"rebind.example:{server.port}", f"127.0.0.1:{server.port}")
        async with Broker(resolve=names).session("weather", hosts) as session:
            url = f"http://rebind.example:{server.port}/"
            assert (await session.answer("fetch", {"url": url}))["status"] == 200
            assert "127.0.0.2, a loopback address" in await refusal(session, url=url)
        assert (server.connections, rebound.connections, len(names.asked)) == (1, 0, 2)


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


@pytest.mark.parametrize("location", [pytest.param(each, id=name) for name, each in LOCATIONS.items()])
async def test_a_redirect_is_checked_as_the_first_request(canary: Server, location: str) -> None:
    def leave(request: Request) -> bytes:
        back = f"http://localhost:{granted.port}/"
        return redirect(location.format(granted=granted.port, canary=canary.port, back=back))

    async with serving(leave) as granted, Broker().session("weather", (f"localhost:{granted.port}",)) as session:
        try:
            answer = await session.answer("fetch", {"url": f"http://localhost:{granted.port}/", "follow": True})
        except RequestRefused:
            answer = {"failed": "refused"}
        assert answer["failed"] == "refused" or "redirected more than 5 times" in answer["message"]
        assert (len(granted.asked), canary.connections) == (1 if answer["failed"] == "refused" else 6, 0)


async def test_a_redirect_out_of_tls_is_refused(server: Server, trusted: Certificate) -> None:
    async with serving(lambda _: redirect(f"http://localhost:{server.port}/"), tls=trusted.server()) as secure:
        hosts = (f"localhost:{secure.port}", f"localhost:{server.port}")
        async with Broker(tls=trusted.client).session("weather", hosts) as session:
            words = await refusal(session, url=f"https://localhost:{secure.port}/", follow=True)
    assert words.endswith("out of TLS")
    assert server.connections == 0


@pytest.mark.parametrize(
    ("method", "status", "then", "body"),
    [
        pytest.param("POST", 301, "GET", b"", id="moved"),
        pytest.param("POST", 302, "GET", b"", id="found"),
        pytest.param("PUT", 302, "PUT", b"x", id="found, no POST"),
        pytest.param("DELETE", 303, "GET", b"", id="see other"),
        pytest.param("HEAD", 303, "HEAD", b"", id="see other, only the head"),
        pytest.param("POST", 307, "POST", b"x", id="for now"),
        pytest.param("PATCH", 308, "PATCH", b"x", id="for ever"),
    ],
)
async def test_a_redirect_keeps_what_the_rfc_says_and_no_credentials(
    server: Server, method: str, status: int, then: str, body: bytes
) -> None:
    async with serving(lambda _: redirect(f"http://localhost:{server.port}/to", status)) as first:
        hosts = (f"localhost:{first.port}", f"localhost:{server.port}")
        headers = [["authorization", "Bearer s"], ["Cookie", "a=b"], ["X-Mine", "y"], ["Content-Type", "text/x"]]
        asked = {"method": method, "headers": headers, "follow": True, "body": b"" if method == "HEAD" else b"x"}
        async with Broker().session("weather", hosts) as session:
            await session.answer("fetch", {**asked, "url": f"http://localhost:{first.port}/"})
    (arrived,) = server.asked
    assert (arrived.line, arrived.body) == (f"{then} /to HTTP/1.1", body)
    assert {"authorization", "cookie"}.isdisjoint(arrived.headers)
    assert (arrived.headers["x-mine"], "content-type" in arrived.headers) == ("y", then == method)
    assert first.asked[0].headers["authorization"] == "Bearer s"


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


@pytest.mark.parametrize("asked", [pytest.param(each, id=name) for name, each in NONSENSE.items()])
async def test_what_cannot_be_sent_is_refused_in_words(server: Server, asked: dict[str, Any]) -> None:
    async with Broker().session("weather", (f"localhost:{server.port}",)) as session:
        assert await refusal(session, **{"url": f"http://localhost:{server.port}/", **asked}) != ""
    assert server.connections == 0


async def test_what_frames_a_message_is_never_the_functions_to_say(server: Server) -> None:
    names = [
        "Host",
        "Connection",
        "Transfer-Encoding",
        "Content-Length",
        "TE",
        "Upgrade",
        "Expect",
        "Proxy-Authorization",
    ]
    async with Broker().session("weather", (f"localhost:{server.port}",)) as session:
        headers = [[name, "evil"] for name in names]
        await session.answer("fetch", {"url": f"http://localhost:{server.port}/", "headers": headers, "method": "POST"})
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


ANSWERS = {
    "huge headers": b"HTTP/1.1 200 -\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
    "no HTTP": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "nothing": b"",
    "a line that ends too soon": b"HTTP/1.1 200",
    "a switch of protocols": b"HTTP/1.1 101 -\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nmore",
    "two lengths": b"HTTP/1.1 200 -\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "a folded null": b"HTTP/1.1 200 -\r\nX: a\0b\r\n\r\n",
}


@pytest.mark.parametrize("answer", [pytest.param(each, id=name) for name, each in ANSWERS.items()])
async def test_a_hostile_answer_is_an_error_and_no_more(answer: bytes) -> None:
    async with (
        serving(lambda _: answer) as server,
        Broker().session("weather", (f"localhost:{server.port}",)) as session,
    ):
        got = await session.answer("fetch", {"url": f"http://localhost:{server.port}/"})
    assert got["failed"] in {"response", "connection"}


async def drip(_request: Request) -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 -\r\n\r\n"
    for _number in range(10_000):
        yield b"x" * 60_000
        await asyncio.sleep(0)


CAPS = [
    pytest.param(Caps(response=1 << 20), "for piece in get(): pass", "OSError", "1048576 bytes", id="response"),
    pytest.param(
        Caps(request_s=0.3), "r = get()\nwhile r.read(60_000): time.sleep(0.05)", "TimeoutError", "in time", id="time"
    ),
    pytest.param(Caps(call_s=0.0), "get()", "TimeoutError", "in time", id="time of the call"),
    pytest.param(Caps(requests=3), "for _ in range(4): get().close()", "PermissionError", "3 requests", id="requests"),
    pytest.param(Caps(streams=2), "a, b, c = get(), get(), get()", "PermissionError", "2 responses", id="streams"),
    pytest.param(
        Caps(request=99_999), "get(method='POST', body='x' * 100_000)", "PermissionError", "99999", id="request"
    ),
]


@pytest.mark.parametrize(("caps", "body", "kind", "words"), CAPS)
async def test_a_cap_ends_what_is_beyond_it_in_words(
    reach: Reach, caps: Caps, body: str, kind: str, words: str
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
async def test_a_stream_is_closed_however_its_call_ends(sandbox: Sandbox, end: str, kind: type) -> None:
    async with serving(stall) as server:
        text = f"def go(self):\n    r = self.fetch('http://localhost:{server.port}/')\n    r.read(1)\n"
        text += "".join(f"    {line}\n" for line in end.splitlines())
        async with Broker().session("weather", (f"localhost:{server.port}",)) as session:
            limits, handler = Limits(wall_s=1.0), Handler(session)
            outcome = await sandbox.call(modules(web=text), "web", "go", {}, limits=limits, handler=handler)
        assert isinstance(outcome, kind), outcome
        assert (session.open, server.connections) == (0, 1)
        async with asyncio.timeout(10):
            await server.quiet.wait()


async def test_a_human_who_is_asked_live_decides_for_the_rest_of_the_call(server: Server, canary: Server) -> None:
    asked: list[str] = []

    async def want(place: str) -> bool:
        asked.append(place)
        await asyncio.sleep(0.3)
        return place.endswith(f":{server.port}")

    async with Broker(Caps(call_s=0.25, request_s=0.25)).session("weather", (), want) as session:
        for _ in range(2):
            assert (await session.answer("fetch", {"url": f"http://localhost:{server.port}/"}))["status"] == 200
            assert "may not reach" in await refusal(session, url=f"http://localhost:{canary.port}/")
    assert asked == [f"localhost:{server.port}", f"localhost:{canary.port}"]
    assert canary.connections == 0


async def test_a_human_is_asked_for_three_hosts_of_a_call_and_no_more() -> None:
    asked: list[str] = []

    async def want(place: str) -> bool:
        asked.append(place)
        return False

    async with Broker().session("weather", (), want) as session:
        for number in range(9):
            assert await refusal(session, url=f"http://{number}.example.org/") != ""
    assert asked == ["0.example.org", "1.example.org", "2.example.org"]
