"""One checked request on one new connection, to a checked address; HTTP/1.1 by httpcore2, without its pool.

A URL is parsed once, strictly, and never used as text again. The client library receives its parts, so no second parser
could see a different host. The hosts that a function may reach are granted as `api.example.org`, `localhost:8000`,
`*.example.org` or `192.168.1.5`.

A name is resolved once, and all its addresses are checked. Python's own `is_global` differs between releases; this
table follows IANA's special-purpose registries. In IPv6, only global unicast is public; of the ranges that wrap an IPv4
address, only NAT64 is accepted, with the rules for its IPv4 address.
"""

import asyncio
import functools
import ipaddress
import math
import re
import socket
import ssl
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Literal, Self, TypeAlias
from urllib.parse import urljoin

import httpcore2
import httpx2

from agent_core.base.network_variables import UnusableVariable, certificates
from agent_core.base.records import dataclass, replace
from sandbox import RequestRefused

from ..grants.value import UNSAID, covered, written
from .caps import METHODS, PIECE, READING, FetchCaps, Resolve, Tls

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_DEFAULT_PORTS = {"http": 80, "https": 443}
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:/?#@\\%\s]+)(?::([0-9]{1,5}))?", re.IGNORECASE)
_URL = re.compile(r"([a-z][a-z0-9+.-]*)://([^/?#]*)([^#]*)(?:#.*)?", re.IGNORECASE)
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(
    r"[0-9]+|0x[0-9a-f]*"
)  # a last label that some resolvers treat as part of an address
_NAME_LIMIT = 253


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a request: a lower-case ASCII host name or an address, never with a trailing dot."""

    scheme: str
    host: str
    port: int
    path: str  # with its query, as sent

    @property
    def address(self) -> Address | None:
        """The host as an address, if it is written as one."""
        return as_address(self.host)

    @property
    def place(self) -> str:
        """Host and port in the form of a Host header and a grant."""
        return (
            self._bare if self.port == _DEFAULT_PORTS[self.scheme] else f"{self._bare}:{self.port}"
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The grants that name exactly this target: with its port, and also without it if the port is a default one."""
        with_port = f"{self._bare}:{self.port}"
        return (with_port, self._bare) if self.port in _DEFAULT_PORTS.values() else (with_port,)

    @property
    def _bare(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def url(self) -> str:
        """The URL, without a fragment."""
        return f"{self.scheme}://{self.place}{self.path}"


def read(url: object, limit: int) -> Target:
    """Return the target of a URL.

    Raises:
        RequestRefused: it is not a URL, or one that two programs might read differently.
    """
    if not isinstance(url, str):
        raise RequestRefused("a URL is text")
    if len(url) > limit:
        raise RequestRefused(f"a URL may have {limit} characters, and this one has {len(url)}")
    if not url.isprintable():
        raise RequestRefused(
            f"{_shown(url)} holds what a URL cannot: encode it with urllib.parse.quote"
        )
    match = _URL.fullmatch(url)
    scheme = match[1].lower() if match else ""
    if match is None or scheme not in _DEFAULT_PORTS:
        raise RequestRefused(
            f"{_shown(url)} is not a URL that can be fetched: write https://host/path, or http://"
        )
    host, port = _authority(match[2])
    if port == 0 or (port or 1) > 0xFFFF:
        raise RequestRefused(f"{_shown(url)} names port {port}; ports are 1 to 65535")
    path = f"/{match[3]}" if match[3].startswith("?") else match[3] or "/"
    sent_path = _parse(f"http://host{path}").raw_path.decode("ascii").replace("\\", "%5C")
    return Target(scheme, host, _DEFAULT_PORTS[scheme] if port is None else port, sent_path)


def head_of(url: str) -> str:
    """Return the part of a text that names the host, if it is a URL; all of any other text."""
    match = _URL.fullmatch(url)
    return url[: match.end(2)] if match else url


def _authority(text: str) -> tuple[str, int | None]:
    """Return the host of `host` or `host:port` in its canonical spelling, and the port if there is one."""
    if "@" in text:
        raise RequestRefused(
            "a URL with a user or password before an @ is not fetched: send them in a header"
        )
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        raise RequestRefused(
            f"{_shown(text)} is not a host: write a name or an address, and a port in digits if need be"
        )
    written = match[1]
    ascii_text = _parse(f"http://{written}/").raw_host.decode("ascii")
    name, port = ascii_text.removesuffix(".").lower(), None if match[2] is None else int(match[2])
    if (address := as_address(name)) is not None:
        return str(address), port
    labels = name.split(".")
    if (
        len(name) > _NAME_LIMIT
        or not all(map(_LABEL.fullmatch, labels))
        or _NUMBER.fullmatch(labels[-1])
    ):
        raise RequestRefused(
            f"{_shown(written)} is not a host name, and not an address in its usual form (127.0.0.1, [::1])"
        )
    return name, port


def as_address(host: str) -> Address | None:
    """Return the address in a text, or None; an IPv4-mapped IPv6 address becomes its IPv4 address."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _shown(text: str) -> str:
    """Return untrusted text in a form that is safe in a message."""
    return ascii(text if len(text) <= 100 else f"{text[:100]}…")


def _parse(url: str) -> httpx2.URL:
    try:
        return httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError) as error:
        raise RequestRefused(f"{_shown(url)} cannot be read as a URL: {error}") from error


@dataclass(frozen=True, slots=True)
class Hosts:
    """All hosts that one function may reach, as grants spell them."""

    granted: tuple[str, ...] = ()

    @classmethod
    def of(cls, texts: Iterable[str]) -> Self:
        """Return the grants that name a host, without the others."""
        items = [written("network", text) for text in texts]
        return cls(tuple(item for item in items if item is not None and item != UNSAID))

    def with_host(self, place: str) -> Self:
        """Return these hosts and the place of one more target."""
        return replace(self, granted=(*self.granted, place))

    def cover(self, target: Target) -> bool:
        """Check whether the target was granted."""
        return any(covered("network", name, self.granted) for name in target.names)

    def name(self, address: Address, target: Target) -> bool:
        """Check whether an address that is not public was granted itself: literally, or as `localhost`."""
        if target.host == "localhost" and address.is_loopback:
            return True
        return any(name in self.granted for name in replace(target, host=str(address)).names)


Headers: TypeAlias = tuple[tuple[str, str], ...]
Kind: TypeAlias = Literal["name", "connection", "tls", "timeout", "response"]

REDIRECTS = frozenset({301, 302, 303, 307, 308})
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
# The connection is the broker's: a function may not set headers that frame a message or address the next hop.
_OURS = frozenset(
    {"host", "connection", "keep-alive", "proxy-connection", "proxy-authorization", "te", "trailer"}
) | {
    "transfer-encoding",
    "upgrade",
    "expect",
    "content-length",
    "http2-settings",
}
_PRIVATE = frozenset({"authorization", "cookie"})  # must not be sent to another origin


class FetchFailed(Exception):
    """A fetch that was allowed but failed: a value for the worker, which raises the matching OSError."""

    def __init__(self, kind: Kind, message: str) -> None:
        super().__init__(message)
        self.kind: Kind = kind


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """A request; `follows` tells whether the broker follows redirects."""

    method: str
    target: Target
    headers: Headers = ()
    body: bytes = b""
    follows: bool = False
    timeout_s: float = math.inf

    def redirected(self, location: str, status: int, limit: int) -> "FetchRequest":
        """Return the request that a response's Location asks for, by the rules of RFC 9110, 15.4."""
        try:
            url = urljoin(self.target.url, location)
        except ValueError as error:
            raise RequestRefused(
                f"{self.target.url} redirects to {_shown(location)}, which is not a URL"
            ) from error
        target = read(url, limit)
        if (self.target.scheme, target.scheme) == ("https", "http"):
            raise RequestRefused(f"{self.target.url} redirects to {target.url}, out of TLS")
        order = replace(self, target=target)
        if (status == 303 and self.method != "HEAD") or (
            status in {301, 302} and self.method == "POST"
        ):
            order = replace(
                order, method="GET", body=b"", headers=without(order.headers, prefix="content-")
            )
        is_same = (target.scheme, target.host, target.port) == (
            self.target.scheme,
            self.target.host,
            self.target.port,
        )
        return order if is_same else replace(order, headers=without(order.headers, _PRIVATE))


def take(
    arguments: Mapping[str, Any],  # Any: values that cross the sandbox
    before: bytes,
    caps: FetchCaps,
    *,
    only_reads: bool = False,
) -> FetchRequest:
    """Return the request in a worker's untrusted arguments; `before` is the part of the body that was sent earlier.

    A call that `only_reads` sends no body, and asks by the methods that change nothing.

    Raises:
        RequestRefused: it cannot be sent.
    """
    method, body = arguments.get("method", "GET"), arguments.get("body", b"")
    if not isinstance(method, str) or method not in METHODS:
        raise RequestRefused(f"the method is one of {', '.join(sorted(METHODS))}")
    if only_reads and (method not in READING or before or body):
        raise RequestRefused(
            "this turn is a plan, which only reads: put the request into the proposal"
        )
    if not isinstance(body, bytes) or len(before) + len(body) > caps.request:
        raise RequestRefused(f"the body of a request is bytes, {caps.request} of them at most")
    target = read(arguments.get("url"), caps.url)
    headers = headers_of(arguments.get("headers", []), caps.headers)
    timeout = arguments.get("timeout")
    if timeout is not None and not (isinstance(timeout, int | float) and 0 < timeout < math.inf):
        raise RequestRefused("a timeout is seconds, more than 0")
    timeout_s = math.inf if timeout is None else float(min(timeout, 1e9))
    return FetchRequest(
        method, target, headers, before + body, arguments.get("follow") is True, timeout_s
    )


def headers_of(pairs: object, limit: int) -> Headers:
    """Return the headers to send unchanged, from pairs of text."""
    if not isinstance(pairs, list):
        raise RequestRefused("headers are a list of pairs")
    headers: list[tuple[str, str]] = []
    for pair in pairs:
        match pair:
            case [str(name), str(value)] if _NAME.fullmatch(name) and _VALUE.fullmatch(value):
                headers.append((name, value.strip(" \t")))
            case [str(name), str()]:
                raise RequestRefused(
                    f"the header {_shown(name)} holds what a header cannot hold: a line break, a control"
                    " character, or text beyond Latin-1"
                )
            case _:
                raise RequestRefused("a header is a pair of texts, its name and its value")
    if sum(len(name) + len(value) + 4 for name, value in headers) > limit:
        raise RequestRefused(f"the headers of a request may take {limit} bytes")
    return without(tuple(headers), _OURS)


def without(headers: Headers, names: frozenset[str] = frozenset(), prefix: str = "\n") -> Headers:
    """Return the headers except those with these names, or with names that start with the prefix."""
    return tuple(
        pair
        for pair in headers
        if pair[0].lower() not in names and not pair[0].lower().startswith(prefix)
    )


_SPECIAL = {
    ipaddress.ip_network(network): kind
    for kind, networks in {
        "an unspecified": "0.0.0.0/8 ::/128",
        "a loopback": "127.0.0.0/8 ::1/128",
        "a private": "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7 fec0::/10",
        "a link-local": "169.254.0.0/16 fe80::/10",
        "a carrier's": "100.64.0.0/10",
        "a multicast": "224.0.0.0/4 ff00::/8",
        "a reserved": "192.0.0.0/24 192.88.99.0/24 198.18.0.0/15 240.0.0.0/4 2001::/23 2002::/16 3fff::/20",
        "a documentation": "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32",
    }.items()
    for network in networks.split()
}
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_UNICAST = ipaddress.ip_network("2000::/3")
_MOST_ADDRESSES = 64
_RESOLVERS = 4  # threads: slow lookups delay each other, but nothing else in the host


def kind_of(address: Address) -> str | None:
    """Return the kind of an address that is not public; None if it is public."""
    if address in _NAT64:
        return kind_of(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    for network, kind in _SPECIAL.items():
        if address in network:
            return kind
    return None if address.version == 4 or address in _UNICAST else "a reserved"


async def checked(target: Target, hosts: Hosts, resolve: Resolve) -> tuple[str, ...]:
    """Return the addresses at which the target may be reached.

    Raises:
        RequestRefused: one of them is not public and was not granted.
        FetchFailed: there are none.
    """
    literal = target.address
    if literal is not None:
        addresses = [literal]
    else:
        try:
            texts = await resolve(target.host, target.port)
        except TimeoutError:
            raise
        except (OSError, UnicodeError) as error:
            raise FetchFailed("name", f"{target.host} cannot be resolved: {error}") from error
        found = [as_address(text) for text in dict.fromkeys(texts)]
        if not found or None in found or len(found) > _MOST_ADDRESSES:
            raise FetchFailed("name", f"{target.host} resolves to nothing that can be connected to")
        addresses = [address for address in found if address is not None]
    for address in addresses:
        kind = kind_of(address)
        if kind is not None and not hosts.name(address, target):
            place = Target(target.scheme, str(address), target.port, "").place
            raise RequestRefused(
                f"{target.host} is {address}, {kind} address, which is reached only where the address itself was"
                f" granted too: --network {place}"
            )
    return tuple(map(str, addresses))


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return the system's answer; an abandoned lookup ends in its own thread."""
    ask = functools.partial(socket.getaddrinfo, host.encode("ascii"), port, type=socket.SOCK_STREAM)
    answers = await asyncio.get_running_loop().run_in_executor(_resolvers(), ask)
    return [str(answer[4][0]) for answer in answers]


@functools.cache
def _resolvers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_RESOLVERS, "resolve")


_DEFAULTS = (("Accept", "*/*"), ("Accept-Encoding", "identity"), ("User-Agent", "knapper"))


def tls() -> ssl.SSLContext:
    """Return a context that verifies certificates against those that this machine trusts.

    Raises:
        FetchFailed: a variable names certificates that cannot be read.
    """
    try:
        return certificates()
    except UnusableVariable as error:
        raise FetchFailed("tls", f"{error.message} {error.fix}") from error


async def tls_context(target: Target, tls: Tls) -> ssl.SSLContext | None:
    """Return the context for a secure connection, else None; loaded in a thread, because the store is large."""
    with _translate_errors(target.place):
        return await asyncio.to_thread(tls) if target.scheme == "https" else None


class _Checked(httpcore2.AsyncNetworkBackend):
    """Connects to the given addresses, one after another, for any requested host."""

    def __init__(self, addresses: tuple[str, ...], connect_s: float) -> None:
        self._addresses = addresses
        self._connect_s = connect_s
        self._inner = httpcore2.AnyIOBackend()
        self.stream: httpcore2.AsyncNetworkStream | None = None

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Return a stream to the first address that answers."""
        share = self._connect_s / len(self._addresses)
        for address in self._addresses[:-1]:
            with suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                self.stream = await self._inner.connect_tcp(address, port, share)
                return self.stream
        self.stream = await self._inner.connect_tcp(self._addresses[-1], port, share)
        return self.stream

    async def aclose(self) -> None:
        """Close the connection, even if it was cancelled during the TLS handshake."""
        if self.stream is not None:
            await self.stream.aclose()


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """The head of a response."""

    status: int
    reason: str
    headers: Headers

    @property
    def is_empty(self) -> bool:
        """True if no body follows."""
        return self.status in (204, 304) or self.header("content-length") == "0"

    def header(self, name: str) -> str | None:
        """Return the first value of a header."""
        return next((value for key, value in self.headers if key.lower() == name), None)


class Exchange:
    """A request that is sent, and a response that is read as far as the caller wants."""

    def __init__(
        self,
        request: FetchRequest,
        addresses: tuple[str, ...],
        secure: ssl.SSLContext | None,
        connect_s: float,
    ) -> None:
        target = request.target
        url = httpcore2.URL(
            scheme=target.scheme, host=target.host, port=target.port, target=target.path
        )
        self._backend = _Checked(addresses, connect_s)
        self._where = target.place
        names = {name.lower() for name, _ in request.headers}
        headers = [("Host", target.place), *request.headers, ("Connection", "close")]
        headers += [(name, value) for name, value in _DEFAULTS if name.lower() not in names]
        if request.body or request.method in {"POST", "PUT", "PATCH"}:
            headers.append(("Content-Length", str(len(request.body))))
        sent = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        self._request = httpcore2.Request(request.method, url, headers=sent, content=request.body)
        self._connection = httpcore2.AsyncHTTPConnection(
            url.origin, secure, network_backend=self._backend
        )
        self._pieces: AsyncGenerator[bytes] | None = None
        self._left = b""

    @property
    def is_connected(self) -> bool:
        """True if there was a connection."""
        return self._backend.stream is not None

    async def begin(self, limit: int) -> ResponseHead:
        """Send the request, and read the head of the response."""
        with _translate_errors(self._where):
            response = await self._connection.handle_async_request(self._request)
        if sum(len(name) + len(value) for name, value in response.headers) > limit:
            raise FetchFailed(
                "response", f"{self._where} answered with headers of more than {limit} bytes"
            )
        self._pieces = response.aiter_stream()
        reason = response.extensions.get("reason_phrase", b"").decode("latin-1")
        headers = tuple(
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers
        )
        return ResponseHead(response.status, reason, headers)

    async def read(self, size: int) -> bytes:
        """Return up to `size` bytes of the body, as they arrive; b"" at its end."""
        if not self._left and self._pieces is not None:
            with _translate_errors(self._where):
                self._left = await anext(self._pieces, b"")
        size = max(1, min(size, PIECE))
        piece, self._left = self._left[:size], self._left[size:]
        return piece

    async def aclose(self) -> None:
        """Close the connection in any state."""
        if self._pieces is not None:
            await self._pieces.aclose()
        await self._backend.aclose()


@contextmanager
def _translate_errors(where: str) -> Iterator[None]:
    """Translate connection failures into errors that help the function's author."""
    try:
        yield
    except (httpcore2.TimeoutException, TimeoutError) as error:
        raise FetchFailed("timeout", f"{where} did not answer in time") from error
    except (httpcore2.NetworkError, OSError, ValueError) as error:
        kind: Kind = "tls" if isinstance(error.__cause__, ssl.SSLError) else "connection"
        raise FetchFailed(
            kind, f"{where}: {error or error.__cause__ or 'the connection broke'}"
        ) from error
    except httpcore2.ProtocolError as error:
        raise FetchFailed("response", f"{where} broke the rules of HTTP: {error}") from error
