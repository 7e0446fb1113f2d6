"""Long answers and arguments of earlier turns are shown by their beginning, once and for all, and can be read again."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

from agent_core.base.messages import Answer, Assistant, Call, Message
from agent_core.context.history import of_the_past
from sandbox import Sandbox
from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Script, Seen, Step, Wanted, scripted
from tests.kit.desk import answers
from tests.kit.desk import desk as opened_desk
from tests.kit.heartbeat import MOST_MS, heartbeat
from tests.kit.pace import slowness

CODE = (
    "lines = [\n"
    + "".join(f"    'Line {number} of the program.',\n" for number in range(60))
    + "]\nlines"
)
RUN = Ask(Wanted("run_program", {"code": CODE}, id="call_of_it"))
SHORT = Ask(Wanted("run_program", {"code": "1 + 1"}))


def sent(seen: Seen) -> tuple[str, str]:
    """Return the argument and the answer of the first call in a request."""
    call = next(message for message in seen.messages if message.get("tool_calls"))["tool_calls"][0]
    answer = next(message for message in seen.messages if message["role"] == "tool")
    assert call["id"] == answer["tool_call_id"]
    return json.loads(call["function"]["arguments"])["code"], answer["content"]


async def test_a_turn_is_whole_until_the_next_one_is_over_and_can_be_read_again(
    at_desk: OpenDesk,
) -> None:
    names: list[str] = []

    def read(seen: Seen) -> Step:
        names.extend(
            re.search(r"read_on\(name='([\w-]+)', page=1\)", text)[1]  # type: ignore[index]
            for text in sent(seen)
        )
        return Ask(*(Wanted("read_on", {"name": name, "page": 1}) for name in names))

    here = await at_desk(
        [RUN, Say("Sixty."), SHORT, Say("Two."), read, Say("Read.")], model__context_tokens=64_000
    )
    whole = answers(await here.say("Run it."))[0]
    await here.say("And 1 + 1?")
    assert [sent(seen) for seen in here.model.requests[1:4]] == [(CODE, whole)] * 3
    read_again = answers(await here.say("Which lines were it?"))
    code, answer = sent(here.model.requests[4])
    assert (code[:50], answer[:50]) == (CODE[:50], whole[:50])
    assert max(len(code), len(answer)) < 320
    assert f"{len(CODE):,} characters in all" in code
    assert CODE in read_again[0]
    assert whole in read_again[1]


async def test_what_a_model_was_sent_stays_within_a_turn_and_after_a_restart(
    tmp_path: Path, one_sandbox: Sandbox
) -> None:
    steps: list[Step] = [
        RUN,
        Say("Sixty."),
        SHORT,
        Say("Two."),
        SHORT,
        SHORT,
        Say("Two."),
        Say("Again."),
        Say("Again."),
    ]
    with scripted(steps) as model:
        async with opened_desk(tmp_path, model, one_sandbox, model__context_tokens=64_000) as here:
            for text in ("Run it.", "And 1 + 1?", "Again?", "More?"):
                await here.say(text)
        async with opened_desk(tmp_path, model, one_sandbox, model__context_tokens=64_000) as here:
            await here.say("And now?")
    third = [seen.messages[1:] for seen in model.requests[4:]]
    for before, after in pairwise(third):
        assert after[: len(before)] == before
    assert "characters in all" in third[0][1]["tool_calls"][0]["function"]["arguments"]


CALLS: list[tuple[str, dict[str, Any] | str, str, bool]] = [
    ("create_function", {"function_name": "a", "code": "x" * 900}, "", True),
    ("create_function", {"function_name": "a", "code": "x" * 900}, '{"id":"theirs"}', True),
    ("edit_function", {"changes": [{"old_text": "x" * 300, "new_text": "y" * 300}] * 2}, "", True),
    ("look", {"a" * 5 + str(number): "x" * 100 for number in range(20)}, "", True),
    ("look", "{'a': '" + "x" * 900, "", True),
    ("create_function", {"code": "x" * 700}, "", False),
    ("send_message", {"message": "x" * 900}, "", False),
    (
        "create_function",
        {"code": "x" * 900},
        '{"extra_content":{"google":{"thought_signature":"c2ln"}}}',
        False,
    ),
]


def test_only_long_arguments_that_nobody_signed_are_shown_by_their_beginning() -> None:
    for name, arguments, extra, is_shorter in CALLS:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        message = Assistant(
            "Well.",
            (Call("c1", name, text, extra),),
            "",
            ('{"reasoning_content":"I add."}',),
            "here",
        )
        shown = of_the_past(message, 77, 0, 800)
        assert isinstance(shown, Assistant)
        assert (shown.reasoning, shown.source, shown.text) == (message.reasoning, "here", "Well.")
        assert (shown.calls[0].id, shown.calls[0].name, shown.calls[0].extra) == ("c1", name, extra)
        assert (len(shown.calls[0].arguments) < 500) is is_shorter, arguments
        if is_shorter:
            assert "read_on(name='text-4d', page=1)" in "".join(
                json.loads(shown.calls[0].arguments).values()
            )
        else:
            assert shown == message


def test_an_answer_of_which_only_a_page_is_stored_is_named_with_its_full_length() -> None:
    message: Message = Answer("c1", "look", "x" * 12_000)
    shown = of_the_past(message, 77, 90_000, 800)
    assert isinstance(shown, Answer)
    assert "90,000 characters in all" in shown.text
    assert of_the_past(Answer("c1", "look", "x" * 800), 77, 0, 800).text == "x" * 800


async def test_a_page_of_long_calls_of_an_earlier_reply_does_not_hold_up_the_event_loop(
    at_desk: OpenDesk,
) -> None:
    many = json.dumps(
        {"text": [["aaaaaaa"]] * 70_000}
    )  # nearly the longest arguments that a call may have
    names: list[str] = []
    steps: Script = [
        Ask(*(Wanted("nothing_there", many) for _ in range(5))),
        Say("Nothing."),
        lambda _: Ask(Wanted("read_on", {"name": names[0], "page": 2})),
        Repeat(Say("Done.")),
    ]
    here = await at_desk(steps)
    await here.say("Go.")
    (first, *_) = await here.workspace.store.history("main", kinds=("assistant",))
    names.append(f"text-{first.seq:x}")
    async with heartbeat() as stall:
        (page,) = answers(await here.say("Read it."))
    assert "aaaaaaa" in page
    assert stall.cpu_ms <= MOST_MS * slowness(), stall


async def test_long_calls_of_all_replies_are_shortened_beside_the_event_loop(
    at_desk: OpenDesk,
) -> None:
    many = json.dumps({"text": [["a"]] * 2_300})  # as much of each as is shown in its own turn
    calls = Ask(*(Wanted("nothing_there", many) for _ in range(200)))
    steps: Script = [calls, calls, Repeat(Say("Done."))]
    here = await at_desk(steps, model__context_tokens=8_000_000)
    for text in ("Go.", "On."):
        await here.say(text)
    async with heartbeat() as stall:
        await here.say("And on.")
    assert "characters in all" in str(here.model.requests[-1].messages)
    assert stall.cpu_ms <= MOST_MS * slowness(), stall
