"""A workspace whose functions are worked on, without an agent: a new one for each test, one sandbox for each file."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from agent_core.functions.sandbox_client import SandboxClient
from agent_core.functions.service import FunctionService
from tests.workshop.support import Room, a_cage, room


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sandbox() -> AsyncIterator[SandboxClient]:
    """The sandbox of all the tests of a file."""
    async with a_cage() as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def here(tmp_path: Path, sandbox: SandboxClient) -> AsyncIterator[Room]:
    """An empty workspace in the test's folder."""
    async with room(tmp_path, sandbox) as opened:
        yield opened


@pytest.fixture
def shop(here: Room) -> FunctionService:
    """Its workshop."""
    return here.shop
