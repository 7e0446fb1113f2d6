"""A function edited during the conversation: verdicts appear, no key is lost, and both sides' edits are kept."""

import sys
from functools import partial
from pathlib import Path

import pytest

from tests.interfaces.support import COUNT_VOWELS, create, leave, prompt
from tests.kit import Ask, Expect, Say, Script, Wanted, contains
from tests.kit.desk import another
from tests.kit.terminal import Terminal

SENTENCE = "and please count the letter y as a vowel too, ünless it begins a wörd 🙂"
MINE = COUNT_VOWELS.replace("Count the", "Tally the")
AGENTS = COUNT_VOWELS.replace("Count the", "Number the")
REPLACE = Wanted("replace_function", {"function_name": "count_vowels", "code": AGENTS, "reason": "asked"})
SLOWLY = "One word after another. " * 20
EDITOR = """
import pathlib, sys, time
line, file = sys.argv[1:]
path, go = pathlib.Path(file), pathlib.Path(sys.argv[0]).with_name("go")
print("editor at", line, flush=True)
path.write_text(path.read_text().replace("Count the", "Tally the"))
print("saved", flush=True)
while not go.exists():
    time.sleep(0.02)
"""


@pytest.fixture
def words(tmp_path: Path) -> Path:
    """The file of a workspace with one function, below a comment and an import."""
    file = tmp_path / "functions" / "words.py"
    file.parent.mkdir()
    file.write_text(f"# mine\n\n\n{COUNT_VOWELS}")
    return file


def typed_slowly(screen: Terminal, text: str, midway: str, file: Path) -> None:
    """Type a line, and save the file in the middle of it."""
    for at, key in enumerate(text):
        screen.type(key)
        if at == len(text) // 2:
            file.write_text(midway)


@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_an_editor_is_opened_at_the_functions_line_and_nothing_is_written_over_its_screen(
    words: Path, tmp_path: Path, term: str
) -> None:
    editor = tmp_path / "editor.py"
    editor.write_text(EDITOR)
    with prompt([], tmp_path, environment={"VISUAL": f"{sys.executable} {editor}", "TERM": term}) as (screen, _):
        screen.line("/edit count_vowels")
        screen.wait_for("saved")
        assert "editor at +4" in screen.scrolled()
        words.with_name("other.py").write_text("def other(:\n")
        for name in ("third", "fourth"):  # once the fourth is loaded, any message about the third has appeared
            words.with_name(f"{name}.py").write_text(f'def {name}() -> int:\n    """Give it."""\n    return 3\n')
            screen.wait(partial(_taken, tmp_path, name), f"{name} is taken")
        assert " outside" not in screen.scrolled()
        (tmp_path / "go").touch()
        for told in ("count_vowels was changed", "third was added", "│ def other(:"):
            screen.wait_for(told)
        assert leave(screen) == 0


def _taken(root: Path, name: str) -> bool:
    return f"def {name}".encode() in b"".join(file.read_bytes() for file in (root / ".knapper").glob("state.db*"))


def test_a_verdict_appears_while_the_reply_streams_and_the_typed_line_is_delivered(words: Path, tmp_path: Path) -> None:
    script: Script = [
        Ask(create(another("count_more"), "count_more"), text=SLOWLY, pause_s=0.05),
        Expect(Say("Both seen."), contains(SENTENCE), contains("`count_vowels` changed")),
    ]
    with prompt(script, tmp_path) as (screen, _):
        screen.line("go")
        screen.wait_for("One word after another.")
        typed_slowly(screen, SENTENCE, MINE, words)
        screen.wait_for("⟳ count_vowels was changed outside")
        assert "▸ create_function" not in screen.scrolled()
        screen.line("")
        screen.wait_for("Both seen.")


def test_a_rejected_save_shows_its_place_and_the_line_and_the_last_good_version_runs(
    words: Path, tmp_path: Path
) -> None:
    with prompt([Expect(Say("I see it."), contains("That line reads"))], tmp_path) as (screen, _):
        words.write_text(MINE.replace("    return sum(", "    return return sum("))
        screen.wait_for("✗ rejected: functions/words.py:")
        screen.wait_for('│     return return sum(letter in "aeiou" for letter in text.lower())')
        screen.line('/test count_vowels {"text": "queueing"}')
        screen.wait_for("5")
        screen.line("what is it?")
        screen.wait_for("I see it.")


def test_what_both_hands_wrote_is_shown_and_either_can_be_taken(words: Path, tmp_path: Path) -> None:
    script: Script = [
        Ask(REPLACE, text=SLOWLY, pause_s=0.05),
        Expect(Say("Yours stays."), contains('-    """Tally the vowels'), contains("confirm_function")),
    ]
    with prompt(script, tmp_path, columns=120) as (screen, _):
        screen.line("go")
        screen.wait_for("One word after another.")
        words.write_text(MINE)
        screen.wait_for("Yours stays.")
        seen = screen.scrolled()
        assert '-    """Tally the vowels in a text.' in seen
        assert '+    """Number the vowels in a text.' in seen
        assert words.read_text() == MINE
        screen.line("/pending")
        screen.wait_for("To use the kept version: /confirm count_vowels; to discard it: /pending count_vowels drop")
        screen.line("/confirm count_vowels")
        screen.wait_for("✓ count_vowels added to words")
        assert words.read_text().strip() == AGENTS.strip()


def test_what_is_kept_beside_a_humans_save_can_be_given_up_at_the_prompt(words: Path, tmp_path: Path) -> None:
    with prompt([Ask(REPLACE, text=SLOWLY, pause_s=0.05), Say("Yours stays.")], tmp_path) as (screen, _):
        screen.line("go")
        screen.wait_for("One word after another.")
        words.write_text(MINE)
        screen.wait_for("Yours stays.")
        screen.line("/pending count_vowels drop")
        screen.wait_for("The candidate for count_vowels was discarded.")
        screen.line("/pending")
        screen.wait_for("There are no rejected candidates.")
        assert words.read_text() == MINE
