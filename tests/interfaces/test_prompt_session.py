"""A whole conversation in a real pseudo-terminal: create, prove, use, edit and break a function, and continue."""

from pathlib import Path

from tests.interfaces.support import COUNT_VOWELS, FLAWED, SLOW, create, leave, prompt
from tests.kit import Ask, Expect, Say, Script, Wanted, contains, shows
from tests.kit.terminal import CTRL_C, Terminal

CALL = Wanted("count_vowels", {"text": "queueing"})
FIX = Wanted("edit_function", {"function_name": "count_vowels", "old_text": "        7\n", "new_text": "        0\n"})
GROW: Script = [
    Ask(create(FLAWED), text="I lack a function for that."),
    Expect(Ask(FIX), contains("returned 0, and the example says 7")),
    Expect(Ask(CALL), shows("count_vowels")),
    Expect(Say("There are **5** vowels."), contains("5")),
]
SAYS = '''def says(self) -> None:
    """Say lines."""
    import time
    for line in ("one\\x1b[5m", "two"):
        print(line)
        time.sleep(0.6)
'''


def test_a_function_is_refused_fixed_used_and_shown_in_one_turn(tmp_path: Path) -> None:
    with prompt(GROW, tmp_path, columns=100) as (screen, _):
        screen.line("how many vowels are in 'queueing'?")
        screen.wait_for("∙ created count_vowels · 4 steps")
        seen = screen.scrolled()
        assert leave(screen) == 0
    for part in (
        "› how many vowels are in 'queueing'?",
        "I lack a function for that.",
        "✗ count_vowels refused: 1 problem",
        'for `count_vowels("xyz")` you wrote `7`',
        "✓ made count_vowels(text) -> int · 2 of 2 examples · computes only",
        "▸ count_vowels(text='queueing') → 5",
        "There are 5 vowels.",
    ):
        assert part in seen, part
    assert "def count_vowels(text: str) -> int:" in (tmp_path / "functions" / "words.py").read_text()


def test_a_save_by_hand_appears_above_what_is_typed_and_the_model_is_told(tmp_path: Path) -> None:
    then = [Expect(Say("I see."), contains("`louder` appeared: louder(text, marks: int = 1)"))]
    now = Expect(
        Say("Still here."), contains("its last good version, if it had one, stays in use: functions/loud.py:1")
    )
    with prompt([*then, now], tmp_path) as (screen, _):
        screen.type("half a sentence")
        screen.wait_for("› half a sentence")
        save(tmp_path, 'def louder(text: str, marks: int = 1) -> str:\n    """Shout.\n\n    Args:\n')
        screen.wait_for("⟳ louder was added outside")
        screen.wait_for("› half a sentence")
        screen.line(" and its end")
        screen.wait_for("I see.")
        screen.wait_for("1 step")
        (tmp_path / "functions" / "loud.py").write_text("def louder(:\n")
        screen.wait_for("✗ rejected: functions/loud.py:1")
        screen.line('/test louder {"text": "hi"}')
        screen.wait_for("hi!")
        screen.line("and now?")
        screen.wait_for("Still here.")


def save(root: Path, head: str) -> None:
    body = '        text: What.\n        marks: How many.\n    """\n    return text + "!" * marks\n'
    (root / "functions" / "loud.py").write_text(head + body)


def test_ctrl_c_ends_the_turn_and_keeps_what_is_being_typed(tmp_path: Path) -> None:
    slow = Say("one two three four five six seven eight nine ten " * 20, pause_s=0.05)
    with prompt([slow, Say("Yes, I am here.")], tmp_path) as (screen, _):
        screen.line("tell me a long story")
        screen.wait_for("one two three")
        screen.type("typed meanwhile")
        screen.wait_for("› typed meanwhile")
        screen.type(CTRL_C)
        screen.wait_for("Interrupted. The conversation is kept")
        screen.line(", and sent")
        screen.wait_for("Yes, I am here.")
        assert "› typed meanwhile, and sent" in screen.scrolled()


def test_a_message_typed_during_a_turn_is_delivered_at_its_next_step(tmp_path: Path) -> None:
    script: Script = [
        Ask(create(COUNT_VOWELS), text="Wait a moment. " * 12, pause_s=0.03),
        Expect(Say("Noted."), contains("use words")),
    ]
    with prompt(script, tmp_path) as (screen, _):
        screen.line("make a function")
        screen.wait_for("Wait a moment.")
        screen.line("and use words.py")
        screen.wait_for("delivered at the next step")
        screen.wait_for("Noted.")


def test_a_conversation_that_goes_on_says_so_when_it_is_opened_again(tmp_path: Path) -> None:
    with prompt([Say("Noted.")], tmp_path) as (screen, _):
        assert "goes on" not in screen.scrolled()
        screen.line("the colour is teal")
        screen.wait_for("∙ 1 step")
        assert leave(screen) == 0
    with prompt([], tmp_path) as (screen, _):
        screen.wait_for("the conversation continues: you wrote 1 message, the last: the colour is teal")


def test_nothing_that_a_model_or_function_says_reaches_the_terminal_as_an_escape(tmp_path: Path) -> None:
    evil = "\x1b]0;pwned\x07 \x9b2J **\x1b[8mbold** [x](http://e/\x1b[2J)"
    code = 'def evil() -> str:\n    """Say.\n    """\n    print("\\x1b[5mout")\n    return "\\x1b]0;pwned\\x07"\n'
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "evil.py").write_text(code)
    with prompt([Ask(Wanted("evil\x1b[5m"), Wanted("evil"), text=evil), Say(evil)], tmp_path) as (screen, _):
        screen.line("go")
        screen.wait_for("2 steps")
        screen.line("/show 2")
        screen.wait_for("arguments")
        escapes(screen)


def escapes(screen: Terminal) -> None:
    for sent in (b"\x1b]", b"\x07", b"\x1b[2J", b"\x1b[5m", b"\x1b[8m", b"\xc2\x9b"):
        assert sent not in screen.sent, sent
    assert "pwned" in screen.scrolled()


def test_the_last_line_that_a_running_function_prints_stands_under_its_call(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "says.py").write_text(SAYS)
    with prompt([Ask(Wanted("says")), Say("It did.")], tmp_path) as (screen, _):
        screen.line("go")
        screen.wait_for("  one\\x1b[5m")
        screen.wait_for("  two")
        screen.wait_gone("  one\\x1b[5m")
        screen.wait_for("It did.")
        assert b"\x1b[5m" not in screen.sent


def test_progress_of_a_running_function_moves_above_the_prompt(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "slow.py").write_text(SLOW)
    with prompt([Ask(Wanted("slow")), Say("It is.")], tmp_path) as (screen, _):
        screen.line("go")
        screen.wait_for("▸ slow() ██████████░░░░░░░░░░ 2/4 part\\x1b[5m")
        screen.wait_for('▸ slow() → "done"')
        screen.wait_gone("2/4")
        screen.wait_for("2 steps")
