"""Whole conversations in a real pseudo-terminal: what is typed meanwhile, saved by hand, printed and shown."""

import sys
from functools import partial
from pathlib import Path

import pytest

from tests.interfaces.support import COUNT_VOWELS, SLOW, create, leave, prompt
from tests.kit import Ask, Expect, Say, Script, Wanted, contains
from tests.kit.desk import another
from tests.kit.sources import function_text
from tests.kit.terminal import CTRL_C, UP

SENTENCE = "and please count the letter y as a vowel too, ünless it begins a wörd 🙂"
MINE = COUNT_VOWELS.replace("Count the", "Tally the")
AGENTS = COUNT_VOWELS.replace("Count the", "Number the")
REPLACE = Wanted(
    "replace_function",
    {"function_name": "count_vowels", "function_code_with_docstring": AGENTS, "reason": "asked"},
)
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
SAYS = function_text(
    "says(self) -> None",
    "Say lines.",
    'import time\nfor line in ("one\\x1b[5m", "two"):\n    print(line)\n    time.sleep(0.6)',
)
LOUD = function_text(
    "louder(text: str, marks: int = 1) -> str", "Shout.", 'return text + "!" * marks'
)


def test_a_save_by_hand_appears_above_what_is_typed_and_the_model_is_told(folder: Path) -> None:
    file = folder / "functions" / "loud.py"
    then = Expect(Say("I see."), contains("`louder` appeared: louder(text, marks: int = 1)"))
    stays = contains("its last good version, if it had one, stays in use: functions/loud.py:1")
    with prompt([then, Expect(Say("Still here."), stays, contains("That line reads"))], folder) as (
        screen,
        _,
    ):
        screen.type("half a sentence")
        screen.wait_for("› half a sentence")
        file.write_text(LOUD)
        screen.wait_for("⟳ louder was added outside")
        screen.wait_for("› half a sentence")
        screen.do(" and its end", "I see.", "1 step")
        file.write_text("def louder(:\n")
        screen.wait_for("✗ rejected: functions/loud.py:1")
        screen.wait_for("│ def louder(:")
        screen.do('/test louder {"text": "hi"}', "hi!")
        screen.do("and now?", "Still here.", "1 step")
        for line in ("# one", "# two"):  # it is told at each save
            before = screen.scrolled().count("✗ rejected: functions/loud.py")
            file.write_text(f"{LOUD}\ndef (:\n{line}\n")
            screen.wait_count("✗ rejected: functions/loud.py", before + 1)
            screen.wait_for("1 file rejected")
        file.write_text(LOUD)
        screen.wait_for("functions/loud.py loads again")
        screen.wait_gone("1 file rejected")


def test_what_is_typed_in_a_turn_is_kept_or_delivered_and_the_conversation_goes_on_later(
    grown: Path,
) -> None:
    script: Script = [
        Say("one two three four five six seven eight nine ten " * 20, pause_s=0.05),
        Say("Yes, I am here."),
        Ask(create(another("count_more"), "count_more"), text=SLOWLY, pause_s=0.05),
        Expect(Say("Both seen."), contains(SENTENCE), contains("`count_vowels` changed")),
    ]
    with prompt(script, grown) as (screen, _):
        assert "continues" not in screen.scrolled()
        screen.do("tell me a long story", "one two three")
        screen.type("typed meanwhile")
        screen.wait_for("› typed meanwhile")
        screen.type(CTRL_C)
        screen.wait_for("Interrupted. The conversation is kept")
        screen.do(", and sent", "Yes, I am here.", "∙ 1 step")
        assert "› typed meanwhile, and sent" in screen.scrolled()
        screen.do("go", "One word after another.")
        for at, key in enumerate(SENTENCE):
            screen.type(key)
            if at == len(SENTENCE) // 2:
                (grown / "functions" / "words.py").write_text(MINE)
        screen.wait_for("⟳ count_vowels was changed outside")
        assert "▸ create_function" not in screen.scrolled()
        screen.do("", "delivered at the next step", "Both seen.", "∙ ")
        assert leave(screen) == 0
    with prompt([], grown) as (screen, _):
        screen.wait_for(
            "the conversation continues: you wrote 4 messages, the last: and please count"
        )
        screen.wait_for("/help lists the commands; /new begins another conversation; Ctrl-D leaves")
        screen.type(UP)
        screen.wait_for("› and please count")


