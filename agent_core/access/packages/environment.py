"""The packages of one workspace: resolved from requirements, installed after approval, found for a call.

Nothing here asks: who does so shows a `Resolution`, and hands it back to be installed.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from agent_core.base.seal import Sealer

from ..grants.items import project
from .failures import PackagesError
from .installing import Names, Tries, importable, install
from .lock import PATH, Lock, Sections
from .pip import ALWAYS, Pip, Tell
from .resolution import Pin, Resolution, digest_of, read_report, required
from .shelf import Installed, PackageShelf

_LOG = logging.getLogger("toolwright.packages")
_RESOLVE_S: Final = 300.0
Alone = Callable[[], AbstractAsyncContextManager[None]]


class Environment:
    """A resolver, installer and finder of packages; `listed` are the packages that every function already sees."""

    def __init__(self, root: Path, alone: Alone, tries: Tries, listed: tuple[str, ...], most_mib: int) -> None:
        self.tell: Tell = _note  # what is done now, and nothing when it is done
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
