"""An observer of a turn sees a call's arguments while the model writes them; only complete calls run."""

import json

from agent_core.base.events import CallStarted, Writing
from tests.conftest import OpenDesk
from tests.kit import Ask, Say, Wanted
from tests.kit.desk import VOWELS, of

CREATE = {"function_name": "count_vowels", "function_code_with_docstring": VOWELS}


def written(events: list[Writing], place: int = 0) -> str:
    return "".join(event.arguments for event in events if event.place == place)


async def test_the_arguments_of_calls_come_in_pieces_before_the_calls(at_desk: OpenDesk) -> None:
    script = [
        Ask(Wanted("create_function", CREATE), Wanted("list_functions", {"page": 0})),
        Say("Made."),
    ]
    happened = await (await at_desk(script, model__stream=True)).say("Make it.")
    pieces, (first, second, *_) = of(Writing, happened), of(CallStarted, happened)
    assert (written(pieces), written(pieces, 1)) == (first.arguments, second.arguments)
    assert {(piece.place, piece.name) for piece in pieces} == {
        (0, "create_function"),
        (1, "list_functions"),
    }
    assert len(pieces) > 10
    assert happened.index(pieces[-1]) < happened.index(first)


async def test_a_constrained_step_shows_its_call_as_it_grows(at_desk: OpenDesk) -> None:
    step = Say(
        json.dumps(
            {"thought": "I write it.", "call": {"name": "create_function", "arguments": CREATE}}
        )
    )
    last = Say(json.dumps({"thought": "t", "reply": 'It says "call".'}))
    happened = await (
        await at_desk([step, last], model__mode="constrained", model__stream=True)
    ).say("Make it.")
    pieces, (call,) = of(Writing, happened), of(CallStarted, happened)
    assert json.loads(written(pieces)[:-2]) == json.loads(call.arguments) == CREATE
    assert (len(pieces) > 10, {piece.name for piece in pieces}) == (True, {"create_function"})


async def test_a_message_that_is_sent_by_a_call_is_not_shown_as_a_call(at_desk: OpenDesk) -> None:
    script = [Ask(Wanted("send_message", {"message": "Hello there."}), text="They greet me.")]
    desk = await at_desk(
        script,
        memory__preset="memgpt",
        model__mode="native",
        model__context_tokens=64_000,
        model__stream=True,
    )
    assert not of(Writing, await desk.say("Hi."))
