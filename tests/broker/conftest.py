"""One sandbox for these tests; each call has its own worker anyway."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from sandbox import Sandbox
from tests.broker.reach import Reach, reacher
from tests.broker.servers import Certificate, Server, certificate, serving
from tests.kit.levels import start

_HERE: Final = Path(__file__).parent  # another folder may have the same name


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def sandbox() -> AsyncIterator[Sandbox]:
    async with await start() as started:
        yield started


@pytest.fixture
def reach(sandbox: Sandbox) -> Reach:
    return reacher(sandbox)


@pytest_asyncio.fixture(loop_scope="package")
async def server() -> AsyncIterator[Server]:
    """A server that says hello to every client."""
    async with serving() as started:
        yield started


@pytest_asyncio.fixture(loop_scope="package")
async def canary() -> AsyncIterator[Server]:
    """A server that was not granted; tests check that nothing connected to it."""
    async with serving() as started:
        yield started


@pytest.fixture(scope="session")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificate(tmp_path_factory.mktemp("trusted"), "DNS:api.example.org,DNS:localhost")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == _HERE and pytest_asyncio.is_async_test(item):
            item.add_marker(pytest.mark.asyncio(loop_scope="package"), append=False)
