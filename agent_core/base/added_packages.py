"""Extensions in packages of others: which are installed here, and which of them this user has let in.

Such a package has an entry point of the group `knapper`, whose value is a module with hooks. Imported, it is a part of
this program, with all rights of its user. So none is imported before this user enabled it by name: a folder, a setting
or a command that names what it adds does not suffice. Which are enabled is sealed, in this user's own data folder.
"""

import json
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from sandbox.wire.strict_json import LOOSE, Malformed, read_json

from .errors import UsageError, WorkspaceError
from .late import LateModule
from .plain_files import read_plain, replace_text
from .records import dataclass, replace
from .seal import Sealer
from .untrusted import one_line
from .user_folders import NoHome, data_folder

if TYPE_CHECKING:
    from importlib import metadata
else:  # it loads the library for e-mail, and most commands name no package
    metadata = LateModule("importlib.metadata")

GROUP: Final = "knapper"  # of entry points
_MAX_FILE: Final = 1 << 20  # bytes
_SEPARATORS: Final = re.compile(r"[-_.]+")


@dataclass(frozen=True, slots=True)
class AddedPackage:
    """An installed package that has an extension: its `module` has the hooks."""

    name: str
    version: str
    module: str
    enabled: bool


def installed_packages() -> list[AddedPackage]:
    """Return the installed packages with an extension, by name; nothing of them is imported."""
    enabled = _enabled()
    found = set[tuple[str, str, str]]()
    for point in metadata.entry_points(group=GROUP):
        if point.dist is not None:
            found.add((point.dist.name, point.dist.version, point.value))
    return [
        AddedPackage(name, version, module, (_normal(name), module) in enabled)
        for name, version, module in sorted(found)
    ]


def enable_package(name: str) -> list[AddedPackage]:
    """Let a package in, from now on and everywhere. It is imported at once, to say what is wrong with it.

    Raises:
        UsageError: no installed package of this name has an extension, or it cannot be imported.
        WorkspaceError: that cannot be stored.
    """
    installed = installed_packages()
    named = [one for one in installed if _normal(one.name) == _normal(name)]
    if not named:
        message = f"No package `{one_line(name, 80)}` with an extension is installed."
        fix = "Install it next to this program first. Then type: knapper extensions list"
        raise UsageError(message, fix=fix)
    rows = {*_enabled()}
    for one in named:
        _import(one.name, one.module)
        rows.add((_normal(one.name), one.module))
    _store(rows)
    return [replace(one, enabled=True) for one in named]


def disable_package(name: str) -> None:
    """Let a package in no longer; what is running goes on.

    Raises:
        UsageError: it is not enabled.
        WorkspaceError: that cannot be stored.
    """
    enabled = {*_enabled()}
    left = {row for row in enabled if row[0] != _normal(name)}
    if left == enabled:
        raise UsageError(
            f"The package `{one_line(name, 80)}` is not enabled.",
            fix="Type: knapper extensions list",
        )
    _store(left)


def enabled_modules() -> list[ModuleType]:
    """Return the modules of the packages that this user has enabled, as far as they are installed.

    Raises:
        UsageError: one cannot be imported; the message names it.
    """
    modules = []
    for name, module in _enabled():
        if module in _modules_of(name):
            modules.append(_import(name, module))
    return modules


def missing_packages() -> list[str]:
    """Return the names of the enabled packages that are not installed."""
    missing = set[str]()
    for name, module in _enabled():
        if module not in _modules_of(name):
            missing.add(name)
    return sorted(missing)


def _modules_of(package: str) -> set[str]:
    try:
        points = metadata.distribution(package).entry_points
    except metadata.PackageNotFoundError:
        return set()
    return {point.value for point in points if point.group == GROUP}


def _import(package: str, module: str) -> ModuleType:
    try:
        return import_module(module)
    except Exception as error:
        why = one_line(f"{type(error).__name__}: {error}", 300)
        fix = f"Ask its authors, or go on without it: knapper extensions disable {package}"
        raise UsageError(
            f"The extension `{package}` cannot be imported: {why}.", fix=fix
        ) from error


def _file() -> Path:
    return data_folder() / "extensions.json"


def _enabled() -> list[tuple[str, str]]:
    """Return the enabled packages with their modules, as far as this user sealed them."""
    try:
        rows: Any = read_json(read_plain(_file(), _MAX_FILE), LOOSE)  # Any: JSON
    except (OSError, NoHome, Malformed):  # none, or nothing that this program wrote
        return []
    sealer = Sealer(None)
    found = []
    for row in rows if isinstance(rows, list) else ():
        match row:
            case {"package": str(name), "module": str(module), "seal": str(seal)}:
                if sealer.holds(seal, *_sealed(name, module)):
                    found.append((name, module))
    return found


def _store(packages: set[tuple[str, str]]) -> None:
    sealer = Sealer(None)
    rows = [
        {"package": name, "module": module, "seal": sealer.seal(*_sealed(name, module))}
        for name, module in sorted(packages)
    ]
    file = _file()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_text(file, json.dumps(rows, indent=1) + "\n", 0o600)
    except OSError as error:
        message = f"`{file}` cannot be written: {error.strerror}."
        raise WorkspaceError(message, fix="Check its folder, and that there is room.") from error


def _sealed(name: str, module: str) -> tuple[str, str, str]:
    return ("extension", name, module)


def _normal(name: str) -> str:
    """Return a package's name in the one form in which all ways to write it are equal."""
    return _SEPARATORS.sub("-", name).lower()
