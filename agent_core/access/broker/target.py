"""URLs and hosts as the broker understands them: parsed once, strictly, and never used as text again.

The client library receives these parts, not the URL, so no second parser could see a different host. The hosts that a
function may reach are granted as `api.example.org`, `localhost:8000`, `*.example.org` or `192.168.1.5`.
"""

import ipaddress
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

import httpx2

from sandbox import RequestRefused

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

DEFAULT_PORTS = {"http": 80, "https": 443}
_AUTHORITY = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:/?#@\\%\s]+)(?::([0-9]{1,5}))?", re.IGNORECASE)
_URL = re.compile(r"([a-z][a-z0-9+.-]*)://([^/?#]*)([^#]*)(?:#.*)?", re.IGNORECASE)
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")  # a last label that some resolvers treat as part of an address
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
        bare = f"[{self.host}]" if ":" in self.host else self.host
        return bare if self.port == DEFAULT_PORTS[self.scheme] else f"{bare}:{self.port}"

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
        raise RequestRefused(f"{shown(url)} holds what a URL cannot: encode it with urllib.parse.quote")
    match = _URL.fullmatch(url)
    scheme = match[1].lower() if match else ""
    if match is None or scheme not in DEFAULT_PORTS:
        raise RequestRefused(f"{shown(url)} is not a URL that can be fetched: write https://host/path, or http://")
    host, port = authority(match[2])
    if port == 0 or (port or 1) > 0xFFFF:
        raise RequestRefused(f"{shown(url)} names port {port}; ports are 1 to 65535")
    path = f"/{match[3]}" if match[3].startswith("?") else match[3] or "/"
    sent_path = _parse(f"http://host{path}").raw_path.decode("ascii").replace("\\", "%5C")
    return Target(scheme, host, DEFAULT_PORTS[scheme] if port is None else port, sent_path)


def authority(text: str) -> tuple[str, int | None]:
    """Return the host of `host` or `host:port` in its canonical spelling, and the port if there is one."""
    if "@" in text:
        raise RequestRefused("a URL with a user or password before an @ is not fetched: send them in a header")
    match = _AUTHORITY.fullmatch(text)
    if match is None:
        raise RequestRefused(
            f"{shown(text)} is not a host: write a name or an address, and a port in digits if need be"
        )
    written = match[1]
    ascii_text = _parse(f"http://{written}/").raw_host.decode("ascii")
    name, port = ascii_text.removesuffix(".").lower(), None if match[2] is None else int(match[2])
    if (address := as_address(name)) is not None:
        return str(address), port
    labels = name.split(".")
    if len(name) > _NAME_LIMIT or not all(map(_LABEL.fullmatch, labels)) or _NUMBER.fullmatch(labels[-1]):
        raise RequestRefused(
            f"{shown(written)} is not a host name, and not an address in its usual form (127.0.0.1, [::1])"
        )
    return name, port


def as_address(host: str) -> Address | None:
    """Return the address in a text, or None; an IPv4-mapped IPv6 address becomes its IPv4 address."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def shown(text: str) -> str:
    """Return untrusted text in a form that is safe in a message."""
    return ascii(text if len(text) <= 100 else f"{text[:100]}…")


def _parse(url: str) -> httpx2.URL:
    try:
        return httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError) as error:
        raise RequestRefused(f"{shown(url)} cannot be read as a URL: {error}") from error


_WILD = "*."


@dataclass(frozen=True, slots=True)
class Host:
    """A granted host; without a port it covers the two default ports, and a wildcard covers only names below it."""

    name: str
    port: int | None = None
    is_wild: bool = False

    def __str__(self) -> str:
        bare = f"[{self.name}]" if ":" in self.name else self.name
        return f"{_WILD if self.is_wild else ''}{bare}{'' if self.port is None else f':{self.port}'}"

    def covers(self, name: str, port: int) -> bool:
        """Check whether this grant covers a name, or an address as text."""
        if port not in (DEFAULT_PORTS.values() if self.port is None else (self.port,)):
            return False
        return name.endswith(f".{self.name}") if self.is_wild else name == self.name


def host(text: str) -> Host:
    """Return a grant as the user writes it, in its canonical spelling.

    Raises:
        RequestRefused: it is not valid.
    """
    wild, bare = text.startswith(_WILD), text.removeprefix(_WILD)
    name, port = authority(f"[{bare}]" if bare.count(":") > 1 and not bare.startswith("[") else bare)
    if wild and ("." not in name or as_address(name) is not None):
        raise RequestRefused(f"{shown(text)} is too much: a grant for all names below one needs two parts")
    if port == 0 or (port or 1) > 0xFFFF:
        raise RequestRefused(f"{shown(text)} names port {port}; ports are 1 to 65535")
    return Host(name, port, wild)


@dataclass(frozen=True, slots=True)
class Hosts:
    """All hosts that one function may reach."""

    granted: tuple[Host, ...] = ()

    @classmethod
    def of(cls, texts: Iterable[str]) -> Self:
        """Return the grants that can be parsed, without the others."""
        granted: list[Host] = []
        for text in texts:
            with suppress(RequestRefused):
                granted.append(host(text))
        return cls(tuple(granted))

    def with_host(self, text: str) -> Self:
        """Return these hosts and one more."""
        return replace(self, granted=(*self.granted, host(text)))

    def cover(self, target: Target) -> bool:
        """Check whether the target was granted."""
        return any(grant.covers(target.host, target.port) for grant in self.granted)

    def name(self, address: Address, target: Target) -> bool:
        """Check whether an address that is not public was granted itself: literally, or as `localhost`."""
        if target.host == "localhost" and address.is_loopback:
            return True
        return any(not grant.is_wild and grant.covers(str(address), target.port) for grant in self.granted)
