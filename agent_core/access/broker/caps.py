"""What bounds the fetches of a call, and what resolves and encrypts them."""

import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from agent_core.base.records import dataclass

MIB = 1 << 20
READING = frozenset({"GET", "HEAD"})
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
PIECE = 64 << 10  # bytes of a body that cross to the worker at once

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
Tls: TypeAlias = Callable[[], ssl.SSLContext]


@dataclass(frozen=True, slots=True)
class FetchCaps:
    """Limits for the fetches of one call, in bytes and seconds; each redirect counts as a request."""

    url: int = 8_192
    headers: int = 64 << 10  # of a request, and of a response
    request: int = 8 * MIB
    response: int = 64 * MIB
    decoded: int = 128 * MIB  # of a compressed response, after decoding in the worker
    requests: int = 200
    redirects: int = 5
    streams: int = 8
    request_s: float = 60.0
    call_s: float = 300.0
    resolve_s: float = 10.0
    connect_s: float = 10.0
