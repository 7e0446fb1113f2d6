"""A library that is tended: its state is audited, a stronger model writes for agents, and proven changes are made.

`audit` finds what to improve, `tending` changes what is proven and takes it back, `maker` is the model that writes and
fixes functions, `upkeep` is what happens by itself, `commands` are `knapper functions audit` and `tend`.
"""

from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final

from agent_core.base.extensions import imported, imported_by_call

if TYPE_CHECKING:
    from agent_core.base.settings import Settings
    from agent_core.functions.service import FunctionService
    from agent_core.functions.service.beside import OpenWriter, StartUpkeep
    from agent_core.operations.operation import LoadVerb

_WHEN_IDLE: Final = imported_by_call(f"{__name__}.upkeep:tending_when_idle")


VERBS: "Final[Mapping[str, LoadVerb]]" = {
    f"functions {name}": imported(f"{__name__}.commands:{name}") for name in ("audit", "tend")
}
WRITERS: "Final[Mapping[str, OpenWriter]]" = {
    "maker": imported_by_call(f"{__name__}.maker:open_writer")
}


def tending_when_idle(
    service: "FunctionService", settings: "Settings"
) -> Coroutine[Any, Any, None] | None:  # Any: as asyncio's
    """Return the tending of functions that nobody uses, if the settings want it; else nothing of it is loaded."""
    work: Coroutine[Any, Any, None] | None = None
    if settings.tend.idle:
        work = _WHEN_IDLE(service, settings)
    return work


UPKEEP: "Final[Mapping[str, StartUpkeep]]" = {"tending": tending_when_idle}
