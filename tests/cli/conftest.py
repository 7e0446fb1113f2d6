"""Commands open workspaces and create none, so a test's folder is a workspace from the start."""

from pathlib import Path

import pytest


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder that is a workspace with the usual settings."""
    (tmp_path / "knapper.toml").touch()
    return tmp_path
