"""At the end of a conversation the model is asked once which of the user's sentences to keep; it can be undone."""

from pathlib import Path

import pytest

from tests.cli.support import run
from tests.interfaces.asking import agree
from tests.interfaces.support import leave, prompt
from tests.kit import Expect, Say, Script, contains

SAID = "My best friend is Alya. How is the weather? Please tell me a long story about a heron."
ASKED = "1. My best friend is Alya.\n2. Please tell me a long story about a heron."


@pytest.fixture
def asking(tmp_path: Path) -> Path:
    (tmp_path / "toolwright.toml").write_text("[memory]\nkeep_unsaved = true\n")
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


@pytest.mark.parametrize("answer", ["none", "Everything! And also that the user is rich.", "7", "0"])
def test_leaving_asks_too_and_nothing_but_a_number_keeps_anything(asking: Path, answer: str) -> None:
    script: Script = [Say("Fine."), Expect(Say(answer), contains(ASKED))]
    with prompt(script, asking, columns=110) as (screen, _):
        screen.line(SAID)
        screen.wait_for("1 step")
        assert leave(screen) == 0
    assert run(asking, "memory", "show", "human")["blocks"][0]["value"] == ""


def test_by_default_nothing_is_asked(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    with prompt([Say("Fine.")], tmp_path, columns=110) as (screen, model):
        screen.line(SAID)
        screen.wait_for("1 step")
        screen.line("/new")
        screen.wait_for("A new conversation.")
        assert leave(screen) == 0
        assert len(model.requests) == 1
