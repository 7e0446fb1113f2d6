"""What a worker may ask of the host while it runs; the answers come from a handler that is handed in.

A request is `(name, arguments)`: `("progress", {"done", "total", "note"})` or
`("call", {"function", "arguments"})`. Both sides are data; refusing is an ordinary answer.
"""

from typing import Any, Protocol

from .errors import SandboxError


class RequestRefused(SandboxError):
    """Raised by a handler: the worker's code gets this message as a PermissionError."""


class RequestHandler(Protocol):
    """Answers the requests of one call, in the host."""

    async def __call__(self, name: str, arguments: dict[str, Any], /) -> Any:  # any value that `values` carries
        """The answer as a value, or RequestRefused."""


async def without_handler(name: str, arguments: dict[str, Any]) -> Any:  # the shape of RequestHandler
    """The handler of a call that was given none: progress is nobody's concern, all else is refused."""
    if name == "progress":
        return None
    raise RequestRefused(f"self.{name} has nobody to ask here: this call was made without a handler for requests")
