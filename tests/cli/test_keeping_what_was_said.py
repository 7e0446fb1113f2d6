"""At the end of a conversation a model chooses what to keep, and tidies a block that it filled; both can be undone."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_core.base.events import Warned
from tests.cli.support import run
from tests.conftest import OpenDesk
from tests.context.long_talk import in_json
from tests.interfaces.support import leave, prompt
from tests.kit import Expect, Repeat, Say, Script, Seen, Step, contains

SAID = "My best friend is Alya. How is the weather? Please tell me a long story about a heron."
LATER = SAID.replace("Alya", "Berta").replace("a heron", "an owl")  # a sentence is asked about once


def asked(said: str) -> Callable[[Seen], str | None]:
    return contains("1. {}\n2. {}".format(*said.split(" How is the weather? ")))


@pytest.fixture
def asking(tmp_path: Path) -> Path:
    (tmp_path / "knapper.toml").write_text("[memory]\nkeep_unsaved = true\n")
    return tmp_path


def human_of(root: Path) -> str:
    return str(run(root, "memory", "show", "human")["blocks"][0]["value"])


def test_what_the_model_chooses_is_kept_shown_and_undone_when_a_conversation_ends(
    asking: Path,
) -> None:
    script: Script = [Say("Fine."), Expect(Say("1"), asked(SAID)), Say("Hi."), Say("Fine.")]
    with prompt([*script, Expect(Say("1"), asked(LATER))], asking, columns=110) as (screen, _):
        screen.do(SAID, "1 step")
        screen.do("/new", "✓ kept in memory: My best friend is Alya.", "A new conversation.")
        assert human_of(asking) == "My best friend is Alya."
        screen.do("/changes human", "restore the block human")
        screen.answer("y")
        screen.wait_count("✓ ", 3)
        assert human_of(asking) == ""
        screen.do("hello there", "1 step")
        screen.do(LATER, "1 step")
        screen.do("/summarize", "✓ kept in memory: My best friend is Berta.")
        assert leave(screen) == 0
    assert human_of(asking) == "My best friend is Berta."


@pytest.mark.slow
def test_leaving_asks_too_and_nothing_but_a_number_keeps_anything(asking: Path) -> None:
    answers = ("Everything! And also that the user is rich.", "none", "7", "0")
    said = [
        SAID.replace("Alya", name).replace("heron", name)
        for name in ("Alya", "Berta", "Carla", "Dora")
    ]
    script: list[Say | Expect] = []
    for text, answer in zip(said, answers, strict=True):
        script += [Say("Fine."), Expect(Say(answer), asked(text))]
    with prompt(script, asking, columns=110) as (screen, _):
        for text in said[:-1]:
            screen.do(text, "1 step")
            screen.do("/new", "A new conversation.")
        screen.do(said[-1], "1 step")
        assert leave(screen) == 0
    assert human_of(asking) == ""


async def test_before_the_context_is_full_what_matters_is_kept_and_told(at_desk: OpenDesk) -> None:
    def step(seen: Seen) -> Step:
        return (
            Say("1")
            if "You choose what an assistant remembers" in seen.text
            else in_json("Some words. " * 90)
        )

    small = {
        "model__mode": "constrained",
        "model__context_tokens": 4_000,
        "memory__keep_unsaved": True,
    }
    here = await at_desk([Repeat(step)], **small)
    events = [
        event
        for number in range(12)
        for event in await here.say(f"My cat is called Minka{number}.")
    ]
    warned = [event.message for event in events if isinstance(event, Warned)]
    assert "Kept in memory: My cat is called Minka0." in warned
    assert "My cat is called Minka0." in here.agent.memory.blocks.memory["human"].value
