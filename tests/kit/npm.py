"""npm packages for tests, below the cache folder: `python -m tests.kit.npm axe-core@4.14.1` installs one.

None of them is ever in the repository, and our code does not need them.
"""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agent_core.base.user_folders import cache_folder

AXE: Final = "axe-core@4.14.1"
_INSTALL_S: Final = 900
_WHOLE: Final = "whole"


def packages_folder(wanted: Sequence[str]) -> Path:
    """Return the folder of these packages, if they are installed."""
    return cache_folder() / "npm" / hashlib.sha256(" ".join(wanted).encode()).hexdigest()[:12]


def install_packages(wanted: Sequence[str]) -> Path:
    """Install packages unless they are there already, and return their folder.

    Raises:
        OSError: they cannot be installed; says why.
    """
    folder = packages_folder(wanted)
    if (folder / _WHOLE).exists():
        return folder
    npm = shutil.which("npm")
    if npm is None:
        raise OSError("npm is not installed here")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "package.json").write_text('{"private": true}', "utf-8")
    command = [npm, "install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", *wanted]
    try:
        subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=True, timeout=_INSTALL_S
        )
    except subprocess.TimeoutExpired as error:
        raise OSError(f"its installation took more than {_INSTALL_S} s") from error
    except subprocess.CalledProcessError as error:
        reason = "".join(error.stderr.strip().splitlines()[-1:]) or "it gave no reason"
        raise OSError(f"npm cannot install it: {reason}") from error
    (folder / _WHOLE).touch()
    return folder


def axe_source() -> str:
    """Return the source of axe-core, or an empty string if it is not installed."""
    path = packages_folder([AXE]) / "node_modules" / "axe-core" / "axe.min.js"
    return path.read_text("utf-8") if path.exists() else ""


if __name__ == "__main__":
    try:
        print(install_packages(sys.argv[1:] or [AXE]))
    except OSError as reason:
        print(f"Skipped: {reason}.", file=sys.stderr)
