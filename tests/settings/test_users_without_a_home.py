"""Without a home folder every command reports it with a fix, without a traceback; nothing is written elsewhere."""

import os
import subprocess
import sys
from pathlib import Path
from shutil import copytree

import pytest

from tests.kit.program import knapper

NOBODYS = "~nobody_is_called_so/x"
MISSING = [
    ["init", "made"],
    ["secrets", "set", "KEY"],
    ["models", "list"],
    ["run", "--model", "tour", "--message", "hi"],
    ["functions", "call", "count_words", "--args", "{}"],
    ["agents", "list"],
    ["doctor"],
]
UNKNOWN = [
    ["models", "get", "qwen2.5-coder-0.5b", "--from", NOBODYS],
    ["sources", "add", NOBODYS],
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace made by a user with a home."""
    root = tmp_path_factory.mktemp("made")
    done = knapper("init", cwd=root, environment={"HOME": str(tmp_path_factory.mktemp("home"))})
    assert done.returncode == 0, done.stderr
    return root


def test_a_user_without_a_home_is_told_what_to_set(made: Path, tmp_path: Path) -> None:
    workspace = copytree(made, tmp_path / "workspace")
    for words in MISSING:
        done = knapper(
            *words, cwd=workspace, given="a value of some length\n", environment={"HOME": "nowhere"}
        )
        output = done.stdout + done.stderr
        assert not any(text in output for text in ("Traceback", "went wrong", "RuntimeError")), (
            output
        )
        assert "no home folder" in output or done.returncode == 0, (words, output)
        assert not (workspace / "nowhere").exists(), words


def test_a_path_below_the_home_of_nobody_is_told(made: Path, tmp_path: Path) -> None:
    workspace = copytree(made, tmp_path / "workspace")
    for words in UNKNOWN:
        done = knapper(*words, cwd=workspace, environment={"HOME": str(tmp_path / "home")})
        assert (done.returncode != 0, "RuntimeError" in done.stderr) == (True, False), words
        assert "nobody_is_called_so" in done.stderr, words


@pytest.mark.skipif(os.getuid() != 0, reason="only root becomes another user")
def test_a_user_that_the_system_does_not_know_is_told_which_variable_helps() -> None:
    names = ("data", "config", "cache")
    code = "import os, agent_core.base.user_folders as folders; os.setuid(4243)"
    for name in names:
        code += f"\ntry: folders.{name}_folder()\nexcept folders.NoHome as error: print(error)"
    done = subprocess.run(
        [sys.executable, "-c", code], env={}, capture_output=True, text=True, check=True
    )
    for name, told in zip(names, done.stdout.splitlines(), strict=True):
        assert "user 4243 has no home folder. Set HOME" in told
        assert f"XDG_{name.upper()}_HOME" in told


def test_the_variables_alone_are_enough(tmp_path: Path) -> None:
    home = {
        "HOME": "nowhere",
        "XDG_DATA_HOME": str(tmp_path / "d"),
        "XDG_CONFIG_HOME": str(tmp_path / "c"),
    }
    (tmp_path / "w").mkdir()
    for words in (
        ["init"],
        ["run", "--model", "tour", "--message", "hi"],
        ["secrets", "list"],
        ["models", "list"],
    ):
        done = knapper(*words, cwd=tmp_path / "w", environment=home)
        assert (done.returncode, "no home" in done.stderr) == (0, False), done.stderr
