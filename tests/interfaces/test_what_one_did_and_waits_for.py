"""The prompt names what it waits for and what the user did, in the user's own terms and numbers."""

import json
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.interfaces.support import COUNT_VOWELS, flags, leave, prompt
from tests.kit import Repeat, Say, scripted
from tests.kit.program import knapper
from tests.kit.terminal import Terminal, terminal

WORDS = "Clouds came and went, and the wind was fresh. " * 60
SLOWLY = Say("People and facts: the weather. " + "The wind was fresh, and clouds came. " * 6, pause_s=0.1)
SMALL = {"KNAPPER_MODEL_MODE": "native", "KNAPPER_MODEL_CONTEXT_TOKENS": "9000"}
WAIT = "summarizing the oldest messages… 1"


def talked_until_summarized(screen: Terminal) -> tuple[int, bool]:
    """Return how many messages it took until the oldest were summarized, and whether the wait was shown."""
    is_told = False

    def is_over(number: int) -> bool:
        nonlocal is_told
        is_told |= any(WAIT in line for line in screen.screen())
        return screen.scrolled().count("∙ 1 step") >= number

    for number in range(1, 30):
        screen.line(f"the weather of day {number}?")
        screen.wait(partial(is_over, number), "the reply")
        if "are a summary now" in screen.scrolled():
            return number, is_told
    raise AssertionError("nothing was summarized")


def test_while_old_messages_are_summarized_the_screen_says_so_and_then_all_messages_count(tmp_path: Path) -> None:
    with (
        scripted([Repeat(Say(WORDS))], summary=SLOWLY) as model,
        terminal("run", *flags(model), cwd=tmp_path, environment=SMALL) as screen,
    ):
        screen.wait_for("/help lists")
        number, is_told = talked_until_summarized(screen)
        assert is_told
        assert leave(screen) == 0
    (row,) = json.loads(knapper("agents", "list", "--json", cwd=tmp_path).stdout)["agents"]
    assert row["turns"] == number
    with prompt([], tmp_path) as (screen, _):
        screen.wait_for(f"the conversation continues: you wrote {number} messages, the last: the weather of day")


def test_a_summary_on_request_says_what_is_waited_for(tmp_path: Path) -> None:
    with (
        scripted([Repeat(Say(WORDS))], summary=SLOWLY) as model,
        terminal("run", *flags(model), cwd=tmp_path, environment=SMALL) as screen,
    ):
        screen.wait_for("/help lists")
        for number in range(1, 8):
            screen.line(f"the weather of day {number}?")
            screen.wait_count("∙ 1 step", number)
        screen.line("/summarize")
        screen.wait_for(WAIT)
        screen.wait_for("A summary stands for")
        screen.line("go on")
        screen.wait_count("∙ 1 step", 8)
        assert "oldest messages of this conversation are out of your sight" in model.requests[-1].text


def test_what_was_typed_is_listed_on_one_line_without_what_goes_along(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes\n\n```\nmilk\n```\n")
    (tmp_path / "long.md").write_text("A line.\n" * 3_000)
    replies = [Say("One."), Say("Two."), Say("Three."), Say("Four.")]
    with prompt(replies, tmp_path, columns=110) as (screen, model):
        screen.line("!printf 'out\\n\\nput\\n'; exit 3")
        screen.wait_for("it goes along with your next message")
        screen.line("!true")
        screen.wait_count("it goes along with your next message", 2)
        for number, message in enumerate(("ok", "read @notes.md", "and @long.md", "\x1b[200~two\nlines\x1b[201~"), 1):
            screen.line(message)
            screen.wait_count("∙ 1 step", number)
        assert all(text in model.requests[0].text for text in ("exit code 3", "put", "It printed nothing."))
        screen.line("/cost")
        screen.wait_for("Since ever")
        rows = [line.split() for line in screen.scrolled().split("\n") if line.startswith("main ")][:4]
        listed = [" ".join(row[1 : row.index("1")]) for row in rows]
        assert listed == ["ok", "read @notes.md", "and @long.md", "two lines"]
        screen.line("/undo")
        screen.wait_for("remove the message “two lines”")
        screen.line("n")
        screen.line("/pop")
        screen.wait_for("removed from the context: two lines")
    with prompt([], tmp_path, columns=110) as (screen, _):
        screen.wait_for("you wrote 3 messages, the last: and @long.md")
        screen.wait(lambda: not any("\\n" in line for line in screen.screen()), "no literal line break")


def test_the_list_of_agents_counts_as_the_greeting_does_what_is_left_of_the_conversation(tmp_path: Path) -> None:
    with prompt([Say("One."), Say("Two.")], tmp_path) as (screen, _):
        screen.line("first")
        screen.wait_for("One.")
        screen.line("second")
        screen.wait_for("Two.")
        screen.line("/pop")
        screen.wait_for("removed from the context: second")
    with prompt([], tmp_path) as (screen, _):
        screen.wait_for("you wrote 1 message, the last: first")
        screen.line("/agents")
        screen.wait_for("1 turn, 1 no longer in the context")
    (row,) = json.loads(knapper("agents", "list", "--json", cwd=tmp_path).stdout)["agents"]
    assert (row["turns"], row["hidden_turns"]) == (2, 1)


@pytest.fixture
def grown(tmp_path: Path) -> Path:
    """A workspace with one function, and an editor that changes it."""
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "words.py").write_text(COUNT_VOWELS)
    changes = "path.write_text(path.read_text().replace('Count the', 'Tally the'))\n"
    (tmp_path / "editor.py").write_text(f"import sys, pathlib\npath = pathlib.Path(sys.argv[-1])\n{changes}")
    return tmp_path


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        pytest.param("/edit count_vowels", "⟳ count_vowels was changed while you edited", id="editor"),
        pytest.param("!{python} editor.py functions/words.py", "⟳ count_vowels was changed while that ran", id="shell"),
    ],
)
def test_what_one_changes_oneself_is_not_told_as_changed_outside(grown: Path, typed: str, told: str) -> None:
    editor = {"EDITOR": f"{sys.executable} {grown / 'editor.py'}"}
    with prompt([], grown, environment=editor) as (screen, _):
        screen.line(typed.format(python=sys.executable))
        screen.wait_for(told)
        if typed.startswith("!"):
            screen.wait_for("it goes along with your next message")
        (grown / "functions" / "words.py").write_text(COUNT_VOWELS)
        screen.wait_for("⟳ count_vowels was changed outside")
        assert screen.scrolled().count("changed outside") == 1
