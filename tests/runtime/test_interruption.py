"""The user can end a turn at any time, or send a message while it runs; the history stays valid."""

import asyncio
from collections.abc import Callable
from contextlib import closing

import apsw

from agent_core.base.clock import Clock
from agent_core.base.events import CallStarted, Event, FunctionAsked, Progress, Text, TurnStarted
from agent_core.base.messages import Answer, Assistant, User
from agent_core.storage import open_store
from tests.conftest import OpenDesk
from tests.kit import Ask, Expect, Say, Stall, Wanted, contains
from tests.kit.desk import Desk, ended, of, outcomes

SLEEPER = '''\
import time


def sleeper(seconds: float) -> float:
    """Sleep.

    Args:
        seconds: How long.
    """
    time.sleep(seconds)
    return seconds
'''


async def say_until(
    desk: Desk, message: str, seen: Callable[[Event], bool], then: str = ""
) -> list[Event]:
    """Run one turn; when `seen` holds for an event, interrupt it or send a message."""
    events = []
    async for event in desk.agent.turn(message):
        events.append(event)
        if seen(event):
            await (desk.agent.say_during_turn(then) if then else desk.agent.interrupt())
    return events


async def with_sleeper(desk: Desk) -> None:
    await desk.save("sleeper.py", SLEEPER)


async def test_an_interruption_ends_a_running_call_and_answers_those_that_wait(
    at_desk: OpenDesk,
) -> None:
    calls = [
        Wanted("sleeper", {"seconds": 60}),
        *(Wanted("list_functions", {"page": page}) for page in (1, 2)),
    ]
    desk = await at_desk([Ask(*calls), Say("Go on.")], sandbox__wall_s=90)
    await with_sleeper(desk)
    async with asyncio.timeout(20):
        started = lambda event: isinstance(event, CallStarted) and event.name == "sleeper"  # noqa: E731
        events = await say_until(desk, "Sleep.", started)
    assert ended(events).reason == "interrupted"
    answers = [each.text for each in await desk.agent.history() if isinstance(each, Answer)]
    assert (len(answers), "user stopped this call" in answers[0]) == (3, True), answers
    assert ended(await desk.say("And now?")).reason == "replied"


async def test_what_was_said_before_an_interruption_is_kept(at_desk: OpenDesk) -> None:
    desk = await at_desk([Stall(30, "Once upon")], model__stream=True)
    async with asyncio.timeout(20):
        events = await say_until(desk, "Tell.", lambda event: isinstance(event, Text))
    assert ended(events).reason == "interrupted"
    said = [each.text for each in await desk.agent.history() if isinstance(each, Assistant)]
    assert said[0].startswith("Once upon")


async def test_a_message_sent_while_a_turn_runs_is_delivered_at_the_next_step(
    at_desk: OpenDesk,
) -> None:
    call = Ask(Wanted("sleeper", {"seconds": 0.1}))
    desk = await at_desk([call, Expect(Say("Both."), contains("And be quick."))])
    await with_sleeper(desk)
    events = await say_until(
        desk, "Go.", lambda event: isinstance(event, CallStarted), then="And be quick."
    )
    assert ended(events).reply == "Both."
    assert [each.text for each in await desk.agent.history() if isinstance(each, User)] == [
        "Go.",
        "And be quick.",
    ]


async def test_leaving_the_events_early_ends_the_turn_and_frees_the_agent(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk(
        [Ask(Wanted("sleeper", {"seconds": 60})), Say("Here.")], sandbox__wall_s=90
    )
    await with_sleeper(desk)
    turn = desk.agent.turn("Sleep.")
    async with asyncio.timeout(20):
        async for event in turn:
            if isinstance(event, CallStarted):
                break
        await turn.aclose()
        assert ended(await desk.say("Still there?")).reply == "Here."


async def test_a_turn_that_another_process_cancelled_ends_at_its_next_entry(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([Ask(Wanted("list_functions")), Say("Back.")])
    other = open_store(desk.workspace.root / ".knapper" / "state.db", clock=Clock())
    events = []
    async for event in desk.agent.turn("Go."):
        events.append(event)
        if isinstance(event, TurnStarted):
            await other.cancel(event.turn)
    await other.close()
    assert ended(events).reason == "interrupted"
    assert ended(await desk.say("Still there?")).reply == "Back."


SLOW_TO_ASK = '''\
import time


def ask_late(self) -> str:
    """Say how far it is, and ask a moment later."""
    self.progress(1, 2)
    time.sleep(0.5)
    self.progress(2, 2)
    return self.ask("Now?", default="yes", after=0)
'''


async def test_an_entry_that_was_stored_while_its_waiter_was_canceled_is_the_turns_own(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([Ask(Wanted("ask_late")), Say("Back.")])
    await desk.save("late.py", SLOW_TO_ASK)
    state = desk.workspace.root / ".knapper" / "state.db"
    loop = asyncio.get_running_loop()
    events = []
    with closing(apsw.Connection(str(state))) as other:
        async for event in desk.agent.turn("Go."):
            events.append(event)
            if isinstance(event, Progress) and event.done == 1:
                other.execute("begin immediate")  # the question will wait in the store's thread
            elif isinstance(event, Progress):
                loop.call_later(0.7, lambda: loop.create_task(desk.agent.interrupt()))
                loop.call_later(1.2, other.execute, "rollback")
    assert ended(events).reason == "interrupted"
    journal = await desk.workspace.store.load(ended(events).turn)
    stored = [entry for entry in journal if entry.kind == FunctionAsked.type]
    assert len(of(FunctionAsked, events)) == len(stored)
    assert len(outcomes(events)) == 1
    assert ended(await desk.say("Still there?")).reply == "Back."
