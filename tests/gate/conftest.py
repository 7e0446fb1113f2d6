"""One sandbox and one gate per test file."""

from collections.abc import AsyncIterator

import pytest_asyncio

from agent_core.functions.gate import Gate
from sandbox import Limits
from tests.kit.levels import start


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gate() -> AsyncIterator[Gate]:
    """The gate over a real sandbox; a call ends after two seconds."""
    async with await start() as sandbox:
        yield Gate(sandbox, limits=Limits(wall_s=2))
