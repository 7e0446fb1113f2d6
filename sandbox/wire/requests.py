"""Requests of a call to the host, and the wall clock of the call, which pauses while the user is asked.

Calls nest: while an inner call waits for a human, the clocks of all outer calls pause, too.
"""

import asyncio
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

from ..errors import SandboxError
from ..outcome import Failure
from .values import encode, lean, read

_RUNNING: ContextVar["PausableClock | None"] = ContextVar("clock", default=None)


class PausableClock:
    """A timeout that raises TimeoutError in its block when the seconds have passed, not counting stopped time."""

    def __init__(self, seconds: float) -> None:
        self._timeout = asyncio.timeout(seconds)
        self._loop = asyncio.get_running_loop()
        self._left = seconds
        self._since = 0.0
        self._stops = 0
        self._is_over = False
        self.stood = 0.0

    async def __aenter__(self) -> "PausableClock":
        await self._timeout.__aenter__()
        self._outer = _RUNNING.get()
        self._token = _RUNNING.set(self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over = True
        _RUNNING.reset(self._token)
        await self._timeout.__aexit__(kind, error, trace)

    @property
    def expired(self) -> bool:
        """True if the time ran out."""
        return self._timeout.expired()

    def stop(self) -> None:
        """Pause this clock and the clocks of all outer calls."""
        when = self._timeout.when()
        if self._stops == 0 and when is not None and not self._is_over:
            self._since = self._loop.time()
            self._left = when - self._since
            self._timeout.reschedule(None)
        self._stops += 1
        if self._outer is not None:
            self._outer.stop()

    def resume(self) -> None:
        """Resume this clock and the outer ones with the remaining time."""
        self._stops -= 1
        if self._stops == 0:
            now = self._loop.time()
            self.stood += now - self._since
            if not self._is_over:
                self._timeout.reschedule(now + self._left)
        if self._outer is not None:
            self._outer.resume()


@contextmanager
def standing_still() -> Iterator[None]:
    """Pause the clock of the current call while the block runs."""
    clock = _RUNNING.get()
    if clock is not None:
        clock.stop()
    try:
        yield
    finally:
        if clock is not None:
            clock.resume()


class RequestRefused(SandboxError):
    """The refusal of a request by a handler. Function code gets its message as a PermissionError."""


class CalleeFailed(RequestRefused):
    """The failure of a function that function code has called: it is raised there as an exception of its class."""

    def __init__(self, text: str, failure: Failure, note: str = "") -> None:
        """Create the refusal; `note` says where it was raised."""
        super().__init__(text)
        self.failure = failure
        self.note = note

    def to_json(self) -> dict[str, Any]:
        """Return the exception for the worker of the caller."""
        failure = self.failure
        arguments = None if failure.arguments is None else encode([*failure.arguments])
        kind = {"type": failure.type, "module": failure.module, "base": failure.base}
        return {**kind, "message": failure.message, "arguments": arguments, "note": self.note}

    @classmethod
    def from_json(cls, text: str, data: Mapping[str, Any]) -> "CalleeFailed":
        """Return what `to_json` returned."""
        given = data["arguments"]
        arguments = None if given is None else tuple(read(given))
        kind, message = str(data["type"]), str(data["message"])
        failure = Failure(
            kind, message, module=str(data["module"]), base=str(data["base"]), arguments=arguments
        )
        return cls(text, failure, str(data["note"]))


@dataclass(frozen=True, slots=True)
class Patient:
    """An answer that waits for the user. While it is awaited, the call's clock pauses."""

    answer: Awaitable[Any]  # of the handler's final answer


@dataclass(frozen=True, slots=True)
class CalledHere:
    """An answer to a call of another function: the caller's own worker makes it, with the same files and limits."""

    module: str
    function: str
    arguments: Mapping[str, Any]  # values that can be sent

    def to_json(self) -> dict[str, Any]:
        """Return the form for the worker."""
        arguments = lean(dict(self.arguments))
        return {
            "kind": "here",
            "module": self.module,
            "function": self.function,
            "arguments": arguments,
        }


class RequestHandler(Protocol):
    """A handler of the requests of one call, in the host."""

    async def __call__(
        self, name: str, arguments: dict[str, Any], /
    ) -> Any:  # any value of `values`
        """Return the answer as a value or as a Patient one, or raise RequestRefused."""


async def answered(handler: RequestHandler, name: str, arguments: dict[str, Any]) -> Any:
    """Return the handler's final answer, and pause the clock while the user is asked."""
    value = await handler(name, arguments)
    if not isinstance(value, Patient):
        return value
    with standing_still():
        return await value.answer


async def without_handler(name: str, arguments: dict[str, Any]) -> Any:  # a RequestHandler
    """Handle a request of a call that has no handler.

    Progress is ignored, the state is empty and not stored, files are those that the kernel shows, and all other
    requests are refused.
    """
    if name == "progress":
        return None
    if name == "state":
        return None if "value" in arguments else [0, {}]
    if name.startswith("file_"):
        return {"real": True}
    raise RequestRefused(
        f"self.{name} has nobody to ask here: this call was made without a handler for requests"
    )
