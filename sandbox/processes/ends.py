"""What a conversation needs of a worker, of whatever kind: a process of its own, or an instance in a child process."""

from asyncio import Future
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ..access import NOTHING, Access
from ..policy import Limits
from .usage import Used

if TYPE_CHECKING:
    from .compilation import Compiled

Death: TypeAlias = Future[tuple[dict[str, Any], Any]]
"""How a worker ended, as JSON: `status`, as of a process, `cpu_s`, `memory`, and perhaps the `cause` in words."""


class Sight(Protocol):
    """What the host sees of a worker without asking it."""

    @property
    def pid(self) -> int:
        """Its process, or the one that it is in; 0 if unknown."""

    def processor_time(self) -> float:
        """Return the seconds that it has used; 0 if unknown."""

    def waited(self) -> float:
        """Return the seconds in which it had no processor; 0 if unknown."""

    def used(self, since: float = 0.0) -> Used:
        """Return the usage until now, with processor time counted from `since` on."""


class WorkerEnd(Protocol):
    """The host's end of one worker. Nothing here waits for function code but `receive`."""

    @property
    def sight(self) -> Sight:
        """What the host sees of it."""

    async def receive(self) -> bytes:
        """Return what it sent, b"" when it has ended its conversation."""

    async def send(self, data: bytes) -> None:
        """Send one packed frame. Raise ConnectionError if the worker has died."""

    def read_output(self) -> bytes | None:
        """Return some printed output, b"" if nothing more will come, None if there is none now."""

    def listen(self, heard: Callable[[], None] | None) -> None:
        """Call this whenever there is output; with None, call nobody."""

    def is_silent(self) -> bool:
        """Return whether it is alive and has sent nothing."""

    def kill(self) -> None:
        """End it now, whatever it does."""

    def stop(self) -> None:
        """Let it stand still."""

    def go_on(self) -> None:
        """Let it run again."""

    def interrupt(self) -> bool:
        """Stop it at its next line of function code. Return False if it has ended."""


class WorkerPool(Protocol):
    """Gives workers for certain limits and a certain access, and takes them back."""

    async def take(self, limits: Any) -> WorkerEnd:  # Rlimits
        """Return a worker for exclusive use. Give it back whatever happens."""

    def give_back(self, worker: Any) -> Death:  # WorkerEnd of this pool
        """End the worker."""


class PoolChoice(Protocol):
    """The pools of one sandbox."""

    @property
    def lean(self) -> WorkerPool:
        """The one for what needs nothing special."""

    async def get(
        self, ahead: tuple[str, ...], limits: Limits, access: Access = NOTHING, *, stateful: bool = False
    ) -> WorkerPool:
        """Return the pool for a call."""

    def ahead_for(self, closure: "Mapping[str, Compiled]", text: str, *, describes: bool) -> tuple[str, ...]:
        """Return the names to import ahead for code like this."""

    def resources(self) -> dict[str, str]:
        """Return the limits on all workers together."""

    def __len__(self) -> int: ...
    async def aclose(self) -> None:
        """End all pools."""
