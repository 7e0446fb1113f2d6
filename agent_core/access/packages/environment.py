"""The packages of one workspace: resolved from requirements, installed after approval, found for a call.

This module never asks the user: the caller shows a `Resolution` and passes it back for installation. Wheels are
downloaded by hash, checked before they are unpacked, unpacked by pip, cleaned up and tried.
"""

import asyncio
import hashlib
import importlib.metadata
import json
import logging
import os
import shutil
import stat
import sys
import tempfile
import zipfile
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

from agent_core.base import machine, programs
from agent_core.base.errors import WorkspaceError
from agent_core.base.own_environment import environment as own_environment
from agent_core.base.plain_files import read_plain
from agent_core.base.records import dataclass, replace
from agent_core.base.seal import ELSEWHERE, Sealer
from agent_core.base.untrusted import fence, one_line
from agent_core.base.workspace_folder import STATE
from agent_core.storage import own_folder
from sandbox.confine import mounts
from sandbox.wire.strict_json import read_json

from ..grants.value import project
from .resolution import (
    LOCK_PATH,
    Lock,
    PackagesError,
    Pin,
    Resolution,
    digest_of,
    meaning,
    read_report,
    required,
)

# The installation of pins into a folder: downloaded by hash, checked before unpacking, unpacked by pip, tidied, tried.
# This interpreter's pip runs as a process: without keys in its environment, in its own process group, with a time limit
# and a size limit. Only it talks to the user's package index, as the user configured it. It never builds: wheels only.
# The contents of a wheel are checked by its list of files before anything is unpacked.

Tell: TypeAlias = Callable[[str], None]
ALWAYS: Final = (
    "--only-binary=:all:",
    "--no-input",
    "--no-color",
    "--progress-bar=off",
    "--retries=2",
)
_LOOK_S: Final = 0.25
_LINES: Final = 200
_TOLD: Final = ("Collecting ", "Downloading ", "Installing ", "Processing ")


class Pip:
    """Runs commands in a folder, one after another, and reports the progress that pip prints."""

    def __init__(self, folder: Path, tell: Tell, most_bytes: int) -> None:
        self._folder = folder
        self._tell = tell
        self._most_bytes = most_bytes
        self._said: deque[str] = deque(maxlen=_LINES)

    async def run(self, *arguments: str, within_s: float) -> Sequence[str]:
        """Run a command and return its output.

        Raises:
            PackagesError: it failed, took too long, or wrote too much.
        """
        self._said.clear()
        scratch = self._folder / "tmp"
        scratch.mkdir(exist_ok=True)
        process = await programs.start_pip(
            *arguments,
            cwd=self._folder,
            env=programs.pip_environment(own_environment(), scratch),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            umask=0o022,
        )
        try:
            async with asyncio.timeout(within_s):
                await self._watch(process)
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

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
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
    """Return the error for exceeding the maximum size of an installation."""
    message = f"What would be installed is larger than {most_bytes >> 20} MiB, so nothing was."
    return PackagesError(
        message, fix="The setting `grants.packages_mib` of the workspace sets the limit."
    )


def size_of(folder: Path) -> int:
    """Return the size in bytes of all files below a folder; files that disappear during the count are skipped."""
    total = 0
    for path in _below(folder):
        with suppress(OSError):
            status = path.lstat()
            total += 0 if stat.S_ISDIR(status.st_mode) else status.st_size
    return total


# Names with a special meaning in a worker: a package with such a name would replace it.
_RESERVED = frozenset(
    {
        "functions",
        "sandbox",
        "agent_core",
        "meta_functions",
        "knapper_ext",
        "__main__",
        "site",
        "sitecustomize",
        "usercustomize",
    }
)
_UNPACKED = frozenset({"purelib", "platlib"})
_SUFFIXES = frozenset({"", ".py", ".so"})
_MOST_FILES = 200_000


def names_in(wheel: Path, listed: Mapping[str, str]) -> dict[str, str]:
    """Return the import names that a wheel provides, with their project; `listed` maps Knapper's own names to theirs.

    Raises:
        PackagesError: it has a path that leaves its folder, or a name that would replace another's.
    """
    owner = project(wheel.name.partition("-")[0])
    owners = {}
    for top in tops_of(wheel):
        name = PurePosixPath(top).name.partition(".")[0]
        if PurePosixPath(top).suffix not in _SUFFIXES or not name.isidentifier():
            continue
        if name in _RESERVED or name in sys.stdlib_module_names or listed.get(name, owner) != owner:
            message = (
                f"{fence(wheel.name, 120)} brings {fence(name, 60)}, which would replace another."
            )
            raise PackagesError(
                message, fix="It is not installed; check that it is the intended package."
            )
        owners[name] = owner
    return {name: owner for name in owners if name not in listed}


