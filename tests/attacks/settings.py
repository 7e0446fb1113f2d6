"""The settings of a run: each level, as root and as an ordinary user, in calls, at import time and in programs."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from sandbox.processes.startup import LEVELS
from tests.attacks.rows import Row, rows
from tests.attacks.world import REPOSITORY, SECRET, VARIABLE

Results = dict[str, dict[str, str]]


class Setting(NamedTuple):
    """A level and a user."""

    level: str
    user: str

    def __str__(self) -> str:
        return f"`{self.level}`, {self.user}"


SETTINGS: Final = [Setting(level, user) for level in LEVELS for user in ("root", "ordinary user")]
WHOEVER: Final = "root" if os.geteuid() == 0 else "ordinary user"
CARRIERS: Final = {"": [*SETTINGS, Setting("portable", WHOEVER)], "ahead": SETTINGS}
CARRIERS["programs"] = CARRIERS[""]
_NOBODY: Final = "65534"


class Unable(Exception):
    """This machine does not support the setting."""


def rows_of(carrier: str) -> list[Row]:
    """Return the rows that run in calls (""), while a package is imported (`ahead`) or in `programs`."""
    return [row for row in rows() if not (carrier == "ahead" and row.not_ahead)]


def results(setting: Setting, wanted: Mapping[str, Sequence[str]]) -> dict[str, Results]:
    """Return what rows reached by carrier, those that are wanted by it or all, in one sandbox; empty if contained."""
    as_whom = _as_ordinary_user() if setting.user != "root" else [sys.executable]
    if setting.user == "root" and os.geteuid() != 0:
        raise Unable("the tests do not run as root")
    words = [word for carrier, labels in wanted.items() for word in (f"--{carrier}", *labels)]
    done = subprocess.run(
        [*as_whom, "-B", "-m", "tests.attacks.session", setting.level, *words],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        env={**os.environ, VARIABLE: SECRET},
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    found: dict[str, Results] | str = json.loads(done.stdout)
    if isinstance(found, str):
        raise Unable(found)
    return found


def leaks(found: Results) -> Iterator[tuple[Row | None, dict[str, str]]]:
    """Yield the rows that reached something, except those that work everywhere by design."""
    named = {row.label: row for row in rows()}
    for label, reached in found.items():
        row = named.get(label)
        if reached and (row is None or row.seen != "inherent"):
            yield row, reached


@cache
def _as_ordinary_user() -> list[str]:
    """Return the start of a command that runs Python as nobody: the tests' own, or one that everybody can read."""
    if os.geteuid() != 0:
        return [sys.executable]
    become = ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"]
    # It can start itself, so it read nothing with the privileges that `setpriv` still held at first.
    code = "import sys; sys.path.insert(0, sys.argv[1]); import sandbox, subprocess"
    code += "; subprocess.run([sys.executable, '-c', ''], check=True); assert sys.version_info >= (3, 11)"
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        probe = [*become, python, "-B", "-c", code, str(REPOSITORY)]
        if (
            Path(python).exists()
            and not subprocess.run(probe, capture_output=True, check=False).returncode
        ):
            return [*become, python]
    raise Unable("no Python ≥ 3.11 and copy of this repository that an ordinary user can read")
