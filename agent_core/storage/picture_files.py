"""Pictures of conversations: private files in `.knapper/pictures/`, each kept once, under the hash of its content.

A picture stays as long as an entry or a waiting message names it, and is compared with its name whenever it is read.
"""

import asyncio
import hashlib
import os
import secrets
from base64 import b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Final

from agent_core.base import machine
from agent_core.base.offload import aside
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


class PictureFiles(ValueFiles):
    """The pictures of one workspace on this machine."""

    kept_days = None

    def __init__(self, state: Path, most_bytes: int = MAX_ALL_BYTES) -> None:
        super().__init__(state, most_bytes=most_bytes, folder=FOLDER)

    async def keep(self, data: bytes, name: str = "") -> Picture:
        """Keep a picture, and return what is known of it.

        Raises:
            UnusablePicture: it cannot be used, or cannot be kept.
        """
        return await asyncio.to_thread(self._keep, data, name)  # it looks through the folder

    def _keep(self, data: bytes, name: str) -> Picture:
        picture = read_picture(data, name)
        if self.has(picture.digest):
            self.touch(self.folder / picture.digest)
            return picture
        total = sum(status.st_size for status in self.kept().values())
        if total + len(data) > self._most_bytes:
            what = f"{name or 'The picture'} is not kept: the pictures here would take more than"
            fix = "knapper memory forget removes what is in a conversation."
            raise UnusablePicture(f"{what} {self._most_bytes >> 30} GiB.", fix=fix)
        try:
            self._write(data, picture.digest)
        except OSError as error:
            what = f"{name or 'The picture'} cannot be kept: {error.strerror or error}."
            raise UnusablePicture(what) from error
        return picture

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
                url = await aside(picture.size, self._url, picture)
                urls |= {picture.digest: url} if url else {}
        return urls

    def _url(self, picture: Picture) -> str:
        data = self.content(picture.digest)
        if data is None:
            return ""
        sent = b64encode(without_metadata(data, picture.media_type)).decode()
        return f"data:{picture.media_type};base64,{sent}"


def _read_written(place: Path) -> PictureFile | None:
    try:
        data = read_plain(place, MAX_BYTES)
    except OSError:
        return None
    return PictureFile(data, place.name) if is_picture(data) else None
