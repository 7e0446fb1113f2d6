"""Any text as a URL or a grant leads to a decision or a clear refusal, and means one host to every parser."""

import asyncio
import http.client
import ipaddress
import re
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import httpx2
from hypothesis import example, given
from hypothesis import strategies as st

from agent_core.access.broker import Broker, FetchCaps
from agent_core.access.broker.exchange import Hosts, Target, as_address, kind_of, read, take
from agent_core.access.grants.value import UNSAID, written
from sandbox import RequestRefused
from tests.broker.reach import Names

PARTS = [
    "http://", "https://", "HTTP://", "http:/", "//", "file://", ":", "/", "\\", "@", "#", "?", "[", "]", "%", ".", "-",
    "localhost", "LOCALHOST", "api.example.org", "127.0.0.1", "0x7f", "0177", "2130706433", "::1", "::ffff:127.0.0.1",
    "xn--bcher-kva", "bücher", "ß", "İ", "。", "①②⑦", "１２７", "%31", "%2e", "%00", "%0d%0a", "\r\n", "\t", "\0", " ",
    "80", "443", ":8000", ":+80", ":８０", ":99999", ":", "user:pass@", "..", "/../", "a", "_", "*", "\u200b", "\ud800",
]  # fmt: skip
likely = st.tuples(
    st.sampled_from(["http://", "https://", "HTTP://"]),
    st.lists(
        st.sampled_from(["a", "API", "bücher", "xn--a", "ß", "1", "。", "_", "-", "%2e"]),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from(["", ".", ".example.org", ".example.org.", ".1", ".0x1"]),
    st.sampled_from(["", ":", ":80", ":443", ":08000", ":65535", ":65536"]),
    st.sampled_from(
        [
            "",
            "/",
            "?",
            "#",
            "/../a",
            "/@evil/",
            "?@evil",
            "#@evil",
            "/%2e%2e/ü b",
            "//evil/",
            "/\\evil",
        ]
    ),
).map(lambda parts: parts[0] + "".join(parts[1]) + "".join(parts[2:]))
urls = (
    likely
    | st.one_of(st.text(), st.lists(st.sampled_from(PARTS), max_size=8).map("".join))
    | st.lists(st.sampled_from(PARTS), max_size=6).map(lambda parts: "http://" + "".join(parts))
)


def taken(url: str) -> Target | None:
    try:
        return read(url, 8192)
    except RequestRefused as refused:
        words = str(refused)
    assert words.isprintable()
    return None


@given(urls)
@example("http://localhost%40evil/")
@example("http://[::1%25lo]/")
@example("http://-a.example/")
@example(f"http://{'a.' * 127}a/")
def test_any_text_is_a_target_or_a_refusal_in_words(url: str) -> None:
    target = taken(url)
    if target is not None:
        assert target.host == target.host.lower().rstrip(".")
        assert target.host.isascii()
        assert len(target.host) <= 253
        assert target.path.isascii()
        assert target.path.startswith("/")
        assert not set(target.path) & set(" \r\n\t\\\0#")
        assert read(target.url, 100_000) == target


@given(urls)
@example("http://a.example#@evil/")
@example("http://a.example?@evil/")
def test_three_parsers_see_the_host_that_was_checked(url: str) -> None:
    if (target := taken(url)) is None:
        return
    theirs, pythons = httpx2.URL(url), urlsplit(url)
    assert _same(theirs.raw_host.decode(), target.host)
    assert _same(pythons.hostname or "", target.host)
    assert (theirs.port or {"http": 80, "https": 443}[theirs.scheme]) == target.port
    assert (pythons.port or {"http": 80, "https": 443}[pythons.scheme]) == target.port
    connection = http.client.HTTPConnection(urlsplit(target.url).netloc)
    assert _same(connection.host, target.host)


def _same(text: str, host: str) -> bool:
    name = text.removesuffix(".").strip("[]")
    if not name.isascii():
        name = httpx2.URL(f"http://{name}/").raw_host.decode().removesuffix(".")
    return str(as_address(name) or name.lower()) == host


@given(urls, st.lists(urls, max_size=3))
def test_what_is_allowed_was_granted_in_so_many_words(url: str, grants: list[str]) -> None:
    if (target := taken(url)) is None:
        return
    hosts = Hosts.of([*grants, "localhost:8000", "*.example.org"])
    if hosts.cover(target):
        names = [re.sub(r":[0-9]+$", "", one).strip("[]") for one in hosts.granted]
        assert any(
            name == target.host or (name[:1] == "*" and target.host.endswith(name[1:]))
            for name in names
        )


@given(urls)
@example("*.*.example.org")
@example("*.127.0.0.1")
@example("::1")
@example("[::1]:80")
@example("*.example.org:8000")
@example("[::1]:8000")
@example("api.example.org:443")
@example("api.example.org")
def test_a_host_that_can_be_granted_covers_its_own_url_and_no_other_port(text: str) -> None:
    item = written("network", text)
    if item not in (None, UNSAID):
        hosts, place = Hosts.of([str(item)]), str(item).replace("*", "a", 1)
        assert hosts.granted == (item,)
        for target in filter(None, (taken(f"https://{place}/"), taken(f"http://{place}/"))):
            assert hosts.cover(target) == (
                target.port in (80, 443) or place.endswith(f":{target.port}")
            )
            assert not hosts.cover(replace(target, port=81 if target.port != 81 else 82))
    assert Hosts.of([UNSAID]).granted == ()


def test_an_address_is_public_or_of_a_kind_that_has_a_name() -> None:
    kinds: dict[str, str | None] = {
        **{"8.8.8.8": None, "2606:4700:4700::1111": None, "64:ff9b::808:808": None},
        **{
            "64:ff9b::7f00:1": "a loopback",
            "::7f00:1": "a reserved",
            "::ffff:10.0.0.1": "a private",
        },
        **{
            "169.254.169.254": "a link-local",
            "100.127.255.255": "a carrier's",
            "192.0.2.1": "a documentation",
        },
        "fec0::1": "a private",
    }
    found = {address: as_address(address) for address in kinds}
    assert {address: kind_of(one) if one else "" for address, one in found.items()} == kinds


METHODS = ["GET", "POST"]


@given(st.ip_addresses())
def test_every_address_that_is_let_through_is_global_for_python_too(address: Any) -> None:
    found = as_address(str(address))
    assert found is not None
    if kind_of(found) is None and found not in ipaddress.ip_network("64:ff9b::/96"):
        assert found.is_global
        assert not found.is_multicast


values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(),
        st.binary(),
        st.sampled_from(METHODS),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = ["url", "method", "headers", "body", "timeout", "follow", "stream", "size", "data"]


@given(st.dictionaries(st.sampled_from(NAMES), values | urls))
def test_any_arguments_are_an_order_or_a_refusal(arguments: dict[str, Any]) -> None:
    try:
        order = take({"url": "http://localhost/", **arguments}, b"", FetchCaps())
        order.redirected(str(arguments.get("data")), 302, 8192)
    except RequestRefused:
        return


@given(
    st.sampled_from(["fetch", "fetch_send", "fetch_read", "fetch_close"]),
    st.dictionaries(st.sampled_from(NAMES), values),
)
def test_no_request_of_a_worker_raises_what_is_no_refusal(
    name: str, arguments: dict[str, Any]
) -> None:
    async def ask() -> None:
        async with Broker(resolve=Names([])).session("weather", ()) as session:
            with suppress(RequestRefused):
                answer = await session.answer(name, arguments)
                assert answer is None or "failed" in answer

    asyncio.run(ask())
