"""The keys of the prompt, in a real pseudo-terminal."""

import re
import time
from pathlib import Path

import pytest

from tests.interfaces.support import flags, leave, prompt
from tests.kit import Expect, Repeat, Say, contains, scripted
from tests.kit.terminal import ALT_ENTER, CTRL_C, CTRL_D, ENTER, ESCAPE, TAB, UP, terminal

LEFT = "\x1b[D"
SHOUT = 'def shout(text: str) -> str:\n    """Shout.\n\n    Args:\n        text: What.\n    """\n    return text\n'
RICH = "# Title\n\n`code`\n\n```python\nx = 1\n```\n"


def test_what_is_typed_before_all_is_ready_is_kept_and_sent(tmp_path: Path) -> None:
    with scripted([Say("Heard.")]) as model, terminal("run", *flags(model), cwd=tmp_path) as screen:
        screen.wait_for("›")
        screen.line("early bird")
        screen.type("next thought")
        screen.wait_for("Heard.")
        screen.wait_for("› next thought")
        assert "› early bird" in screen.scrolled()


def test_alt_enter_and_pasted_lines_make_one_message(tmp_path: Path) -> None:
    pasted = "\n".join(f"line {number}" for number in range(500))
    with prompt([Expect(Say("All of it."), contains(f"first\n{pasted}\nlast"))], tmp_path) as (screen, _):
        screen.type("first" + ALT_ENTER)
        screen.paste(pasted)
        screen.wait_for("line 499")
        screen.type(ALT_ENTER + "last")
        screen.wait_for("last")
        screen.type(ENTER)
        screen.wait_for("All of it.")


def test_pasted_characters_that_act_are_shown_escaped_and_sent_as_they_are(tmp_path: Path) -> None:
    with prompt([Expect(Say("Seen."), contains("a\u202eb\u200bc漢d"))], tmp_path) as (screen, _):
        screen.paste("a\u202eb\u200bcd")
        screen.wait_for("› a\\u202eb\\u200bcd")
        screen.type(LEFT + "漢")
        screen.wait_for("› a\\u202eb\\u200bc漢")
        screen.type(ENTER)
        screen.wait_for("Seen.")
        assert not {"\u202e", "\u200b"} & set(screen.sent.decode())


def test_commands_and_functions_complete_as_one_types(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "voice.py").write_text(SHOUT)
    with prompt([], tmp_path) as (screen, _):
        screen.type("/intro")
        screen.wait_for("Show a function's source, standing")
        screen.type(TAB)
        screen.wait_for("› /introspect")
        screen.type(" sho")
        screen.wait_for("  shout")
        screen.type(TAB)
        screen.wait_for("› /introspect shout")
        screen.type(ENTER + ENTER)
        screen.wait_for("functions/voice.py:1")


def test_a_command_typed_right_after_esc_keeps_its_slash(tmp_path: Path) -> None:
    with prompt([], tmp_path) as (screen, _):
        screen.type(f"{ESCAPE}/help show")
        screen.wait_for("› /help show")
        screen.type(ENTER)
        screen.wait_for("/show [N]")


def test_ctrl_c_empties_the_line_then_hints_and_ctrl_d_leaves(tmp_path: Path) -> None:
    with prompt([], tmp_path) as (screen, _):
        screen.type("never mind")
        screen.wait_for("› never mind")
        screen.type(CTRL_C)
        screen.wait_gone("never mind")
        screen.type(CTRL_C)
        screen.wait_for("Ctrl-D or /exit leaves")
        screen.type("x")
        screen.wait_gone("Ctrl-D or /exit leaves")
        screen.type(CTRL_C + CTRL_D)
        assert screen.exit_code() == 0
        assert not any("main ·" in line for line in screen.screen())


