"""A store is opened by its address: a path, or a URL with the scheme of its database."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_core.base.errors import StorageError
from agent_core.storage import open_store
from tests.storage.support import ManualClock, say


@pytest.mark.parametrize(
    "address",
    [
        pytest.param(lambda path: path, id="a-path"),
        pytest.param(str, id="a-path-as-text"),
        pytest.param(lambda path: f"sqlite:///{path}", id="a-url"),
    ],
)
async def test_each_form_of_an_address_opens_the_same_file(
    tmp_path: Path, clock: ManualClock, address: Callable[[Path], str | Path]
) -> None:
    path = tmp_path / "state.db"
    async with open_store(address(path), clock=clock) as store:
        await say(store, "hello")
    async with open_store(path, clock=clock) as store:
        assert [agent.name for agent in await store.agents()] == ["main"]


async def test_a_url_with_three_slashes_names_a_file_below_the_current_folder(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with open_store("sqlite:///state.db", clock=clock):
        assert (tmp_path / "state.db").is_file()


@pytest.mark.parametrize("address", ["mysql://here/agents", "sqlite:///", "sqlite://", "sqlite://state.db"])
def test_an_address_of_no_store_is_refused_with_what_would_do(clock: ManualClock, address: str) -> None:
    with pytest.raises(StorageError, match=r"sqlite:///PATH, or the path of a file") as refusal:
        open_store(address, clock=clock)
    assert address in str(refusal.value)
