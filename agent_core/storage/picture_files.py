"""Pictures of conversations: private files in `.knapper/pictures/`, each kept once, under the hash of its content.

A picture stays as long as an entry or a waiting message names it, and is compared with its name whenever it is read.
"""

import asyncio
import hashlib
import os
import secrets
import threading
from base64 import b64encode
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Final

from agent_core.base import machine
from agent_core.base.errors import KnapperError
from agent_core.base.picture_formats import without_metadata
from agent_core.base.pictures import (
    MAX_BYTES,
    MAX_PICTURES,
    Picture,
    PictureFile,
    UnusablePicture,
    is_picture,
    read_picture,
)
from agent_core.base.plain_files import read_plain
from agent_core.base.records import dataclass, field
from sandbox.errors import ProtocolError
from sandbox.wire.large import Large
from sandbox.wire.strict_json import Malformed, read_json
from sandbox.wire.values import read

from .value_files import FOLDER as VALUES
from .value_files import ValueFiles

_MAX_PATH_CHARS: Final = 4_096
_MAX_LARGE_BYTES: Final = 2 * MAX_BYTES  # of a picture in base64, as JSON
FOLDER: Final = "pictures"
MAX_ALL_BYTES: Final = 4 << 30
MAX_KEPT: Final = 50_000
_MAX_FOLDERS: Final = 16
_TRUSTED_CHANGES: Final = 1_000  # after which the folder is listed again


@dataclass(slots=True)
class _Total:
    """What the pictures in a folder take, as this process knows without listing them for each new one.

    Who else changed the folder since shows in its time.
    """

    lock: threading.Lock = field(default_factory=threading.Lock)
    count: int = 0
    size: int = 0
    changes: int = 0
    changed_ns: int = -1


@lru_cache(_MAX_FOLDERS)
def _total_of(_folder: Path) -> _Total:
    return _Total()


@dataclass(slots=True)
class PictureBatch:
    """The pictures that are kept for one thing that may yet be refused."""

    _files: "PictureFiles"
    _new: dict[str, int] = field(default_factory=dict)
    """The time of each one's file that was not there before."""

    async def keep(self, data: bytes, name: str = "") -> Picture:
        """Keep a picture, and return what is known of it.

        Raises:
            UnusablePicture: it cannot be used, or cannot be kept.
        """
        picture, since_ns = await self._files.kept_now(data, name)
        if since_ns is not None:
            self._new[picture.digest] = since_ns
        return picture

    async def take_back(self) -> None:
        """Remove those that were not there before and that nobody else has sent since."""
        await asyncio.to_thread(self._files.remove_unused, self._new)


