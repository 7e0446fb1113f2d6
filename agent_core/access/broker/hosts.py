"""The hosts that a function may reach, as granted: `api.example.org`, `localhost:8000`, `*.example.org`,
`192.168.1.5`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

from sandbox import RequestRefused

from .target import DEFAULT_PORTS, Address, Target, as_address, authority, shown

_WILD = "*."


@dataclass(frozen=True, slots=True)
class Host:
    """A granted host; without a port it covers the usual two, and a wildcard covers only the names below it."""

    name: str
    port: int | None = None
    is_wild: bool = False

    def __str__(self) -> str:
        bare = f"[{self.name}]" if ":" in self.name else self.name
        return f"{_WILD if self.is_wild else ''}{bare}{'' if self.port is None else f':{self.port}'}"

    def covers(self, name: str, port: int) -> bool:
        """Check whether a name, or an address as text, is covered by this grant."""
        if port not in (DEFAULT_PORTS.values() if self.port is None else (self.port,)):
            return False
        return name.endswith(f".{self.name}") if self.is_wild else name == self.name


def host(text: str) -> Host:
    """Return a grant as the user writes it, in its canonical spelling.

    Raises:
        RequestRefused: it is none.
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
        """Return the grants that can be parsed; what cannot be parsed grants nothing."""
        return cls(tuple(grant for text in texts if (grant := _readable(text)) is not None))

    def with_host(self, text: str) -> Self:
        """Return these hosts and one more."""
        return replace(self, granted=(*self.granted, host(text)))

    def cover(self, target: Target) -> bool:
        """Check whether the target was granted."""
        return any(grant.covers(target.host, target.port) for grant in self.granted)

    def name(self, address: Address, target: Target) -> bool:
        """Check whether an address that is not public was itself granted: literally, or as `localhost`."""
        if target.host == "localhost" and address.is_loopback:
            return True
        return any(not grant.is_wild and grant.covers(str(address), target.port) for grant in self.granted)


def _readable(text: str) -> Host | None:
    try:
        return host(text)
    except RequestRefused:
        return None
