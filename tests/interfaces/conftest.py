"""Commands open workspaces and create none, so a test's folder is a workspace from the start."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interfaces.asking import service
from tests.interfaces.support import COUNT_VOWELS


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder that is a workspace with the usual settings."""
    (tmp_path / "knapper.toml").touch()
    return tmp_path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace with a folder for functions."""
    (tmp_path / "functions").mkdir()
    return tmp_path


@pytest.fixture
def grown(folder: Path) -> Path:
    """A workspace with one function."""
    (folder / "functions" / "words.py").write_text(COUNT_VOWELS)
    return folder


@pytest.fixture
def place() -> Iterator[str]:
    """The address of the weather service."""
    with service() as found:
        yield found
