"""The slash commands, in a real pseudo-terminal; what a user's editor writes; messages as a turn ends."""

import stat
import time
from pathlib import Path

import pytest

from knapper.prompt.conversation import opened
from knapper.prompt.run_options import RunOptions
from knapper.prompt.slash import command, during
from knapper.prompt.ui import Voice
from tests.interfaces.support import COUNT_VOWELS, NOTHING_LEFT, leave, prompt
from tests.kit import Expect, Say, Script, contains, scripted
from tests.kit.sources import function_text
from tests.kit.terminal import CTRL_C, ENTER, ESCAPE

SLEEPY = "import time\n\n\n" + function_text(
    "sleepy() -> str", "Sleep.", 'time.sleep(8)\nreturn "done"', "sleepy() → 'done'"
)


def test_help_names_every_command_and_a_wrong_one_is_forgiven(tmp_path: Path) -> None:
    with prompt([Say("Fine.")], tmp_path) as (screen, model):
        for typed, *shows in (
            ("/hlep", "Did you mean /help?"),
            ("/help retry", "Take the last message back and send it again."),
            ("/model", "scripted at http://127.0.0.1"),
            ("/model two words", "A model's name cannot contain a space."),
            (
                "/model scirpted",
                "has no model `scirpted`",
                "It has `scripted`. The model is the same as before.",
            ),
            ("   /show", "No call was made in this session.", "knapper calls list"),
            ("/agents new editor", "/agents cannot new editor.", "/switch NAME makes one."),
            ("/pm", "/debug last"),
            ("%debug", "/debug last"),
        ):
            screen.do(typed, *shows)
        assert model.requests == []
        screen.do("//not a command", "Fine.")
        screen.line("/exit")
        assert screen.exit_code() == 0
        assert "To keep it, type: knapper configure" in screen.scrolled()


@pytest.mark.slow
def test_ctrl_c_ends_a_test_that_takes_long(folder: Path) -> None:
    (folder / "functions" / "sleep.py").write_text(SLEEPY)
    with prompt([Say("Here.")], folder) as (screen, _):
        for times, arguments in enumerate(("", " {}"), 1):  # the examples, and a call
            screen.line(f"/test sleepy{arguments}")
            screen.line("are you there?")
            time.sleep(0.3)
            screen.type(CTRL_C)
            screen.wait_count("Interrupted.", times)
            screen.wait_count("not sent", times)
        screen.do("are you there now?", "Here.")


def test_delete_asks_first_and_only_yes_deletes_and_a_line_begun_ahead_is_put_aside(
    grown: Path,
) -> None:
    asks = (
        "? Delete count_vowels, version 1?",
        "Press y (yes), then Enter, or n (no). Enter alone: no.",
    )
    file = grown / "functions" / "words.py"
    with prompt([], grown) as (screen, _):
        screen.do("/delete count_vowels", "Enter alone: no.")
        screen.type("x")
        screen.wait_for("› x")
        screen.type(f"\x7f{ENTER}")  # before one can answer
        screen.wait_for("You pressed Enter before you could answer.")
        screen.wait_for("Enter alone: no.")
        assert "Enter is not an answer." not in screen.scrolled()
        screen.type(ENTER)
        screen.wait_for("Nothing was changed.")
        for times, typed in enumerate((CTRL_C, ESCAPE, ENTER, "n", f"maybe{ENTER}"), 2):
            screen.do("/delete count_vowels", *asks)
            screen.type(typed)
            if typed.startswith("maybe"):
                screen.wait_for("“maybe” is not an answer and was not sent")
                screen.wait_for(asks[1])
                screen.type("n")
            screen.wait_count("Nothing was changed.", times)
        screen.type(f"/delete count_vowels{ENTER}y")
        screen.wait_for("Enter puts your line aside")
        screen.type(ENTER)
        screen.wait_for("so it does not count")
        assert "count_vowels" in file.read_text()
        screen.wait_for("Press y (yes)")
        screen.type(CTRL_C)
        screen.wait_count("Nothing was changed.", times + 1)
        screen.type(f"/delete count_vowels{ENTER}half")
        screen.wait_for("Enter puts your line aside")
        screen.type(ENTER)
        screen.answer("y")
        screen.wait_for("✓ deleted count_vowels from words")
        screen.wait_for("› half")
        screen.type(CTRL_C)
        file.write_text('def other() -> int:\n    """Return one."""\n    return 1\n')
        screen.wait_for("other was added outside")
        screen.do("/delete other", "Delete other, version 1?")
        screen.answer("y")
        screen.wait_for("✓ deleted other from words")


