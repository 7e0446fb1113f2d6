"""Large values that calls return and pass on: private files in `.knapper/values/`, each named by its content.

What arrives here is masked already. A file gets its name only when it is whole, and its content is compared with the
name whenever it is read, so neither a crash nor a change by someone else can pass for the value. Files go when nothing
names them, a week after their last use, and, above 1 GiB in all, the least recently used first.
"""

import asyncio
import codecs
import hashlib
import os
import re
import secrets
import stat
import time
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from agent_core.base import machine
from agent_core.base.plain_files import open_plain
from sandbox.wire.large import Large, ValueGone

from .folder import own_folder

FOLDER: Final = "values"
KEPT_DAYS: Final = 7
MOST_BYTES: Final = 1 << 30
_UNNAMED_S: Final = (
    3_600.0  # after which a file that nothing names goes: the entry that names it comes after it
)
_DAY_S: Final = 86_400.0
_PIECE: Final = 128 << 10
_BLOCK: Final = 1 << 20  # characters that are hashed and written together
_BEGINNING: Final = 64 << 10
_NAME: Final = re.compile(r"[0-9a-f]{64}")
_PART: Final = re.compile(r"\.[0-9a-f]{16}\.part")


class ValueFiles:
    """The large values of one workspace on this machine."""

    kept_days: float | None = KEPT_DAYS
    """The days after which a value goes that nobody uses; None: it stays as long as something names it."""

    def __init__(
        self,
        state: Path,
        now: Callable[[], float] = time.time,
        most_bytes: int = MOST_BYTES,
        folder: str = FOLDER,
    ) -> None:
        self.folder = state / folder
        self.now = now
        self._most_bytes = most_bytes

    def receive(self) -> "ValueWriter":
        """Return a writer for one value."""
        return ValueWriter(self)

    def has(self, digest: str) -> bool:
        """Return whether a value is kept."""
        return (self.folder / digest).is_file()

    async def pieces(self, digest: str) -> AsyncGenerator[str, None]:
        """Return the pieces of a kept value.

        Raises:
            ValueGone: it is not kept, or no longer what it was.
        """
        path, hashed = self.folder / digest, hashlib.sha256()
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        try:
            file = os.fdopen(await asyncio.to_thread(open_plain, path, machine.LOOKING), "rb")
        except OSError as error:
            raise _gone(digest) from error
        with file:
            self.touch(path)
            while block := await asyncio.to_thread(file.read, _PIECE):
                hashed.update(block)
                yield decoder.decode(block)
        if hashed.hexdigest() != digest:
            with suppress(OSError):
                path.unlink()
            raise _gone(digest)

    def part(self, digest: str, start: int, size: int) -> str | None:
        """Return a part of the JSON of a value by its bytes; None if the value is not kept."""
        with (
            suppress(OSError),
            os.fdopen(open_plain(self.folder / digest, machine.LOOKING), "rb") as file,
        ):
            file.seek(start)
            return file.read(size).decode("utf-8", "ignore")
        return None

    def kept(self) -> dict[str, os.stat_result]:
        """Return the kept values with the facts about their files, the least recently used first."""
        rows: list[tuple[str, os.stat_result]] = []
        for name, status in self._entries():
            if _NAME.fullmatch(name):
                rows.append((name, status))
        return dict(sorted(rows, key=lambda row: row[1].st_mtime))

    def drop(self, digests: Collection[str]) -> int:
        """Remove values, and return how many of them were kept."""
        return sum(_remove(self.folder / digest) for digest in digests)

    def tidy(self, named: Collection[str] | None = None) -> None:
        """Remove what is old, what is unfinished, and, if `named` is given, what it does not hold."""
        now = self.now()
        for name, status in self._entries():
            age = now - status.st_mtime
            is_unfinished = _PART.fullmatch(name) is not None
            is_unnamed = (
                named is not None and _NAME.fullmatch(name) is not None and name not in named
            )
            is_old = self.kept_days is not None and age > self.kept_days * _DAY_S
            if is_old or (age > _UNNAMED_S and (is_unfinished or is_unnamed)):
                _remove(self.folder / name)

    def has_old(self) -> bool:
        """Return whether there is a file that goes if nothing names it."""
        return any(self.now() - status.st_mtime > _UNNAMED_S for _, status in self._entries())

    def touch(self, path: Path) -> None:
        """Note that a value is used."""
        with suppress(OSError):
            os.utime(path, (self.now(), self.now()))

    def make_folder(self) -> None:
        """Make the folder if it is missing; OSError if it is no folder of this program."""
        own_folder(self.folder.parent, self.folder.name)

    def take(self, path: Path, digest: str) -> None:
        """Give a finished file its name, and remove the least recently used ones while all together are too large."""
        path.replace(self.folder / digest)
        self.touch(self.folder / digest)
        self.tidy()
        kept = self.kept()
        total = sum(status.st_size for status in kept.values())
        for name, status in kept.items():
            if total <= self._most_bytes:
                return
            if name != digest and _remove(self.folder / name):
                total -= status.st_size

    def _entries(self) -> list[tuple[str, os.stat_result]]:
        rows: list[tuple[str, os.stat_result]] = []
        with suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                with suppress(OSError):
                    rows.append((entry.name, entry.stat(follow_symlinks=False)))
        return [(name, status) for name, status in rows if stat.S_ISREG(status.st_mode)]


class ValueWriter:
    """Receives one large value."""

    def __init__(self, files: ValueFiles) -> None:
        self._files = files
        self._path = files.folder / f".{secrets.token_hex(8)}.part"
        self._descriptor = -1
        self._hashed = hashlib.sha256()
        self._waiting: list[str] = []
        self._held = self._size = 0
        self._beginning = ""

    async def write(self, text: str) -> None:
        """Add a piece of its JSON; OSError if it cannot be written."""
        self._waiting.append(text)
        self._held += len(text)
        if self._held >= _BLOCK:
            await asyncio.to_thread(self._flush)

    async def finish(self, kind: str, count: int | None) -> Large:
        """Keep the value under its digest, and return it; OSError if it cannot be written."""
        return await asyncio.to_thread(self._finish, kind, count)

    async def drop(self) -> None:
        """Keep nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        _remove(self._path)

    def _flush(self) -> None:
        text, self._waiting, self._held = "".join(self._waiting), [], 0
        if len(self._beginning) < _BEGINNING:
            self._beginning += text[: _BEGINNING - len(self._beginning)]
        data = text.encode()
        self._size += len(data)
        self._hashed.update(data)
        if self._descriptor < 0:
            self._files.make_folder()
            self._descriptor = os.open(self._path, machine.MAKING, 0o600)
        left = memoryview(data)
        while left:
            left = left[os.write(self._descriptor, left) :]

    def _finish(self, kind: str, count: int | None) -> Large:
        self._flush()
        os.close(self._descriptor)
        self._descriptor = -1
        large = Large(self._hashed.hexdigest(), self._size, kind, count, self._beginning)
        self._files.take(self._path, large.digest)
        return large


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True


def _gone(digest: str) -> ValueGone:
    return ValueGone(
        f"a large value that it needs (SHA-256 {digest[:12]}…) is not kept here any longer: such values stay for"
        f" {KEPT_DAYS} days on the machine that made them, and go earlier if something is forgotten or they take more"
        f" than {MOST_BYTES >> 30} GiB in all. Call what makes it again"
    )
