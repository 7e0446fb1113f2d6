"""A workspace in which nobody is asked unless a test adds a human, and a separate home for the user's key."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from agent_core.functions.sandbox_client import SandboxClient
from sandbox import Sandbox
from tests.functions.support import Room, a_cage, lent, room
from tests.kit.levels import lend

from .support import FETCHES, weather_service

__all__ = ["lent"]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def sandbox(one_sandbox: Sandbox) -> AsyncIterator[SandboxClient]:
    """The client of the sandbox for all tests of a file, which keeps what it compiled and its grants' processes."""
    async with a_cage(one_sandbox) as opened:
        yield opened


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own data folder, outside of every workspace."""
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))
    lend(folder)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    return folder


@pytest.fixture
async def here(tmp_path: Path, sandbox: SandboxClient) -> AsyncIterator[Room]:
    """A workspace with a folder of three numbers."""
    (tmp_path / "data").mkdir()
    for number in (1, 2, 3):
        (tmp_path / "data" / str(number)).write_text(str(number))
    async with room(tmp_path, sandbox) as opened:
        yield opened


@pytest.fixture(scope="module")
def host() -> Iterator[str]:
    """The address of a small service."""
    with weather_service() as found:
        yield found


@pytest.fixture
def code(host: str) -> str:
    """Return a function that calls the service."""
    return FETCHES.replace("{HOST}", host)
