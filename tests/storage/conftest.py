"""The contract tests run against every backend that is listed here."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from agent_core.storage import Store, open_store
from tests.storage.support import ManualClock

BACKENDS: dict[str, Callable[[Path, ManualClock], Store]] = {
    "sqlite": lambda folder, clock: open_store(folder / "state.db", clock=clock),
}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=sorted(BACKENDS))
async def open_again(
    request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock
) -> AsyncIterator[Callable[[], Store]]:
    """Opens one more handle on the same state, as another process would."""
    async with AsyncExitStack() as handles:

        def open_one() -> Store:
            store = BACKENDS[request.param](tmp_path, clock)
            handles.push_async_callback(store.close)
            return store

        yield open_one


@pytest.fixture
def store(open_again: Callable[[], Store]) -> Store:
    return open_again()
