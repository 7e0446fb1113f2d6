"""The broker as calls use it: one session each, which costs nothing until something is fetched.

The HTTP client library is slow to import, so the first fetch of a process imports it.
"""

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self

from agent_core.base import machine
from agent_core.base.records import dataclass, field
from agent_core.base.untrusted import one_line

from ..call_exit import CallExit
from .caps import FetchCaps, Resolve, Tls


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
        exit: CallExit | None = None,
    ) -> "FetchSession":
        """Return a session for one call of a function that may reach these hosts; its exit asks the user for others."""

        def begin() -> Answering:
            from .fetches import Fetches  # noqa: PLC0415 - see above

            return Fetches(self, function, hosts, exit or CallExit())

        return FetchSession(begin)


class Answering(Protocol):
    """Answers the requests that one call makes to the broker."""

    @property
    def open(self) -> int:
        """The number of requests that have not ended."""

    async def answer(
        self, name: str, arguments: Mapping[str, Any]
    ) -> Any:  # Any: values that cross the sandbox
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

    async def answer(
        self, name: str, arguments: Mapping[str, Any]
    ) -> Any:  # Any: values that cross the sandbox
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
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._fetches is not None:
            await self._fetches.aclose()


LOG_NAME: Final = "requests.log"
MOST_LOG_BYTES: Final = 1 << 20
_LONGEST_LINE: Final = 4_000


class RequestLog:
    """Appends a line per request to `requests.log`, a private file; a full one replaces `requests.log.1`."""

    def __init__(self, folder: Path, clean: Callable[[str], str], now: Callable[[], float]) -> None:
        self._path = folder / LOG_NAME
        self._clean = clean
        self._now = now

    def __call__(self, text: str) -> None:
        """Write one line; if that fails, as on a full disk, the request continues without it."""
        when = datetime.fromtimestamp(self._now(), UTC).isoformat(timespec="milliseconds")
        line = self._clean(f"{when.replace('+00:00', 'Z')} {text}")
        with suppress(OSError):
            data = f"{one_line(line, _LONGEST_LINE)}\n".encode()
            descriptor = self._open_with_room(len(data))
            try:
                os.write(descriptor, data)
            finally:
                os.close(descriptor)

    def _open_with_room(self, more: int) -> int:
        descriptor = self._open()
        machine.lock(descriptor)  # of two processes, only one rotates the file
        if os.fstat(descriptor).st_size + more <= MOST_LOG_BYTES:
            return descriptor
        try:
            if os.path.samestat(os.fstat(descriptor), os.lstat(self._path)):
                self._path.replace(self._path.with_name(f"{LOG_NAME}.1"))
            return self._open()
        finally:
            os.close(descriptor)

    def _open(self) -> int:
        return os.open(
            self._path,
            os.O_WRONLY | os.O_APPEND | os.O_CREAT | machine.CLOEXEC | machine.NOFOLLOW,
            0o600,
        )
