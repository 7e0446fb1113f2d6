"""An agent stays open while someone uses it; then its lock is free, for this process and others."""

from pathlib import Path

import pytest

from agent_core import Workspace
from agent_core.base.errors import AgentBusy
from tests.kit import Say, scripted


async def test_the_end_of_its_block_closes_an_agent(tmp_path: Path) -> None:
    async with Workspace.open(tmp_path) as workspace, Workspace.open(tmp_path) as elsewhere:
        for name in ("main", "other"):
            async with await workspace.agent(name):
                with pytest.raises(
                    AgentBusy, match="in use by this process, which has opened it before"
                ) as busy:
                    await workspace.agent(name)
                assert "close it first" in busy.value.fix
            async with await elsewhere.agent(name) as agent:
                assert agent.name == name


async def test_an_agent_that_nobody_holds_any_more_is_closed(tmp_path: Path) -> None:
    with scripted([Say("One."), Say("Two.")]) as model:
        flags = {"model.base_url": model.base_url, "model.name": "scripted"}
        async with Workspace.open(tmp_path, flags=flags) as workspace:
            agent = await workspace.agent()
            assert [event async for event in agent.turn("hello")]
            del agent
            again = await workspace.agent()
            assert [message.text for message in await again.history()] == ["hello", "One."]
            assert [event async for event in again.turn("and again")]


async def test_a_second_close_does_nothing(tmp_path: Path) -> None:
    async with Workspace.open(tmp_path) as workspace:
        agent = await workspace.agent()
        await agent.aclose()
        again = await workspace.agent()
        await agent.aclose()
        with pytest.raises(AgentBusy):
            await workspace.agent()
        assert again.name == agent.name
