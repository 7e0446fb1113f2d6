"""Our agents in Microsoft's Agent Framework. `make conformance` runs this where the framework is installed."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kit import Expect, Fail, Say, ScriptedModel, contains

from .conftest import GROWS, USES, Connect, run_program

pytest.importorskip(
    "agent_framework", reason="Agent Framework is not installed here: make conformance tries it"
)

from agent_framework import Content, Message, SupportsAgentRun
from agent_framework.orchestrations import GroupChatBuilder

from knapper_ext.frameworks.agent_framework import FrameworkAgent

SLOW = Say("It takes so very long. " * 400, pause_s=0.05)


def calls(messages: Any) -> list[tuple[str, str]]:
    """Return the calls and their results, in order."""
    contents = [content for message in messages for content in message.contents]
    return [
        (content.type, content.name if content.type == "function_call" else content.result)
        for content in contents
        if content.type.startswith("function_")
    ]


@pytest.mark.parametrize("way", ["in process", "socket"])
async def test_a_function_grown_in_a_group_chat_is_used_by_the_next_member(
    connected: Connect, way: str
) -> None:
    client = await connected(
        [GROWS, Say("I made it."), Expect(USES, contains("[from: ada]\nI made it.")), Say("5.")],
        way,
    )
    members = [FrameworkAgent("ada", client), FrameworkAgent("bob", client, agent="bob")]
    assert all(isinstance(member, SupportsAgentRun) for member in members)
    order = ["ada", "bob"]
    chat = GroupChatBuilder(
        participants=members,
        selection_func=lambda state: order[state.current_round % 2],
        max_rounds=2,
        intermediate_output_from="all_other",
    ).build()
    updates = [event.data async for event in chat.run("How many vowels?", stream=True)]
    contents = [content for update in updates for content in getattr(update, "contents", ())]
    assert [content.name for content in contents if content.type == "function_call"] == [
        "create_function",
        "count_vowels",
    ]
    spoken = {update.author_name for update in updates if getattr(update, "contents", ())}
    assert {"ada", "bob"} <= spoken


async def test_a_turn_is_whole_or_streamed_with_calls_thoughts_and_usage(
    connected: Connect,
) -> None:
    client = await connected([GROWS, Say("I made it.", thought="Hm."), USES, Say("5.")])
    agent = FrameworkAgent("ada", client)
    response = await agent.run("Make it.")
    assert response.text == "I made it."
    assert [kind for kind, _ in calls(response.messages)] == ["function_call", "function_result"]
    assert response.usage_details["input_token_count"] > 0
    stream: Any = agent.run([Message("user", ["Use it."])], stream=True)
    updates = [update async for update in stream]
    final = await stream.get_final_response()
    assert final.text == "".join(update.text for update in updates) == "5."
    assert calls(final.messages) == [("function_call", "count_vowels"), ("function_result", "5")]


async def test_a_canceled_run_ends_its_turn(connected: Connect) -> None:
    client = await connected([SLOW, Say("Now.")])
    agent, begun = FrameworkAgent("ada", client), asyncio.Event()
    stream: Any = agent.run("first words", stream=True)

    async def read() -> None:
        async for _ in stream:
            begun.set()

    running = asyncio.create_task(read())
    await begun.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert running.cancelled()
    assert not await client.interrupt()
    assert (await agent.run("second words")).text == "Now."


async def test_a_failure_is_a_reply_that_says_why(connected: Connect) -> None:
    client = await connected([Fail(400, "no such model")])
    response = await FrameworkAgent("ada", client).run("one")
    assert "my turn ended (failed)" in response.text
    assert "no such model" in response.text


async def test_every_kind_of_content_is_read_and_own_words_are_not_said_again(
    connected: Connect,
) -> None:
    client = await connected([Say("One.")])
    said = [
        Message("user", ["Look.", Content.from_uri("https://e.org/a.png", media_type="image/png")]),
        Message("assistant", ["I looked."], author_name="ada"),
        Message("assistant", ["A boat."], author_name="eve"),
    ]
    assert (await FrameworkAgent("ada", client).run(said)).text == "One."
    (told,) = [row["text"] for row in await client.messages() if row["kind"] == "user"]
    assert told == "[from: user]\nLook.\n[uri]\n\n[from: eve]\nA boat."


async def test_the_program_of_the_page_runs(
    tmp_path: Path, scripted: Callable[..., ScriptedModel]
) -> None:
    told = await run_program(
        "frameworks.agent_framework", scripted([Say("Five."), Say("None.")]), tmp_path
    )
    assert told == "Five.\nNone."
