"""One sandbox for the tests of a module; each call has its own worker anyway."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from sandbox import Sandbox
from tests.kit.levels import start

_HERE: Final = Path(__file__).parent  # another folder may have the same name


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def sandbox() -> AsyncIterator[Sandbox]:
    async with await start() as started:
        yield started


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == _HERE and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="package"), append=False)
