"""One workspace for each test, with functions to debug."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent_core.workspace.workspace import Workspace
from sandbox import Sandbox

from .support import SUMMING


@pytest.fixture
async def workspace(tmp_path: Path, one_sandbox: Sandbox) -> AsyncIterator[Workspace]:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "sums.py").write_text(SUMMING, "utf-8")
    async with Workspace.open(tmp_path, sandbox=one_sandbox) as opened:
        yield opened
