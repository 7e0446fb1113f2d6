"""The start of level `portable`: the component, a first child, and the self-test in it."""

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from ..errors import SandboxUnavailable
from ..processes.launch import LayerFailed
from ..processes.startup import Level, another_user, examine
from .children import ChildPlan, ChildPools
from .component import NoComponent, Tell, find_or_build
from .layers import WALLS

_NOT_THERE = frozenset({"threads", "socketpair"})  # what no component has, and no function of one expects


@dataclass(frozen=True, slots=True)
class PortableLevel:
    """The result of the start: the pools, which layers hold around the children, and what is missing."""

    pools: ChildPools
    layers: dict[str, bool]
    missing: tuple[str, ...]
    level: Level = "portable"

    @property
    def is_one_wall(self) -> bool:
        """True if no layer of the operating system stands around the component's own sandbox."""
        return not any(self.layers.get(wall) for wall in WALLS)


async def start_portable(folder: Path, slots: int, absent: tuple[str, ...], tell: Tell) -> PortableLevel:
    """Return the level if it passes its self-test. Raise SandboxUnavailable otherwise."""
    try:
        code = await asyncio.to_thread(find_or_build, folder, tell)
    except NoComponent as error:
        raise _unavailable(str(error)) from error
    user = another_user() if sys.platform == "linux" and os.geteuid() == 0 else None
    pools = ChildPools(ChildPlan(code, user, absent=absent), slots)
    try:
        held = await pools.lean_pool.start_ahead()
        report = await examine(pools.lean, is_process=False)
    except (LayerFailed, TimeoutError) as error:
        await pools.aclose()
        raise _unavailable(str(error)) from error
    except BaseException:
        await pools.aclose()
        raise
    broken = [name for name in report.broken if name not in _NOT_THERE and name != "the same interpreter"]
    if report.escaped or broken:
        await pools.aclose()
        raise _unavailable(
            "; ".join(
                [*(f"the self-test's {name} escaped" for name in report.escaped), *(f"no {name}" for name in broken)]
            )
        )
    layers = {"wasmtime": True} | {name: not reason for name, reason in held.items()}
    missing = tuple(f"{name}: {reason}" for name, reason in held.items() if reason)
    return PortableLevel(pools, layers, missing)


def _unavailable(reason: str) -> SandboxUnavailable:
    return SandboxUnavailable(f"The sandbox's level `portable` cannot be had here: {reason}", (f"portable: {reason}",))
