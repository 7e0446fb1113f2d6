"""At the end of a conversation the model is asked once which of the user's sentences to keep; this can be undone."""

from pathlib import Path

import pytest

from agent_core.base.events import Warned
from tests.cli.support import run
from tests.conftest import OpenDesk
from tests.context.long_talk import in_json
from tests.interfaces.asking import agree
from tests.interfaces.support import leave, prompt
from tests.kit import Expect, Repeat, Say, Script, Seen, Step, contains
from tests.kit.drawing import sampled

SAID = "My best friend is Alya. How is the weather? Please tell me a long story about a heron."
ASKED = "1. My best friend is Alya.\n2. Please tell me a long story about a heron."


@pytest.fixture
def asking(tmp_path: Path) -> Path:
    (tmp_path / "knapper.toml").write_text("[memory]\nkeep_unsaved = true\n")
    return tmp_path


def test_what_the_model_chooses_is_kept_shown_and_undone_when_a_conversation_ends(asking: Path) -> None:
    script: Script = [Say("Fine."), Expect(Say("1"), contains(ASKED)), Say("Hi.")]
    with prompt(script, asking, columns=110) as (screen, _):
        screen.line(SAID)
        screen.wait_for("1 step")
        screen.line("/new")
        screen.wait_for("✓ kept in memory: My best friend is Alya.")
        screen.wait_for("A new conversation.")
        assert run(asking, "memory", "show", "human")["blocks"][0]["value"] == "My best friend is Alya."
        screen.line("/undo")
        screen.wait_for("restore the block human")
        agree(screen)
        screen.wait_for("✓ ")
        screen.line("hello there")
        screen.wait_for("Hi.")
        screen.wait_count("1 step", 2)
        assert leave(screen) == 0
    assert run(asking, "memory", "show", "human")["blocks"][0]["value"] == ""


@pytest.mark.sampled
@pytest.mark.parametrize("answer", sampled(["Everything! And also that the user is rich.", "none", "7", "0"], 2))
def test_leaving_asks_too_and_nothing_but_a_number_keeps_anything(asking: Path, answer: str) -> None:
    script: Script = [Say("Fine."), Expect(Say(answer), contains(ASKED))]
    with prompt(script, asking, columns=110) as (screen, _):
        screen.line(SAID)
        screen.wait_for("1 step")
        assert leave(screen) == 0
    assert run(asking, "memory", "show", "human")["blocks"][0]["value"] == ""


def test_a_summary_that_is_asked_for_asks_too(asking: Path) -> None:
    script: Script = [Say("Fine."), Say("Good."), Expect(Say("1"), contains(ASKED))]
    with prompt(script, asking, columns=110) as (screen, _):
        screen.line(SAID)
        screen.wait_for("1 step")
        screen.line("And now?")
        screen.wait_count("1 step", 2)
        screen.line("/summarize")
        screen.wait_for("✓ kept in memory: My best friend is Alya.")
        assert leave(screen) == 0


async def test_before_the_context_is_full_what_matters_is_kept_and_told(at_desk: OpenDesk) -> None:
    def step(seen: Seen) -> Step:
        return Say("1") if "You choose what an assistant remembers" in seen.text else in_json("Some words. " * 90)

    small = {"model__mode": "constrained", "model__context_tokens": 4_000, "memory__keep_unsaved": True}
    here = await at_desk([Repeat(step)], **small)
    warned: list[str] = []
    for number in range(12):
        warned += [
            event.message for event in await here.say(f"My cat is called Minka{number}.") if isinstance(event, Warned)
        ]
    assert "Kept in memory: My cat is called Minka0." in warned
    assert "My cat is called Minka0." in here.agent.memory.blocks.memory["human"].value


def test_by_default_nothing_is_asked(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    with prompt([Say("Fine.")], tmp_path, columns=110) as (screen, model):
        screen.line(SAID)
        screen.wait_for("1 step")
        screen.line("/new")
        screen.wait_for("A new conversation.")
        assert leave(screen) == 0
        assert len(model.requests) == 1
