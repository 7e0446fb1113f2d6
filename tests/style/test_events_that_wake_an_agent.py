"""Boot, login, heartbeats and alerts: what wakes an agent of the MemGPT style, and how its model reads it."""

import asyncio
from pathlib import Path

import pytest

from agent_core.base.events import Text, TurnStarted, Warned
from agent_core.base.messages import Notice, User
from agent_core.workspace.workspace import Workspace
from tests.conftest import OpenDesk
from tests.kit import Ask, Expect, Repeat, Say, Wanted, contains, scripted
from tests.kit.desk import desk as a_desk
from tests.kit.desk import ended, of
from tests.style.support import WINDOW, memgpt, send, told, types

MEMGPT = {"memory__preset": "memgpt", "model__context_tokens": WINDOW}


async def test_a_new_agent_has_booted_the_user_has_logged_in_and_messages_are_packed(
    at_desk: OpenDesk,
) -> None:
    desk = await memgpt(at_desk, [send("Hello."), send("Again.")])
    await desk.say("Hi.")
    roles = [each["role"] for each in desk.model.requests[0].messages]
    assert roles == ["system", "user", "assistant", "tool", "user"]
    assert types(desk.model) == ["login", "user_message"]
    assert "first time" in told(desk.model)[0]["last_login"]
    await desk.say('Say "hé"\nto me.')
    assert types(desk.model) == ["login", "user_message", "user_message"]
    packed = told(desk.model)[-1]
    assert (packed["type"], packed["message"], packed["time"][:2]) == (
        "user_message",
        'Say "hé"\nto me.',
        "20",
    )
    assert [each.text for each in await desk.agent.history() if isinstance(each, User)][1:] == [
        'Say "hé"\nto me.'
    ]


async def test_a_turn_taken_back_boots_the_agent_anew(at_desk: OpenDesk) -> None:
    desk = await memgpt(at_desk, [send("Hello."), send("Hello.")])
    await desk.say("Hi.")
    removed = await desk.agent.pop()
    assert removed is not None
    assert removed.text == "Hi."
    await desk.say("Hi.")
    assert [each["role"] for each in desk.model.requests[1].messages][2:] == [
        "assistant",
        "tool",
        "user",
    ]


async def test_a_session_that_goes_on_begins_with_a_login_and_the_same_words_as_before(
    tmp_path: Path,
) -> None:
    with scripted([Repeat(send("Yes."))]) as model:
        for _ in range(2):
            async with a_desk(tmp_path, model, **MEMGPT) as desk:
                desk.agent.session.verify = False
                await desk.say("Hi.")
    first, second = (each.messages[1:] for each in model.requests)
    assert second[: len(first)] == first
    assert types(model) == ["login", "user_message", "login", "user_message"]
    assert told(model)[2]["last_login"][:2] == "20"


async def test_a_direct_agent_can_speak_first_too(at_desk: OpenDesk) -> None:
    replies = [
        Expect(Say("Welcome."), contains("first time")),
        Say("Hi."),
        Expect(Say("Again?"), contains("was: 20")),
    ]
    desk = await at_desk(replies)
    for message, reply in ((None, "Welcome."), ("Hello.", "Hi."), (None, "Again?")):
        if message is None:
            await desk.agent.session.post("login")
        assert ended([each async for each in desk.agent.turn(message)]).reply == reply


async def test_a_timed_heartbeat_wakes_an_agent_which_may_stay_silent(at_desk: OpenDesk) -> None:
    desk = await memgpt(at_desk, [Say("Nobody here. I wait.")], heartbeat__every_minutes=0.0005)
    await desk.agent.session.schedule()
    await asyncio.sleep(0.1)  # longer than the interval
    events = [each async for each in desk.agent.turn(None)]
    assert (of(TurnStarted, events)[0].event, ended(events).reason, ended(events).reply) == (
        "heartbeat",
        "replied",
        "",
    )
    assert of(Text, events) == []
    [warned] = of(Warned, events)
    assert "Turns that nobody watches may spend" in warned.message  # told once
    assert types(desk.model) == ["login", "heartbeat"]


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param({"memory__preset": "memgpt"}, id="none-are-set"),
        pytest.param({"heartbeat__every_minutes": 0.0005}, id="direct-style"),
    ],
)
async def test_where_there_are_no_heartbeats_nothing_wakes_the_agent(
    at_desk: OpenDesk, flags: dict[str, object]
) -> None:
    desk = await at_desk([], **flags)
    await desk.agent.session.schedule()
    await asyncio.sleep(0.1)
    assert [each async for each in desk.agent.turn(None)] == []


async def test_a_pause_is_taken_up_to_the_longest_that_is_set(at_desk: OpenDesk) -> None:
    pauses = {
        10: "No timed heartbeat for 10 minutes.",
        5000: "No timed heartbeat for 360 minutes, which is the longest",
        -3: "No timed heartbeat for 0 minutes.",
    }
    calls = [
        Ask(Wanted("pause_heartbeats", {"minutes": asked, "request_heartbeat": True}))
        for asked in pauses
    ]
    script = [step for call in calls for step in (call, send("Done."))]
    desk = await memgpt(at_desk, script)
    for says in pauses.values():
        await desk.say("Rest.")
        assert desk.model.requests[-1].answers[-1].startswith(says)


async def test_a_pause_outlasts_the_session_and_keeps_heartbeats_away(tmp_path: Path) -> None:
    pause = Ask(Wanted("pause_heartbeats", {"minutes": 10}))
    with scripted([pause]) as model:
        async with a_desk(
            tmp_path,
            model,
            model__context_tokens=WINDOW,
            memory__preset="memgpt",
            heartbeat__every_minutes=0.0005,
        ) as desk:
            desk.agent.session.verify = False
            await desk.say("Rest.")
    async with Workspace.open(tmp_path, flags={"heartbeat.every_minutes": 0.0005}) as workspace:
        agent = await workspace.agent()
        await agent.session.schedule()
        await asyncio.sleep(0.3)
        assert [each async for each in agent.turn(None)] == []
        assert agent.session.style.preset == "memgpt"


async def test_a_heartbeat_that_waits_does_not_count_as_a_message(at_desk: OpenDesk) -> None:
    desk = await memgpt(at_desk, [send("I think of you.")])
    await desk.agent.session.post("heartbeat", "somebody asked for it")
    assert await desk.agent.waiting() == []
    assert ended([each async for each in desk.agent.turn(None)]).reply == "I think of you."
    assert told(desk.model)[-1]["reason"] == "somebody asked for it"


async def test_what_the_program_tells_is_packed_as_an_alert(at_desk: OpenDesk) -> None:
    desk = await memgpt(at_desk, [send("Noted.")])
    await desk.agent.session.post("system", "The disk is nearly full.")
    assert [each async for each in desk.agent.turn(None)]
    alert = next(each for each in told(desk.model) if each["type"] == "system_alert")
    assert alert["message"] == "The disk is nearly full."
    assert any(
        isinstance(each, Notice) and each.text == alert["message"]
        for each in await desk.agent.history()
    )
