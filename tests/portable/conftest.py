"""One process that reads agents' files for these tests; tests that end it start their own."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from agent_core.base.programs import ReaderProcess
from agent_core.workspace.portable import reader_of_files
from tests.portable.support import SHARED

_HERE: Final = Path(__file__).parent  # another folder may have the same name


@pytest_asyncio.fixture(scope="package", loop_scope="package", autouse=True)
async def reader() -> AsyncIterator[ReaderProcess]:
    """A reader of agents' files whose process is reused from file to file."""
    async with reader_of_files() as reader:
        SHARED.append(reader)
        yield reader
        SHARED.remove(reader)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == _HERE and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="package"), append=False)
