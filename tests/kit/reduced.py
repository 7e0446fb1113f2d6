"""The program without some of its extensions: a folder of links to all the rest, which a process imports from."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.kit.program import surroundings
from tests.kit.waiting import patience_s

_REPOSITORY: Final = Path(__file__).resolve().parents[2]
_PACKAGES: Final = ("agent_core", "functions", "knapper", "meta_functions", "sandbox")
_FOLDER: Final = "knapper_ext"


def without(extension: str, place: Path) -> Path:
    """Return a new folder in `place` with the packages of the program, and without this extension."""
    root = place / f"without-{extension}"
    (root / _FOLDER).mkdir(parents=True)
    for package in _PACKAGES:
        (root / package).symlink_to(_REPOSITORY / package)
    for entry in (_REPOSITORY / _FOLDER).iterdir():
        if entry.name not in (extension, "__pycache__"):
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
