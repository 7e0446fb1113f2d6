"""Each failure of an endpoint, in both modes: one message that says what to do, and a conversation that continues."""

import re
from collections.abc import Callable

import pytest

from agent_core.base.events import Event, Warned
from tests.conftest import OpenDesk
from tests.kit import Cut, Fail, Raw, Repeat, Say, Stall, Step
from tests.kit.desk import ended, of
from tests.kit.drawing import crossed
from tests.model.asking import chunks

BACK = {"native": Say("Back."), "constrained": Say('{"thought": "", "reply": "Back."}')}
MODES = ["native", "constrained"]
SILENT_S = 1.5  # long enough for an answer on a busy machine
BEGUN = {"native": "Once upon", "constrained": '{"thought": "", "reply": "Once upon'}


def warned(events: list[Event]) -> str:
    return "\n".join(each.text for each in of(Warned, events))


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("step", "sentence", "mode"),
    crossed(
        [
            pytest.param(Fail(401, "bad key"), "The key was refused.*set OPENAI_API_KEY", id="401"),
            pytest.param(Fail(402, "pay"), "no credit left: add some, or use another endpoint", id="402"),
            pytest.param(Fail(403, "no"), "The key may not do this.*Check OPENAI_API_KEY", id="403"),
            pytest.param(Fail(404, "no such model"), "Check that this is the endpoint's base URL", id="404"),
            pytest.param(Fail(408, "slow"), "gave up waiting: try again", id="408"),
            pytest.param(Fail(429, "slow down"), "wait a little, or choose another model", id="429"),
            pytest.param(
                Fail(429, "no", {"Retry-After": "7200"}), "says to wait 7200 s: try again then", id="429-long"
            ),
            pytest.param(Fail(500, "oops"), "trouble is at the endpoint: try again later", id="500"),
            pytest.param(Fail(503, b"<html>busy</html>"), "a web page instead of JSON", id="503-page"),
            pytest.param(
                Fail(400, "flagged", code="content_filter"), "content filter refused it: say it in", id="filter"
            ),
            pytest.param(Fail(413, "too large"), "Shorten the conversation, or set `model.context_tokens`", id="413"),
            pytest.param(
                Raw(b'{"choices": [', "application/json"), "sent what is not JSON.*base URL", id="invalid-json"
            ),
            pytest.param(Raw(b"<html>", "text/html"), "Check that this is the endpoint's base URL", id="a-page"),
            pytest.param(Raw(b"data: {oops\n\n"), "sent what is not JSON", id="invalid-chunk"),
            pytest.param(Stall(9), r"said nothing for 1\.5 s.*raise `model.timeout_s`", id="silence"),
        ],
        MODES,
    ),
)
async def test_a_failure_is_one_sentence_that_says_what_to_do(
    at_desk: OpenDesk, step: Step, sentence: str, mode: str
) -> None:
    times = 3 if sentence.startswith("Shorten") else 1  # retried with less of the conversation
    desk = await at_desk(
        [Repeat(step, times), BACK[mode]],
        model__mode=mode,
        model__retries=1 if "7200" in sentence else 0,
        model__timeout_s=SILENT_S,
        model__stream=True,
    )
    events = await desk.say("Hello.")
    assert ended(events).reason == "failed"
    assert re.search(sentence, warned(events)), warned(events)
    assert ended(await desk.say("Again.")).reply == "Back."


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("how", "sentence", "mode"),
    crossed(
        [
            pytest.param(Cut, "broke off in the middle of the answer.*Try again", id="cut"),
            pytest.param(lambda text: Stall(9, text), r"said nothing for 1\.5 s.*raise `model.timeout_s`", id="stall"),
            pytest.param(lambda text: chunks({"content": text}, finish=None, end=b""), "broke off in the", id="no-end"),
            pytest.param(
                lambda text: chunks({"content": text}, finish=None, end=b'data: {"error": {"message": "dead"}}\n\n'),
                "dead.*try again later",
                id="error-in-the-stream",
            ),
        ],
        MODES,
    ),
)
async def test_an_answer_that_breaks_off_is_said_and_not_taken_for_whole(
    at_desk: OpenDesk, how: Callable[[str], Step], sentence: str, mode: str
) -> None:
    desk = await at_desk(
        [how(BEGUN[mode]), BACK[mode]],
        model__mode=mode,
        model__retries=0,
        model__timeout_s=SILENT_S,
        model__stream=True,
    )
    events = await desk.say("Tell.")
    assert ended(events).reason == "failed"
    assert re.search(sentence, warned(events)), warned(events)
    assert ended(await desk.say("Again.")).reply == "Back."


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("step", "sentence", "mode"),
    crossed(
        [
            pytest.param(
                Say(""), "The model gave an empty answer twice. Ask again; at the prompt: /retry.", id="empty"
            ),
            pytest.param(Say("", finish="content_filter"), "content filter withheld the reply", id="filter"),
            pytest.param(Say("", finish="length"), "cut off 3 times at their longest. Ask for less", id="length"),
            pytest.param(Raw(b'{"choices": []}', "application/json"), "answered, but not with a comp", id="no-choices"),
        ],
        MODES,
    ),
)
async def test_an_answer_with_nothing_in_it_is_asked_for_again_and_then_said(
    at_desk: OpenDesk, step: Step, sentence: str, mode: str
) -> None:
    times = 3 if "3 times" in sentence else 2
    desk = await at_desk([Repeat(step, times=times), BACK[mode]], model__mode=mode, model__retries=1)
    events = await desk.say("Hello.")
    assert ended(events).reason == "failed"
    assert sentence in warned(events)
    assert ended(await desk.say("Again.")).reply == "Back."


async def test_a_refusal_is_shown_and_says_what_to_do(at_desk: OpenDesk) -> None:
    desk = await at_desk([chunks({"refusal": "I will not."})], model__stream=True)
    events = await desk.say("Hello.")
    assert ended(events).reply == "I will not."
    assert "refused to answer: rephrase the request" in warned(events)


async def test_a_model_that_is_not_there_is_answered_with_those_that_are(at_desk: OpenDesk) -> None:
    desk = await at_desk([], model__name="other")
    assert "It has `scripted`." in warned(await desk.say("Hello."))
