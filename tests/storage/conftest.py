"""The contract tests run on both databases; PostgreSQL is skipped if no server can be started."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from agent_core.storage import Store, open_store
from tests.storage.support import ManualClock

BACKENDS = ("postgresql", "sqlite")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=BACKENDS)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store."""
    if request.param == "sqlite":
        return str(tmp_path / "state.db")
    return str(request.getfixturevalue("database"))


@pytest.fixture
async def open_again(address: str, clock: ManualClock) -> AsyncIterator[Callable[[], Store]]:
    """Open another handle on the same state, as another process would."""
    async with AsyncExitStack() as handles:

        def open_one() -> Store:
            store = open_store(address, clock=clock)
            handles.push_async_callback(store.close)
            return store

        yield open_one


@pytest.fixture
def store(open_again: Callable[[], Store]) -> Store:
    return open_again()


@pytest.fixture
async def comparing(store: Store) -> None:
    """Skip a test if its server has no pgvector, so vectors cannot be compared."""
    if trouble := await store.vector_trouble():
        pytest.skip(trouble)
