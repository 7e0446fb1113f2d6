"""Installation of pins into a folder: downloaded by hash, checked unopened, unpacked by pip, tidied, tried."""

import asyncio
import importlib.metadata
import shutil
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, TypeAlias

from sandbox import visible

from ..grants.items import project
from .failures import PackagesError
from .pip import ALWAYS, Pip, size_of, too_large
from .resolution import Pin, Resolution
from .shelf import Installed
from .wheels import names_in, tops_of, unpacked_size

Names: TypeAlias = tuple[tuple[str, str], ...]  # import name → folder
Tries: TypeAlias = Callable[[Names, str], Awaitable[bool]]
"""Whether one of these names can be imported ahead."""

_DOWNLOAD_S: Final = 900.0
_UNPACK_S: Final = 300.0
_SET: Final = ("--require-hashes", "--no-deps", "--requirement=pins.txt", *ALWAYS)


async def install(
    resolution: Resolution, pip: Pip, folder: Path, listed: tuple[str, ...], most_bytes: int
) -> Installed:
    """Install below `folder` and return what was installed; nothing of it has run, and non-package files are removed.

    Raises:
        PackagesError: a file is not the one that was agreed to, or has what must not be there.
    """
    (folder / "pins.txt").write_text("".join(f"{pin}\n" for pin in resolution.pins), "utf-8")
    await pip.run("download", "--dest=wheels", *_SET, within_s=_DOWNLOAD_S)
    wheels = sorted((folder / "wheels").iterdir())
    names, tops = await asyncio.to_thread(_looked_at, wheels, resolution.pins, listed)
    if sum(map(unpacked_size, wheels)) > most_bytes:
        raise too_large(most_bytes)
    place = ("--target=root", "--no-index", "--find-links=wheels", "--no-user", "--no-warn-script-location")
    await pip.run("install", *place, *_SET, within_s=_UNPACK_S)
    root = folder / "root"
    await asyncio.to_thread(_tidy, root, tops)
    return Installed(root, names, (), await asyncio.to_thread(size_of, root))


async def importable(installed: Installed, requirements: Iterable[str], tries: Tries) -> tuple[str, ...]:
    """Return the names that the requested projects provide and that can be imported."""
    projects, places = (
        {project(requirement) for requirement in requirements},
        tuple((name, str(installed.folder)) for name in installed.names),
    )
    candidates = [name for name, owner in installed.names.items() if owner in projects and not name.startswith("_")]
    return tuple([name for name in candidates if await tries(places, name)])


def _looked_at(wheels: list[Path], pins: tuple[Pin, ...], listed: tuple[str, ...]) -> tuple[dict[str, str], set[str]]:
    if {project(wheel.name.partition("-")[0]) for wheel in wheels} != {pin.project for pin in pins}:
        raise PackagesError("What was downloaded is not what was asked for, so nothing was installed.")
    owners, names, tops = _own(listed), dict[str, str](), set[str]()
    for wheel in wheels:
        names |= names_in(wheel, owners)
        tops |= tops_of(wheel)
    return names, tops


def _own(listed: tuple[str, ...]) -> Mapping[str, str]:
    """Return the import names of the packages that every function sees, with their projects."""
    givers = importlib.metadata.packages_distributions()
    return {name: project(givers[name][0]) for name in visible.packages(listed) if name in givers}


def _tidy(root: Path, tops: set[str]) -> None:
    """Remove everything but packages: scripts, data next to them, and anything an interpreter would run at its
    start.
    """
    for path in root.iterdir():
        if path.name not in tops or path.suffix == ".pth":
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
