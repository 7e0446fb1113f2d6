"""`/forget` in a real pseudo-terminal: previewed, confirmed and removed; the conversation continues without it."""

import re
from pathlib import Path

from agent_core.storage import lock_agent, prepare_state_dir
from tests.interfaces.asking import agree, agree_in_full
from tests.interfaces.support import leave, prompt
from tests.kit import Ask, Expect, Say, Script, Seen, Wanted
from tests.kit.program import knapper
from tests.kit.terminal import CTRL_C, UP, Terminal

CTRL_R = "\x12"


def knows_no_zoltan(seen: Seen) -> str | None:
    return "it still knows Zoltan" if "zoltan" in str(seen.body).lower() else None


def test_a_name_is_forgotten_in_mid_conversation_and_the_model_no_longer_sees_it(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    script: Script = [Say("Nice to meet Zoltan."), Expect(Say("Hello again."), knows_no_zoltan)]
    with prompt(script, tmp_path, columns=110) as (screen, _):
        screen.line("this is my friend Zoltan")
        screen.wait_for("Nice to meet Zoltan.")
        screen.wait_for("1 step")
        screen.line("/forget zoltan")
        screen.wait_for("input history  1")
        screen.line("n")
        screen.wait_for("Nothing was forgotten.")
        screen.line("/forget zoltan")
        screen.wait_count("To forget: “zoltan”", 2)
        agree_in_full(screen)
        screen.wait_for("✓ forgot “zoltan”")
        screen.wait_for("main · scripted")
        screen.line("hello?")
        screen.wait_for("Hello again.")
        screen.line("/forget turn last")
        screen.wait_for("To forget: turn 2 of main (“hello?”)")
        agree_in_full(screen)
        screen.wait_for("✓ forgot turn 2 of main")
        assert leave(screen) == 0
    state = [path for path in (tmp_path / ".knapper").rglob("*") if path.is_file()]
    assert [path.name for path in state if b"zoltan" in path.read_bytes().lower()] == []


def test_a_message_of_which_something_was_forgotten_is_not_sent_again(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    with prompt([Say("Hi.")], tmp_path, columns=110) as (screen, _):
        screen.line("this is Zoltan")
        screen.wait_for("1 step")
        screen.line("/forget message last")
        screen.wait_for("To forget: message")
        agree_in_full(screen)
        screen.wait_for("✓ forgot message")
        screen.line("/retry")
        screen.wait_for("Part of the last message was forgotten, so it is not sent again.")
        assert leave(screen) == 0


def test_it_is_refused_while_another_process_holds_one_of_the_agents(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    with prompt([Say("Hi.")], tmp_path, columns=110) as (screen, _):
        screen.line("this is Zoltan")
        screen.wait_for("1 step")
        refused = knapper("memory", "forget", "Zoltan", "-y", cwd=tmp_path)
        assert (refused.returncode, "Agent `main` is in use by process" in refused.stderr) == (1, True)
        assert knapper("memory", "forget", "Zoltan", "--dry-run", cwd=tmp_path).returncode == 0
        with lock_agent(prepare_state_dir(tmp_path), "other"):
            screen.line("/forget message last")
            screen.wait_for("To forget: message")
            agree_in_full(screen)
            screen.wait_for("✓ forgot message")
        assert leave(screen) == 0


def say_and_forget(screen: Terminal, message: str, words: str) -> None:
    """Say two messages, then forget them."""
    for turns, said in enumerate(("good morning", message), 1):
        screen.line(said)
        screen.wait_count("∙ 1 step", turns)
    screen.line(f"/forget {words}")
    screen.wait_for("input history")
    agree_in_full(screen)
    screen.wait_for("✓ forgot")
    screen.wait_for("main · scripted")


TWICE: Script = [Say("Hi there."), Say("Noted.")]


def test_neither_the_cost_nor_the_calls_of_the_session_show_a_forgotten_text(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    with prompt(TWICE, tmp_path, columns=110) as (screen, _):
        say_and_forget(screen, "my password is hunter2 do not tell", "hunter2")
        screen.line("/clear")
        screen.wait_gone("✓ forgot")
        screen.line("/cost")
        screen.wait_for("Since ever, main: 2 turns")
        turns = [row for row in screen.screen() if row.startswith("main ")][:2]
        assert [("good morning" in row, "[forgotten]" in row) for row in turns] == [(True, False), (False, True)]
        screen.line("/show")
        screen.wait_for("No call was made in this session.")
        assert not any("hunter2" in row for row in screen.screen())
        assert leave(screen) == 0


def test_calls_after_it_do_not_get_the_numbers_of_those_before(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "one.py").write_text('def one() -> int:\n    """Return one."""\n    return 1\n')
    calls = Ask(Wanted("one")), Say("One.")
    with prompt([*calls, *calls], tmp_path, columns=110) as (screen, _):
        screen.line("the word is zebra")
        screen.wait_for("∙ 2 steps")
        screen.line("/forget zebra")
        agree_in_full(screen)
        screen.wait_for("✓ forgot")
        screen.wait_for("main · scripted")
        screen.line("again")
        screen.wait_for("[2]")
        screen.line("/show 1")
        screen.wait_for("Type /show 2 … /show 2. /forget dropped those before.")
        screen.line("/show 2")
        screen.wait_for("[2] one · rows 1-")


def test_no_key_brings_back_a_forgotten_text_or_the_line_that_forgot_it(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    with prompt(TWICE, tmp_path, columns=110) as (screen, _):
        say_and_forget(screen, "my password is hunter2 do not tell", "hunter2")
        screen.line("/clear")
        screen.wait_gone("✓ forgot")
        screen.type(UP + UP)
        screen.wait(lambda: any(row.startswith("› yes") for row in screen.screen()), "the answer to the question")
        screen.type(UP)
        screen.wait_for("› good morning")
        screen.type(CTRL_C + CTRL_R + "hunter")
        screen.wait_for("hunter")
        assert not any("hunter2" in row for row in screen.screen())


def test_a_line_that_forgets_what_no_record_holds_is_not_found_again_either(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    with prompt([], tmp_path, columns=110) as (screen, _):
        screen.line("/forget giraffe77")
        screen.wait_for("The record does not contain “giraffe77”.")
        screen.line("/clear")
        screen.wait_gone("The record does not")
        screen.type(UP + UP)
        screen.wait_for("› /clear")
        screen.type(CTRL_C + CTRL_R + "giraffe")
        screen.wait_for("giraffe")
        assert not any("giraffe77" in row for row in screen.screen())


def test_what_was_not_forgotten_is_still_undone(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    with prompt(TWICE, tmp_path, columns=110) as (screen, _):
        say_and_forget(screen, "my giraffe77 is tall", "giraffe77")
        for number, left in enumerate(("my [forgotten] is tall", "good morning"), 1):
            screen.line("/undo")
            screen.wait_for(f"Undo: remove the message “{left}”")
            agree(screen)
            screen.wait_count("removed from the context", number)
        screen.line("/undo")
        screen.wait_for("✗ Nothing is left to undo in this session: what /forget removed cannot be restored.")
        assert leave(screen) == 0


def test_a_turn_that_was_forgotten_is_not_offered_to_be_undone(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    with prompt(TWICE, tmp_path, columns=110) as (screen, _):
        say_and_forget(screen, "my giraffe is tall", "turn last")
        screen.line("/undo")
        screen.wait_for("Undo: remove the message “good morning”")
        screen.line("n")
        screen.wait_for("Nothing was changed.")
        assert leave(screen) == 0


def test_what_was_typed_to_the_debugger_is_forgotten_with_the_rest(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    typed = prepare_state_dir(tmp_path) / "debug_history"
    typed.write_text("\n# 2026-01-02 10:00:00.000000\n+p 'zoltan'\n\n# 2026-01-02 10:01:00.000000\n+p 1\n")
    done = knapper("memory", "forget", "Zoltan", "-y", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert typed.read_text().strip() == "# 2026-01-02 10:01:00.000000\n+p 1"


def test_the_lines_that_go_and_the_nearest_lines_that_stay_are_shown_before_and_after(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    with prompt([Say("Noted.")], tmp_path, columns=110) as (screen, _):
        screen.line("By the way: I like tea\x1b\rand long walks")
        screen.wait_for("1 step")
        screen.line("/memory edit human Likes tea.")
        screen.wait_for("reads now")
        screen.line("/forget I like tea")
        screen.wait_for("user: By the way: I like tea")
        screen.wait_for("the block human still says: Likes tea.")
        assert "long walks" not in screen.scrolled().split("To forget:")[1]
        agree_in_full(screen)
        screen.wait_for("✓ forgot “I like tea”")
        screen.wait_count("the block human still says: Likes tea.", 2)


def test_the_lines_that_go_are_bounded(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    with prompt([Say("Noted.")], tmp_path, columns=110) as (screen, _):
        screen.line("\x1b\r".join(f"{'x' * 500} giraffe {number} {'y' * 500}" for number in range(20)))
        screen.wait_for("1 step")
        screen.line("/forget giraffe")
        screen.wait_for("To forget:")
        screen.wait_for("The first lines to remove:")
        assert len(re.findall(r"giraffe\s+\d", screen.scrolled().split("To forget:")[1])) == 8
