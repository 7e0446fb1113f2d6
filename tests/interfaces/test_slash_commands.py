"""The slash commands, in a real pseudo-terminal."""

import sys
import time
from pathlib import Path

import pytest

from tests.interfaces.asking import agree, agree_in_full
from tests.interfaces.support import COUNT_VOWELS, create, leave, prompt
from tests.kit import Ask, Expect, Say, Script, contains
from tests.kit.desk import another
from tests.kit.terminal import ALT_ENTER, CTRL_C, ENTER

SLEEPY = '''import time


def sleepy() -> str:
    """Sleep.

    Examples:
        >>> sleepy()
        'done'
    """
    time.sleep(8)
    return "done"
'''


@pytest.fixture
def grown(tmp_path: Path) -> Path:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "words.py").write_text(COUNT_VOWELS)
    return tmp_path


def test_words_that_a_command_does_not_take_are_told_and_an_address_of_one_session_is_named(grown: Path) -> None:
    with prompt([], grown) as (screen, _):
        screen.line("/agents new editor")
        screen.wait_for("/agents cannot new editor.")
        screen.wait_for("/switch NAME makes one.")
        screen.line("/exit")
        assert screen.exit_code() == 0
        assert "To keep it, type: knapper configure" in screen.scrolled()


@pytest.mark.parametrize("arguments", ["", " {}"], ids=["examples", "call"])
def test_ctrl_c_ends_a_test_that_takes_long(tmp_path: Path, arguments: str) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "sleep.py").write_text(SLEEPY)
    with prompt([Say("Here.")], tmp_path) as (screen, _):
        screen.line(f"/test sleepy{arguments}")
        screen.line("are you there?")
        time.sleep(0.3)
        screen.type(CTRL_C)
        screen.wait_for("Interrupted.")
        screen.wait_for("not sent")
        screen.line("are you there now?")
        screen.wait_for("Here.")


def test_a_line_begun_ahead_of_a_question_is_put_aside_and_a_yes_takes_its_whole_word(grown: Path) -> None:
    with prompt([], grown) as (screen, _):
        screen.type(f"/delete count_vowels{ENTER}y")
        screen.wait_for("something was typed")
        screen.line("y")
        screen.wait_for("“y” is not “yes”")
        screen.wait_for("Nothing was deleted.")
        screen.wait_for("› y")
        assert "count_vowels" in (grown / "functions" / "words.py").read_text()
        screen.type(CTRL_C)
        screen.type(f"/delete count_vowels{ENTER}half")
        agree_in_full(screen)
        screen.wait_for("✓ deleted count_vowels from words")
        screen.wait_for("› half")


def test_delete_asks_first_and_only_yes_deletes(grown: Path) -> None:
    with prompt([], grown) as (screen, _):
        screen.line("/delete count_vowels")
        screen.wait_for("Delete count_vowels? Type y and Enter for yes.")
        screen.type(CTRL_C)
        screen.wait_for("Nothing was deleted.")
        assert "count_vowels" in (grown / "functions" / "words.py").read_text()
        screen.line("/delete count_vowels")
        screen.wait_for("Delete count_vowels? Type y and Enter for yes.")
        screen.line("maybe")
        screen.wait_for("“maybe” is not “y”, so it counts as a no.")
        screen.wait_count("Nothing was deleted.", 2)
        screen.line("/delete count_vowels")
        screen.wait_for("Delete count_vowels? Type y and Enter for yes. Enter alone: no.")
        screen.line("")
        screen.wait_count("Nothing was deleted.", 3)
        screen.line("/delete count_vowels")
        screen.wait_for("Delete count_vowels? Type y and Enter for yes.")
        screen.line("n")
        screen.wait_count("Nothing was deleted.", 4)
        assert screen.scrolled().count("so it counts as a no.") == 1
        screen.line("/delete count_vowels")
        screen.wait_for("Delete count_vowels? Type y and Enter for yes.")
        agree(screen)
        screen.wait_for("✓ deleted count_vowels from words")


@pytest.mark.parametrize(
    ("old", "new"),
    [pytest.param("aeiou", "aeio", id="another-result"), pytest.param("return ", "", id="no-result")],
)
def test_edit_says_that_the_examples_fail_since(grown: Path, old: str, new: str) -> None:
    editor = grown / "editor.py"
    editor.write_text(
        "import sys, pathlib\npath = pathlib.Path(sys.argv[2])\n"
        f"path.write_text(path.read_text().replace({old!r}, {new!r}))\n"
    )
    with prompt([], grown, environment={"EDITOR": f"{sys.executable} {editor}"}) as (screen, _):
        screen.line("/edit count_vowels")
        screen.wait_for("⟳ count_vowels was changed while you edited")
        screen.wait_for("~ count_vowels is a draft now: count_vowels(")


