"""The packages of one workspace: what requirements come to, installed after a human's yes, found for a call.

Nothing here asks: who does so shows a `Resolution`, and hands it back to be installed.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from ..grants.items import project
from ..seal import Sealer
from .failures import PackagesError
from .installing import Names, Tries, importable, install
from .lock import PATH, Lock, Sections
from .pip import ALWAYS, Pip, Tell
from .resolution import Pin, Resolution, digest_of, read_report, required
from .shelf import Installed, Shelf

_LOG = logging.getLogger("toolwright.packages")
_RESOLVE_S: Final = 300.0
Alone = Callable[[], AbstractAsyncContextManager[None]]


class Environment:
    """Resolves, installs and finds; `listed` are the packages that every function sees already."""

    def __init__(self, root: Path, alone: Alone, tries: Tries, listed: tuple[str, ...], most_mib: int) -> None:
        self.tell: Tell = _note  # what is done now, and nothing when it is done
        self._lock = Lock(root / "functions")
        self._shelf = Shelf(root / ".toolwright" / "env", Sealer(root))
        self._alone = alone
        self._tries = tries
        self._listed = listed
        self._most_bytes = most_mib << 20
        self._one_at_a_time = asyncio.Lock()

    def find(self, requirements: tuple[str, ...]) -> Installed | None:
        """Where these are installed, as the lock pins them now."""
        pins = self._lock.read().sections.get(requirements)
        return self._shelf.get(digest_of(pins)) if pins else None

    def folders(self, requirements: tuple[str, ...]) -> tuple[Names, tuple[str, ...]]:
        """Where each import name lies, and which are imported ahead; nothing of what is not installed."""
        found = self.find(requirements)
        return (tuple((name, str(found.folder)) for name in found.names), found.ahead) if found else ((), ())

    def projects(self, requirements: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        """The import names that required projects turned out to have, as far as they are installed."""
        found, asked = self.find(requirements), {project(one) for one in requirements}
        return tuple((name, owner) for name, owner in found.names.items() if owner in asked) if found else ()

    async def resolve(self, requirements: Iterable[str]) -> Resolution:
        """What these come to: as the lock has them, else as the package index has them. Nothing is installed.

        Raises:
            PackagesError: they cannot be had as wheels with a hash, or are not what the lock says.
        """
        wanted = required(requirements)
        pins = self._sections().get(wanted, ())
        if pins and self._shelf.get(digest_of(pins)) is not None:
            return Resolution(wanted, pins, is_installed=True)
        async with self._one_at_a_time:
            with self._telling(f"Looking up {', '.join(wanted)}"), self._shelf.staging() as folder:
                resolution = await self._resolved(wanted, pins, folder)
        _compare(resolution.pins, pins)
        return resolution

    async def _resolved(self, wanted: tuple[str, ...], pins: tuple[Pin, ...], folder: Path) -> Resolution:
        (folder / "held.txt").write_text("".join(f"{pin.project}=={pin.version}\n" for pin in pins), "utf-8")
        pip, report = Pip(folder, self.tell, self._most_bytes), folder / "report.json"
        kind = ("--dry-run", "--ignore-installed", "--no-user", "--constraint=held.txt", f"--report={report}")
        said = await pip.run("install", *kind, *ALWAYS, *wanted, within_s=_RESOLVE_S)
        return await asyncio.to_thread(read_report, wanted, report, said)

    async def install(self, resolution: Resolution) -> None:
        """Install what a human agreed to, and write it into the lock.

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
        what = f"Fetching {', '.join(f'{pin.project} {pin.version}' for pin in resolution.pins)}"
        with self._telling(what), self._shelf.staging() as folder:
            pip = Pip(folder, self.tell, self._most_bytes)
            made = await install(resolution, pip, folder, self._listed, self._most_bytes)
            self.tell("Trying to import them")
            ahead = await importable(made, resolution.requirements, self._tries)
            await asyncio.to_thread(self._shelf.put, resolution.digest, replace(made, ahead=ahead))

    @contextmanager
    def _telling(self, what: str) -> Iterator[None]:
        self.tell(what)
        try:
            yield
        finally:
            self.tell("")

    async def clean(self, wanted: Iterable[tuple[str, ...]]) -> list[str]:
        """Take out of the lock and off the disk what no function is granted; the folders that went.

        Raises:
            PackagesError: the lock is not understood, so nothing is removed.
        """
        async with self._alone():
            self._sections()
            self._lock.keep(wanted)
        kept = frozenset(digest_of(pins) for pins in self._sections().values())
        return await asyncio.to_thread(self._shelf.clean, kept)

    def sections(self) -> Mapping[tuple[str, ...], tuple[Pin, ...]]:
        """What the lock pins, by requirements."""
        return self._lock.read().sections

    @property
    def problem(self) -> str:
        """What of the lock is not understood."""
        return self._lock.read().problem

    def close(self) -> None:
        """Let the folders go that were used."""
        self._shelf.close()

    def _sections(self) -> Sections:
        locked = self._lock.read()
        if locked.problem:
            raise PackagesError(
                locked.problem, mend="Mend it by hand, or remove it: it is made anew when it is needed."
            )
        return locked.sections


def _note(text: str) -> None:
    if text:
        _LOG.info("%s", text)


def _compare(found: tuple[Pin, ...], locked: tuple[Pin, ...]) -> None:
    held = {(pin.project, pin.version): pin.sha256 for pin in locked}
    for pin in found:
        if held.get((pin.project, pin.version), pin.sha256) != pin.sha256:
            which = "a changed one, or another platform's"
            what = f"{pin.project} {pin.version} is not the file that `{PATH}` names: {which}."
            raise PackagesError(what, mend="To pin what is there now, take its section out of that file.")