class PictureFiles(ValueFiles):
    """The pictures of one workspace on this machine."""

    kept_days = None

    def __init__(self, state: Path, most_bytes: int = MAX_ALL_BYTES, most: int = MAX_KEPT) -> None:
        super().__init__(state, most_bytes=most_bytes, folder=FOLDER)
        self._most = most

    @asynccontextmanager
    async def batch(self) -> AsyncIterator[PictureBatch]:
        """Keep pictures for what the block sends; if that is refused, they go again."""
        batch = PictureBatch(self)
        try:
            yield batch
        except KnapperError:
            await batch.take_back()
            raise

    async def keep(self, data: bytes, name: str = "") -> Picture:
        """Keep a picture, and return what is known of it.

        Raises:
            UnusablePicture: it cannot be used, or cannot be kept.
        """
        return (await self.kept_now(data, name))[0]

    async def kept_now(self, data: bytes, name: str) -> tuple[Picture, int | None]:
        """Keep a picture; return it, and the time of its file if that was not there before.

        Raises:
            UnusablePicture: it cannot be used, or cannot be kept.
        """
        return await asyncio.to_thread(self._keep, data, name)  # it may list the folder

    def _keep(self, data: bytes, name: str) -> tuple[Picture, int | None]:
        picture = read_picture(data, name)
        path = self.folder / picture.digest
        with (total := _total_of(self.folder)).lock:
            if self.has(picture.digest):
                self.touch(path)
                return picture, None
            self._check_room(total, len(data), name or "The picture")
            try:
                self._write(data, picture.digest)
                since_ns = path.stat().st_mtime_ns
                self._note(total, 1, len(data))
            except OSError as error:
                what = f"{name or 'The picture'} cannot be kept: {error.strerror or error}."
                raise UnusablePicture(what) from error
        return picture, since_ns

    def remove_unused(self, new: Mapping[str, int]) -> None:
        """Remove these pictures, each with the time of its file: a later time says that others sent it, too."""
        with (total := _total_of(self.folder)).lock:
            for digest, since_ns in new.items():
                path = self.folder / digest
                with suppress(OSError):
                    status = path.stat()
                    if status.st_mtime_ns == since_ns:
                        path.unlink()
                        self._note(total, -1, -status.st_size)

    def _check_room(self, total: _Total, size: int, what: str) -> None:
        if self._is_full(total, size) or not self._knows(total):
            sizes = [status.st_size for status in self.kept().values()]
            total.count = len(sizes)
            total.size = sum(sizes)
            total.changes = 0
        fix = "knapper memory forget removes what is in a conversation."
        if total.size + size > self._most_bytes:
            most = f"take more than {self._most_bytes >> 30} GiB"
            raise UnusablePicture(f"{what} is not kept: the pictures here would {most}.", fix=fix)
        if total.count >= self._most:
            most = f"there are {self._most:,} pictures here already"
            raise UnusablePicture(f"{what} is not kept: {most}.", fix=fix)

    def _is_full(self, total: _Total, size: int) -> bool:
        return total.size + size > self._most_bytes or total.count >= self._most

    def _knows(self, total: _Total) -> bool:
        """Return whether nobody else changed the folder since the total was noted."""
        try:
            is_same = self.folder.stat().st_mtime_ns == total.changed_ns
        except OSError:
            return False
        return is_same and total.changes < _TRUSTED_CHANGES

    def _note(self, total: _Total, count: int, size: int) -> None:
        total.count += count
        total.size += size
        total.changes += 1
        total.changed_ns = self.folder.stat().st_mtime_ns

    def _write(self, data: bytes, digest: str) -> None:
        self.make_folder()
        part = self.folder / f".{secrets.token_hex(8)}.part"
        try:
            with os.fdopen(os.open(part, machine.MAKING, 0o600), "wb") as file:
                file.write(data)
            part.replace(self.folder / digest)
        finally:
            with suppress(OSError):
                part.unlink()

    def content(self, digest: str) -> bytes | None:
        """Return the content of a picture; None if it is not kept, or no longer what it was."""
        try:
            data = read_plain(self.folder / digest, MAX_BYTES)
        except OSError:
            return None
        return data if hashlib.sha256(data).hexdigest() == digest else None

    async def keep_all(self, files: Sequence[PictureFile]) -> tuple[list[Picture], list[str]]:
        """Keep what can be kept of pictures that nobody chose; return these, and a sentence about each other one."""
        kept = list[Picture]()
        refused = list[str]()
        for file in files[:MAX_PICTURES]:
            try:
                kept.append(await self.keep(file.data, file.name))
            except UnusablePicture as error:
                refused.append(str(error))
        if len(files) > MAX_PICTURES:
            refused.append(f"{len(files) - MAX_PICTURES:,} more pictures are not shown.")
        return kept, refused

    async def large(self, large: Large) -> bytes | None:
        """Return the content of a picture that a call returned as a large value; None if it is none that is shown."""
        if large.kind != "bytes" or large.size > _MAX_LARGE_BYTES:
            return None
        return await asyncio.to_thread(self._large, large)

    def _large(self, large: Large) -> bytes | None:
        try:
            text = read_plain(self.folder.parent / VALUES / large.digest, _MAX_LARGE_BYTES)
            value = read(read_json(text), [])
        except (OSError, Malformed, ProtocolError):
            return None
        return value if isinstance(value, bytes) and is_picture(value) else None

    async def written(
        self, path: str | PurePath, written_names: Collection[str]
    ) -> PictureFile | None:
        """Return the picture that a call wrote and whose path it returned; None if it is none of these."""
        root = self.folder.parent.parent
        place = root / path
        if len(str(path)) > _MAX_PATH_CHARS or place not in [root / name for name in written_names]:
            return None
        return await asyncio.to_thread(_read_written, place)

    async def urls(self, pictures: Iterable[Picture]) -> Mapping[str, str]:
        """Return the pictures that are still kept as `data:` addresses without metadata, by their digest."""
        urls = dict[str, str]()
        for picture in pictures:
            if not picture.is_past and picture.digest not in urls:
                url = await asyncio.to_thread(self._url, picture.digest)
                urls |= {picture.digest: url} if url else {}
        return urls

    def _url(self, digest: str) -> str:
        data = self.content(digest)
        if data is None:
            return ""
        try:
            media_type = read_picture(data).media_type  # its row may be a stranger's
        except UnusablePicture:
            return ""
        sent = b64encode(without_metadata(data, media_type)).decode()
        return f"data:{media_type};base64,{sent}"


def _read_written(place: Path) -> PictureFile | None:
    try:
        data = read_plain(place, MAX_BYTES)
    except OSError:
        return None
    return PictureFile(data, place.name) if is_picture(data) else None
