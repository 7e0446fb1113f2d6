"""What a hostile function would try against the broker; each row targets a server that must not be reached."""

from itertools import product

from agent_core.access.broker import Broker
from tests.broker.reach import Names, Reach, refusal, value
from tests.broker.servers import Server, serving

GRANTED = "localhost:{granted}"
# {granted} is the port of the granted server, {canary} that of the server that was not granted.
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


async def test_no_spelling_of_a_url_leads_beside_the_grant_in_the_host_or_in_a_worker(
    reach: Reach, server: Server, canary: Server
) -> None:
    ports = {
        "granted": server.port,
        "canary": canary.port,
        "overflow": 65536 + canary.port,
        "long": "a" * 10_000,
    }
    granted, urls = (
        GRANTED.format(**ports),
        {name: url.format(**ports) for name, url in SPELLINGS.items()},
    )
    for name, url in urls.items():
        async with Broker().session("weather", (granted,)) as session:
            assert await refusal(session, url=url) != "", name
        assert (server.connections, canary.connections) == (0, 0), name
    del urls["a lone surrogate"]
    body = f"""
    import http.client, urllib.request
    got = []
    for url in {[*urls.values()]!r}:
        for get in (self.fetch, urllib.request.urlopen):
            try:
                with get(url) as response:
                    got.append((url, response.status))
            except (OSError, ValueError, http.client.InvalidURL):
                pass
    return got
    """
    got = value(await reach(body, granted))
    # urllib sends no fragment, reads a file of the sandbox, and takes a port with a sign as part of the host
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


async def test_a_name_that_resolves_inwards_is_refused() -> None:
    for (kind, addresses), grant in product(RESOLVED.items(), ["api.example.org", "*.example.org"]):
        async with Broker(resolve=Names(addresses)).session("weather", (grant,)) as session:
            words = await refusal(session, url="http://api.example.org/")
        assert "only where the address itself was granted too: --network" in words, (kind, grant)


async def test_what_a_human_named_is_reached(server: Server) -> None:
    for url, hosts, addresses in (
        ("http://localhost:{port}/", ("localhost:{port}",), ["127.0.0.1"]),
        ("http://LocalHost.:{port}/", ("LOCALHOST:{port}",), ["127.0.0.1"]),
        ("http://127.0.0.1:{port}/", ("127.0.0.1:{port}",), []),
        ("http://[::ffff:127.0.0.1]:{port}/", ("127.0.0.1:{port}",), []),
        ("http://nas:{port}/", ("nas:{port}", "127.0.0.1:{port}"), ["127.0.0.1"]),
        ("http://a.b.nas.home:{port}/", ("*.nas.home:{port}", "127.0.0.1:{port}"), ["127.0.0.1"]),
        (
            "http://bücher.example:{port}/",
            ("xn--bcher-kva.example:{port}", "127.0.0.1:{port}"),
            ["127.0.0.1"],
        ),
        ("http://nas:{port}#@evil/", ("nas:{port}", "127.0.0.1:{port}"), ["127.0.0.1"]),
    ):
        server.asked.clear()
        granted = tuple(host.format(port=server.port) for host in hosts)
        async with Broker(resolve=Names(addresses)).session("weather", granted) as session:
            answer = await session.answer("fetch", {"url": url.format(port=server.port)})
        assert (answer["status"], len(server.asked)) == (200, 1), url


async def test_a_grant_is_for_what_it_says_and_no_more() -> None:
    for grant, place in (
        ("*.example.org", "example.org"),
        ("*.example.org", "badexample.org"),
        ("*.org", "api.example.org"),
        ("*", "api.example.org"),
        ("*.0.0.1", "127.0.0.1"),
        ("api.example.org", "api.example.org:8080"),
        ("api.example.org:8080", "api.example.org"),
        ("localhost:0", "localhost"),
        ("", "localhost"),
        ("http://localhost", "localhost"),
    ):
        names = Names(["127.0.0.1"])
        async with Broker(resolve=names).session("weather", (grant,)) as session:
            words = await refusal(session, url=f"http://{place}/")
        told = f"Grant it at a terminal: `knapper functions grant weather --network {place}`"
        assert (words.endswith(told), names.asked) == (True, []), (grant, place, words)


async def test_a_name_is_resolved_once_and_the_checked_address_is_connected_to(
    server: Server,
) -> None:
    names = Names(["127.0.0.1"], ["127.0.0.2"])
    async with serving(address="127.0.0.2", port=server.port) as rebound:
        hosts = (f"rebind.example:{server.port}", f"127.0.0.1:{server.port}")
        async with Broker(resolve=names).session("weather", hosts) as session:
            url = f"http://rebind.example:{server.port}/"
            assert (await session.answer("fetch", {"url": url}))["status"] == 200
            assert "127.0.0.2, a loopback address" in await refusal(session, url=url)
        assert (server.connections, rebound.connections, len(names.asked)) == (1, 0, 2)
