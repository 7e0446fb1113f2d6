"""The program on a system without some parts of Linux, as far as a stand-in can simulate it."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from knapper.terminal.dialog import TerminalAnswers
from knapper_ext.portable.component import lacks
from tests.kit.levels import lend, require_landlock
from tests.kit.sources import function_text

pytestmark = pytest.mark.timeout(600)  # the first one builds the component
REPOSITORY = Path(__file__).parents[2]
FUNCTION = function_text("double(number: int) -> int", "Double a number.", "return 2 * number")


def elsewhere(*command: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Run a command in an interpreter without what other systems do not have, with the user's folders below `cwd`."""
    environment = {
        "PYTHONPATH": str(REPOSITORY),
        "PATH": os.environ["PATH"],
        "HOME": str(cwd),
        "NO_COLOR": "1",
    }
    start = [sys.executable, "-m", "tests.kit.elsewhere", *command]
    return subprocess.run(
        start, cwd=cwd, capture_output=True, text=True, env=environment, timeout=100, check=False
    )


@pytest.fixture(scope="module")
def component() -> None:
    """Build the component of such a system once: the processor is unknown there, so it is not this machine's."""
    if not lacks():
        start = [sys.executable, "-m", "tests.kit.elsewhere", "--build"]
        subprocess.run(start, cwd=REPOSITORY, timeout=1300, check=True)


@pytest.fixture
def workspace(tmp_path: Path, component: None) -> Path:
    """A folder with one function."""
    lend(tmp_path / ".local" / "share", always=True)
    (tmp_path / "knapper.toml").touch()
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "sums.py").write_text(FUNCTION)
    return tmp_path


def test_every_module_is_imported(tmp_path: Path) -> None:
    done = elsewhere("--import", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_function_is_listed_called_and_grown_in_a_turn(workspace: Path) -> None:
    require_landlock("without a second wall a person has to say yes to the level portable")
    listed = elsewhere("functions", "list", cwd=workspace)
    assert (listed.returncode, "double" in listed.stdout) == (0, True), listed.stderr
    sandbox = json.loads(elsewhere("doctor", "--json", cwd=workspace).stdout)["sandbox"]
    if sandbox["level"] == "none":  # no level runs functions without fork
        turn = elsewhere("run", "--model", "tour", "--message", "hello", cwd=workspace)
        assert (turn.returncode, "tour" in turn.stdout) == (0, True), turn.stderr
        pytest.skip(f"needs level portable: {sandbox['missing'][0]}")
    called = elsewhere("functions", "call", "double", "--args", '{"number": 21}', cwd=workspace)
    assert "42" in called.stdout, called.stderr
    turn = elsewhere(
        "run", "--model", "tour", "--message", "how many vowels are in queueing?", cwd=workspace
    )
    assert (turn.returncode, "5" in turn.stdout) == (0, True), turn.stderr
    once = elsewhere("run", "--once", "--model", "tour", "--message", "hello", cwd=workspace)
    assert (once.returncode, "tour" in once.stdout) == (0, True), once.stderr


class _WithoutReaders(asyncio.SelectorEventLoop):
    """The part of Windows' event loop that matters here: it watches no descriptor."""

    def add_reader(self, *_any: object) -> None:
        raise NotImplementedError


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal is opened")
def test_an_answer_is_awaited_where_the_event_loop_cannot_watch_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keyboard, terminal = os.openpty()

    async def answer() -> str | None:
        asyncio.get_running_loop().call_later(0.2, os.write, keyboard, b"yes\n")
        return await TerminalAnswers().answer("Go on? ")

    with (
        os.fdopen(terminal) as stdin,
        os.fdopen(keyboard, "wb"),
        asyncio.Runner(loop_factory=_WithoutReaders) as runner,
    ):
        monkeypatch.setattr(sys, "stdin", stdin)
        assert runner.run(answer()) == "yes\n"
