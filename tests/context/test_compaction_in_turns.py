"""Compaction within a turn: before the limit, on the endpoint's error, on request, and after a restart."""

import asyncio
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest

from agent_core.base.clock import Clock
from agent_core.base.messages import Message, Notice, User
from agent_core.context import PRESSURE
from agent_core.storage import SUMMARY, Post, open_store
from tests.conftest import OpenDesk
from tests.context.long_talk import in_json, journal, periods, talkative
from tests.kit import Ask, Fail, Repeat, Say, Seen, Stall, Step, Wanted, contains, scripted
from tests.kit.desk import Desk, desk, ended

TOO_LONG = Fail(
    400, "This model's maximum context length is 8192 tokens", code="context_length_exceeded"
)
WORDS = "Some words on wind and clouds. " * 40
SMALL = {"model__mode": "constrained", "model__context_tokens": 4_000}


async def fill(here: Desk, turns: int) -> None:
    for number in range(turns):
        assert (
            ended(await here.say(f"Question {number} of Hildur, about {number + 1800}.")).reason
            == "replied"
        )


def context(messages: list[Message]) -> list[str]:
    return [each.text for each in messages]


async def test_an_endpoint_that_refuses_the_length_is_asked_once_more_with_a_summary(
    at_desk: OpenDesk,
) -> None:
    here = await at_desk([*(Say(WORDS) for _ in range(4)), TOO_LONG, Say("Fine.")])
    await fill(here, 4)
    assert ended(await here.say("And now?")).reply == "Fine."
    assert "What happened:" in here.model.requests[-1].text
    assert len(here.model.requests) == 6


async def test_an_endpoint_that_never_takes_it_ends_the_turn_and_not_the_conversation(
    at_desk: OpenDesk,
) -> None:
    here = await at_desk(
        [*(Say(WORDS) for _ in range(3)), TOO_LONG, TOO_LONG, TOO_LONG, Say("Back.")]
    )
    await fill(here, 3)
    assert ended(await here.say("And now?")).reason == "failed"
    assert ended(await here.say("Again?")).reply == "Back."


async def test_a_model_that_gives_no_summary_stops_nothing_and_the_program_makes_one(
    tmp_path: Path,
) -> None:
    nothing: Iterator[Step] = cycle([Fail(400, "no"), Say(""), Say("no")])
    with scripted(
        [Repeat(talkative(in_json))], limit_tokens=4_000, summary=lambda _: next(nothing)
    ) as model:
        async with desk(tmp_path, model, **SMALL) as here:
            while len(model.summaries) < 4:
                await fill(here, 1)
                assert (
                    not model.summaries
                    or "Question 0 of Hildur, about 1800" in model.requests[-1].text
                )
        assert [message["role"] for message in model.summaries[0].messages] == ["system", "user"]


async def test_taking_back_the_turn_in_which_it_was_summed_up_brings_the_messages_back(
    tmp_path: Path,
) -> None:
    with scripted([Repeat(talkative(in_json))], limit_tokens=4_000) as model:
        async with desk(tmp_path, model, **SMALL) as here:
            seen: list[list[str]] = []
            while not any(
                each.startswith("The ") and "oldest messages" in each for each in (seen or [[]])[-1]
            ):
                await fill(here, 1)
                seen.append(context(await here.agent.history()))
            await here.agent.pop()
            left = [each for each in context(await here.agent.history()) if each != PRESSURE.text]
            assert left == [each for each in seen[-2] if each != PRESSURE.text]


async def test_a_summary_on_request_stands_for_the_older_part_and_goes_with_a_turn(
    at_desk: OpenDesk,
) -> None:
    here = await at_desk([Repeat(Say(WORDS))])
    await fill(here, 9)
    before = context(await here.agent.history())
    assert "A summary stands for" in await here.agent.summarize()
    first, *_ = await here.agent.history()
    assert isinstance(first, Notice)
    assert "conversation_search" in first.text
    assert len(here.model.summaries) == 1
    removed = await here.agent.pop()
    assert removed is not None
    assert removed.text == "Question 8 of Hildur, about 1808."
    assert context(await here.agent.history()) == before[:-2]


async def test_the_warning_comes_at_once_on_request_and_not_again_in_this_period(
    at_desk: OpenDesk,
) -> None:
    here = await at_desk([Say("Hello."), Say("I write it down."), Say("Yes.")])
    assert await here.agent.summarize() == "There is nothing to summarize yet."
    await fill(here, 1)
    await here.agent.session.post("notice", PRESSURE.text)
    events = [event async for event in here.agent.turn(None)]
    assert ended(events).reply == "I write it down."
    assert contains("Memory pressure")(here.model.requests[-1]) is None
    await fill(here, 1)
    assert here.model.requests[-1].text.count("Memory pressure") == 1


