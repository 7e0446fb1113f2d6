"""The contents of a wheel, read from its list of files before anything is unpacked."""

import stat
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from agent_core.base.untrusted import fence

from ..grants.items import project
from .failures import PackagesError

# Names that mean something else in a worker: whoever ships them would stand in its place.
_RESERVED = frozenset(
    {"functions", "sandbox", "agent_core", "meta_functions", "__main__", "site", "sitecustomize", "usercustomize"}
)
_UNPACKED = frozenset({"purelib", "platlib"})
_SUFFIXES = frozenset({"", ".py", ".so"})
_MOST_FILES = 200_000


def names_in(wheel: Path, listed: Mapping[str, str]) -> dict[str, str]:
    """Return the import names that a wheel provides, each with its project; `owners` maps Toolwright's own names to
    theirs.

    Raises:
        PackagesError: it has a path that leaves its folder, or a name that would stand in another's place.
    """
    owner = project(wheel.name.partition("-")[0])
    owners = {}
    for top in tops_of(wheel):
        name = PurePosixPath(top).name.partition(".")[0]
        if PurePosixPath(top).suffix not in _SUFFIXES or not name.isidentifier():
            continue
        if name in _RESERVED or name in sys.stdlib_module_names or listed.get(name, owner) != owner:
            message = f"{fence(wheel.name, 120)} brings {fence(name, 60)}, which would stand in the place of another."
            raise PackagesError(message, fix="It is not installed; look whether the package is the one that was meant.")
        owners[name] = owner
    return {name: owner for name in owners if name not in listed}


def unpacked_size(wheel: Path) -> int:
    """Return the size of the unpacked wheel, according to its own list."""
    with _opened(wheel) as archive:
        return sum(info.file_size for info in archive.infolist())


def tops_of(wheel: Path) -> set[str]:
    """Return the first parts of the paths below the folder that it is imported from.

    Raises:
        PackagesError: it has a path that leaves its folder, or too many.
    """
    with _opened(wheel) as archive:
        entries = archive.infolist()
    if len(entries) > _MOST_FILES or len({info.filename for info in entries}) < len(entries):
        raise PackagesError(f"{fence(wheel.name, 120)} has too many files, or one of them twice.")
    tops = set()
    for info in entries:
        parts = _parts(wheel, info)
        if len(parts) > 2 and parts[0].endswith(".data"):
            parts = parts[2:] if parts[1] in _UNPACKED else ()
        tops |= {parts[0]} if parts else set()
    return tops


def _parts(wheel: Path, info: zipfile.ZipInfo) -> tuple[str, ...]:
    path = PurePosixPath(info.filename)
    is_link = stat.S_ISLNK(info.external_attr >> 16)
    if path.is_absolute() or ".." in path.parts or "\\" in info.filename or is_link:
        message = f"{fence(wheel.name, 120)} has a path that leaves its folder: {fence(info.filename, 80)}."
        raise PackagesError(message, fix="It is not installed, and should not be trusted.")
    return path.parts


def _opened(wheel: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(wheel)
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise PackagesError(f"{fence(wheel.name, 120)} is no wheel that can be read.") from error
