"""The packages of one workspace: resolved from requirements, installed after approval, found for a call.

Nothing here asks the user: the caller shows a `Resolution` and hands it back to be installed. Wheels are downloaded
by hash, checked before they are unpacked, unpacked by pip, cleaned up and tried.
"""

import asyncio
import hashlib
import json
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from agent_core.base import machine
from agent_core.base.errors import WorkspaceError
from agent_core.base.seal import Sealer
from agent_core.base.workspace_folder import STATE
from sandbox.wire.foreign import read_json

from ..grants.items import project
from .failures import PackagesError
from .installation import ALWAYS, Installed, Names, Pip, Tell, Tries, importable, install
from .resolution import LOCK_PATH, Lock, Pin, Resolution, digest_of, read_report, required

_STAGING = ".new-"
_FACTS = ".json"
_LIMIT = 1 << 20
_PURPOSE = "packages"


class PackageShelf:
    """The folders of one workspace."""

    def __init__(self, folder: Path, sealer: Sealer) -> None:
        self._folder = folder
        self._sealer = sealer
        self._held: dict[str, tuple[int, Installed]] = {}

    def get(self, digest: str) -> Installed | None:
        """Return a folder that was installed here with this user's approval; it stays until `close`."""
        if digest not in self._held:
            package_set = self._take(digest)
            if package_set is None:
                return None
            self._held[digest] = package_set
        installed = self._held[digest][1]
        return installed if installed.folder.is_dir() else None

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """Yield a folder to install in, next to the others; it is removed afterwards.

        Raises:
            PackagesError: it cannot be made.
        """
        try:
            self._folder.mkdir(mode=0o755, exist_ok=True)
            if not stat.S_ISDIR(self._folder.lstat().st_mode):
                raise NotADirectoryError(0, "it is a link")
            folder = Path(tempfile.mkdtemp(prefix=_STAGING, dir=self._folder))
        except OSError as error:
            message = f"{self._folder} cannot hold packages: {error.strerror}."
            raise PackagesError(message, fix="Use a folder that you may write to.") from error
        descriptor = machine.open_folder(folder)
        try:
            machine.lock(descriptor, shared=True)
            folder.chmod(0o755)
            yield folder
        finally:
            os.close(descriptor)
            shutil.rmtree(folder, ignore_errors=True)

    def put(self, digest: str, installed: Installed) -> None:
        """Move a folder into place; until its facts are there too, nobody uses it.

        Raises:
            PackagesError: it cannot be put there.
        """
        place, facts = self._folder / digest, self._folder / f"{digest}{_FACTS}"
        try:
            files, content = _content(installed.folder)
            details = {"names": dict(installed.names), "ahead": installed.ahead, "size": installed.size}
            text = json.dumps({**details, "files": files, "content": content})
            document = {"facts": text, "seal": self._sealer.seal(_PURPOSE, digest, text)}
            facts.unlink(missing_ok=True)
            _remove(place)  # what was left half, or came from elsewhere
            installed.folder.rename(place)
            written = installed.folder.parent / "facts"
            written.write_text(json.dumps(document), "utf-8")
            written.rename(facts)
        except (OSError, WorkspaceError) as error:
            raise PackagesError(f"{place} cannot be put in place: {error}.") from error

    def clean(self, digests: frozenset[str]) -> list[str]:
        """Remove every other folder that nobody uses; return their names."""
        if self._folder.is_symlink() or not self._folder.is_dir():
            return []
        names = {path.name.removesuffix(_FACTS) for path in self._folder.iterdir()} - digests
        return sorted(name for name in names if self._drop(name))

    def close(self) -> None:
        """Release all folders."""
        for descriptor, _ in self._held.values():
            os.close(descriptor)
        self._held.clear()

    def _take(self, digest: str) -> tuple[int, Installed] | None:
        try:
            descriptor = os.open(self._folder / f"{digest}{_FACTS}", machine.LOOKING)
        except OSError:
            return None
        try:
            is_kept = machine.try_lock(descriptor, shared=True) and os.fstat(descriptor).st_nlink
            installed = self._facts(digest, os.read(descriptor, _LIMIT)) if is_kept else None
        except (OSError, ValueError, KeyError, TypeError):
            installed = None
        if installed is None:
            os.close(descriptor)
            return None
        return descriptor, installed

    def _facts(self, digest: str, content: bytes) -> Installed | None:
        document = read_json(content)
        text, place = document["facts"], self._folder / digest
        if place.is_symlink() or not self._sealer.holds(document["seal"], _PURPOSE, digest, text):
            return None
        facts = read_json(text)
        if _content(place, facts["files"]) != (facts["files"], facts["content"]):
            return None  # a file was added, changed or taken away since it was installed
        return Installed(place.resolve(), facts["names"], tuple(facts["ahead"]), facts["size"])

    def _drop(self, name: str) -> bool:
        facts, place = self._folder / f"{name}{_FACTS}", self._folder / name
        watched = place if name.startswith(_STAGING) or not facts.exists() else facts
        try:
            descriptor = os.open(watched, machine.LOOKING)
        except OSError:  # a link, which goes; what a link names stays
            facts.unlink(missing_ok=True)
            _remove(place)
            return True
        try:
            if not machine.try_lock(descriptor):
                return False
            facts.unlink(missing_ok=True)
            _remove(place)
        finally:
            os.close(descriptor)
        return True


