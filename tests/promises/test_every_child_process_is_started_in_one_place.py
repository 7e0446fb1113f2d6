"""Only `agent_core/base/programs.py` starts programs: isolated, in a separate folder and environment."""

import inspect
from pathlib import Path

import pytest

from agent_core.base import programs
from sandbox.processes import launch
from tests.promises.starts import starts

ROOT = Path(__file__).resolve().parents[2]
PLACE = "agent_core/base/programs.py"
# A fork of the warm process, which is no program; and a check that must fail.
EXCEPTIONS = {
    "sandbox/processes/launch.py": {
        "subprocess.Popen",
        "sys.executable",
    },  # stand-alone, and follows the same rule
    "agent_core/access/packages/resolution.py": {
        "sys.executable"
    },  # a command for the user to type
    "agent_core/base/own_installation.py": {"sys.executable"},  # the same
    "knapper_ext/mcp/connection.py": {
        "sys.executable"
    },  # a folder that the started program may read
    "knapper_ext/mcp/confined.py": {"os.execvp"},  # becomes the server that the user approved
    "sandbox/processes/zygote.py": {"os.fork"},
    "knapper_ext/portable/level.py": {
        "sys.executable",
        "?.subprocess_exec",
    },  # like `launch`, in both respects
    "knapper_ext/portable/component.py": {
        "sys.executable",
        "subprocess.run",
    },  # the same, for the steps of a build
    "sandbox/confine/opened_grants.py": {"os.?"},  # constants that not every system has
    "knapper_ext/portable/memory_files.py": {
        "os.?"
    },  # in a component, where no program can be started
    "sandbox/inside/canaries.py": {"os.fork", "os.execv"},
}
FILES = [
    path
    for room in ("agent_core", "knapper_ext", "meta_functions", "sandbox")
    for path in sorted((ROOT / room).rglob("*.py"))
]


def test_no_module_but_one_starts_a_program() -> None:
    found = {
        f"{name}:{start.line} {start.name}"
        for path in FILES
        for name in [path.relative_to(ROOT).as_posix()]
        for start in starts(path.read_text("utf-8"))
        if name != PLACE and start.name not in EXCEPTIONS.get(name, ())
    }
    assert found == set()


@pytest.mark.parametrize("place", [PLACE, "sandbox/processes/launch.py"])
def test_whatever_starts_a_program_says_the_folder_and_the_environment(place: str) -> None:
    calls = [
        start
        for start in starts((ROOT / place).read_text("utf-8"))
        if start.name != "sys.executable"
    ]
    assert {start.name for start in calls} <= {"asyncio.create_subprocess_exec", "subprocess.Popen"}
    called = [start for start in calls if start.keywords]
    assert len(called) == 1
    assert all(
        {"env", "cwd"} <= start.keywords and "shell" not in start.keywords for start in called
    )


def test_who_has_a_program_started_has_to_say_both_too() -> None:
    parameters = inspect.signature(programs.start).parameters
    for name in ("env", "cwd"):
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[name].default is inspect.Parameter.empty


def test_every_interpreter_is_isolated_from_the_folder_and_the_user() -> None:
    assert programs.isolated_python()[1] == "-I"
    assert all({"-P", "-s"} <= {*command} for command in (programs.python(), launch._PYTHON))


PLANTED = [
    "import os\nos.system('x')",
    "from os import system as s\ns('x')",
    "from os import *\nsystem('x')",
    "import os\nrun = os.posix_spawn",
    "import os\ngetattr(os, 'system')('x')",
    "import os\nother = os\nother.execv('x', [])",
    "import subprocess\nsubprocess.run(['x'], env={}, cwd='/')",
    "def f():\n    from subprocess import Popen\n    Popen('x')",
    "__import__('subprocess').run('x')",
    "import importlib\nimportlib.import_module('subprocess').run('x')",
    "import sys\nsys.modules['subprocess'].run('x')",
    "from asyncio import create_subprocess_exec as start\nstart('x')",
    "loop.subprocess_exec(Protocol, 'x')",
    "from multiprocessing import Process\nProcess(target=f)",
    "import webbrowser\nwebbrowser.open('x')",
    "import sys\ncommand = [sys.executable, '-m', 'pip']",
]


def test_a_planted_violation_is_found_and_nothing_else() -> None:
    assert [text for text in PLANTED if starts(text) == []] == []
    harmless = "import asyncio, platform\nasyncio.subprocess.PIPE\nplatform.machine()\n'subprocess os.system'"
    assert starts(harmless) == []
