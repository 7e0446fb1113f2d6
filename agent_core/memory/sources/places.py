"""The locations of sources: a file, a folder's files, standard input, a URL. Only what the user named is read.

Bytes become text in a separate process, one source after another; one that takes too long or too much ends it. Its
results are untrusted: only text and places of limited length are accepted.
"""

import asyncio
import os
import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from agent_core.base import machine
from agent_core.base.programs import NotRead, ReaderProcess, pieces
from agent_core.base.records import dataclass
from agent_core.base.user_folders import expand_home
from agent_core.base.workspace_folder import SETTINGS

from .cutting import LONGEST, Chunk, Cut, Unreadable
from .material import Material

_MOST_CHUNKS: Final = 400_000
_MOST_BYTES: Final = 4 << 30


class SourceReader(ReaderProcess):
    """A process that reads sources; it is started by the first source and ends with the block."""

    def __init__(self, within_s: float = 60.0) -> None:
        super().__init__(f"{__package__}.kinds", within_s)

    async def cut(self, name: str, data: bytes, content_type: str = "") -> Cut:
        """Return a source as chunks.

        Raises:
            Unreadable: it is not text, not what it claims to be, or takes too long or too much to read.
        """
        chunks: list[Chunk] = []
        last: dict[str, Any] = {}  # Any: JSON

        def take(item: dict[str, Any]) -> None:  # Any: JSON
            if "chunk" not in item:
                last.update(item)
                return
            text, place = item["chunk"]
            if len(chunks) >= _MOST_CHUNKS or len(text) > 2 * LONGEST:
                raise Unreadable(
                    "It contains more than may be kept of one source.", fix="Divide it."
                )
            chunks.append(Chunk(str(text), str(place)))

        try:
            await self.read(
                {"name": name, "content_type": content_type}, pieces(data), take, _MOST_BYTES
            )
        except NotRead as error:
            raise Unreadable(
                error.message, fix="Divide it, or convert it to plain text first."
            ) from error
        if "error" in last:
            raise Unreadable(str(last["error"]), fix=str(last["fix"]))
        return Cut(str(last["kind"]), tuple(chunks), tuple(map(str, last["notes"])))


MOST_BYTES: Final = 64 << 20
"""Maximum bytes of one source."""
MOST_FILES: Final = 20_000
"""Maximum files of one folder."""
_LEFT_OUT: Final = frozenset({"__pycache__", "node_modules"})
STDIN: Final = "-"
_DESCRIBED: Final = frozenset({"agents", "groups", "helpers"})
_SAVED: Final = re.compile(rb'"format"\s*:\s*"knapper-agent"')
_SAMPLE: Final = 1 << 16
_PICTURE: Final = (b"<svg", b"<?xml", b"<!doctype svg")
_SCRIPTS: Final = frozenset((".js", ".mjs", ".cjs", ".css"))
_MINIFIED: Final = re.compile(r"[.-]min\.\w+$|\.map$")
_DENSE: Final = 500  # characters per line on average; a hand-written script has fewer than 100


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """A source that can be read; `name` is how it is cited, and is unique."""

    name: str
    where: str
    is_found: bool = False
    """Whether it was found in a folder, rather than named by the user."""
    is_unnamed: bool = False
    """Whether only its content distinguishes it from others of that name."""

    async def material(self) -> Material:
        """Return the bytes at the place.

        Raises:
            Unreadable: it is missing, too large, or not a file.
        """
        if is_url(self.where):
            from . import web  # noqa: PLC0415 - the HTTP client is slow to import

            return await web.fetch(self.where, MOST_BYTES)
        if self.where == STDIN:
            return Material(_within(await asyncio.to_thread(sys.stdin.buffer.read, MOST_BYTES + 1)))
        return Material(await asyncio.to_thread(_file, Path(self.where)), guess=self.where)


def is_url(where: str) -> bool:
    """Check whether it must be fetched."""
    return where.lower().startswith(("http://", "https://"))