@pytest.mark.parametrize("pause_s", [0, 0.01, 0.02, 0.04])
def test_ctrl_c_right_after_enter_is_never_lost(tmp_path: Path, pause_s: float) -> None:
    with prompt([Repeat(Say("word " * 400, pause_s=0.05))], tmp_path) as (screen, _):
        screen.type("talk" + ENTER)
        time.sleep(pause_s)
        screen.type(CTRL_C)
        screen.wait(lambda: any(end in screen.scrolled() for end in ("not sent", "∙ 0 steps", "∙ 1 step")), "an end")
        assert any(end in screen.scrolled() for end in ("not sent", "Interrupted."))


def test_ctrl_c_takes_back_what_was_typed_before_all_is_ready(tmp_path: Path) -> None:
    with scripted([]) as model, terminal("run", *flags(model), cwd=tmp_path) as screen:
        screen.wait_for("›")
        screen.type("early bird" + ENTER + CTRL_C)
        screen.wait_for("not sent")
        screen.wait_for("/help lists")
        assert leave(screen) == 0


def test_what_was_said_is_in_the_history_of_the_next_run(tmp_path: Path) -> None:
    with prompt([Say("Hi.")], tmp_path) as (screen, _):
        screen.line("remember this line")
        screen.wait_for("1 step")
        assert leave(screen) == 0
    with prompt([], tmp_path) as (screen, _):
        screen.type(UP)
        screen.wait_for("› remember this line")


@pytest.mark.parametrize("variable", ["NO_COLOR", "PLAIN"])
def test_no_color_takes_the_colours_out_of_everything(tmp_path: Path, variable: str) -> None:
    with prompt([Say(RICH)], tmp_path, environment={variable: "1"}) as (screen, _):
        screen.line("go")
        screen.wait_for("1 step")
        screen.line("/help")
        screen.wait_for("Alt-Enter")
        found = re.search(rb"\x1b\[([0-9;]*;)?(3[0-7]|9[0-7])m", screen.sent)
        assert (found is None) == (variable == "NO_COLOR")


def test_a_sandbox_that_is_switched_off_is_shown_in_red_all_the_time(tmp_path: Path) -> None:
    with prompt([], tmp_path, environment={"KNAPPER_SANDBOX_UNSAFE": "true"}) as (screen, _):
        screen.wait_for("SANDBOX OFF")
        assert screen.colour_of("SANDBOX OFF")[1] == "red"


def test_a_second_prompt_on_the_same_agent_says_who_has_it(tmp_path: Path) -> None:
    with prompt([], tmp_path) as (first, model), terminal("run", *flags(model), cwd=tmp_path) as second:
        assert second.exit_code() == 1
        assert str(first.process.pid) in second.scrolled()


@pytest.mark.parametrize("kind", ["directory", "garbage"])
def test_a_history_that_cannot_be_kept_or_read_stops_nobody(tmp_path: Path, kind: str) -> None:
    history = tmp_path / ".knapper" / "history"
    history.parent.mkdir()
    if kind == "directory":
        history.mkdir()
    else:
        history.write_bytes(b"\n# 2024\n+\xff\xfe\x00\x1b[2J\n+" + b"x" * 100_000 + b"\n")
    with prompt([Say("First."), Say("Second.")], tmp_path) as (screen, _):
        for turns, message in enumerate(("one", "two"), 1):
            screen.line(message)
            screen.wait_count("∙ 1 step", turns)
        screen.type(UP)
        screen.wait_count("› two", 2)
        screen.type(CTRL_C)
        assert leave(screen) == 0


def test_a_question_that_is_longer_than_the_screen_is_seen_whole(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "voice.py").write_text(SHOUT.replace("shout(", "shout_with_a_very_long_name_indeed("))
    with prompt([], tmp_path, columns=40) as (screen, _):
        screen.line("/delete shout_with_a_very_long_name_indeed")
        screen.wait_for("and Enter for yes.")
        screen.type(CTRL_C)
        screen.wait_for("Nothing was deleted.")
