"""`make check` fails on a large tracked file, and reports if git cannot tell."""

import subprocess
from pathlib import Path

import pytest

from tests.kit.tracked import LIMIT_BYTES, main

ROOT = Path(__file__).parents[2]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository without a commit."""
    git(tmp_path, "init", "-q")
    return tmp_path


def git(root: Path, *arguments: str) -> None:
    """Run git in a folder."""
    subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True)


def test_a_large_tracked_file_is_named(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "engine.whl").write_bytes(bytes(LIMIT_BYTES + 1))
    (repository / "small.txt").write_bytes(bytes(LIMIT_BYTES))
    assert main(repository) == 0
    git(repository, "add", ".")
    assert main(repository) == 1
    assert capsys.readouterr().out.startswith("engine.whl: 500,001 bytes, and a tracked file has at most 500,000.")


def test_a_file_that_is_gone_is_not_looked_at(repository: Path) -> None:
    (repository / "engine.whl").write_bytes(bytes(LIMIT_BYTES + 1))
    git(repository, "add", ".")
    (repository / "engine.whl").unlink()
    assert main(repository) == 0


def test_where_git_cannot_tell_it_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert main(tmp_path) == 0
    monkeypatch.setenv("PATH", "")
    assert main(tmp_path) == 0
    assert [line[:44] for line in capsys.readouterr().out.splitlines()] == [
        "The sizes of tracked files were not checked:"
    ] * 2


def test_make_check_looks_at_the_sizes() -> None:
    assert "\t$(BIN)/python -m tests.kit.tracked\n" in (ROOT / "Makefile").read_text("utf-8")
