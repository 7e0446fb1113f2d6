"""What extensions add to the functions of a workspace: who writes what agents ask for, and what is done meanwhile."""

from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from agent_core.base.errors import UsageError
from agent_core.base.extensions import UPKEEP, WRITERS, offers, what_else

from .plan import FunctionWriter

if TYPE_CHECKING:
    from agent_core.base.settings import Settings

    from .function_service import FunctionService

OpenWriter: TypeAlias = "Callable[[FunctionService, Settings], FunctionWriter | None]"
"""Opens the writer of a workspace; None if its settings name none."""
StartUpkeep: TypeAlias = (
    "Callable[[FunctionService, Settings], Coroutine[Any, Any, None] | None]"  # Any: as asyncio's
)
"""Returns work to do while a workspace is open; None if its settings ask for none."""


def open_writer(service: "FunctionService", settings: "Settings") -> FunctionWriter | None:
    """Open the writer of a workspace whose settings name one.

    Raises:
        UsageError: no extension here has one.
    """
    openers: Mapping[str, OpenWriter] = offers(WRITERS)
    if not openers:
        raise UsageError(
            f"Functions are to be written by the model `{settings.maker}`, and nothing here can ask it.",
            fix=f'Set growth.maker = "off", or add what can. {what_else()}',
        )
    for opener in openers.values():
        writer = opener(service, settings)
        if writer is not None:
            return writer
    return None


def upkeep(
    service: "FunctionService", settings: "Settings"
) -> list[Coroutine[Any, Any, None]]:  # Any: as asyncio's
    """Return the work that extensions do while a workspace is open."""
    starts: Mapping[str, StartUpkeep] = offers(UPKEEP)
    work = [start(service, settings) for start in starts.values()]
    return [each for each in work if each is not None]
