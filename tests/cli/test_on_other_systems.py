"""The program on a system without some parts of Linux, as far as a stand-in can simulate it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.portable.component import lacks
from tests.kit.levels import lend

pytestmark = pytest.mark.timeout(600)  # the first one builds the component
REPOSITORY = Path(__file__).parents[2]
FUNCTION = '''def double(number: int) -> int:
    """Double a number.

    Args:
        number: Any.
    """
    return 2 * number
'''


def elsewhere(*command: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command in an interpreter without what other systems do not have, with the user's folders below `cwd`."""
    environment = {"PYTHONPATH": str(REPOSITORY), "PATH": os.environ["PATH"], "HOME": str(cwd), "NO_COLOR": "1"}
    start = [sys.executable, "-m", "tests.kit.elsewhere", *command]
    return subprocess.run(start, cwd=cwd, capture_output=True, text=True, env=environment, timeout=100, check=False)


@pytest.fixture(scope="module")
def component() -> None:
    """Build the component of such a system once: the processor is unknown there, so it is not this machine's."""
    if not lacks():
        start = [sys.executable, "-m", "tests.kit.elsewhere", "--build"]
        subprocess.run(start, cwd=REPOSITORY, timeout=1300, check=True)


@pytest.fixture
def workspace(tmp_path: Path, component: None) -> Path:
    """A folder with one function."""
    lend(tmp_path / ".local" / "share")
    (tmp_path / "knapper.toml").touch()
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "sums.py").write_text(FUNCTION)
    return tmp_path


def require_functions(workspace: Path) -> None:
    """Skip the test if no level runs functions without fork."""
    sandbox = json.loads(elsewhere("doctor", "--json", cwd=workspace).stdout)["sandbox"]
    if sandbox["level"] == "none":
        pytest.skip(f"needs level portable: {sandbox['missing'][0]}")


def test_every_module_is_imported(tmp_path: Path) -> None:
    done = elsewhere("--import", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_functions_are_listed(workspace: Path) -> None:
    done = elsewhere("functions", "list", cwd=workspace)
    assert done.returncode == 0, done.stderr
    assert "functions/sums.py" in done.stdout or "double" in done.stdout


def test_a_turn_ends(workspace: Path) -> None:
    done = elsewhere("run", "--model", "tour", "--message", "hello", cwd=workspace)
    assert done.returncode == 0, done.stderr
    assert "tour" in done.stdout


def test_a_function_is_called(workspace: Path) -> None:
    require_functions(workspace)
    done = elsewhere("functions", "call", "double", "--args", '{"number": 21}', cwd=workspace)
    assert "42" in done.stdout, done.stderr


def test_a_function_grows_in_a_turn(workspace: Path) -> None:
    require_functions(workspace)
    done = elsewhere("run", "--model", "tour", "--message", "how many vowels are in queueing?", cwd=workspace)
    assert "5" in done.stdout, done.stderr