def test_what_the_user_does_here_is_told_to_the_model_as_the_users_and_not_shown_twice(grown: Path) -> None:
    told = contains("The user changed functions. `count_more` is gone. `count_vowels` is gone.")
    script: Script = [
        Ask(create(another("count_more"), "count_more")),
        Say("Made."),
        Expect(Say("I know."), told),
    ]
    with prompt(script, grown) as (screen, model):
        screen.line("Make it.")
        screen.wait_for("∙ created count_more")
        screen.line("/undo 1")
        agree(screen)
        screen.wait_for("✓ deleted count_more")
        screen.line("/delete count_vowels")
        screen.wait_for("Delete count_vowels?")
        agree(screen)
        screen.wait_for("✓ deleted count_vowels")
        screen.line("And now?")
        screen.wait_for("I know.")
        assert "⟳" not in screen.scrolled()
        assert "by you" not in screen.scrolled()
        assert "someone else" not in model.requests[-1].text


def test_retry_sends_again_pop_takes_back_and_dump_shows_the_rest(tmp_path: Path) -> None:
    script: Script = [Say("First."), Say("Second."), Expect(Say("Third."), contains("two\nlines"))]
    with prompt(script, tmp_path) as (screen, model):
        for turns, message in enumerate(("one", f"two{ALT_ENTER}lines", "/retry"), 1):
            screen.line(message)
            screen.wait_count("∙ 1 step", turns)
        assert "Second." not in model.requests[-1].text
        assert screen.scrolled().count("› two\n  lines") == 2
        screen.line("/pop")
        screen.wait_for("removed from the context: two")
        screen.line("/dump kept.txt")
        screen.wait_for("lines in kept.txt")
        kept = (tmp_path / "kept.txt").read_text()
        assert kept.startswith("system\n  ")
        assert "\nfunction create_function\n" in kept
        assert kept.endswith("\nuser\n  one\nassistant\n  First.\n")


def test_new_begins_a_conversation_that_knows_nothing_of_the_one_before(tmp_path: Path) -> None:
    script: Script = [Say("Teal."), Say("One more."), Say("I do not know.")]
    with prompt(script, tmp_path) as (screen, model):
        for turns, message in enumerate(("the colour is teal", "and?"), 1):
            screen.line(message)
            screen.wait_count("∙ 1 step", turns)
        screen.line("/new")
        screen.wait_for("A new conversation. 2 turns left the context and stay on record.")
        screen.wait_for(" 0% ")
        screen.line("/pop")
        screen.wait_for("There is no turn to remove.")
        screen.line("/undo")
        screen.wait_for("Nothing was changed or said in this session.")
        screen.line("/new")
        screen.wait_for("The conversation is already new.")
        screen.line("which colour?")
        screen.wait_for("I do not know.")
        assert "teal" not in model.requests[-1].text
        assert leave(screen) == 0
    with prompt([], tmp_path) as (screen, _):
        screen.wait_for("continues: you wrote 1 message, the last: which colour?")


def test_clear_empties_the_screen_and_keeps_what_is_being_typed(tmp_path: Path) -> None:
    with prompt([Say("word " * 200, pause_s=0.02), Expect(Say("Yes."), contains("word word"))], tmp_path) as (
        screen,
        _,
    ):
        screen.line("talk")
        screen.wait_for("word word")
        screen.line("/clear")
        screen.type("half a")
        screen.wait_gone("/help lists")
        screen.wait_for("1 step")
        screen.line(" question")
        screen.wait_for("Yes.")


def test_help_names_every_command_and_a_wrong_one_is_forgiven(tmp_path: Path) -> None:
    with prompt([Say("Fine.")], tmp_path) as (screen, _):
        screen.line("/hlep")
        screen.wait_for("Did you mean /help?")
        screen.line("/help retry")
        screen.wait_for("Take the last message back and send it again.")
        screen.line("/model")
        screen.wait_for("scripted at http://127.0.0.1")
        screen.line("/model two words")
        screen.wait_for("A model's name cannot contain a space.")
        screen.line("/model scirpted")
        screen.wait_for("has no model `scirpted`")
        screen.wait_for("It has `scripted`. The model is the same as before.")
        screen.line("   /show")
        screen.wait_for("No call was made in this session.")
        screen.line("//not a command")
        screen.wait_for("Fine.")
        screen.line("/exit")
        assert screen.exit_code() == 0
