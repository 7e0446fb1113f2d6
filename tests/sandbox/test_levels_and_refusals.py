"""The result of a start: the strongest level that works, or an error that names what is missing and the choices."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sandbox import Sandbox
from sandbox.confine.plan import LAYERS
from sandbox.processes.startup import try_level
from tests.attacks.session import sandbox_without
from tests.attacks.world import REPOSITORY
from tests.kit.levels import require_landlock, require_namespaces

NO_LANDLOCK, NO_NAMESPACES, NO_SECCOMP, NO_MOUNTS = "444:38", "272:1", "157:22", "165:1"


def started(*words: str) -> Any:
    """Return the result of a start for which the kernel refuses these calls."""
    command = [sys.executable, "-m", "tests.sandbox.lacking", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=REPOSITORY, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


async def test_the_level_of_this_machine_is_told_with_every_layer(sandbox: Sandbox) -> None:
    assert set(sandbox.layers) == set(LAYERS)
    lacking = [layer for layer, held in sandbox.layers.items() if not held]
    assert lacking == {"full": [], "apart": ["landlock"], "core": ["namespaces"]}[sandbox.level]


@pytest.mark.parametrize(
    ("lacking", "level", "layer"),
    [
        (NO_NAMESPACES, "core", "namespaces"),
        pytest.param(NO_MOUNTS, "core", "namespaces", marks=pytest.mark.slow),
        (NO_LANDLOCK, "apart", "landlock"),
    ],
)
def test_without_a_layer_the_level_that_holds_runs_and_says_so(
    lacking: str, level: str, layer: str
) -> None:
    (require_landlock if level == "core" else require_namespaces)("it is what holds then")
    found = started(lacking)
    assert (found["level"], found["works"]) == (level, True)
    assert found["layers"] == dict.fromkeys(LAYERS, True) | {layer: False}
    assert layer in found["missing"][0]


@pytest.mark.parametrize(
    ("lacking", "names"),
    [((NO_LANDLOCK, NO_NAMESPACES), "landlock"), ((NO_SECCOMP,), "no_new_privs")],
)
def test_without_a_layer_that_carries_nothing_runs_and_the_choices_are_named(
    lacking: Sequence[str], names: str
) -> None:
    found = started(*lacking)
    assert names in found["unavailable"]
    assert all(
        choice in found["unavailable"]
        for choice in ("WSL2", "container", "KNAPPER_SANDBOX_UNSAFE=true")
    )
    assert found["missing"]


def test_the_override_runs_with_what_holds_and_calls_itself_none() -> None:
    found = started(NO_LANDLOCK, "override")
    assert (found["level"], found["works"]) == ("none", True)
    assert found["layers"]["seccomp"] is True
    assert found["layers"]["landlock"] is False
    assert any("landlock" in reason for reason in found["missing"])


async def test_the_override_calls_itself_none_even_where_every_layer_holds() -> None:
    async with await Sandbox.start(packages=(), override=True) as unsafe:
        assert unsafe.level == "none"


async def test_the_self_test_sees_a_worker_that_is_not_confined() -> None:
    missing: list[str] = []
    async with sandbox_without(*LAYERS) as (bare, _pool):
        assert await try_level("core", bare.plan, missing) is None
    got_out = {line.split("'s ")[-1].removesuffix(" escaped") for line in missing}
    assert {"read", "write", "connect", "fork", "signal", "new code"} <= got_out
    assert _is_filtered() or "kernel:Seccomp" in got_out


def _is_filtered() -> bool:
    """Check whether this process is already behind a filter, which its children inherit."""
    return "Seccomp:\t2" in Path("/proc/self/status").read_text()


@pytest.mark.slow
def test_as_root_without_namespaces_the_workers_are_another_user_where_that_can_read_python() -> (
    None
):
    require_landlock("it is what holds then")
    if os.geteuid() != 0 or not Path("/usr/bin/python3").exists():
        pytest.skip("needs root, and a Python that everybody can read")
    command = ["/usr/bin/python3", "-B", "-m", "tests.sandbox.lacking", NO_NAMESPACES]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=REPOSITORY, timeout=60, check=False
    )
    if "SyntaxError" in done.stderr or "ImportError" in done.stderr:
        pytest.skip("that Python is too old")
    found = json.loads(done.stdout)
    assert (found["level"], found["works"], found["user"] not in (0, None)) == ("core", True, True)
