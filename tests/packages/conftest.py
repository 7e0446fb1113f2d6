"""A wheel index in a folder, configured for pip as a user would do it; no network."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_core.access.packages import Environment
from tests.functions.support import lent
from tests.kit.levels import lend
from tests.packages.support import ABACUS, BEADS, opened, placed, wheel

__all__ = ["lent"]


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of wheels; `abacus` needs `beads`."""
    folder = tmp_path / "index"
    folder.mkdir()
    for key, value in {
        "NO_INDEX": "1",
        "FIND_LINKS": str(folder),
        "CONFIG_FILE": "/dev/null",
    }.items():
        monkeypatch.setenv(f"PIP_{key}", value)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    lend(tmp_path / "data")
    wheel(folder, "abacus", "1.0", ABACUS, ["beads>=1"])
    wheel(folder, "beads", "2.0", BEADS)
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty workspace."""
    (tmp_path / "here").mkdir()
    return tmp_path / "here"


@pytest.fixture
def environment(index: Path, root: Path) -> Iterator[Environment]:
    """The packages of the workspace."""
    made = opened(root)
    yield made
    made.close()


@pytest.fixture
def ready(index: Path, root: Path) -> Path:
    """A workspace in which `abacus` is already installed, without pip."""
    placed(root, "abacus", files=ABACUS | BEADS)
    return root