def unpacked_size(wheel: Path) -> int:
    """Return the size of the unpacked wheel, according to its own list."""
    with _open_wheel(wheel) as archive:
        return sum(info.file_size for info in archive.infolist())


def tops_of(wheel: Path) -> set[str]:
    """Return the top-level names in the folder from which it is imported.

    Raises:
        PackagesError: it has a path that leaves its folder, or too many files.
    """
    with _open_wheel(wheel) as archive:
        entries = archive.infolist()
    if len(entries) > _MOST_FILES or len({info.filename for info in entries}) < len(entries):
        raise PackagesError(f"{fence(wheel.name, 120)} has too many files, or one of them twice.")
    tops = set()
    for info in entries:
        path = PurePosixPath(info.filename)
        is_link = stat.S_ISLNK(info.external_attr >> 16)
        if path.is_absolute() or ".." in path.parts or "\\" in info.filename or is_link:
            message = f"{fence(wheel.name, 120)} has a path that leaves its folder: {fence(info.filename, 80)}."
            raise PackagesError(message, fix="It is not installed, and should not be trusted.")
        parts = path.parts
        if len(parts) > 2 and parts[0].endswith(".data"):
            parts = parts[2:] if parts[1] in _UNPACKED else ()
        tops |= {parts[0]} if parts else set()
    return tops


