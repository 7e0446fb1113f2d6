"""Every attempt of `attempts/`, as whoever runs the tests and as an ordinary user, at both levels."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from sandbox import Sandbox
from sandbox.pool import SPARES
from tests.attack import arena

in_one_loop = pytest.mark.asyncio(loop_scope="module")

_NOBODY = 65534


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["full", "core"])
async def attacked(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Sandbox, arena.World]]:
    with arena.world(request.param) as world:
        async with arena.sandbox_at(request.param) as sandbox:
            if isinstance(sandbox, str):
                pytest.skip(f"this machine has no level {request.param}: {sandbox}")
            yield sandbox, world


@in_one_loop
@pytest.mark.parametrize(
    ("module", "function"), [pytest.param(*each, id=f"{each[0]}-{each[1]}") for each in arena.attempts()]
)
async def test_an_attempt_reaches_nothing_outside_its_worker(
    attacked: tuple[Sandbox, arena.World], module: str, function: str
) -> None:
    sandbox, world = attacked
    _outcome, breaches = await arena.attack(sandbox, world, module, function)
    assert breaches == []


@in_one_loop
async def test_after_all_attempts_no_process_is_left(attacked: tuple[Sandbox, arena.World]) -> None:
    sandbox, world = attacked
    await arena.attack(sandbox, world, "processes", "become_a_daemon")
    waiting_parent_and_zygote = 2 if sandbox.level == "full" else 1
    assert len(arena.zygotes_of(os.getpid())) <= waiting_parent_and_zygote + SPARES


@in_one_loop
async def test_the_arena_notices_attempts_where_no_layer_holds() -> None:
    dangerous = (
        "repository",
        "standard_library",
        "host_would_import",
        "password",
        "device",
        "cgroup",
        "control_groups",
    )
    safe = [(m, f) for m, f in arena.attempts() if m == "files" and not any(word in f for word in dangerous)]
    with arena.world("full") as world:
        async with arena.sandbox_without_layers() as sandbox:
            noticed = [f for m, f in safe if (await arena.attack(sandbox, world, m, f))[1]]
    assert {"read_a_secret_by_path", "write_outside", "change_the_mode", "read_the_victims_environment"} <= set(noticed)


@pytest.mark.parametrize("level", ["full", "core"])
def test_an_ordinary_user_is_as_safe_as_root(level: str) -> None:
    python = _python_for_everybody()
    command = ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups", python, "-B"]
    done = subprocess.run(
        [*command, "-m", "tests.attack.arena", level], capture_output=True, text=True, cwd=arena.REPOSITORY, check=False
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    if "" in results:
        pytest.skip(f"an ordinary user has no level {level} here: {results['']}")
    assert {name: breaches for name, breaches in results.items() if breaches} == {}


def _python_for_everybody() -> str:
    if os.geteuid() != 0:
        pytest.skip("the tests already run as an ordinary user")
    # That it can start itself shows that nothing was read with what `setpriv` still held when it began.
    code = "import sys; sys.path.insert(0, sys.argv[1]); import sandbox, subprocess"
    code += "; subprocess.run([sys.executable, '-c', ''], check=True); assert sys.version_info >= (3, 11)"
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        probe = ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups", python, "-B", "-c", code]
        if Path(python).exists() and not subprocess.run([*probe, arena.REPOSITORY], capture_output=True).returncode:
            return python
    pytest.skip("no Python ≥ 3.11 and copy of this repository that an ordinary user can read")
