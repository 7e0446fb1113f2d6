"""Each failure of an endpoint, in both modes: one message that says what to do, and a conversation that continues."""

import re
from collections.abc import Sequence

import pytest

from agent_core.base.events import Event, Warned
from agent_core.base.messages import Assistant
from tests.conftest import OpenDesk
from tests.kit import Cut, Fail, Raw, Say, Stall, Step
from tests.kit.desk import Desk, ended, of
from tests.kit.drawing import sampled
from tests.model.asking import chunks

BACK = {"native": Say("Back."), "constrained": Say('{"thought": "", "reply": "Back."}')}
BEGUN = {"native": "Once upon", "constrained": '{"thought": "", "reply": "Once upon'}
BOTH = pytest.mark.parametrize("mode", ["native", "constrained"])
SILENT_S = 1.5  # long enough for an answer on a busy machine


def warned(events: list[Event]) -> str:
    return "\n".join(each.text for each in of(Warned, events))


async def check_failures(desk: Desk, failures: Sequence[tuple[Step, int, str]]) -> None:
    """Check the sentence of each failure, and that the next message is answered."""
    for step, _, sentence in failures:
        events = await desk.say("Hello.")
        assert ended(events).reason == "failed", step
        assert re.search(sentence, warned(events)), warned(events)
        assert ended(await desk.say("Again.")).reply == "Back.", step


def script(failures: Sequence[tuple[Step, int, str]], mode: str) -> list[Step]:
    return [step for failing, times, _ in failures for step in (*[failing] * times, BACK[mode])]


async def test_what_was_shown_before_an_endpoint_broke_off_is_kept(at_desk: OpenDesk) -> None:
    script = [Cut("Once upon"), Say("Back.")]
    desk = await at_desk(script, model__retries=0, model__stream=True)
    assert ended(await desk.say("Tell.")).reason == "failed"
    assert ended(await desk.say("Go on.")).reply == "Back."
    said = [each.text for each in await desk.agent.history() if isinstance(each, Assistant)]
    assert said == ["Once upon […]", "Back."]


@pytest.mark.sampled
@BOTH
async def test_a_failure_is_one_sentence_that_says_what_to_do(at_desk: OpenDesk, mode: str) -> None:
    begun = BEGUN[mode]
    stalls = sampled(
        [Stall(9), Stall(9, begun)], 2, at=mode == "constrained"
    )  # each takes the whole time limit
    dead = b'data: {"error": {"message": "dead"}}\n\n'
    failures: list[tuple[Step, int, str]] = [
        # A request that is too large is tried again with less of the conversation.
        (Fail(413, "too large"), 3, "Shorten the conversation, or set `model.context_tokens`"),
        (Fail(401, "bad key"), 1, "The key was refused.*set OPENAI_API_KEY"),
        (Fail(404, "no such model"), 1, "Check that this is the endpoint's base URL"),
        (Fail(429, "slow down"), 1, "wait a little, or choose another model"),
        (Fail(500, "oops"), 1, "trouble is at the endpoint: try again later"),
        (Fail(503, b"<html>busy</html>"), 1, "a web page instead of JSON"),
        (Fail(400, "flagged", code="content_filter"), 1, "content filter refused it: say it in"),
        (Raw(b'{"choices": [', "application/json"), 1, "sent what is not JSON.*base URL"),
        (Raw(b"data: {oops\n\n"), 1, "sent what is not JSON"),
        (Cut(begun), 1, "broke off in the middle of the answer.*Try again"),
        (chunks({"content": begun}, finish=None, end=dead), 1, "dead.*try again later"),
        *((stall, 1, r"said nothing for 1\.5 s.*raise `model.timeout_s`") for stall in stalls),
    ]
    waits = {"model__retries": 0, "model__timeout_s": SILENT_S, "model__stream": True}
    await check_failures(await at_desk(script(failures, mode), model__mode=mode, **waits), failures)


@BOTH
async def test_an_answer_with_nothing_in_it_is_asked_for_again_and_then_said(
    at_desk: OpenDesk, mode: str
) -> None:
    failures: list[tuple[Step, int, str]] = [
        (Say(""), 2, "The model gave an empty answer twice. Ask again; at the prompt: /retry."),
        (Say("", finish="content_filter"), 2, "content filter withheld the reply"),
        (Say("", finish="length"), 3, "cut off 3 times at their longest. Ask for less"),
        (Raw(b'{"choices": []}', "application/json"), 2, "answered, but not with a comp"),
        (Fail(429, "no", {"Retry-After": "7200"}), 1, "says to wait 7200 s: try again then"),
    ]
    busy = Fail(503, "busy", {"retry-after": "0"})
    desk = await at_desk(
        [*script(failures, mode), busy, BACK[mode]], model__mode=mode, model__retries=1
    )
    await check_failures(desk, failures)
    events = await desk.say("Hello.")
    assert ended(events).reply == "Back."
    assert "Trying again" in of(Warned, events)[0].message


async def test_a_refusal_is_shown_and_says_what_to_do(at_desk: OpenDesk) -> None:
    desk = await at_desk([chunks({"refusal": "I will not."})], model__stream=True)
    events = await desk.say("Hello.")
    assert ended(events).reply == "I will not."
    assert "refused to answer: rephrase the request" in warned(events)
