"""Commands open workspaces and create none, so a test's folder is a workspace from the start."""

from pathlib import Path

import pytest

from tests.cli.support import remembering


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder that is a workspace with the usual settings."""
    (tmp_path / "knapper.toml").touch()
    return tmp_path


@pytest.fixture
async def kept(tmp_path: Path) -> Path:
    """A workspace with an agent that has a history and memory."""
    return await remembering(tmp_path)
