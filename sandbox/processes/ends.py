"""Protocols for workers and their pools; a worker is a separate process, or an instance in a child process."""

from asyncio import Future
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ..access import NOTHING, Access
from ..policy import Limits
from .usage import Sight

if TYPE_CHECKING:
    from .compilation import Compiled

Death: TypeAlias = Future[tuple[dict[str, Any], Any]]
"""The end of a worker, as JSON: the exit `status`, `cpu_s`, `memory`, and perhaps the `cause` as text."""


class WorkerEnd(Protocol):
    """The host's handle on one worker. Only `receive` waits for function code."""

    @property
    def sight(self) -> Sight:
        """The resource usage of the worker."""

    async def receive(self) -> bytes:
        """Return data from the worker, or b"" if it has ended the conversation."""

    async def send(self, data: bytes) -> None:
        """Send one packed frame. Raise ConnectionError if the worker has died."""

    def read_output(self) -> bytes | None:
        """Return some printed output, b"" at its end, or None if there is none now."""

    def listen(self, heard: Callable[[], None] | None) -> None:
        """Call `heard` whenever there is output; None removes the callback."""

    def is_silent(self) -> bool:
        """Return whether the worker is alive and has sent nothing."""

    def kill(self) -> None:
        """Kill the worker."""

    def stop(self) -> None:
        """Pause the worker."""

    def go_on(self) -> None:
        """Resume the worker."""

    def interrupt(self) -> bool:
        """Stop the worker at its next line of function code. Return False if it has ended."""


class WorkerPool(Protocol):
    """A pool that lends workers for certain limits and a certain access."""

    async def take(self, limits: Any) -> WorkerEnd:  # Rlimits
        """Return a worker for exclusive use. The caller must give it back in any case."""

    def give_back(self, worker: Any) -> Death:  # WorkerEnd of this pool
        """End the worker."""


class PoolChoice(Protocol):
    """The pools of one sandbox."""

    @property
    def lean(self) -> WorkerPool:
        """The pool for calls without special needs."""

    async def get(
        self, ahead: tuple[str, ...], limits: Limits, access: Access = NOTHING, *, stateful: bool = False
    ) -> WorkerPool:
        """Return the pool for a call."""

    def ahead_for(self, closure: "Mapping[str, Compiled]", text: str) -> tuple[str, ...]:
        """Return the names to preload for this code."""

    def resources(self) -> dict[str, str]:
        """Return the limits for all workers together."""

    def __len__(self) -> int: ...
    async def aclose(self) -> None:
        """End all pools."""
