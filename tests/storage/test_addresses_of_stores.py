"""A store is opened by its address: a path, or a URL with the scheme of its database."""

from pathlib import Path

import pytest

from agent_core.base.errors import StorageError
from agent_core.storage import open_store
from tests.storage.support import ManualClock, say


async def test_each_form_of_an_address_opens_the_same_file(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "state.db"
    addresses: list[str | Path] = [path, str(path), f"sqlite:///{path}", "sqlite:///state.db"]
    for number, address in enumerate(addresses, 1):
        async with open_store(address, clock=clock) as store:
            await say(store, "hello")
        async with open_store(path, clock=clock) as store:
            assert [(agent.name, agent.turns) for agent in await store.agents()] == [("main", number)]


@pytest.mark.parametrize("address", ["mysql://here/agents", "sqlite:///", "sqlite://", "sqlite://state.db"])
def test_an_address_of_no_store_is_refused_with_what_would_do(clock: ManualClock, address: str) -> None:
    with pytest.raises(StorageError, match=r"sqlite:///PATH, or the path of a file") as refusal:
        open_store(address, clock=clock)
    assert address in str(refusal.value)
