"""In an ordinary unprivileged container, functions run at level `core`, and `doctor` reports what is missing."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.attacks.world import REPOSITORY
from tests.kit.levels import require_landlock, require_namespaces
from tests.kit.sources import function_text

FUNCTION = "\n\n".join(
    [
        "import asyncio\n",
        function_text(
            "double(number: int) -> int",
            "Double a number.\n\nArgs:\n    number: Any.",
            "return 2 * number",
        ),
        function_text(
            "async double_in_time(number: int) -> int",
            "Double a number, or give up after five seconds.\n\nArgs:\n    number: Any.",
            "async with asyncio.timeout(5):  # needs the current task\n    return double(number)",
        ),
    ]
)


def inside(*command: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Run our command as in a container, under the user of these tests."""
    around = [
        sys.executable,
        "-m",
        "tests.sandbox.container",
        sys.executable,
        "-m",
        "knapper",
        *command,
    ]
    environment = {
        "PYTHONPATH": str(REPOSITORY),
        "PATH": os.environ["PATH"],
        "HOME": str(cwd),
        "NO_COLOR": "1",
    }
    return subprocess.run(
        around, cwd=cwd, capture_output=True, text=True, env=environment, timeout=100, check=False
    )


def test_doctor_names_the_level_what_is_missing_and_what_holds_the_resources(
    tmp_path: Path,
) -> None:
    require_landlock("it is what holds in a container")
    require_namespaces("the stand-in for a container closes the control groups in one")
    done = inside("doctor", "--json", cwd=tmp_path)
    assert done.returncode == 1, done.stderr  # there is no model
    report = json.loads(done.stdout)
    assert report["ok"]
    sandbox = report["sandbox"]
    assert sandbox["level"] == "core"
    assert [layer for layer, holds in sandbox["layers"].items() if not holds] == ["namespaces"]
    assert sandbox["missing"] == ["namespaces: unshare: Operation not permitted"]
    held = {name: how for name, how in sandbox["resources"].items() if name != "workers"}
    assert set(held) == {"memory", "pids", "cpu"}
    assert all(how.startswith("limits of each worker: ") for how in held.values()), held


def test_a_function_is_called_there(tmp_path: Path) -> None:
    require_landlock("it is what holds in a container")
    (tmp_path / "knapper.toml").touch()
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "sums.py").write_text(FUNCTION)
    done = inside("functions", "call", "double_in_time", "--args", '{"number": 21}', cwd=tmp_path)
    assert "42" in done.stdout, done.stderr
