"""`.toolwright/env/`: one folder per set of pinned files, with its facts, sealed for this user and this place.

A folder that came from elsewhere has no seal and is not used. Whoever uses one holds a lock on it, so that it stays.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_core.base.errors import WorkspaceError
from agent_core.base.seal import Sealer
from sandbox.wire.foreign import read_json

from .failures import PackagesError

_STAGING = ".new-"
_FACTS = ".json"
_LIMIT = 1 << 20
_PURPOSE = "packages"


@dataclass(frozen=True, slots=True)
class Installed:
    """One folder: its import names with their projects, those that can be imported in advance, and its size."""

    folder: Path
    names: Mapping[str, str]
    ahead: tuple[str, ...]
    size: int


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

    @contextlib.contextmanager
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
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
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
            descriptor = os.open(
                self._folder / f"{digest}{_FACTS}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            )
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            installed = self._facts(digest, os.read(descriptor, _LIMIT)) if os.fstat(descriptor).st_nlink else None
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
            descriptor = os.open(watched, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:  # a link, which goes; what a link names stays
            facts.unlink(missing_ok=True)
            _remove(place)
            return True
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            facts.unlink(missing_ok=True)
            _remove(place)
        except BlockingIOError:
            return False
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
