"""What several windows of one conversation share: stops of the debugger, what a message chose, what is typed."""

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.kit import Ask, Repeat, Say, ScriptedModel, Seen, Stall, Step, Wanted, scripted
from tests.kit.program import knapper
from tests.kit.terminal import CTRL_C, ENTER, Terminal, terminal
from tests.kit.waiting import patience_s

from .support import COUNT_VOWELS, create, flags
from .test_two_windows import window

DOUBLE = '''def double(n: int) -> int:
    """Double a number.

    Args:
        n: The number.

    >>> double(2)
    4
    >>> double(5)
    10
    """
    return 2 * n
'''
STANDS = "■ count_vowels  functions/words.py"
CALL = Wanted("count_vowels", {"text": "queueing"})


def step(seen: Seen) -> Step:
    """Call the function if asked to `count`, stall for ever at the first `stuck`, else repeat what was said."""
    last = [place for place, one in enumerate(seen.messages) if one["role"] == "user"][-1]
    said = str(seen.messages[last]["content"])
    results = [one for one in seen.messages[last:] if one["role"] == "tool"]
    if said.startswith("count"):
        return Say(f"counted {results[-1]['content']}") if results else Ask(CALL)
    if "stuck" in said and "Your last turn" not in seen.text and "stopped" not in seen.text:
        return Stall(60, "It begins")
    return Say(f"heard {said} to its end", pause_s=0.5 if "slow" in said else 0)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with scripted([Repeat(step)]) as model:
        yield model


@pytest.fixture(autouse=True)
def root(tmp_path: Path, model: ScriptedModel) -> Path:
    (tmp_path / "functions").mkdir()
    (tmp_path / "knapper.toml").write_text("")
    (tmp_path / "functions" / "words.py").write_text(COUNT_VOWELS)
    return tmp_path


def stopped(first: Terminal, second: Terminal) -> None:
    """Stop a function in a turn of the first window, which the second one shows."""
    first.do("/break count_vowels", "● 1: count_vowels")
    first.line("count them")
    first.wait_for("(debug)")
    second.wait_for("■ count_vowels is stopped at functions/words.py")
    second.wait_for("/break here steps it in this one")


def test_a_stop_is_shown_in_all_windows_and_its_own_steps(root: Path, model: ScriptedModel) -> None:
    with window(model, root) as first, window(model, root) as second:
        stopped(first, second)
        first.do("p text", "queueing")
        assert "(debug)" not in second.scrolled()
        first.line("c")
        for screen in (first, second):
            screen.wait_for("counted")


def test_another_window_takes_a_stop_over_steps_and_gives_it_back(
    root: Path, model: ScriptedModel
) -> None:
    with window(model, root) as first, window(model, root) as second:
        stopped(first, second)
        second.line("/break here")
        second.wait_for("(debug)")
        first.wait_for("It is stepped in another window.")
        second.do("p text", "queueing")
        second.line("text = 'aaa'")
        second.do("p text + 'z'", "aaaz")
        first.line("/break here")
        first.wait_count(STANDS, 2)
        first.do("p text + 'y'", "aaay")
        first.line("c")
        for screen in (first, second):
            screen.wait_for("∙ 2 steps")
            assert "counted 3" in screen.scrolled()
        second.do("/break here", "No function is stopped in another window.")


def test_a_window_that_leaves_lets_go_of_the_stop_that_it_stepped(
    root: Path, model: ScriptedModel
) -> None:
    with window(model, root) as first:
        with window(model, root) as second:
            stopped(first, second)
            second.line("/break here")
            second.wait_for("(debug)")
            os.kill(second.process.pid, signal.SIGHUP)
            second.process.wait(patience_s())
        first.wait_count(STANDS, 2)
        first.line("c")
        first.wait_for("counted 5")


def test_a_half_typed_line_survives_what_comes_from_another_window(
    root: Path, model: ScriptedModel
) -> None:
    with window(model, root) as first, window(model, root) as second:
        second.type("I was about to sa")
        first.line("slow one")
        second.wait_for("∙ 1 step")
        (root / "functions" / "more.py").write_text(
            COUNT_VOWELS.replace("count_vowels", "count_more")
        )
        second.wait_for("count_more")
        second.type("y this" + ENTER)
        second.wait_for("heard I was about to say this")


