"""Tracked files above a size limit, for `make check`: once committed, every clone downloads them forever.

Run: `python -m tests.kit.tracked`
"""

import shutil
import subprocess
import sys
from pathlib import Path

LIMIT_BYTES = 500_000


def too_large(root: Path, limit_bytes: int = LIMIT_BYTES) -> list[str]:
    """Return a line for each tracked file above the limit.

    Raises:
        LookupError: there is no git, or no repository.
    """
    git = shutil.which("git")
    if git is None:
        raise LookupError("git is not installed")
    command = [git, "-C", str(root), "ls-files", "-z"]
    listed = subprocess.run(command, cwd=root, capture_output=True, check=False)
    if listed.returncode:
        raise LookupError(
            listed.stderr.decode(errors="replace").strip() or "git does not list the files"
        )
    paths = [
        root / name for name in listed.stdout.decode("utf-8", "surrogateescape").split("\0") if name
    ]
    sizes = [(path, path.lstat().st_size) for path in paths if path.is_symlink() or path.exists()]
    return [
        f"{path.relative_to(root)}: {size:,} bytes" for path, size in sizes if size > limit_bytes
    ]


def main(root: Path) -> int:
    """Print the files that are too large and return the exit code."""
    try:
        found = too_large(root)
    except LookupError as error:
        print(f"The sizes of tracked files were not checked: {error}.")
        return 0
    for each in found:
        print(
            f"{each}, and a tracked file has at most {LIMIT_BYTES:,}. To take it out: git rm --cached",
            each.split(":")[0],
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path.cwd()))
