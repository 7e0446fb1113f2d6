"""Checks which addresses are public, and resolves a name once to addresses that were all checked.

Python's own `is_global` differs from release to release; the table is IANA's special-purpose registries. Of IPv6 only
global unicast is public, and of what wraps an IPv4 address only NAT64, as its IPv4 address is.
"""

import asyncio
import functools
import ipaddress
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from sandbox import RequestRefused

from .broker import Resolve
from .failing import FetchFailed
from .hosts import Hosts
from .target import Address, Target, as_address

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
_RESOLVERS = 4  # threads: names that resolve slowly hold up one another, and nothing else of the host


def kind_of(address: Address) -> str | None:
    """Return what kind of address it is if it is not public; None if it is."""
    if address in _NAT64:
        return kind_of(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    for network, kind in _SPECIAL.items():
        if address in network:
            return kind
    return None if address.version == 4 or address in _UNICAST else "a reserved"


async def checked(target: Target, hosts: Hosts, resolve: Resolve) -> tuple[str, ...]:
    """Return the addresses at which the target may be reached.

    Raises:
        RequestRefused: one of them is not public, and was not granted.
        FetchFailed: there are none.
    """
    literal = target.address
    addresses = [literal] if literal is not None else await _resolved(target, resolve)
    for address in addresses:
        kind = kind_of(address)
        if kind is not None and not hosts.name(address, target):
            raise RequestRefused(_refusal(target, address, kind))
    return tuple(map(str, addresses))


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return the system's answer; a lookup that is abandoned ends in its own thread."""
    ask = functools.partial(socket.getaddrinfo, host.encode("ascii"), port, type=socket.SOCK_STREAM)
    answers = await asyncio.get_running_loop().run_in_executor(_resolvers(), ask)
    return [str(answer[4][0]) for answer in answers]


@functools.cache
def _resolvers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_RESOLVERS, "resolve")


async def _resolved(target: Target, resolve: Resolve) -> list[Address]:
    try:
        texts = await resolve(target.host, target.port)
    except TimeoutError:
        raise
    except (OSError, UnicodeError) as error:
        raise FetchFailed("name", f"{target.host} cannot be resolved: {error}") from error
    addresses = [as_address(text) for text in dict.fromkeys(texts)]
    if not addresses or None in addresses or len(addresses) > _MOST_ADDRESSES:
        raise FetchFailed("name", f"{target.host} resolves to nothing that can be connected to")
    return [address for address in addresses if address is not None]


def _refusal(target: Target, address: Address, kind: str) -> str:
    place = Target(target.scheme, str(address), target.port, "").place
    return (
        f"{target.host} is {address}, {kind} address, which is reached only where the address itself was granted too:"
        f" --network {place}"
    )
