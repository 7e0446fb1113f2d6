"""The program without some of its extensions: a folder of links to all the rest, which a process imports from."""

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.kit.program import surroundings
from tests.kit.waiting import patience_s

_REPOSITORY: Final = Path(__file__).resolve().parents[2]
_PACKAGES: Final = ("agent_core", "functions", "knapper", "meta_functions", "sandbox")
_FOLDER: Final = "knapper_ext"


def without(extension: str, place: Path) -> Path:
    """Return a new folder in `place` with the packages of the program, and without this extension."""
    left_out = (extension, "__pycache__")
    return _linked(place / f"without-{extension}", lambda name: name not in left_out)


def alone(place: Path, *extensions: str) -> Path:
    """Return a new folder in `place` with the core, and of the extensions only these."""
    kept = ("__init__.py", *extensions)
    return _linked(place / "-".join(("alone", *extensions)), lambda name: name in kept)


def _linked(root: Path, keeps: Callable[[str], bool]) -> Path:
    (root / _FOLDER).mkdir(parents=True)
    for package in _PACKAGES:
        (root / package).symlink_to(_REPOSITORY / package)
    for entry in (_REPOSITORY / _FOLDER).iterdir():
        if keeps(entry.name):
            (root / _FOLDER / entry.name).symlink_to(entry)
    return root


def reduced(
    root: Path, *arguments: str, cwd: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the program from such a folder to its end."""
    around = surroundings({**(environment or {}), "PYTHONPATH": str(root)})
    command = [sys.executable, "-m", "knapper", *arguments]
    return subprocess.run(
        command, cwd=cwd, env=around, capture_output=True, text=True, timeout=3 * patience_s()
    )
