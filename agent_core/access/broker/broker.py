"""The broker as calls use it: one session each, which costs nothing until something is fetched.

The HTTP client library is slow to import, so the first fetch of a process imports it.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias

from .caps import FetchCaps

if TYPE_CHECKING:
    from agent_core.base.receipt import Receipt

Want: TypeAlias = Callable[[str], Awaitable[bool]]  # asks a human for one more host, as `host` or `host:port`
Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
Tls: TypeAlias = Callable[[], ssl.SSLContext]
Reach: TypeAlias = Callable[[str], Awaitable[None]]  # receives a place before a call reaches it for the first time


@dataclass(frozen=True, slots=True)
class Broker:
    """The shared state of all fetches: the caps, the resolver, the trusted certificates, and the log."""

    caps: FetchCaps = field(default_factory=FetchCaps)
    resolve: Resolve | None = None  # None: the system's
    tls: Tls | None = None  # None: the certificates that this machine trusts
    note: Callable[[str], None] = field(default=lambda _: None)  # receives a line for each request

    def session(
        self,
        function: str,
        hosts: tuple[str, ...],
        want: Want | None = None,
        *,
        receipt: "Receipt | None" = None,
        reach: Reach | None = None,
    ) -> "FetchSession":
        """Return a session for one call of a function that may reach these hosts; the user is asked for others.

        Reached and refused places are recorded in `receipt`.
        """
        return FetchSession(lambda: _begin_fetches(self, function, hosts, want, receipt, reach))


class Answering(Protocol):
    """Answers the requests that one call makes to the broker."""

    @property
    def open(self) -> int:
        """The number of requests that have not ended."""

    async def answer(self, name: str, arguments: Mapping[str, Any]) -> Any:  # Any: values that cross the sandbox
        """Return the answer to one request."""

    async def aclose(self) -> None:
        """End all open requests."""


class FetchSession:
    """The fetches of one call: started by the first one, ended with the call, however it ends."""

    def __init__(self, begin: Callable[[], Answering]) -> None:
        self._begin = begin
        self._fetches: Answering | None = None

    @property
    def open(self) -> int:
        """The number of requests that have not ended."""
        return 0 if self._fetches is None else self._fetches.open

    async def answer(self, name: str, arguments: Mapping[str, Any]) -> Any:  # Any: values that cross the sandbox
        """Return the answer to `fetch`, `fetch_send`, `fetch_read` or `fetch_close`; a failed fetch is a value, too.

        Raises:
            RequestRefused: it was not granted, or cannot be sent at all.
        """
        if self._fetches is None:
            self._fetches = await asyncio.to_thread(self._begin)
        return await self._fetches.answer(name, arguments)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fetches is not None:
            await self._fetches.aclose()


def _begin_fetches(
    broker: Broker,
    function: str,
    hosts: tuple[str, ...],
    want: Want | None,
    receipt: "Receipt | None",
    reach: Reach | None,
) -> Answering:
    from .fetches import Fetches  # noqa: PLC0415 - see above

    return Fetches(broker, function, hosts, want, receipt, reach)
