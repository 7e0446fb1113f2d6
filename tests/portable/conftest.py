"""One process that reads files for all the examples of a property test."""

from collections.abc import AsyncIterator

import pytest_asyncio

from agent_core.base.reader_process import ReaderProcess
from agent_core.workspace.portable import reader_of_files


@pytest_asyncio.fixture
async def reader() -> AsyncIterator[ReaderProcess]:
    """A reader of agents' files, whose process goes on from file to file."""
    async with reader_of_files() as reader:
        yield reader