def test_nothing_that_a_model_or_function_says_reaches_the_terminal_as_an_escape(
    folder: Path,
) -> None:
    evil = "\x1b]0;pwned\x07 \x9b2J **\x1b[8mbold** [x](http://e/\x1b[2J)"
    code = 'def evil() -> str:\n    """Say.\n    """\n    print("\\x1b[5mout")\n    return "\\x1b]0;pwned\\x07"\n'
    for name, text in (("evil", code), ("says", SAYS), ("slow", SLOW)):
        (folder / "functions" / f"{name}.py").write_text(text)
    calls: Script = [Ask(Wanted("says")), Say("It did."), Ask(Wanted("slow")), Say("It is.")]
    script: Script = [*calls, Ask(Wanted("evil\x1b[5m"), Wanted("evil"), text=evil), Say(evil)]
    with prompt(script, folder) as (screen, _):
        screen.do(
            "go", "  one\\x1b[5m", "  two"
        )  # the last line that a running function prints, under its call
        screen.wait_gone("  one\\x1b[5m")
        screen.wait_for("It did.")
        screen.wait_for("∙ 2 steps")
        screen.do(
            "slow",
            "▸ slow() ██████████░░░░░░░░░░ 2/4 part\\x1b[5m",
            '▸ slow() → "done"',
            "∙ 2 steps",
        )
        screen.wait_gone("2/4")
        screen.do("evil", "∙ 2 steps")
        screen.do("/show 4", "arguments")
        for sent in (b"\x1b]", b"\x07", b"\x1b[2J", b"\x1b[5m", b"\x1b[8m", b"\xc2\x9b"):
            assert sent not in screen.sent, sent
        assert "pwned" in screen.scrolled()


def test_an_editor_is_opened_at_the_functions_line_and_nothing_is_written_over_its_screen(
    grown: Path,
) -> None:
    words = grown / "functions" / "words.py"
    words.write_text(f"# mine\n\n\n{COUNT_VOWELS}")
    (grown / "editor.py").write_text(EDITOR)
    with prompt([], grown, environment={"VISUAL": f"{sys.executable} {grown}/editor.py"}) as (
        screen,
        _,
    ):
        screen.do("/edit count_vowels", "saved")
        assert "editor at +4" in screen.scrolled()
        words.with_name("other.py").write_text("def other(:\n")
        for name in (
            "third",
            "fourth",
        ):  # once the fourth is loaded, any message about the third has appeared
            words.with_name(f"{name}.py").write_text(
                f'def {name}() -> int:\n    """Give it."""\n    return 3\n'
            )
            screen.wait(partial(_taken, grown, name), f"{name} is taken")
        assert " outside" not in screen.scrolled()
        (grown / "go").touch()
        for told in ("count_vowels was changed", "third was added", "│ def other(:"):
            screen.wait_for(told)
        assert leave(screen) == 0


def _taken(root: Path, name: str) -> bool:
    return f"def {name}".encode() in b"".join(
        file.read_bytes() for file in (root / ".knapper").glob("state.db*")
    )


@pytest.mark.slow
def test_what_both_hands_wrote_is_shown_and_either_can_be_taken(grown: Path) -> None:
    words = grown / "functions" / "words.py"
    stays = Expect(Say("Yours stays."), contains('-    """Tally'), contains("confirm_function"))
    with prompt([Ask(REPLACE, text=SLOWLY, pause_s=0.05), stays] * 2, grown, columns=120) as (
        screen,
        _,
    ):
        for mine in (MINE, MINE.replace("Tally the", "Tally all")):
            screen.do("go", "One word after another.")
            words.write_text(mine)
            screen.wait_count("Yours stays.", 1 if mine == MINE else 2)
            screen.wait_count("∙ ", 1 if mine == MINE else 2)
            if mine == MINE:
                screen.do(
                    "/pending count_vowels drop", "The candidate for count_vowels was discarded."
                )
                screen.do("/pending", "There are no rejected candidates.")
            assert words.read_text() == mine
        seen = screen.scrolled()
        assert '-    """Tally all vowels in a text.' in seen
        assert seen.count('+    """Number the vowels in a text.') == 2
        kept = "To use the kept version: /confirm count_vowels; to discard it: /pending count_vowels drop"
        screen.do("/pending", kept)
        screen.do("/confirm count_vowels", "✓ count_vowels added to words")
        assert words.read_text().strip() == AGENTS.strip()
