"""Requests from a worker to the host while it runs. The answers come from a handler that is passed in.

A request is `(name, arguments)`: `progress {done, total, note}`, `call {function, arguments}`, `fetch {url, method,
headers, body, timeout}` with `fetch_read {stream, size}` and `fetch_close {stream}`, `secret {name}`,
`memory {act, block, …}`. Both sides are data; refusing is an ordinary answer.
"""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Protocol

from ..errors import SandboxError
from .pausable_clock import standing_still


class RequestRefused(SandboxError):
    """Raised by a handler. The worker's code gets this message as a PermissionError."""


@dataclass(frozen=True, slots=True)
class Patient:
    """An answer that waits for the user. While it is awaited, the call's clock is stopped."""

    answer: Awaitable[Any]  # gives what the handler would have given


class RequestHandler(Protocol):
    """Handler of the requests of one call, in the host."""

    async def __call__(self, name: str, arguments: dict[str, Any], /) -> Any:  # any value that `values` carries
        """Return the answer as a value or as a Patient one, or raise RequestRefused."""


async def answered(handler: RequestHandler, name: str, arguments: dict[str, Any]) -> Any:
    """Return the handler's final answer. RequestRefused passes through."""
    value = await handler(name, arguments)
    if not isinstance(value, Patient):
        return value
    with standing_still():
        return await value.answer


async def without_handler(name: str, arguments: dict[str, Any]) -> Any:  # the shape of RequestHandler
    """Handle a request of a call without a handler: progress is ignored, everything else is refused."""
    if name == "progress":
        return None
    raise RequestRefused(f"self.{name} has nobody to ask here: this call was made without a handler for requests")
