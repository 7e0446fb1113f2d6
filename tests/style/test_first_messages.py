"""A new agent: its preset, persona and human, and the first reply that must have a thought and a message."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_core.base.errors import KnapperError
from agent_core.base.events import Warned
from agent_core.workspace.presets import named, preset, text_of
from tests.conftest import OpenDesk
from tests.kit import Ask, Expect, Repeat, Say, Step, Wanted, contains, scripted
from tests.kit.desk import desk as a_desk
from tests.kit.desk import ended, of
from tests.kit.heartbeat import MOST_MS, stall_of
from tests.kit.pace import slowness
from tests.style.support import memgpt, send

LISTS = Ask(Wanted("list_functions", {"request_heartbeat": True}), text="What have I?")
GOOD = send("Hello.", thought="A new face.")


BAD: Mapping[str, Step] = {
    "no thought": send("Hello."),
    "no message": Say("Hello."),
    "another call": LISTS,
    "an empty message": send(" \u200b\n", thought="A new face."),
    "a call as the message": send('send_message("Hello.")', thought="A new face."),
    "the mark of a template": send("Hello.<|im_end|>", thought="A new face."),
    "a call in the thought": send("Hello.", thought="conversation_search('Ada')"),
    "reserved words in the message": send("Inner monologue: hello.", thought="A new face."),
}


async def test_a_first_reply_that_lacks_something_is_asked_for_again(at_desk: OpenDesk) -> None:
    desk = await memgpt(at_desk, [step for bad in BAD.values() for step in (bad, GOOD)])
    for at, lacks in enumerate(BAD):
        agent = await desk.workspace.agent(f"agent{at}")
        last = ended([event async for event in agent.turn("Hi.")])
        assert (last.reply, last.steps, len(desk.model.requests)) == ("Hello.", 1, 2 * at + 2), (
            lacks
        )
        assert "Begin with a thought" in desk.model.requests[-1].text, lacks


async def test_a_first_reply_is_asked_for_four_times_and_then_the_turn_fails_and_says_why(
    at_desk: OpenDesk,
) -> None:
    desk = await memgpt(at_desk, [Repeat(send("Hello."), 4), GOOD], verify=True)
    events = await desk.say("Hi.")
    assert (ended(events).reason, ended(events).reply) == ("failed", "")
    assert "no inner thought" in of(Warned, events)[-1].message
    assert "`verify=False`" in of(Warned, events)[-1].fix
    assert desk.model.requests[3].text.count("Begin with a thought") == 1
    assert ended(await desk.say("Hi again.")).reply == "Hello."


async def test_a_long_first_reply_does_not_hold_up_the_event_loop(at_desk: OpenDesk) -> None:
    thought = "word { " * 350_000
    desk = await memgpt(at_desk, [Repeat(send("Hello.", thought=thought))])
    replies = list[str]()

    async def first_reply() -> None:
        agent = await desk.workspace.agent(f"agent{len(replies)}")
        replies.append(ended([event async for event in agent.turn("Hi.")]).reply)

    stall = await stall_of(first_reply)
    assert replies[0] == "Hello."
    assert stall.cpu_ms <= MOST_MS * slowness(), stall


async def test_ordinary_texts_are_taken_at_once_and_only_the_first_reply_is_looked_at(
    at_desk: OpenDesk,
) -> None:
    brackets = send("I can make functions (tools) for you.", thought="Friendly {and} brief.")
    code = send("`is_prime(7)` would be True.", thought="They ask for code.")
    desk = await memgpt(at_desk, [brackets, code, send("Again.")], verify=True)
    assert ended(await desk.say("Hi.")).reason == "replied"
    other = await desk.workspace.agent("other")
    assert ended([event async for event in other.turn("Hi.")]).reason == "replied"
    assert ended(await desk.say("Hi.")).reply == "Again."


async def test_an_empty_message_is_rejected_with_advice(at_desk: OpenDesk) -> None:
    empty = ("", "  \n", "\u200b")
    desk = await memgpt(
        at_desk, [step for nothing in empty for step in (send(nothing), send("Hello."))]
    )
    for nothing in empty:
        last = ended(await desk.say("Hi."))
        assert (last.reply, last.steps) == ("Hello.", 2), ascii(nothing)
        assert "The message is empty" in desk.model.requests[-1].answers[-1]
        assert "Send the text that they are to read" in desk.model.requests[-1].answers[-1]


def put(root: Path, name: str, text: str) -> None:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")


@pytest.mark.parametrize("name", ["direct", "memgpt", "memgpt_docs"])
def test_every_preset_that_comes_along_is_whole(tmp_path: Path, name: str) -> None:
    found = preset(tmp_path, name)
    assert found.has("create_function")
    assert found.has("send_message") is found.style.packs
    assert text_of(tmp_path, "persona", found.persona)
    assert "{functions}" not in found.style.instructions + found.style.brief


def test_what_is_wrong_in_a_preset_is_said(tmp_path: Path) -> None:
    for text, says in {
        "style = 'mem": "not valid TOML",
        "styl = 'memgpt'": "`styl`",
        "style = 'loud'": "cannot be 'loud'",
        "compaction = 'short'": "cannot be 'short'",
        "instructions = '../../etc/passwd'": "no file of instructions",
    }.items():
        put(tmp_path, "presets/mine.toml", text)
        with pytest.raises(KnapperError, match=says):
            preset(tmp_path, "mine")
    with pytest.raises(KnapperError, match="Did you mean `memgpt`"):
        preset(tmp_path, "memgtp")


def test_a_file_that_leads_out_of_the_workspace_is_not_read(tmp_path: Path) -> None:
    put(tmp_path, "secret.txt", "a key")
    root = tmp_path / "workspace"
    (root / "personas").mkdir(parents=True)
    (root / "personas" / "max.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(KnapperError, match="is a link"):
        text_of(root, "persona", "max")


async def test_a_preset_of_ones_own_says_what_its_agents_are_told(
    at_desk: OpenDesk, tmp_path: Path
) -> None:
    put(
        tmp_path,
        "presets/mine.toml",
        'style = "direct"\ninstructions = "mine.txt"\nfunctions = []\n',
    )
    put(tmp_path, "presets/mine.txt", "Speak like a pirate.")
    desk = await at_desk(
        [Expect(Say("Arr."), contains("Speak like a pirate."))], memory__preset="mine"
    )
    assert ended(await desk.say("Hi.")).reply == "Arr."


async def test_a_preset_chooses_how_the_past_of_its_agents_is_summed_up(tmp_path: Path) -> None:
    put(tmp_path, "presets/dense.toml", 'compaction = "spr"\nattempts = 1000\n')
    said = Say("A reply of some length. " * 90)
    with scripted([said] * 6) as model:
        for name, told in (
            ("direct", "You keep the memory of an assistant. "),
            ("dense", "sparse priming"),
        ):
            async with a_desk(tmp_path, model, agent=name, memory__preset=name) as here:
                for _ in range(3):
                    await here.say("What do you say of this? " * 90)
                await here.agent.summarize()
            assert told in model.summaries[-1].text
    assert preset(tmp_path, "dense").style.attempts == 10


def test_personas_of_ones_own_come_before_those_that_come_along(tmp_path: Path) -> None:
    put(tmp_path, "personas/companion.txt", "I am Max.\n")
    put(tmp_path, "humans/ada.txt", "Ada, an engineer.")
    assert text_of(tmp_path, "persona", "companion") == "I am Max."
    assert "ada" in named(tmp_path, "human")
    assert text_of(tmp_path, "persona", "I am a text of my own.") == "I am a text of my own."
    with pytest.raises(KnapperError, match="Known are: companion, knapper, librarian"):
        text_of(tmp_path, "persona", "nobody")
