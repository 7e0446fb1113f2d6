"""A workspace for work on functions, without an agent: a new one per test, one client of the sandbox per file."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from agent_core.functions.sandbox_client import SandboxClient
from agent_core.functions.service import FunctionService
from sandbox import Sandbox
from tests.functions.support import Room, a_cage, lent, room

__all__ = ["lent"]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def sandbox(one_sandbox: Sandbox) -> AsyncIterator[SandboxClient]:
    """The client of the sandbox for all tests of a file, which keeps what it compiled and its grants' processes."""
    async with a_cage(one_sandbox) as opened:
        yield opened


@pytest.fixture
async def here(tmp_path: Path, sandbox: SandboxClient) -> AsyncIterator[Room]:
    """An empty workspace in the test's folder."""
    async with room(tmp_path, sandbox) as opened:
        yield opened


@pytest.fixture
def shop(here: Room) -> FunctionService:
    """The function service of the workspace."""
    return here.shop
