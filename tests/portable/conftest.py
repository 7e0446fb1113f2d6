"""One process that reads files for all the examples of a property test."""

from collections.abc import AsyncIterator

import pytest_asyncio

from agent_core.portable import reader_of_files
from agent_core.reader_process import ReaderProcess


@pytest_asyncio.fixture
async def reader() -> AsyncIterator[ReaderProcess]:
    """A reader of agents' files, whose process goes on from file to file."""
    async with reader_of_files() as reader:
        yield reader