def test_ctrl_c_says_in_both_windows_that_the_turn_ended(root: Path, model: ScriptedModel) -> None:
    with window(model, root) as first, window(model, root) as second:
        first.line("slow one")
        second.wait_for("heard")
        second.type(CTRL_C)
        for screen in (first, second):
            screen.wait_for("nterrupted")


def test_a_message_is_answered_with_what_its_sender_chose_if_another_process_answers_it(
    root: Path, model: ScriptedModel
) -> None:
    """The sender is killed while its message waits."""
    with window(model, root) as screen:
        screen.line("slow one " * 12)
        screen.wait_for("heard")
        options = ("--model", "other", "--max-steps", "1", "--mode", "plan")
        with terminal("run", *flags(model), *options, "--message", "count two", cwd=root) as sender:
            screen.wait(lambda: "count two" in waiting(root), "it waits")
            os.kill(sender.process.pid, signal.SIGKILL)
        screen.wait_for("The message asks for the model other, which cannot be opened")
        screen.wait_for("› count two")
        screen.wait_for("Stopped at the limit of steps")
    asked = model.requests[-1].body
    assert "This turn is a plan" in str(asked["messages"])


def waiting(root: Path) -> str:
    return knapper("waiting", "list", cwd=root).stdout


def test_a_window_without_a_model_hands_its_message_over(root: Path, model: ScriptedModel) -> None:
    with window(model, root) as screen:
        ran = knapper("run", "--message", "two", cwd=root)
        assert ran.returncode == 0, ran.stderr
        assert "heard two to its end" in ran.stdout
        assert "No model can answer here" in ran.stderr
        screen.wait_for("heard two to its end")


def test_where_nobody_else_is_a_window_without_a_model_says_so_at_once(
    root: Path, model: ScriptedModel
) -> None:
    before = time.monotonic()
    ran = knapper("run", "--message", "two", cwd=root)
    assert ran.returncode != 0
    assert "No model can answer here" not in ran.stderr
    print(f"{time.monotonic() - before:.1f} s")


def test_a_breakpoint_of_a_prompt_stops_a_turn_that_another_process_runs(
    root: Path, model: ScriptedModel
) -> None:
    with window(model, root) as screen, ThreadPoolExecutor(1) as thread:
        screen.do("/break count_vowels", "● 1: count_vowels")
        ran = thread.submit(knapper, "run", *flags(model), "--message", "count them", cwd=root)
        screen.wait_for("(debug)")
        screen.do("text = 'aaaa'", "text")
        screen.line("c")
        done = ran.result(patience_s())
        assert "counted 4" in done.stdout, done.stderr
        screen.wait_for("counted 4")
        screen.do("/break clear", "cleared")
        again = knapper("run", *flags(model), "--message", "count them", cwd=root)
        assert "counted 5" in again.stdout


def test_a_breakpoint_of_a_prompt_that_was_killed_stops_nothing_for_long(
    root: Path, model: ScriptedModel
) -> None:
    with window(model, root) as screen:
        screen.do("/break count_vowels", "● 1: count_vowels")
        os.kill(screen.process.pid, signal.SIGKILL)
        screen.process.wait(patience_s())
    ran = knapper("run", *flags(model), "--message", "count them", cwd=root)
    assert "counted 5" in ran.stdout, ran.stderr
    before = time.monotonic()
    ran = knapper("run", *flags(model), "--message", "count them", cwd=root)
    assert "counted 5" in ran.stdout, ran.stderr
    print(f"{time.monotonic() - before:.1f} s the second time")


def test_what_an_agent_makes_in_another_window_is_told_once_and_a_saved_file_in_both(
    root: Path,
) -> None:
    with (
        scripted([Ask(create(DOUBLE, "double")), Repeat(Say("Made."))]) as model,
        window(model, root) as first,
        window(model, root) as second,
    ):
        first.line("make it")
        for screen in (first, second):
            screen.wait_for("✓ made double")
            screen.wait_for("∙ ")
        (root / "functions" / "more.py").write_text(
            DOUBLE.replace("double", "thrice")
            .replace("2 *", "3 *")
            .replace("4", "6")
            .replace("10", "15")
        )
        for screen in (first, second):
            screen.wait_for("⟳ thrice was added outside")
            assert "double was added" not in screen.scrolled()
        second.do("=thrice(3)", "9")
