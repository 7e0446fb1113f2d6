"""The packages of one workspace: resolved from requirements, installed after approval, found for a call.

Nothing here asks: who does so shows a `Resolution`, and hands it back to be installed.

Installation of pins into a folder: downloaded by hash, checked unopened, unpacked by pip, tidied, tried.

The contents of a wheel, read from its list of files before anything is unpacked.
"""

import asyncio
import importlib.metadata
import logging
import shutil
import stat
import sys
import zipfile
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

from agent_core.base.seal import Sealer
from agent_core.base.untrusted import fence
from sandbox.confine import mounts

from ..grants.items import project
from .failures import PackagesError
from .lock import PATH, Lock, Sections
from .pip import ALWAYS, Pip, Tell, size_of, too_large
from .resolution import Pin, Resolution, digest_of, read_report, required
from .shelf import Installed, PackageShelf

# Names that mean something else in a worker: whoever ships them would stand in its place.
_RESERVED = frozenset(
    {"functions", "sandbox", "agent_core", "meta_functions", "__main__", "site", "sitecustomize", "usercustomize"}
)
_UNPACKED = frozenset({"purelib", "platlib"})
_SUFFIXES = frozenset({"", ".py", ".so"})
_MOST_FILES = 200_000


def names_in(wheel: Path, listed: Mapping[str, str]) -> dict[str, str]:
    """Return the import names that a wheel provides, each with its project; `owners` maps Toolwright's own names to
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
            message = f"{fence(wheel.name, 120)} brings {fence(name, 60)}, which would stand in the place of another."
            raise PackagesError(message, fix="It is not installed; look whether the package is the one that was meant.")
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
        raise PackagesError(f"{fence(wheel.name, 120)} is no wheel that can be read.") from error


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
    return {name: project(givers[name][0]) for name in mounts.packages(listed) if name in givers}


def _tidy(root: Path, tops: set[str]) -> None:
    """Remove everything but packages: scripts, data next to them, and anything an interpreter would run at its
    start.
    """
    for path in root.iterdir():
        if path.name not in tops or path.suffix == ".pth":
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


_LOG = logging.getLogger("toolwright.packages")
_RESOLVE_S: Final = 300.0
Alone = Callable[[], AbstractAsyncContextManager[None]]


class Environment:
    """A resolver, installer and finder of packages; `listed` are the packages that every function already sees."""

    def __init__(  # noqa: PLR0913 - what it works with
        self,
        root: Path,
        alone: Alone,
        tries: Tries,
        listed: tuple[str, ...],
        most_mib: int,
        *,
        tell: Tell | None = None,
    ) -> None:
        self.tell: Tell = tell or _note  # what is done now, and nothing when it is done
        self._lock = Lock(root / "functions")
        self._shelf = PackageShelf(root / ".toolwright" / "env", Sealer(root))
        self._alone = alone
        self._tries = tries
        self._listed = listed
        self._most_bytes = most_mib << 20
        self._one_at_a_time = asyncio.Lock()

    def find(self, requirements: tuple[str, ...]) -> Installed | None:
        """Return where these requirements are installed, as the lock pins them now."""
        pins = self._lock.read().sections.get(requirements)
        return self._shelf.get(digest_of(pins)) if pins else None

    def folders(self, requirements: tuple[str, ...]) -> tuple[Names, tuple[str, ...]]:
        """Return the folder of each import name, and the names to import in advance; empty for what is not
        installed.
        """
        installed = self.find(requirements)
        return (
            (tuple((name, str(installed.folder)) for name in installed.names), installed.ahead)
            if installed
            else ((), ())
        )

    def projects(self, requirements: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        """Return the import names that the required projects have, as far as they are installed."""
        installed, projects = self.find(requirements), {project(requirement) for requirement in requirements}
        return tuple((name, owner) for name, owner in installed.names.items() if owner in projects) if installed else ()

    async def resolve(self, requirements: Iterable[str]) -> Resolution:
        """Resolve these requirements: from the lock, or else from the package index. Nothing is installed.

        Raises:
            PackagesError: they cannot be had as wheels with a hash, or are not what the lock says.
        """
        section = required(requirements)
        pins = self._sections().get(section, ())
        if pins and self._shelf.get(digest_of(pins)) is not None:
            return Resolution(section, pins, is_installed=True)
        async with self._one_at_a_time:
            with self._telling(f"Looking up {', '.join(section)}"), self._shelf.staging() as folder:
                resolution = await self._resolved(section, pins, folder)
        _compare(resolution.pins, pins)
        return resolution

    async def _resolved(self, section: tuple[str, ...], pins: tuple[Pin, ...], folder: Path) -> Resolution:
        (folder / "held.txt").write_text("".join(f"{pin.project}=={pin.version}\n" for pin in pins), "utf-8")
        pip, report = Pip(folder, self.tell, self._most_bytes), folder / "report.json"
        kind = ("--dry-run", "--ignore-installed", "--no-user", "--constraint=held.txt", f"--report={report}")
        output = await pip.run("install", *kind, *ALWAYS, *section, within_s=_RESOLVE_S)
        return await asyncio.to_thread(read_report, section, report, output)

    async def install(self, resolution: Resolution) -> None:
        """Install what the user approved, and write it into the lock.

        Raises:
            PackagesError: it cannot be installed; nothing was put in place.
        """
        async with self._one_at_a_time:
            if self._shelf.get(resolution.digest) is None:
                await self._install(resolution)
        if self._sections().get(resolution.requirements) != resolution.pins:
            async with self._alone():
                self._lock.put(resolution.requirements, resolution.pins)

    async def _install(self, resolution: Resolution) -> None:
        task = f"Fetching {', '.join(f'{pin.project} {pin.version}' for pin in resolution.pins)}"
        with self._telling(task), self._shelf.staging() as folder:
            pip = Pip(folder, self.tell, self._most_bytes)
            installed = await install(resolution, pip, folder, self._listed, self._most_bytes)
            self.tell("Trying to import them")
            ahead = await importable(installed, resolution.requirements, self._tries)
            await asyncio.to_thread(self._shelf.put, resolution.digest, replace(installed, ahead=ahead))

    @contextmanager
    def _telling(self, task: str) -> Iterator[None]:
        self.tell(task)
        try:
            yield
        finally:
            self.tell("")

    async def clean(self, sections: Iterable[tuple[str, ...]]) -> list[str]:
        """Remove from the lock and the disk what is granted to no function; return the removed folders.

        Raises:
            PackagesError: the lock is not understood, so nothing is removed.
        """
        async with self._alone():
            self._sections()
            self._lock.keep(sections)
        digests = frozenset(digest_of(pins) for pins in self._sections().values())
        return await asyncio.to_thread(self._shelf.clean, digests)

    def sections(self) -> Mapping[tuple[str, ...], tuple[Pin, ...]]:
        """Return what the lock pins, by requirements."""
        return self._lock.read().sections

    @property
    def problem(self) -> str:
        """The part of the lock that could not be understood."""
        return self._lock.read().problem

    def close(self) -> None:
        """Release the folders that were used."""
        self._shelf.close()

    def _sections(self) -> Sections:
        locked = self._lock.read()
        if locked.problem:
            raise PackagesError(
                locked.problem, fix="Fix it manually, or remove it: it is regenerated when it is needed."
            )
        return locked.sections


def _note(text: str) -> None:
    if text:
        _LOG.info("%s", text)


def _compare(pins: tuple[Pin, ...], locked: tuple[Pin, ...]) -> None:
    hashes = {(pin.project, pin.version): pin.sha256 for pin in locked}
    for pin in pins:
        if hashes.get((pin.project, pin.version), pin.sha256) != pin.sha256:
            which = "a changed one, or another platform's"
            message = f"{pin.project} {pin.version} is not the file that `{PATH}` names: {which}."
            raise PackagesError(message, fix="To pin what is there now, take its section out of that file.")
