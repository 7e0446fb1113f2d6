"""What a sandbox must not break: the standard library as people use it."""

import ast
import socket
import time
from pathlib import Path

import pytest

from sandbox import FunctionCall, Job, Returned, Sandbox
from tests.kit.levels import start
from tests.sandbox.support import modules

_TEXT = Path(__file__).with_name("needs.py").read_text()
_NEEDS = [
    node.name
    for node in ast.parse(_TEXT).body
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
]


@pytest.mark.parametrize("need", _NEEDS)
async def test_the_standard_library_works_inside(sandbox: Sandbox, need: str) -> None:
    outcome = await sandbox.run(Job(modules(needs=_TEXT), "needs", FunctionCall(need, {})))
    assert isinstance(outcome, Returned), outcome
    assert outcome.value == 1


async def test_a_worker_has_the_zone_of_the_host_and_not_its_name(sandbox: Sandbox) -> None:
    text = """
    import os, socket, time

    def f() -> list[list[int | str]]:
        return [[time.timezone, *time.tzname], [socket.gethostname(), os.uname().nodename]]
    """
    outcome = await sandbox.run(Job(modules(asks=text), "asks", FunctionCall("f", {})))
    assert isinstance(outcome, Returned), outcome
    name = "sandbox" if sandbox.layers["namespaces"] else socket.gethostname()
    assert outcome.value == [[time.timezone, *time.tzname], [name, name]]


async def test_a_zone_that_the_environment_names_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    world = modules(zone="import time\ndef f() -> int:\n    return time.localtime().tm_gmtoff\n")
    async with await start(packages=()) as far:
        outcome = await far.run(Job(world, "zone", FunctionCall("f", {})))
    assert getattr(outcome, "value", outcome) == 9 * 3600
