"""The level that functions run at here, and tests that need another one: they are skipped, and counted at the end."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from sandbox import Sandbox

_REPOSITORY = Path(__file__).parents[2]
NEEDS = "needs another level than"
NO_LEVEL = "no level "
"""How a test that was to run at one level is skipped where it is not."""
NOTHING_RUNS = "The sandbox cannot be enforced here"
"""What the program says wherever a function was to run and there is no level."""


@cache
def level_here() -> str:
    """The level of this machine, found once by a start in a process of its own; `none` if there is none."""
    start = [sys.executable, "-m", "tests.sandbox.lacking"]
    done = subprocess.run(start, capture_output=True, text=True, cwd=_REPOSITORY, timeout=100, check=True)
    return str(json.loads(done.stdout).get("level", "none"))


def skip_here(why: str, level: str = "") -> None:
    """Skip the test, because of what this level, or that of this machine, lacks."""
    pytest.skip(f"{NEEDS} {level or level_here()}: {why}")


def require_functions() -> None:
    """Skip the test where no level holds."""
    if level_here() == "none":
        skip_here("a function has to run")


def require_landlock(why: str) -> None:
    """Skip the test where the kernel has no Landlock."""
    if level_here() not in ("full", "core"):
        skip_here(why)


def require_namespaces(why: str) -> None:
    """Skip the test where no namespaces can be made."""
    if level_here() not in ("full", "apart"):
        skip_here(why)


def require_root(sandbox: Sandbox, why: str) -> None:
    """Skip the test where workers have no root of their own."""
    if not sandbox.layers["namespaces"]:
        skip_here(why, sandbox.level)


def require_imports_ahead(sandbox: Sandbox) -> None:
    """Skip the test where a package is imported by each call."""
    if sandbox.level == "apart":
        skip_here("each call imports its packages", "apart")
