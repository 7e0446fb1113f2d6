"""The commands that add packages to this copy of the program, worded for the way in which it was installed.

None installs the program by its name from an index: the owner of that name need not be its authors.
"""

import re
import shlex
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from sandbox.wire.strict_json import Malformed, read_json, read_toml

from .late import LateModule

if TYPE_CHECKING:
    from importlib import metadata
else:  # it loads the library for e-mail, and most commands name no package
    metadata = LateModule("importlib.metadata")

_NAME: Final = "knapper"
_CLONE: Final = Path(__file__).parents[2]
_EXTRA_OF: Final = re.compile(r"\bextra\s*==\s*['\"]([^'\"]+)['\"]")


def add_extra(extra: str) -> str:
    """Return the command that installs the packages of an extra of the program."""
    source = _shown_source()
    rows = [line.partition(";") for line in _requirements()]
    packages = [
        package.strip() for package, _, condition in rows if extra in _EXTRA_OF.findall(condition)
    ]
    packages = packages or [f"FOLDER_OF_THE_PROGRAM[{extra}]"]  # without metadata
    if (venv := Path(sys.prefix) / "pipx_metadata.json").is_file():
        return f"pipx inject {shlex.quote(venv.parent.name)} {shlex.join(packages)}"
    if (receipt := _uv_receipt()) is not None and source:
        # Installing without the packages that were added to the tool before would remove them.
        tool = receipt.get("tool")
        rows = tool.get("requirements", []) if isinstance(tool, dict) else []
        named = [
            row
            for row in rows
            if isinstance(row, dict) and row.get("name") != _NAME and "name" in row
        ]
        added = [f"{row['name']}{row.get('specifier', '')}" for row in named]
        more = [word for package in (*added, *packages) for word in ("--with", package)]
        editable = ["--editable"] if _is_editable() else []
        return f"uv tool install {shlex.join([*more, *editable, source])}"
    if not source:
        return _pip("install", *packages)
    wanted = f"{source}[{extra}]" if "://" not in source else f"{_NAME}[{extra}] @ {source}"
    return _pip("install", *(["-e"] if _is_editable() else []), wanted)


def extras() -> list[str]:
    """Return the names of the extras that this copy of the program has; none without metadata."""
    try:
        return metadata.metadata(_NAME).get_all("Provides-Extra") or []
    except metadata.PackageNotFoundError:
        return []


def reinstall(package: str) -> str:
    """Return the command that reinstalls a dependency of the program, in a version that fits."""
    wanted = next(
        (
            line
            for line in _requirements()
            if line.startswith(package) and not re.match(r"[\w.-]", line[len(package) :])
        ),
        package,
    )
    if (venv := Path(sys.prefix) / "pipx_metadata.json").is_file():
        return f"pipx runpip {shlex.quote(venv.parent.name)} install --upgrade --force-reinstall {shlex.quote(wanted)}"
    if _uv_receipt() is not None:
        return f"uv tool upgrade --reinstall-package {package} {_NAME}"
    return _pip("install", "--upgrade", "--force-reinstall", wanted)


def reinstall_program() -> str:
    """Return the command that reinstalls this copy without its dependencies."""
    if (venv := Path(sys.prefix) / "pipx_metadata.json").is_file():
        return f"pipx reinstall {shlex.quote(venv.parent.name)}"
    if _uv_receipt() is not None:
        return f"uv tool upgrade --reinstall-package {_NAME} {_NAME}"
    source = _shown_source() or "FOLDER_OF_THE_PROGRAM"
    return _pip(
        "install", "--force-reinstall", "--no-deps", *(["-e"] if _is_editable() else []), source
    )


def uninstall_program() -> str:
    """Return the command that removes this copy of the program; "" if pipx will, which has it for a few runs only."""
    prefix = Path(sys.prefix)
    if (prefix / "pipx_metadata.json").is_file():
        return f"pipx uninstall {shlex.quote(prefix.name)}" if prefix.parent.name == "venvs" else ""
    if prefix.parent.name.startswith("archive-v"):  # of `uvx`
        return f"uv cache clean {_NAME}"
    return f"uv tool uninstall {_NAME}" if _uv_receipt() is not None else _pip("uninstall", _NAME)


def origin() -> str:
    """Return the origin of this copy of the program, for people."""
    return _source() or "a package index"


def _pip(*arguments: str) -> str:
    """Return a command of pip for the Python that runs the program."""
    own = Path(sys.executable)
    found = shutil.which("python")
    is_on_path = found is not None and Path(found).parent == own.parent
    python = "python" if is_on_path else _typed_path(own)
    if find_spec("pip") is None:  # an environment created by uv
        return f"uv pip {arguments[0]} --python {shlex.quote(python)} {shlex.join(arguments[1:])}"
    return f"{shlex.quote(python)} -m pip {shlex.join(arguments)}"


def _source() -> str:
    """Return the folder, file or address from which this copy can be reinstalled; "" if it came from an index."""
    recorded = _recorded_origin()
    url, vcs = str(recorded.get("url", "")), recorded.get("vcs_info")
    if url.startswith("file:") and not vcs:
        from urllib.request import url2pathname  # noqa: PLC0415 - it imports an HTTP client

        path = Path(url2pathname(urlsplit(url).path))
        return str(path) if path.exists() else ""
    if isinstance(vcs, dict):
        revision = vcs.get("requested_revision") or vcs.get("commit_id")
        return f"{vcs.get('vcs', 'git')}+{url}" + (f"@{revision}" if revision else "")
    if url:
        return url
    return str(_CLONE) if (_CLONE / "pyproject.toml").is_file() else ""


def _shown_source() -> str:
    source = _source()
    return source if not source or "://" in source else _typed_path(Path(source))


def _typed_path(path: Path) -> str:
    """Return a path to type here: "." for the current folder, relative below it, else absolute."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _recorded_origin() -> dict[str, Any]:  # Any: JSON
    """Return the origin that the installer recorded (PEP 610); empty for an index, or if nothing is installed."""
    try:
        noted = read_json(metadata.distribution(_NAME).read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, Malformed):
        return {}
    return noted if isinstance(noted, dict) else {}


def _is_editable() -> bool:
    folder = _recorded_origin().get("dir_info")
    return isinstance(folder, dict) and bool(folder.get("editable"))


def _requirements() -> list[str]:
    try:
        return metadata.distribution(_NAME).requires or []
    except metadata.PackageNotFoundError:
        return []


def _uv_receipt() -> dict[str, Any] | None:  # Any: TOML
    """Return the receipt that `uv tool install` wrote for this environment; None if uv did not create it."""
    path = Path(sys.prefix) / "uv-receipt.toml"
    try:
        return read_toml(path.read_bytes()) if path.is_file() else None
    except (OSError, Malformed):
        return {}
