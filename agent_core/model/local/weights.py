"""The weights that can be had: their names, sizes and hashes as data, and where they lie on this machine.

May touch the user's data folder. A file counts as there only in its whole size; `verify` reads it and
compares its hash, once for each state of the file.
"""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

from sandbox.foreign import read_toml

from ...errors import IntegrityError, UsageError
from ...matching import nearest
from ...user_folders import data_folder

PREFIX: Final = "local/"
_BLOCK: Final = 1 << 22
_MARK: Final = ".verified"
_PARTIAL: Final = ".partial"
_SCRATCH: Final = ".package"


@dataclass(frozen=True, slots=True)
class Packages:
    """Data-only packages that hold one file in parts: `prefix1` … `prefix<count>`, all but the last of one size."""

    prefix: str
    version: str
    count: int
    part_size: int


@dataclass(frozen=True, slots=True)
class Weights:
    """One file of weights: what it is, what it must be, and where it can be had."""

    name: str
    title: str
    file: str
    size: int
    sha256: str
    licence: str
    publisher: str
    url: str
    packages: Packages | None = None


@cache
def available() -> tuple[Weights, ...]:
    """The weights that this version knows, the one to take first."""
    data = read_toml(resources.files(__package__).joinpath("weights.toml").read_text(encoding="utf-8"))
    return tuple(_read(entry) for entry in data["weights"])


def named(name: str) -> Weights:
    """The weights of this name, with or without `local/` before it.

    Raises:
        UsageError: there are none of this name; the message says which there are.
    """
    wanted = name.removeprefix(PREFIX)
    names = [weights.name for weights in available()]
    if wanted in names:
        return available()[names.index(wanted)]
    near = nearest(wanted, names, likeness=0.3)
    hint = f"Did you mean `{PREFIX}{near[0]}`?" if near else f"There are: {', '.join(names)}."
    raise UsageError(f"There is no local model `{wanted}`.", mend=hint)


def folder() -> Path:
    """Where this user's weights lie; it need not be there."""
    return data_folder() / "models"


def path(name: str) -> Path | None:
    """The file of these weights if it is here in its whole size, else None."""
    return file_of(named(name))


def file_of(weights: Weights) -> Path | None:
    """The file of these weights if it is here in its whole size, else None."""
    file = folder() / weights.file
    return file if file.is_file() and file.stat().st_size == weights.size else None


def partial_of(weights: Weights) -> Path:
    """Where these weights grow until they are whole."""
    return folder() / (weights.file + _PARTIAL)


def scratch_of(weights: Weights) -> Path:
    """The folder for the package that is being fetched; it is there only meanwhile."""
    return folder() / (weights.file + _SCRATCH)


def remains(weights: Weights) -> list[Path]:
    """All that is here of these weights and of no others: the file, its mark, what a broken download left."""
    whole = folder() / weights.file
    named_so = [whole, whole.with_name(whole.name + _MARK), partial_of(weights)]
    return [file for file in [*named_so, *sorted(scratch_of(weights).rglob("*"))] if file.is_file()]


def verify(weights: Weights, file: Path) -> None:
    """Compare the file with its pinned hash; a file that has not changed since is not read again.

    Raises:
        IntegrityError: it is not the file that it should be.
    """
    mark = file.with_name(file.name + _MARK)
    if mark.is_file() and mark.read_text(encoding="utf-8") == _mark(weights, file):
        return
    found = sha256_of(file)
    if found != weights.sha256:
        raise IntegrityError(
            f"{file} is not what it should be: its SHA-256 is {found[:16]}…, expected was {weights.sha256[:16]}….",
            mend=f"toolwright models remove {weights.name}\ntoolwright models get {weights.name}",
        )
    mark_verified(weights, file)


def mark_verified(weights: Weights, file: Path) -> None:
    """Note that the file, in its present state, has its pinned hash."""
    file.with_name(file.name + _MARK).write_text(_mark(weights, file), encoding="utf-8")


def sha256_of(file: Path) -> str:
    """The SHA-256 of a file, read in blocks."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _mark(weights: Weights, file: Path) -> str:
    state = file.stat()
    return f"{weights.sha256} {state.st_size} {state.st_mtime_ns} {state.st_ino}\n"


def _read(entry: dict[str, object]) -> Weights:
    packages = entry.pop("packages", None)
    return Weights(**entry, packages=Packages(**packages) if isinstance(packages, dict) else None)  # type: ignore[arg-type]  # data of this package