async def test_a_turn_longer_than_the_window_is_cut_inside_and_the_question_stays_in_sight(
    tmp_path: Path,
) -> None:
    def long_work(seen: Seen) -> Step:
        if len(model.requests) > 40:
            return in_json("Done.")
        wanted = f'{{"thought":"On.","call":{{"name":"list_functions","arguments":{{"page":{len(model.requests)}}}}}}}'
        return Say(wanted)

    with scripted([Repeat(long_work)], limit_tokens=4_000) as model:
        async with desk(tmp_path, model, **SMALL, turn__max_steps=60) as here:
            assert ended(await here.say("Find what Fenella lost in 1987.")).reply == "Done."
            assert all("Find what Fenella lost in 1987." in seen.text for seen in model.requests)
            assert not any(isinstance(each, User) for each in await here.agent.history())
    assert any(entry.kind == SUMMARY for entry in await journal(tmp_path))


@pytest.mark.slow
async def test_a_turn_is_cut_inside_over_responses_and_its_reasoning_goes_along(
    tmp_path: Path,
) -> None:
    def long_work(seen: Seen) -> Step:
        number = len(model.requests)
        items = seen.raw.get("input", ())
        reasons = [place for place, item in enumerate(items) if item.get("type") == "reasoning"]
        # Each item precedes the call that it led to: alone it would be rejected.
        assert all(items[place + 1].get("type") == "function_call" for place in reasons)
        kept.append(len(reasons))
        if number > 40:
            return Say("Done.")
        return Ask(
            Wanted("list_functions", {"pattern": "z" * 400 + str(number)}),
            thought=f"Step {number}.",
        )

    kept: list[int] = []
    over_responses = {
        "model__api": "responses",
        "model__context_tokens": 8_192,
        "turn__max_steps": 60,
    }
    with scripted([Repeat(long_work)], limit_tokens=8_192) as model:
        async with desk(tmp_path, model, **over_responses) as here:
            assert ended(await here.say("Find what Fenella lost in 1987.")).reply == "Done."
        async with desk(tmp_path, model, model__api="chat", model__context_tokens=8_192) as here:
            assert ended(await here.say("What was it?")).reply == "Done."
            assert "What happened:" in model.requests[-1].text
    assert model.summaries
    assert any(entry.kind == SUMMARY for entry in await journal(tmp_path))
    assert 2 < max(kept) < 40
    assert model.refusals == []


async def test_a_summary_that_was_asked_for_as_the_program_stopped_is_given_up(
    tmp_path: Path,
) -> None:
    with scripted([Say("Hello."), Say("Yes.")]) as model:
        async with desk(tmp_path, model) as here:
            await fill(here, 1)
        store = open_store(tmp_path / ".knapper" / "state.db", clock=Clock())
        await store.post(Post("main", SUMMARY, {}, due=0.0))
        assert await store.next("main", "a process that stopped")
        await store.close()
        async with desk(tmp_path, model) as here:
            assert here.agent.restored == ""
            assert len(await here.agent.history()) == 2
            await fill(here, 1)


@pytest.mark.slow
async def test_the_warning_is_not_repeated_by_a_program_that_starts_again_in_the_same_period(
    tmp_path: Path,
) -> None:
    with scripted([Repeat(talkative(in_json))], limit_tokens=4_000) as model:
        before: list[str] = []
        for _ in range(32):
            async with desk(tmp_path, model, **SMALL) as here:
                assert context(await here.agent.history()) == before
                await fill(here, 1)
                before = context(await here.agent.history())
    counts = periods(await journal(tmp_path))
    assert len(counts) > 2
    assert set(counts[:-1]) == {1}


async def test_a_summary_on_request_that_the_user_stops_changes_nothing(tmp_path: Path) -> None:
    asked, loop = asyncio.Event(), asyncio.get_running_loop()

    def slowly(_: Seen) -> Step:
        loop.call_soon_threadsafe(asked.set)
        return Stall(1)

    with scripted([Repeat(Say(WORDS))], summary=slowly) as model:
        async with desk(tmp_path, model) as here:
            await fill(here, 12)
            before = context(await here.agent.history())
            summing = asyncio.create_task(here.agent.summarize())
            await asked.wait()
            await here.agent.interrupt()
            assert await summing == "Stopped: the conversation is as it was."
            assert context(await here.agent.history()) == before
