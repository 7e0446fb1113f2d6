"""The installation of pins into a folder: downloaded by hash, checked unopened, unpacked by pip, tidied, tried.

pip of this interpreter runs as a process: without keys in its environment, with its own group, a time limit and a size
limit. It alone talks to the user's package index, as the user configured it. It never builds: wheels only. The contents
of a wheel are read from its list of files before anything is unpacked.
"""

import asyncio
import importlib.metadata
import os
import shutil
import stat
import sys
import zipfile
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, TypeAlias

from agent_core.base import machine, pip_process
from agent_core.base.own_environment import environment as own_environment
from agent_core.base.pip_process import environment
from agent_core.base.untrusted import fence, one_line
from sandbox.confine import mounts

from ..grants.items import project
from .failures import PackagesError, meaning

if TYPE_CHECKING:
    from .resolution import Pin, Resolution

Tell: TypeAlias = Callable[[str], None]
ALWAYS: Final = ("--only-binary=:all:", "--no-input", "--no-color", "--progress-bar=off", "--retries=2")
_LOOK_S: Final = 0.25
_LINES: Final = 200
_TOLD: Final = ("Collecting ", "Downloading ", "Installing ", "Processing ")


class Pip:
    """A runner of commands in a folder, one after another; it reports the progress that pip prints."""

    def __init__(self, folder: Path, tell: Tell, most_bytes: int) -> None:
        self._folder = folder
        self._tell = tell
        self._most_bytes = most_bytes
        self._said: deque[str] = deque(maxlen=_LINES)

    async def run(self, *arguments: str, within_s: float) -> Sequence[str]:
        """Run a command and return what it printed.

        Raises:
            PackagesError: it failed, took too long, or wrote more than it may.
        """
        self._said.clear()
        scratch = self._folder / "tmp"
        scratch.mkdir(exist_ok=True)
        process = await pip_process.start(
            *arguments,
            cwd=self._folder,
            env=environment(own_environment(), scratch),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            umask=0o022,
        )
        try:
            async with asyncio.timeout(within_s):
                await self._watched(process)
        except TimeoutError as error:
            message = f"pip did not finish within {within_s:g} s, so it was ended and nothing was installed."
            raise PackagesError(message, fix="Try again when the network is faster.") from error
        finally:
            # End the process and its whole group.
            with suppress(ProcessLookupError):
                machine.kill_group(process.pid)
            await process.wait()
        if process.returncode:
            raise meaning(self._said)
        return tuple(self._said)

    async def _watched(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        reading = asyncio.ensure_future(self._read(process.stdout))
        try:
            while not reading.done():
                await asyncio.wait([reading], timeout=_LOOK_S)
                if await asyncio.to_thread(size_of, self._folder) > self._most_bytes:
                    raise too_large(self._most_bytes)
        finally:
            reading.cancel()
        await process.wait()

    async def _read(self, stream: asyncio.StreamReader) -> None:
        tail = b""
        while chunk := await stream.read(1 << 14):
            *lines, tail = (tail + chunk).split(b"\n")
            tail = tail[-4096:]
            for line in lines:
                self._hear(line.decode("utf-8", "replace").strip())
        self._hear(tail.decode("utf-8", "replace").strip())

    def _hear(self, line: str) -> None:
        self._said.append(line)
        if line.startswith(_TOLD):
            self._tell(one_line(line.partition(" from ")[0], 100))


def too_large(most_bytes: int) -> PackagesError:
    """Return the error for more than may be installed."""
    message = f"What would be installed is larger than {most_bytes >> 20} MiB, so nothing was."
    return PackagesError(message, fix="A human can raise the setting `grants.packages_mib`.")


def size_of(folder: Path) -> int:
    """Return the size in bytes of all files below a folder, as far as they stay during the count."""
    total, waiting = 0, [str(folder)]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                else:
                    with suppress(OSError):
                        total += entry.stat(follow_symlinks=False).st_size
    return total


# Names that mean something else in a worker: whoever ships them would stand in its place.
_RESERVED = frozenset(
    {"functions", "sandbox", "agent_core", "meta_functions", "__main__", "site", "sitecustomize", "usercustomize"}
)
_UNPACKED = frozenset({"purelib", "platlib"})
_SUFFIXES = frozenset({"", ".py", ".so"})
_MOST_FILES = 200_000


def names_in(wheel: Path, listed: Mapping[str, str]) -> dict[str, str]:
    """Return the import names that a wheel provides, each with its project; `owners` maps Knapper's own names to
    theirs.

    Raises:
        PackagesError: it has a path that leaves its folder, or a name that would stand in another's place.
    """
    owner = project(wheel.name.partition("-")[0])
    owners = {}
    for top in tops_of(wheel):
        name = PurePosixPath(top).name.partition(".")[0]
        if PurePosixPath(top).suffix not in _SUFFIXES or not name.isidentifier():
            continue
        if name in _RESERVED or name in sys.stdlib_module_names or listed.get(name, owner) != owner:
            message = f"{fence(wheel.name, 120)} brings {fence(name, 60)}, which would replace another."
            raise PackagesError(message, fix="It is not installed; check that it is the intended package.")
        owners[name] = owner
    return {name: owner for name in owners if name not in listed}


def unpacked_size(wheel: Path) -> int:
    """Return the size of the unpacked wheel, according to its own list."""
    with _opened(wheel) as archive:
        return sum(info.file_size for info in archive.infolist())


def tops_of(wheel: Path) -> set[str]:
    """Return the first parts of the paths below the folder that it is imported from.

    Raises:
        PackagesError: it has a path that leaves its folder, or too many.
    """
    with _opened(wheel) as archive:
        entries = archive.infolist()
    if len(entries) > _MOST_FILES or len({info.filename for info in entries}) < len(entries):
        raise PackagesError(f"{fence(wheel.name, 120)} has too many files, or one of them twice.")
    tops = set()
    for info in entries:
        parts = _parts(wheel, info)
        if len(parts) > 2 and parts[0].endswith(".data"):
            parts = parts[2:] if parts[1] in _UNPACKED else ()
        tops |= {parts[0]} if parts else set()
    return tops


def _parts(wheel: Path, info: zipfile.ZipInfo) -> tuple[str, ...]:
    path = PurePosixPath(info.filename)
    is_link = stat.S_ISLNK(info.external_attr >> 16)
    if path.is_absolute() or ".." in path.parts or "\\" in info.filename or is_link:
        message = f"{fence(wheel.name, 120)} has a path that leaves its folder: {fence(info.filename, 80)}."
        raise PackagesError(message, fix="It is not installed, and should not be trusted.")
    return path.parts


def _opened(wheel: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(wheel)
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise PackagesError(f"{fence(wheel.name, 120)} is not a wheel that can be read.") from error


Names: TypeAlias = tuple[tuple[str, str], ...]  # import name → folder
Tries: TypeAlias = Callable[[Names, str], Awaitable[bool]]
"""Whether one of these names can be imported ahead."""

_DOWNLOAD_S: Final = 900.0
_UNPACK_S: Final = 300.0
_SET: Final = ("--require-hashes", "--no-deps", "--requirement=pins.txt", *ALWAYS)


@dataclass(frozen=True, slots=True)
class Installed:
    """One folder: its import names with their projects, those that can be imported in advance, and its size."""

    folder: Path
    names: Mapping[str, str]
    ahead: tuple[str, ...]
    size: int


async def install(
    resolution: "Resolution", pip: Pip, folder: Path, listed: tuple[str, ...], most_bytes: int
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


def _looked_at(wheels: list[Path], pins: tuple["Pin", ...], listed: tuple[str, ...]) -> tuple[dict[str, str], set[str]]:
    if {project(wheel.name.partition("-")[0]) for wheel in wheels} != {pin.project for pin in pins}:
        raise PackagesError("The downloaded files are not the requested ones, so nothing was installed.")
    owners, names, tops = _own(listed), dict[str, str](), set[str]()
    for wheel in wheels:
        names |= names_in(wheel, owners)
        tops |= tops_of(wheel)
    return names, tops


def _own(listed: tuple[str, ...]) -> Mapping[str, str]:
    """Return the import names of the packages that every function sees, with their projects."""
    givers = importlib.metadata.packages_distributions()
    return {name: project(givers[name][0]) for name in mounts.packages(listed) if name in givers}


def _tidy(root: Path, tops: set[str]) -> None:
    """Remove everything but packages: scripts, data next to them, and anything an interpreter would run at its
    start.
    """
    for path in root.iterdir():
        if path.name not in tops or path.suffix == ".pth":
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
