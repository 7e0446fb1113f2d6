"""AutoGen's own tests of teams, from its source distribution, with our agents as members."""

import os
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.peers.__main__ import installed

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
NAME: Final = "autogen-suite"
_AUTOGEN: Final = "autogen-agentchat==0.7.5"
_FILES: Final = (
    *(
        "test_group_chat.py",
        "test_group_chat_nested.py",
        "test_group_chat_graph.py",
        "test_task_runner_tool.py",
    ),
    *("test_magentic_one_group_chat.py", "test_society_of_mind_agent.py"),
)
_SUITE_S: Final = 1_800
_OPTIONS: Final = (
    *(
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        f"{__package__}.autogen_members",
        "-W",
        "ignore",
        "--timeout",
        "120",
    ),
    *(
        "-o",
        "asyncio_default_test_loop_scope=session",
        "-o",
        "asyncio_default_fixture_loop_scope=session",
    ),
)


def run_suite() -> str:
    """Run them and return how many passed.

    Raises:
        OSError: they are not available here; says why.
        AssertionError: some failed.
    """
    python = str(installed("autogen", HERE))
    with tempfile.TemporaryDirectory(prefix="autogen-") as folder:
        tests = _tests(python, Path(folder))
        done = subprocess.run(
            [python, "-m", "pytest", *_OPTIONS, *(str(tests / name) for name in _FILES)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=_SUITE_S,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr
    return done.stdout.strip().rpartition("\n")[2]


def _tests(python: str, folder: Path) -> Path:
    name = _AUTOGEN.partition("=")[0]
    command = [
        python,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--no-binary",
        name,
        _AUTOGEN,
        "--dest",
        str(folder),
    ]
    got = subprocess.run(command, capture_output=True, text=True, check=False)
    archives = [*folder.glob("*.tar.gz")]
    if not archives:
        raise OSError(f"its source cannot be had: {''.join(got.stderr.strip().splitlines()[-1:])}")
    with tarfile.open(archives[0]) as archive:
        archive.extractall(folder, filter="data")
    return next(folder.glob("*/tests"))
