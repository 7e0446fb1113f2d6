"""What a worker may ask of the host while it runs; the answers come from a handler that is handed in.

A request is `(name, arguments)`: `progress {done, total, note}`, `call {function, arguments}`, `fetch {url, method,
headers, body, timeout}` with `fetch_read {stream, size}` and `fetch_close {stream}`, `secret {name}`,
`memory {act, block, …}`. Both sides are data; refusing is an ordinary answer.
"""

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Protocol

from .errors import SandboxError
from .patience import standing_still


class RequestRefused(SandboxError):
    """Raised by a handler: the worker's code gets this message as a PermissionError."""


@dataclass(frozen=True, slots=True)
class Patient:
    """An answer that a human is asked for: while it is awaited, the call's clock stands still."""

    answer: Awaitable[Any]  # gives what the handler would have given


class RequestHandler(Protocol):
    """Answers the requests of one call, in the host."""

    async def __call__(self, name: str, arguments: dict[str, Any], /) -> Any:  # any value that `values` carries
        """The answer as a value, or as a Patient one, or RequestRefused."""


async def answered(handler: RequestHandler, name: str, arguments: dict[str, Any]) -> Any:
    """What the handler gives in the end; RequestRefused passes through."""
    value = await handler(name, arguments)
    if not isinstance(value, Patient):
        return value
    with standing_still():
        return await value.answer


async def without_handler(name: str, arguments: dict[str, Any]) -> Any:  # the shape of RequestHandler
    """The handler of a call that was given none: progress is nobody's concern, all else is refused."""
    if name == "progress":
        return None
    raise RequestRefused(f"self.{name} has nobody to ask here: this call was made without a handler for requests")