def test_new_begins_a_conversation_that_knows_nothing_of_the_one_before_and_open_goes_back(
    tmp_path: Path,
) -> None:
    script: Script = [Say("Teal."), Say("One more."), Say("I do not know."), Say("Teal again.")]
    with prompt(script, tmp_path) as (screen, model):
        screen.do("/new", "The conversation is already new.")
        screen.do("the colour is teal", "∙ 1 step")
        screen.do("and?", "∙ 1 step")
        screen.do("/new", "A new conversation.", "/open main goes back to “main”")
        screen.wait_for(" 0% ")
        screen.do("/pop", "There is no turn to remove.")
        screen.do("/undo", NOTHING_LEFT)
        screen.do("/new", "The conversation is already new.")
        screen.do("which colour?", "I do not know.", "∙ 1 step")
        screen.wait_for("main “which colour?”")  # in the status bar
        assert "teal" not in model.requests[-1].text
        screen.do("/conversations", "which colour?", "2 messages")
        screen.do("/conversations colour teal", "message 1.0 in “main”: the colour is teal")
        screen.do("/name Dyes", "✓ named “Dyes”")
        screen.do("/open dye", "main has no conversation `dye`.", "(Dyes)")
        screen.do("/open main", "you wrote 2 messages, the last: and?")
        screen.do("/open main", "You are already in “main”.")
        screen.do("still?", "Teal again.", "∙ 1 step")
        assert "the colour is teal" in model.requests[-1].text
        assert leave(screen) == 0
    with prompt([], tmp_path) as (screen, _):
        screen.wait_for("continues: you wrote 3 messages, the last: still?")
        screen.do("/open dyes", "you wrote 1 message, the last: which colour?")


def test_a_branch_goes_on_from_an_earlier_turn_and_leaves_the_conversation_as_it_is(
    tmp_path: Path,
) -> None:
    with prompt([Say("One."), Say("Two."), Say("Other.")], tmp_path) as (screen, model):
        screen.do("first", "∙ 1 step")
        screen.do("second", "∙ 1 step")
        screen.do("/log", "## 1. ", "## 2. ")
        screen.do("/branch 3", "This conversation has no turn or message `3`.")
        screen.do("/branch one", "This conversation has no turn or message `one`.")
        screen.do("/branch 1", "A branch of “main”, up to 1.")
        screen.do("and now?", "Other.", "∙ 1 step")
        said = [row["content"] for row in model.requests[-1].messages if row["role"] == "user"]
        assert said == ["first", "and now?"]
        screen.do("/conversations", "a branch of main")
        screen.do("/conversations delete and now?", "It is open here.")
        screen.do("/open main", "the last: second")
        screen.do(
            "/conversations delete and now?",
            "deleted: ",
            "To bring it back: /conversations undelete",
        )
        screen.do("/open and now?", "main has no conversation `and now?`.")
        assert leave(screen) == 0


def test_clear_empties_the_screen_and_keeps_what_is_being_typed(tmp_path: Path) -> None:
    script: Script = [Say("word " * 200, pause_s=0.02), Expect(Say("Yes."), contains("word word"))]
    with prompt(script, tmp_path) as (screen, _):
        screen.do("talk", "word word")
        screen.line("/clear")
        screen.type("half a")
        screen.wait_gone("/help lists")
        screen.wait_for("1 step")
        screen.do(" question", "Yes.")


def editor(folder: Path, text: str) -> str:
    """Return an editor that writes this text into any file it opens."""
    (folder / "text").write_text(text)
    program = folder / "editor"
    program.write_text(f'#!/bin/sh\nfor last; do :; done\ncp "{folder}/text" "$last"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


def test_a_refused_one_is_kept_and_opened_again_and_a_name_that_is_taken_is_told(
    folder: Path,
) -> None:
    wrong = COUNT_VOWELS.replace("return sum", "return 1 + sum")
    with prompt([], folder, environment={"EDITOR": editor(folder, wrong)}) as (screen, _):
        screen.do("/create count_vowels words", "/create count_vowels opens it again")
        (folder / "text").write_text(COUNT_VOWELS)
        screen.do("/create count_vowels words", "count_vowels added to words")
        assert "def count_vowels" in (folder / "functions" / "words.py").read_text()
        screen.do("/create count_vowels", "There is a function count_vowels already.")
        for name in ("1st", "a-b"):
            screen.do(f"/create {name}", "cannot be a function's name")


async def test_a_message_starts_a_turn_of_its_own_instead_of_waiting_for_the_next_message(
    tmp_path: Path,
) -> None:
    with scripted([Say("heard")]) as model:
        options = RunOptions(tmp_path, base_url=model.base_url, model="scripted")
        async with opened(options, Voice()) as talk:
            await during(talk, "one more thing")
            assert await talk.agent.waiting() == []
            assert [message.text for message in await talk.agent.history()] == [
                "one more thing",
                "heard",
            ]


async def test_a_command_that_waited_runs_after_the_turn_that_nobody_typed(tmp_path: Path) -> None:
    with scripted([Say("awake")]) as model:
        options = RunOptions(tmp_path, base_url=model.base_url, model="scripted")
        async with opened(options, Voice(agrees=True), command) as talk:
            talk.busy = True
            await during(talk, "/new")
            talk.busy = False
            await talk.let_agent_begin()
            assert (talk.later, await talk.agent.history()) == ([], [])