def is_missing(where: str) -> bool:
    """Check whether it names a file or folder that does not exist."""
    return not is_url(where) and where != STDIN and not os.path.lexists(expand_home(where))


def places(where: str, name: str = "") -> list[SourcePlace]:
    """Return the sources that the user named: one source, or the files of a folder except hidden ones.

    Raises:
        Unreadable: there is nothing.
    """
    if is_url(where):
        return [SourcePlace(name or where.partition("#")[0], where)]
    if where == STDIN:
        if sys.stdin is None or sys.stdin.isatty():  # typed text is for the prompt
            raise Unreadable("Standard input is empty.", fix="Pipe a text into it, or name a file.")
        return [SourcePlace(name or "standard input", where, is_unnamed=not name)]
    if "://" in where.partition("?")[0]:
        raise Unreadable(
            f"{where} is not a URL that can be fetched.", fix="Only http:// and https:// are."
        )
    path = expand_home(where)
    if not name:  # the path as it was typed, relative if it is below the current folder
        whole, folder = Path(os.path.abspath(path)), Path.cwd()  # noqa: PTH100 - a link keeps the name that was given
        name = (whole.relative_to(folder) if whole.is_relative_to(folder) else whole).as_posix()
    if not path.is_dir():
        return [SourcePlace(name, str(path))]
    files = [
        SourcePlace(
            f"{name}/{inside.as_posix()}" if name != "." else inside.as_posix(),
            str(path / inside),
            is_found=True,
        )
        for inside in sorted(_files(path))
    ]
    if not files:
        raise Unreadable(f"{where} holds no file.", fix="Hidden files and folders are left out.")
    return files


def _files(folder: Path) -> Iterator[Path]:
    count = 0
    for top, folders, names in os.walk(folder):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in _LEFT_OUT
        )
        for name in sorted(names):
            path = Path(top) / name
            if name.startswith(".") or path.is_symlink() or not path.is_file():
                continue
            count += 1
            if count > MOST_FILES:
                raise Unreadable(
                    f"{folder} holds more than {MOST_FILES:,} files.",
                    fix="Add its folders one by one.",
                )
            yield path.relative_to(folder)


def not_prose(name: str, data: bytes) -> str:
    """Return the reason why a text file in a folder is not worth reading; "" if it is."""
    head, suffix = data[:1_000].lstrip(b"\xef\xbb\xbf \t\r\n").lower(), Path(name).suffix.lower()
    if suffix == ".svg" or (head.startswith(_PICTURE) and b"<svg" in head):
        return "SVG"
    sample = data[:_SAMPLE]
    is_dense = suffix in _SCRIPTS and len(sample) > _DENSE * (sample.count(b"\n") + 1)
    return "minified" if is_dense or _MINIFIED.search(name.lower()) else ""


def of_program(place: SourcePlace, data: bytes) -> str:
    """Return a description of a file in a folder if it is one of this program without use for an agent; else ""."""
    path = Path(place.where)
    is_described = path.suffix == ".toml" and path.parent.name in _DESCRIBED
    if path.name == SETTINGS or (is_described and (path.parent.parent / SETTINGS).is_file()):
        return "a settings file of Knapper"
    return "a saved conversation" if _SAVED.search(data[:_SAMPLE]) else ""


def _file(path: Path) -> bytes:
    try:
        with os.fdopen(
            os.open(path, os.O_RDONLY | machine.NONBLOCK | machine.CLOEXEC), "rb"
        ) as file:  # do not wait for a pipe
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Unreadable("It is not a file.")
            return _within(file.read(MOST_BYTES + 1))
    except OSError as error:
        raise Unreadable(f"It cannot be read: {error.strerror}.") from error


def _within(data: bytes) -> bytes:
    if len(data) > MOST_BYTES:
        raise Unreadable(f"It has more than {MOST_BYTES >> 20} MiB.", fix="Divide it.")
    return data
