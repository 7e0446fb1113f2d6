"""The start of level `portable`: the component, a first child, and the self-test in it."""

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ..errors import OneWall, SandboxUnavailable
from ..processes.launch import LayerFailed
from ..processes.startup import ANSWERS, Level, another_user, examine
from .children import ChildPlan, ChildPools
from .component import NoComponent, Tell, find_or_build
from .layers import WALLS

_AGREEMENT: Final = "one-wall"  # a file next to the stored code, in this user's private folder
_ONE_WALL: Final = (
    "Functions can run here at level `portable`, with one wall: the WebAssembly sandbox of wasmtime. The operating "
    "system puts no second one around it, so an error in wasmtime would let a function do what you can do."
)
_NOT_THERE = frozenset({"threads", "socketpair"})  # features that no component has


@dataclass(frozen=True, slots=True)
class PortableLevel:
    """The result of the start: the pools, the layers around the children, and the missing layers with reasons."""

    pools: ChildPools
    layers: dict[str, bool]
    missing: tuple[str, ...]
    level: Level = "portable"

    @property
    def is_one_wall(self) -> bool:
        """True if the component's sandbox is the only wall, without a layer of the operating system."""
        return not any(self.layers.get(wall) for wall in WALLS)


async def start_portable(folder: Path, slots: int, absent: tuple[str, ...], tell: Tell) -> PortableLevel:
    """Start the level and return it if it passes its self-test. Raise SandboxUnavailable otherwise."""
    try:
        code = await asyncio.to_thread(find_or_build, folder, tell)
    except NoComponent as error:
        raise _unavailable(str(error)) from error
    pools = ChildPools(ChildPlan(code, another_user(), absent=absent), slots)
    try:
        held = await pools.lean_pool.start_ahead()
        report = await examine(pools.lean, is_process=False)
    except (LayerFailed, OSError) as error:
        await pools.aclose()
        raise _unavailable(str(error)) from error
    except BaseException:
        await pools.aclose()
        raise
    broken = [name for name in report.broken if name not in _NOT_THERE and name != "the same interpreter"]
    if report.escaped or broken:
        trap = pools.lean_pool.trap
        await pools.aclose()
        raise _unavailable(
            "; ".join(
                [
                    *(f"the self-test's {name} escaped" for name in report.escaped),
                    *(f"no {name}{f': {trap}' if name == ANSWERS and trap else ''}" for name in broken),
                ]
            )
        )
    layers = {"wasmtime": True} | {name: not reason for name, reason in held.items()}
    missing = tuple(f"{name}: {reason}" for name, reason in held.items() if reason)
    return PortableLevel(pools, layers, missing)


def agree_to_one_wall(folder: Path, *, agrees: bool) -> None:
    """Store the user's answer next to the code that level `portable` stores."""
    path = folder / _AGREEMENT
    path.write_text("yes\n" if agrees else "no\n")
    path.chmod(0o600)


def with_enough_walls(level: PortableLevel, folder: Path) -> PortableLevel:
    """Return an automatically chosen level if it has a second wall or the user agreed to one wall.

    Raises:
        OneWall: there is only one wall, and the user has not agreed.
    """
    if not level.is_one_wall:
        return level
    path = folder / _AGREEMENT
    try:
        answer = path.read_text(errors="replace").strip()
    except OSError:
        answer = ""
    if answer == "yes":
        return replace(
            level, missing=(*level.missing, f"a second wall: you agreed to one; to be asked again: rm {path}")
        )
    asked = (
        f"You were asked, and said no; to be asked again: rm {path}."
        if answer == "no"
        else "`knapper run` asks you once."
    )
    why = f"{_ONE_WALL} {asked} To choose it yourself: export KNAPPER_SANDBOX_LEVEL=portable"
    missing = (*level.missing, f"a second wall around level `portable`. {asked}")
    raise OneWall(why, missing, was_refused=answer == "no")


def _unavailable(reason: str) -> SandboxUnavailable:
    return SandboxUnavailable(f"The sandbox's level `portable` cannot be had here: {reason}", (f"portable: {reason}",))
