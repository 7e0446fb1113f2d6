"""The doors open workspaces and make none: a test's folder is one from the start."""

from pathlib import Path

import pytest


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder that is a workspace, with the settings that are usual."""
    (tmp_path / "knapper.toml").touch()
    return tmp_path
