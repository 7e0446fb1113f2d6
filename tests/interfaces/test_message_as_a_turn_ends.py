"""A message typed for a running turn that arrived as the turn ended."""

from pathlib import Path

from agent_core.interfaces.conversation import opened
from agent_core.interfaces.options import RunOptions
from agent_core.interfaces.slash import command, during
from agent_core.interfaces.ui import Voice
from tests.kit import Say, scripted


async def test_a_message_starts_a_turn_of_its_own_instead_of_waiting_for_the_next_message(tmp_path: Path) -> None:
    with scripted([Say("heard")]) as model:
        options = RunOptions(tmp_path, base_url=model.base_url, model="scripted")
        async with opened(options, Voice()) as talk:
            await during(talk, "one more thing")
            assert await talk.agent.waiting() == []
            assert [message.text for message in await talk.agent.history()] == ["one more thing", "heard"]


async def test_a_command_that_waited_runs_after_the_turn_that_nobody_typed(tmp_path: Path) -> None:
    with scripted([Say("awake")]) as model:
        options = RunOptions(tmp_path, base_url=model.base_url, model="scripted")
        async with opened(options, Voice(agrees=True), command) as talk:
            talk.busy = True
            await during(talk, "/new")
            talk.busy = False
            await talk.let_agent_begin()
            assert (talk.later, await talk.agent.history()) == ([], [])