def _content(folder: Path, most: int | None = None) -> tuple[int, str]:
    """Return how many files and folders there are, and a digest of their paths, kinds, sizes and times.

    Reading them whole would hold up the first call; nobody who adds or changes a file from outside hits its time to the
    nanosecond. At most `most` of them are examined.
    """
    rows: list[str] = []
    for path in _below(folder):
        status = path.lstat()
        size = 0 if stat.S_ISDIR(status.st_mode) else status.st_size
        when = 0 if stat.S_ISDIR(status.st_mode) else status.st_mtime_ns
        rows.append(repr((str(path.relative_to(folder)), status.st_mode, size, when)))
        if most is not None and len(rows) > most:
            break
    return len(rows), hashlib.sha256("\n".join(sorted(rows)).encode("utf-8", "surrogatepass")).hexdigest()


def _below(folder: Path) -> Iterator[Path]:
    folders = [str(folder)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                yield Path(entry.path)
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)


def _remove(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


_LOG = logging.getLogger("knapper.packages")
_RESOLVE_S: Final = 300.0
Alone = Callable[[], AbstractAsyncContextManager[None]]


class Environment:
    """A resolver, installer and finder of packages; `listed` are the packages that every function already sees."""

    def __init__(
        self,
        root: Path,
        alone: Alone,
        tries: Tries,
        listed: tuple[str, ...],
        most_mib: int,
        *,
        tell: Tell | None = None,
    ) -> None:
        self._tell: Tell = tell or _note  # what is done now, and nothing when it is done
        self._lock = Lock(root / "functions")
        self._shelf = PackageShelf(root / STATE / "env", Sealer(root))
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
        pins = self._lock.understood().get(section, ())
        if pins and self._shelf.get(digest_of(pins)) is not None:
            return Resolution(section, pins, is_installed=True)
        async with self._one_at_a_time:
            with self._telling(f"Looking up {', '.join(section)}"), self._shelf.staging() as folder:
                (folder / "held.txt").write_text("".join(f"{pin.project}=={pin.version}\n" for pin in pins), "utf-8")
                pip, report = Pip(folder, self._tell, self._most_bytes), folder / "report.json"
                kind = ("--dry-run", "--ignore-installed", "--no-user", "--constraint=held.txt", f"--report={report}")
                output = await pip.run("install", *kind, *ALWAYS, *section, within_s=_RESOLVE_S)
                resolution = await asyncio.to_thread(read_report, section, report, output)
        _compare(resolution.pins, pins)
        return resolution

    async def install(self, resolution: Resolution) -> None:
        """Install what the user approved, and write it into the lock.

        Raises:
            PackagesError: it cannot be installed; nothing was put in place.
        """
        async with self._one_at_a_time:
            if self._shelf.get(resolution.digest) is None:
                await self._install(resolution)
        if self._lock.understood().get(resolution.requirements) != resolution.pins:
            async with self._alone():
                self._lock.put(resolution.requirements, resolution.pins)

    async def _install(self, resolution: Resolution) -> None:
        task = f"Fetching {', '.join(f'{pin.project} {pin.version}' for pin in resolution.pins)}"
        with self._telling(task), self._shelf.staging() as folder:
            pip = Pip(folder, self._tell, self._most_bytes)
            installed = await install(resolution, pip, folder, self._listed, self._most_bytes)
            self._tell("Trying to import them")
            ahead = await importable(installed, resolution.requirements, self._tries)
            await asyncio.to_thread(self._shelf.put, resolution.digest, replace(installed, ahead=ahead))

    @contextmanager
    def _telling(self, task: str) -> Iterator[None]:
        self._tell(task)
        try:
            yield
        finally:
            self._tell("")

    async def clean(self, sections: Iterable[tuple[str, ...]]) -> list[str]:
        """Remove from the lock and the disk what is granted to no function; return the removed folders.

        Raises:
            PackagesError: the lock is not understood, so nothing is removed.
        """
        async with self._alone():
            self._lock.understood()
            self._lock.keep(sections)
        digests = frozenset(digest_of(pins) for pins in self._lock.understood().values())
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


def _note(text: str) -> None:
    if text:
        _LOG.info("%s", text)


def _compare(pins: tuple[Pin, ...], locked: tuple[Pin, ...]) -> None:
    hashes = {(pin.project, pin.version): pin.sha256 for pin in locked}
    for pin in pins:
        if hashes.get((pin.project, pin.version), pin.sha256) != pin.sha256:
            which = "a changed one, or another platform's"
            message = f"{pin.project} {pin.version} is not the file that `{LOCK_PATH}` names: {which}."
            raise PackagesError(message, fix="To pin the current one, remove its section from that file.")
