"""The real program; every interpreter and system program that it starts records its arguments and environment."""

import os
import pty
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.kit.levels import lend

ROOT = Path(__file__).resolve().parents[2]
SECRETS = {
    "OPENAI_API_KEY": "sk-planted-0001",
    "KNAPPER_SECRET_FOO": "planted-0002-secret",
    "AWS_SECRET_ACCESS_KEY": "planted-0003-aws",
    "GITHUB_TOKEN": "planted-0004-github",
    "DATABASE_URL": "postgres://user:planted-0005@db/x",
}
_SYSTEM = (
    "uname",
    "file",
    "lsb_release",
    "rustc",
    "ldconfig",
    "gcc",
    "git",
    "ld",
    "objdump",
    "ed-of-mine",
)
_NOTE = '#!/bin/sh\n{ echo PROGRAM "$0" "$@"; export -p; } > %s/$$-%s\n'


class Launched:
    """A folder of notes, and the program started so that its children write them."""

    def __init__(self, folder: Path) -> None:
        self._bin, self._notes = folder / "bin", folder / "notes"
        for made in (self._bin, self._notes):
            made.mkdir()
        for name in _SYSTEM:
            self._put(name, _NOTE % (self._notes, name))
        python = self._put(
            "recording-python", _NOTE % (self._notes, "python") + f'exec {sys.executable} "$@"\n'
        )
        self._launcher = self._bin / "launch.py"
        started = "from knapper.__main__ import main\nmain()\n"
        self._launcher.write_text(f"import sys\nsys.executable = {str(python)!r}\n{started}")

    def run(self, *arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run one command to its end."""
        around = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
        path = {"PATH": f"{self._bin}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
        command = [sys.executable, str(self._launcher), *arguments]
        given: Mapping[str, str] = {**around, **path, **SECRETS, **variables}
        if own := variables.get("XDG_DATA_HOME"):
            lend(Path(own))
        screen, keyboard = pty.openpty()  # a terminal: without one, no editor is opened
        try:
            return subprocess.run(
                command,
                cwd=cwd,
                env=given,
                capture_output=True,
                text=True,
                timeout=50,
                stdin=keyboard,
            )
        finally:
            os.close(screen)
            os.close(keyboard)

    @property
    def notes(self) -> list[str]:
        """Return what each child was given."""
        return [path.read_text() for path in self._notes.iterdir()]

    @property
    def leaks(self) -> list[str]:
        """Return the secrets that a child was given, with the child."""
        return [note.split("\n", 1)[0] for note in self.notes if "planted-000" in note]

    def _put(self, name: str, text: str) -> Path:
        file = self._bin / name
        file.write_text(text)
        file.chmod(file.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        return file
