"""The start of every program that Knapper runs, in its own folder and environment; Python runs isolated.

A program neither imports nor executes anything from the current folder, and it inherits no key: it gets only the
variables on an allow-list. Only the user's own editor and shell get more, as their modules describe. (The sandbox,
which is independent, starts its processes by the same rule.)
"""

import asyncio
import os
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from .own_environment import absolute, places

_PASSED_ON: Final = ("LANG", "LC_ALL", "LC_CTYPE", "TZ")
_SEARCHED: Final = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


def variables(*more: str, around: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a program: its search paths, the language, and the named variables."""
    environment = os.environ if around is None else around
    passed_on = {name: environment[name] for name in (*_PASSED_ON, *more) if name in environment}
    searched = {name: path for name in _SEARCHED if (path := absolute(environment.get(name, "")))}
    return {**passed_on, **searched, "PATH": absolute(environment.get("PATH", "")) or os.defpath}


def variables_for_python(*more: str) -> dict[str, str]:
    """Return the same for a Python process that imports the packages of this process."""
    return {**variables(*more), "PYTHONPATH": os.pathsep.join(places())}


def python(*arguments: str) -> list[str]:
    """Return the command of this Python, without modules from the current folder or the user's site-packages."""
    return [sys.executable, "-P", "-s", "-B", "-X", "utf8", *arguments]


def isolated_python(*arguments: str) -> list[str]:
    """Return the same for a program that needs no package of this process; Python ignores its environment variables."""
    return [sys.executable, "-I", *arguments]


async def start(
    command: Sequence[str], *, env: Mapping[str, str], cwd: str | Path, **more: Any
) -> Process:  # Any: what asyncio takes
    """Start a program, by default in its own session, so that terminal keys such as Ctrl+C do not end it."""
    return await asyncio.create_subprocess_exec(*command, env=env, cwd=cwd, **{"start_new_session": True, **more})