def _open_wheel(wheel: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(wheel)
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise PackagesError(f"{fence(wheel.name, 120)} is not a wheel that can be read.") from error


Names: TypeAlias = tuple[tuple[str, str], ...]  # import name → folder
Tries: TypeAlias = Callable[[Names, str], Awaitable[bool]]
"""Tries whether one of these names can be imported in advance."""

_DOWNLOAD_S: Final = 900.0
_UNPACK_S: Final = 300.0
_IMPORT_S: Final = 40.0  # for all trial imports of an installation together; ending the process takes up to 5 s more
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
    """Install below `folder` and return the result; nothing of it has run, and non-package files are removed.

    Raises:
        PackagesError: a file is not the approved one, or contains something forbidden.
    """
    (folder / "pins.txt").write_text("".join(f"{pin}\n" for pin in resolution.pins), "utf-8")
    await pip.run("download", "--dest=wheels", *_SET, within_s=_DOWNLOAD_S)
    wheels = sorted((folder / "wheels").iterdir())
    names, tops = await asyncio.to_thread(_looked_at, wheels, resolution.pins, listed)
    if sum(map(unpacked_size, wheels)) > most_bytes:
        raise too_large(most_bytes)
    place = (
        "--target=root",
        "--no-index",
        "--find-links=wheels",
        "--no-user",
        "--no-warn-script-location",
    )
    await pip.run("install", *place, *_SET, within_s=_UNPACK_S)
    root = folder / "root"
    await asyncio.to_thread(_tidy, root, tops)
    return Installed(root, names, (), await asyncio.to_thread(size_of, root))


async def importable(
    installed: Installed, requirements: Iterable[str], tries: Tries
) -> tuple[str, ...]:
    """Return the names that the requested projects provide and that can be imported in advance.

    Raises:
        PackagesError: the import of one does not end, so no call could use it either.
    """
    projects = {project(requirement) for requirement in requirements}
    places = tuple((name, str(installed.folder)) for name in installed.names)
    candidates = [
        name
        for name, owner in installed.names.items()
        if owner in projects and not name.startswith("_")
    ]
    until = asyncio.get_running_loop().time() + _IMPORT_S
    ahead = list[str]()
    for name in candidates:
        try:
            async with asyncio.timeout_at(until):
                is_importable = await tries(places, name)
        except TimeoutError as error:
            raise _endless(name, installed.names[name]) from error
        if is_importable:
            ahead.append(name)
    return tuple(ahead)


def _endless(name: str, owner: str) -> PackagesError:
    module = "" if name == owner else f" (its module {fence(name, 60)})"
    message = (
        f"The import of the package {fence(owner, 80)}{module} did not end within {_IMPORT_S:g} s,"
    )
    fix = "Check that it is the package that you mean. If it is only slow here, try again when less is running."
    return PackagesError(f"{message} so it was stopped and nothing was installed.", fix=fix)


def _looked_at(
    wheels: list[Path], pins: tuple["Pin", ...], listed: tuple[str, ...]
) -> tuple[dict[str, str], set[str]]:
    if {project(wheel.name.partition("-")[0]) for wheel in wheels} != {pin.project for pin in pins}:
        raise PackagesError(
            "The downloaded files are not the requested ones, so nothing was installed."
        )
    # The import names of the packages that every function sees, with their projects.
    givers = importlib.metadata.packages_distributions()
    owners = {name: project(givers[name][0]) for name in mounts.packages(listed) if name in givers}
    names, tops = dict[str, str](), set[str]()
    for wheel in wheels:
        names |= names_in(wheel, owners)
        tops |= tops_of(wheel)
    return names, tops


def _tidy(root: Path, tops: set[str]) -> None:
    """Remove everything but packages: scripts, other data, and files that an interpreter would run at startup."""
    for path in root.iterdir():
        if path.name not in tops or path.suffix == ".pth":
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


_STAGING = ".new-"
_FACTS = ".json"
_LIMIT = 1 << 20
_PURPOSE = "packages"


class PackageCache:
    """The installed package folders of one workspace."""

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

    def is_elsewhere(self, digest: str) -> bool:
        """Check whether a folder is there that was installed in another place or by another user."""
        try:
            document = read_json(read_plain(self._folder / f"{digest}{_FACTS}", _LIMIT))
            is_ours = self._sealer.holds(document["seal"], _PURPOSE, digest, document["facts"])
        except (OSError, ValueError, KeyError, TypeError):
            return False
        return not is_ours

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """Yield a folder for an installation, next to the others; it is removed afterwards.

        Raises:
            PackagesError: it cannot be created.
        """
        try:
            place = own_folder(self._folder.parent, self._folder.name, mode=0o755)
            folder = Path(tempfile.mkdtemp(prefix=_STAGING, dir=place))
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
        """Move a folder into place; it is unused until its facts are there, too.

        Raises:
            PackagesError: it cannot be moved there.
        """
        place, facts = self._folder / digest, self._folder / f"{digest}{_FACTS}"
        try:
            files, content = _content(installed.folder)
            details = {
                "names": dict(installed.names),
                "ahead": installed.ahead,
                "size": installed.size,
            }
            text = json.dumps({**details, "files": files, "content": content})
            document = {"facts": text, "seal": self._sealer.seal(_PURPOSE, digest, text)}
            facts.unlink(missing_ok=True)
            _remove(place)  # an incomplete installation, or one from elsewhere
            installed.folder.rename(place)
            written = installed.folder.parent / "facts"
            written.write_text(json.dumps(document), "utf-8")
            written.rename(facts)
        except (OSError, WorkspaceError) as error:
            raise PackagesError(f"{place} cannot be put in place: {error}.") from error

    def clean(self, digests: frozenset[str]) -> list[str]:
        """Remove every other folder that is not in use; return their names."""
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
            return None  # a file was added, changed or removed since it was installed
        return Installed(place.resolve(), facts["names"], tuple(facts["ahead"]), facts["size"])

    def _drop(self, name: str) -> bool:
        facts, place = self._folder / f"{name}{_FACTS}", self._folder / name
        watched = place if name.startswith(_STAGING) or not facts.exists() else facts
        try:
            descriptor = os.open(watched, machine.LOOKING)
        except OSError:  # a link is removed, but not its target
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
    """Return the number of files and folders, and a digest of their paths, kinds, sizes and times.

    Reading the contents would delay the first call, and an outside change would hardly match the time to the
    nanosecond. At most `most` entries are examined.
    """
    rows: list[str] = []
    for path in _below(folder):
        status = path.lstat()
        size = 0 if stat.S_ISDIR(status.st_mode) else status.st_size
        when = 0 if stat.S_ISDIR(status.st_mode) else status.st_mtime_ns
        rows.append(repr((str(path.relative_to(folder)), status.st_mode, size, when)))
        if most is not None and len(rows) > most:
            break
    return len(rows), hashlib.sha256(
        "\n".join(sorted(rows)).encode("utf-8", "surrogatepass")
    ).hexdigest()


def _below(folder: Path) -> Iterator[Path]:
    """Yield every file and folder below a folder, as far as it can be read."""
    folders = [str(folder)]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
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
ExclusiveLock = Callable[[], AbstractAsyncContextManager[None]]


class Environment:
    """Resolves, installs and finds packages; `listed` are the packages that every function already sees."""

    def __init__(
        self,
        root: Path,
        exclusive_lock: ExclusiveLock,
        tries: Tries,
        listed: tuple[str, ...],
        most_mib: int,
        *,
        tell: Tell | None = None,
    ) -> None:
        self._tell: Tell = tell or _note  # receives the current task, and "" when it is done
        self._lock = Lock(root / "functions")
        self._cache = PackageCache(root / STATE / "env", Sealer(root))
        self._exclusive_lock = exclusive_lock
        self._tries = tries
        self._listed = listed
        self._most_bytes = most_mib << 20
        self._one_at_a_time = asyncio.Lock()

    def find(self, requirements: tuple[str, ...]) -> Installed | None:
        """Return where these requirements are installed, as the lock pins them now."""
        pins = self._lock.read().sections.get(requirements)
        return self._cache.get(digest_of(pins)) if pins else None

    def folders(self, requirements: tuple[str, ...]) -> tuple[Names, tuple[str, ...]]:
        """Return the folder of each import name, and the names to import in advance; empty if nothing is installed."""
        installed = self.find(requirements)
        if installed is None:
            return (), ()
        return tuple((name, str(installed.folder)) for name in installed.names), installed.ahead

    def projects(self, requirements: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        """Return the installed import names of the required projects."""
        installed, projects = (
            self.find(requirements),
            {project(requirement) for requirement in requirements},
        )
        return (
            tuple((name, owner) for name, owner in installed.names.items() if owner in projects)
            if installed
            else ()
        )

    async def resolve(self, requirements: Iterable[str]) -> Resolution:
        """Resolve these requirements: from the lock, or else from the package index. Nothing is installed.

        Raises:
            PackagesError: there are no wheels with hashes for them, or they differ from the lock.
        """
        section = required(requirements)
        pins = self._lock.understood().get(section, ())
        if pins and self._cache.get(digest_of(pins)) is not None:
            return Resolution(section, pins, is_installed=True)
        async with self._one_at_a_time:
            with self._telling(f"Looking up {', '.join(section)}"), self._cache.staging() as folder:
                (folder / "held.txt").write_text(
                    "".join(f"{pin.project}=={pin.version}\n" for pin in pins), "utf-8"
                )
                pip, report = Pip(folder, self._tell, self._most_bytes), folder / "report.json"
                kind = (
                    "--dry-run",
                    "--ignore-installed",
                    "--no-user",
                    "--constraint=held.txt",
                    f"--report={report}",
                )
                output = await pip.run("install", *kind, *ALWAYS, *section, within_s=_RESOLVE_S)
                resolution = await asyncio.to_thread(read_report, section, report, output)
        if self._cache.is_elsewhere(resolution.digest):
            resolution = replace(resolution, doubt=f"{ELSEWHERE}.")
        hashes = {(pin.project, pin.version): pin.sha256 for pin in pins}
        for pin in resolution.pins:
            if hashes.get((pin.project, pin.version), pin.sha256) != pin.sha256:
                which = "a changed one, or another platform's"
                message = f"{pin.project} {pin.version} is not the file that `{LOCK_PATH}` names: {which}."
                raise PackagesError(
                    message, fix="To pin the current one, remove its section from that file."
                )
        return resolution

    async def install(self, resolution: Resolution) -> None:
        """Install what the user approved, and write it to the lock.

        Raises:
            PackagesError: it cannot be installed; nothing was put in place.
        """
        async with self._one_at_a_time:
            if self._cache.get(resolution.digest) is None:
                task = f"Fetching {', '.join(f'{pin.project} {pin.version}' for pin in resolution.pins)}"
                with self._telling(task), self._cache.staging() as folder:
                    pip = Pip(folder, self._tell, self._most_bytes)
                    installed = await install(
                        resolution, pip, folder, self._listed, self._most_bytes
                    )
                    self._tell("Trying to import them")
                    ahead = await importable(installed, resolution.requirements, self._tries)
                    await asyncio.to_thread(
                        self._cache.put, resolution.digest, replace(installed, ahead=ahead)
                    )
        if self._lock.understood().get(resolution.requirements) != resolution.pins:
            async with self._exclusive_lock():
                self._lock.put(resolution.requirements, resolution.pins)

    @contextmanager
    def _telling(self, task: str) -> Iterator[None]:
        self._tell(task)
        try:
            yield
        finally:
            self._tell("")

    async def clean(self, sections: Iterable[tuple[str, ...]]) -> list[str]:
        """Remove what is granted to no function from the lock and the disk; return the removed folders.

        Raises:
            PackagesError: the lock is invalid, so nothing is removed.
        """
        async with self._exclusive_lock():
            self._lock.understood()
            self._lock.keep(sections)
        digests = frozenset(digest_of(pins) for pins in self._lock.understood().values())
        return await asyncio.to_thread(self._cache.clean, digests)

    def sections(self) -> Mapping[tuple[str, ...], tuple[Pin, ...]]:
        """Return the pins of the lock, by requirements."""
        return self._lock.read().sections

    @property
    def problem(self) -> str:
        """A description of the part of the lock that is invalid."""
        return self._lock.read().problem

    def close(self) -> None:
        """Release the folders in use."""
        self._cache.close()


def _note(text: str) -> None:
    if text:
        _LOG.info("%s", text)
