"""The parts of this machine that function code can see: the interpreter's library, shared libraries, listed packages.

It uses paths and the metadata of installed packages, and opens nothing else.
"""

import importlib.metadata
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path

_SHARED_LIBRARIES = (
    "/lib64",
    "/usr/lib64",
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/etc/ld.so.cache",
)
_DATA = ("/usr/share/zoneinfo", "/etc/localtime", "/dev/null")
COMMON = (
    "datetime",
    "decimal",
    "json",
    "math",
    "random",
    "re",
    "collections",
    "typing",
    "dataclasses",
)  # preloaded
_SHARED_PREFIXES = ("/usr", "/usr/local")
_REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+")


def library() -> Path:
    """Return the folder of the standard library, not the folder of the same name in a virtual environment."""
    return Path(os.__file__).resolve().parent


def extensions() -> Path:
    """Return the folder of the standard library's extension modules."""
    return Path(sysconfig.get_config_var("DESTSHARED") or library() / "lib-dynload")


def readable(packages: dict[str, str]) -> tuple[str, ...]:
    """Return all paths that a worker may read below, the standard library first."""
    own = [str(library()), str(extensions())]
    if sys.base_prefix not in _SHARED_PREFIXES:
        own.append(str(Path(sys.base_prefix, "lib")))
    package_files = [
        str(path) for name, folder in packages.items() for path in _files_of(name, Path(folder))
    ]
    paths = dict.fromkeys([*own, *_SHARED_LIBRARIES, *_DATA, *package_files])
    return tuple(path for path in paths if Path(path).exists())


def extension_modules() -> tuple[str, ...]:
    """Return the standard library's extension modules, which are preloaded if none can be loaded later."""
    names = {path.name.split(".")[0] for path in extensions().glob("*.so")}
    return tuple(
        sorted(
            name
            for name in names
            if not name.startswith(("_test", "_xx", "xx", "_tkinter", "_curses"))
        )
    )


def hidden() -> tuple[str, ...]:
    """Return folders inside the readable ones that hold packages installed for other programs."""
    inside = [library() / name for name in ("site-packages", "dist-packages")]
    return tuple(str(folder) for folder in inside if folder.is_dir())


def packages(names: Sequence[str]) -> dict[str, str]:
    """Return import name → folder for the listed packages and all their requirements."""
    folders: dict[str, str] = {}
    waiting, seen = list(names), set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        folders |= _top_level(distribution)
        always = [line for line in distribution.requires or () if "extra ==" not in line]
        waiting += [match.group() for line in always if (match := _REQUIREMENT.match(line))]
    return folders


def _top_level(distribution: importlib.metadata.Distribution) -> dict[str, str]:
    folder = str(distribution.locate_file(""))
    tops = map(Path, _tops(distribution))
    return {top.stem.split(".")[0]: folder for top in tops if top.suffix in ("", ".py", ".so")}


def granted_files(packages: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the files of granted packages in the folders that they are imported from, including their metadata."""
    names: dict[str, set[str]] = {}
    for name, folder in packages:
        names.setdefault(folder, set()).add(name)
    paths: dict[str, None] = {}
    for folder, package_names in names.items():
        for distribution in importlib.metadata.distributions(path=[folder]):
            if package_names & _top_level(distribution).keys():
                paths |= dict.fromkeys(str(Path(folder, top)) for top in _tops(distribution))
        paths |= dict.fromkeys(
            str(path) for name in package_names for path in _files_of(name, Path(folder))
        )
    return tuple(path for path in paths if Path(path).exists())


def _tops(distribution: importlib.metadata.Distribution) -> set[str]:
    return {file.parts[0] for file in distribution.files or ()} - {"..", "/", "__pycache__"}


def _files_of(name: str, folder: Path) -> list[Path]:
    return [
        path
        for path in (folder / name, folder / f"{name}.py", *folder.glob(f"{name}.*.so"))
        if path.exists()
    ]
