"""The keys of the prompt, in a real pseudo-terminal."""

import time
from pathlib import Path

from tests.interfaces.support import flags, leave, prompt
from tests.kit import Expect, Repeat, Say, Script, contains, scripted
from tests.kit.terminal import ALT_ENTER, CTRL_C, CTRL_D, ENTER, ESCAPE, TAB, terminal

LEFT = "\x1b[D"
SHOUT = 'def shout(text: str) -> str:\n    """Shout.\n\n    Args:\n        text: What.\n    """\n    return text\n'


def test_what_is_typed_before_all_is_ready_is_kept_or_taken_back_with_ctrl_c(
    tmp_path: Path,
) -> None:
    with scripted([Say("Heard.")]) as model:
        with terminal("run", *flags(model), cwd=tmp_path) as screen:
            screen.wait_for("›")
            screen.line("early bird")
            screen.type("next thought")
            screen.wait_for("Heard.")
            screen.wait_for("› next thought")
            assert "› early bird" in screen.scrolled()
        with terminal("run", *flags(model), "--agent", "other", cwd=tmp_path) as screen:
            screen.wait_for("›")
            screen.type("early bird" + ENTER + CTRL_C)
            screen.wait_for("not sent")
            screen.wait_for("/help lists")
            assert leave(screen) == 0


def test_what_is_pasted_is_one_message_sent_as_it_is_and_shown_escaped_and_folded(
    tmp_path: Path,
) -> None:
    pasted = "\n".join(f"{number} 漢" for number in range(500))
    long = "wor\x01" * 1_000
    script: Script = [
        Expect(Say("All of it."), contains(f"first\n{pasted}\nlast")),
        Expect(Say("Folded."), contains(pasted)),
        Expect(Say("Seen."), contains("a\u202eb\u200bc漢d")),
        Say("Read."),
    ]
    with prompt(script, tmp_path) as (screen, model):
        screen.type("first" + ALT_ENTER)
        screen.paste(pasted)
        screen.wait_for("499 漢")
        screen.type(ALT_ENTER + "last")
        screen.wait_for("last")
        screen.do("", "All of it.", "∙ 1 step")
        screen.line("/clear")
        screen.wait_gone("All of it.")
        before = screen.scrolled().count("漢")
        screen.paste(pasted)
        screen.wait_for("… 500 lines; Enter sends them as one message")
        assert sum("漢" in row for row in screen.screen()) <= 8
        screen.do("", "Folded.", "  … 489 more lines", "∙ 1 step")
        assert screen.scrolled().count("漢") == before + 11
        screen.paste("a\u202eb\u200bcd")
        screen.wait_for("› a\\u202eb\\u200bcd")
        screen.type(LEFT + "漢")
        screen.wait_for("› a\\u202eb\\u200bc漢")
        screen.do("", "Seen.", "∙ 1 step")
        assert not {"\u202e", "\u200b"} & set(screen.sent.decode())
        screen.paste(long)
        screen.wait_for("[pasted: 4,000 characters]")
        screen.type("zq")
        screen.wait_for("zq", timeout_s=3)
        screen.do("", "Read.")
        assert str(model.requests[-1].messages[-1]["content"]).startswith(f"{long}zq")


def test_keys_complete_clear_the_line_and_leave(folder: Path) -> None:
    (folder / "functions" / "voice.py").write_text(SHOUT)
    with prompt([], folder) as (screen, _):
        screen.type("/intro")
        screen.wait_for("Show everything about a function")
        screen.type(TAB)
        screen.wait_for("› /introspect")
        screen.type(" sho")
        screen.wait_for("  shout")
        screen.type(TAB)
        screen.wait_for("› /introspect shout")
        screen.type(ENTER + ENTER)
        screen.wait_for("functions/voice.py:1")
        screen.type(f"{ESCAPE}/help show")  # right after Esc, the slash stays
        screen.wait_for("› /help show")
        screen.do("", "/show [N]")
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


def test_ctrl_c_right_after_enter_is_never_lost(tmp_path: Path) -> None:
    with prompt([Repeat(Say("word " * 400, pause_s=0.05))], tmp_path) as (screen, _):

        def ends() -> list[int]:
            return [screen.scrolled().count(end) for end in ("not sent", "Interrupted.")]

        for pause_s in (0, 0.02):
            screen.type("talk" + ENTER)
            time.sleep(pause_s)
            screen.type(CTRL_C)
            screen.wait(lambda: any(ends()), "an interruption", 15)  # the reply takes 20 s
            screen.line("/clear")
            screen.wait(lambda: not any(ends()), "an empty screen")


def test_a_sandbox_that_is_off_is_shown_in_red_and_a_long_question_is_seen_whole(
    folder: Path,
) -> None:
    name = "shout_with_a_very_long_name_indeed"
    (folder / "functions" / "voice.py").write_text(SHOUT.replace("shout(", f"{name}("))
    unsafe = {"KNAPPER_SANDBOX_UNSAFE": "true"}
    with prompt([], folder, columns=40, environment=unsafe) as (screen, _):
        screen.wait_for("SANDBOX OFF")
        assert screen.colour_of("SANDBOX OFF")[1] == "red"
        screen.line(f"/delete {name}")  # a question that is longer than a row is seen whole
        screen.wait_for("Enter alone: no.")
        screen.type(CTRL_C)
        screen.wait_for("Nothing was changed.")
