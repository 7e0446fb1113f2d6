"""Modes at the doors: a policy travels with a message, and a token gets no more than it has anyway."""

import asyncio
from typing import Any

import pytest

from tests.kit import Repeat, Say
from tests.kit.waiting import until_it_is

from .conftest import Serve, Served, ends

MESSAGES = "/api/v1/agents/main/messages"


async def policies(server: Served) -> list[tuple[str, str]]:
    history = await server.workspace.store.history("main")
    found = [entry.payload["policy"] for entry in history if "policy" in entry.payload]
    return [(policy["mode"], policy["growth"]) for policy in found]


async def sent(server: Served, client: Any, **more: str) -> int:
    heard = asyncio.create_task(server.frames(ends(1), after=await server.last()))
    answer = await client.post(MESSAGES, json={"text": "Go.", **more})
    if answer.status_code == 202:
        await heard
    heard.cancel()
    await asyncio.gather(heard, return_exceptions=True)
    return int(answer.status_code)


async def test_a_policy_stands_in_the_journal_of_the_turn_that_its_message_began(
    served: Serve,
) -> None:
    server = await served([Repeat(Say("Done."))])
    assert await sent(server, server.client, mode="plan", growth="off") == 202
    assert await sent(server, server.client, mode="task") == 202
    assert await sent(server, server.client) == 202
    assert await policies(server) == [("plan", "off"), ("task", "on"), ("ask", "on")]
    assert await sent(server, server.client, mode="wild") == 422


@pytest.mark.parametrize(
    ("more", "gets"),
    [({"mode": "plan"}, "plan"), ({"mode": "task"}, ""), ({"growth": "off"}, "ask"), ({}, "ask")],
)
async def test_a_token_narrows_and_never_widens(
    served: Serve, more: dict[str, str], gets: str
) -> None:
    server = await served([Repeat(Say("Done."))] if gets else [])
    program = await server.as_("program", "chat")
    assert await sent(server, program, **more) == (202 if gets else 403)
    assert [mode for mode, _ in await policies(server)] == ([gets] if gets else [])


async def test_a_task_of_the_workspace_is_none_for_a_token_that_answers_no_questions(
    served: Serve,
) -> None:
    server = await served([Repeat(Say("Done."))], turn__mode="task")
    for scopes in (("chat",), ("chat", "approve")):
        program = await server.as_(f"p{len(scopes)}", *scopes)
        assert await sent(server, program) == 202
    assert [mode for mode, _ in await policies(server)] == ["ask", "task"]


async def test_a_message_that_is_sent_again_has_the_policy_that_it_had(served: Serve) -> None:
    server = await served([Repeat(Say("Done."))])
    program = await server.as_("program", "chat")
    assert await sent(server, program, mode="plan", growth="off") == 202
    heard = asyncio.create_task(server.frames(ends(1), after=await server.last()))
    assert (await program.post("/api/v1/agents/main/retry")).status_code == 202
    await heard
    assert await policies(server) == [("plan", "off")], "the turn that was removed is not told of"


async def test_a_token_that_gets_no_task_does_not_join_one(served: Serve) -> None:
    server = await served([Say("Done.", pause_s=0.5), Say("Done, too.")])
    program = await server.as_("program", "chat")
    heard = asyncio.create_task(server.frames(ends(2), after=await server.last()))
    await server.client.post(MESSAGES, json={"text": "Go.", "mode": "task"})
    await until_it_is(lambda: server.model.requests)
    assert (await program.post(MESSAGES, json={"text": "And this."})).status_code == 202
    await heard
    assert await policies(server) == [("task", "on"), ("ask", "on")]
