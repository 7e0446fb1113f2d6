"""A workspace whose functions are worked on, without an agent."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent_core.workshop import Workshop
from tests.workshop.support import Room, room


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Room]:
    """An empty workspace in the test's folder."""
    async with room(tmp_path) as opened:
        yield opened


@pytest.fixture
def shop(here: Room) -> Workshop:
    """Its workshop."""
    return here.shop
