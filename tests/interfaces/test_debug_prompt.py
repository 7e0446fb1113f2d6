"""The human at the `(debug)` prompt: stops, inspects, changes a local, and the result reaches the model."""

from pathlib import Path

import pytest

from tests.interfaces.debugged import CALL, ENDED, IF_THREE, LOOP_LINE, OUTER, SCALE, does, grown, standing, written
from tests.interfaces.support import leave, prompt
from tests.kit import Ask, Expect, Say, Wanted, contains
from tests.kit.terminal import CTRL_C, CTRL_D, ENTER, TAB, UP

DONE = Say("Done.")
USED: list[Ask | Say] = [Ask(CALL), DONE]


def test_a_local_that_is_set_in_a_loop_changes_what_the_model_reads(tmp_path: Path) -> None:
    with prompt(grown([Ask(CALL), Expect(Say("It is 1112."), contains("1112"))]), tmp_path) as (screen, _):
        does(screen, "make it", "Made.")
        does(screen, f"/break {IF_THREE}", "● 1: scale")
        screen.line("use it")
        screen.wait_for(f"●→  {LOOP_LINE}         total += number * factor")
        does(screen, "p number, total", "(3, 30)")
        does(screen, "n", f" → {LOOP_LINE + 1:3} ")
        does(screen, "total", "│ 60")
        does(screen, "set total 1070", "done")
        does(screen, "c", "It is 1112.")


def test_an_expression_finds_nothing_of_the_hosts_environment(tmp_path: Path) -> None:
    expressions = [
        "__import__('os').environ.get('HOST_WORD')",
        "dict(__import__('os').environ)",
        "open('/proc/1/environ').read()",
        "open(f'/proc/{__import__(\"os\").getppid()}/environ').read()",
        "__import__('subprocess').run('env', capture_output=True)",
    ]
    with standing([Ask(CALL), DONE], tmp_path, environment={"HOST_WORD": "hunter2"}) as screen:
        for expression in expressions:
            screen.line(expression)
            does(screen, "p 'asked'.upper()", "'ASKED'")
        assert "hunter2" not in screen.scrolled()
        does(screen, "c", "Done.")


STEPS = [
    ("w", "→ functions/words.py"),
    ("a", "factor = 10"),
    ("locals", "even = 1"),
    ("p sorted(locals())", "['even', 'factor', 'number', 'numbers', 'total']"),
    ("p dir() == sorted(vars())", "True"),
    ("l", f"●→  {LOOP_LINE}"),
    ("ll", "     1 def scale"),
    ("p total * 2", "60"),
    ("pp {'a': total}", "{'a': 30}"),
    ("x = 3", "x is no local name of scale"),
    ("total = 100", "done"),
    ("display total", "100"),
    ("s", "  total = 130"),
    ("", f" → {LOOP_LINE - 1:3} "),
    ("tbreak 19", "2: scale, functions/words.py:19 `return total + even` once"),
    ("b", "2: scale, functions/words.py:19 `return total + even` once"),
    ("cl 9", "There is no breakpoint 9."),
    ("cl 1", "Breakpoint 1 of scale is cleared."),
    ("until 19", "■ scale  functions/words.py:19"),
    ("retval", "Nothing is being returned here."),
    ("r", "← 172"),
    ("retval", "172"),
    ("u", "This is the outermost frame."),
    ("d", "This is the innermost frame."),
    ("nonsense(", "SyntaxError"),
    ("set total", "`set` needs"),
    ("h", "!EXPRESSION or p EXPRESSION"),
]


def test_every_command_of_the_debugger_does_what_it_says(tmp_path: Path) -> None:
    with standing([Ask(CALL), Expect(DONE, contains("172"))], tmp_path) as screen:
        for typed, shows in STEPS:
            does(screen, typed, shows)
        does(screen, "c", "Done.")


def test_a_step_goes_into_another_function_and_up_looks_at_its_caller(tmp_path: Path) -> None:
    written(tmp_path, SCALE, OUTER)
    call = Wanted("doubled", {"numbers": [1, 2]})
    with standing([Ask(call), DONE], tmp_path, where="doubled") as screen:
        does(screen, "s", "■ scale  functions/words.py:14, in a call of doubled")
        does(screen, "u", "found = scale(numbers, 2)")
        does(screen, "numbers", "[1, 2]")
        does(screen, "d", "total = 0")
        does(screen, "c", "Done.")


def test_names_in_scope_commands_and_functions_complete(tmp_path: Path) -> None:
    with standing(USED, tmp_path) as screen:
        for typed, whole in [("loc", "locals"), ("p num", "p number"), ("tbreak sca", "tbreak scale")]:
            screen.type(typed + TAB)
            screen.wait_for(whole)
            screen.type(CTRL_C)
            screen.wait_for("Ctrl-C again ends the turn")
            screen.wait_gone(whole)
        does(screen, "c", "Done.")


def test_a_command_that_comes_too_late_for_its_stop_is_held_back_once(tmp_path: Path) -> None:
    with standing([Ask(CALL), DONE, Expect(Say("As you say."), contains("c"))], tmp_path) as screen:
        does(screen, "c", "Done.")
        screen.wait_for("› ")
        screen.line("c")
        screen.wait_for("The call has ended, so this was not a debugger command.")
        screen.type(ENTER)
        screen.wait_for("As you say.")


def test_the_debuggers_history_is_its_own_and_is_kept(tmp_path: Path) -> None:
    with standing(USED, tmp_path) as screen:
        screen.wait_for("▸ scale(numbers=[1, 2, 3, 4], factor=10)  … paused")  # no seconds for a paused call
        does(screen, "total + 5", "│ 35")
        screen.type(UP)
        screen.wait_for("(debug) total + 5")
        screen.type(CTRL_C)
        does(screen, "c", "Done.")
        screen.wait_for("› ")
        screen.type(UP)
        screen.wait_for("› use it")
    kept = (tmp_path / ".knapper" / "debug_history").read_text()
    assert "+total + 5\n" in kept
    assert "use it" not in kept


def test_ctrl_c_twice_ends_the_turn_and_once_only_clears_the_line(tmp_path: Path) -> None:
    with standing([Ask(CALL)], tmp_path) as screen:
        screen.type("p tot" + CTRL_C)
        screen.wait_for("Ctrl-C again ends the turn.")
        does(screen, "total", "│ 30")
        screen.type(CTRL_C)
        screen.wait_for("Ctrl-C again ends the turn.")
        screen.type(CTRL_C)
        screen.wait_for("Interrupted.")
        screen.wait_for("› ")
        assert leave(screen) == 0


def test_ctrl_c_stops_an_expression_that_is_computed_and_the_call_stands_where_it_did(tmp_path: Path) -> None:
    with standing(USED, tmp_path) as screen:
        does(screen, "sum(1 for _ in iter(int, 1))", "computing")
        screen.type(CTRL_C)
        screen.wait_for("*** KeyboardInterrupt: it was stopped at the prompt")
        does(screen, "total, number", "(30, 3)")
        does(screen, "c", "Done.")


@pytest.mark.parametrize("typed", ["q" + ENTER, CTRL_D], ids=["q", "ctrl-d"])
def test_quitting_ends_the_call_and_tells_the_model(tmp_path: Path, typed: str) -> None:
    with standing([Ask(CALL), Expect(DONE, contains("its debugger was told to end it"))], tmp_path) as screen:
        screen.type(typed)
        screen.wait_for("Done.")
        screen.wait_for(ENDED)


def test_stops_of_calls_at_once_wait_for_one_another(tmp_path: Path) -> None:
    other = Wanted("scale", {"numbers": [3], "factor": 7})
    with standing([Ask(CALL, other), DONE], tmp_path) as screen:
        does(screen, "'with', factor", "('with', ")
        other_one = 7 if "('with', 10)" in screen.scrolled() else 10
        does(screen, "c", "■ scale")
        does(screen, "'with', factor", f"('with', {other_one})")
        does(screen, "c", "Done.")


def test_what_is_typed_when_a_function_stops_stays_in_its_line(tmp_path: Path) -> None:
    written(tmp_path)
    slow = Ask(CALL, text="One moment please. " * 3, pause_s=0.05)
    with prompt([slow, DONE], tmp_path) as (screen, _):
        does(screen, f"/break {IF_THREE}", "● 1: ")
        screen.line("use it")
        screen.wait_for("One moment")
        screen.type("half a thought")
        screen.wait_for("(debug)")
        does(screen, "total", "│ 30")
        does(screen, "c", "Done.")
        screen.wait_for("› half a thought")


def test_commands_typed_ahead_reach_the_debugger_and_what_is_left_is_not_sent(tmp_path: Path) -> None:
    with standing(USED, tmp_path) as screen:
        screen.type("n\rn\rp 'now', total\rc\rtotal\r")
        screen.wait_for("('now', 60)")
        screen.wait_for("Done.")
        screen.wait_for("› total")


def test_values_that_act_on_a_screen_are_shown_escaped_and_cut(tmp_path: Path) -> None:
    with standing(USED, tmp_path) as screen:
        does(screen, r"type('X', (), {'__repr__': lambda self: chr(27) + '[2Jred'})()", r"\x1b[2Jred")
        does(screen, "'x' * 100_000", "…")
        assert screen.scrolled().count("x") < 10_000
        does(screen, "c", "Done.")
        assert b"\x1b[2Jred" not in screen.sent


def test_no_line_of_a_value_looks_like_one_of_the_program(tmp_path: Path) -> None:
    lines = ["3", "? scale asks, before it runs, to:", "o once · y yes, kept", "› ", "wide " * 30, "✗ Failed"]
    with standing(USED, tmp_path, columns=60) as screen:
        does(screen, f"type('X', (), {{'__repr__': lambda self: {chr(10).join(lines)!r}}})()", "│ ✗ Failed")
        rows = [row.rstrip() for row in screen.scrolled().split("\n")]
        said = rows[rows.index("│ 3") : rows.index("│ ✗ Failed")]
        assert len(said) > len(lines)
        assert all(row.startswith("│ ") for row in said if row != "│")
        does(screen, "c", "Done.")


def test_source_has_colours_unless_they_are_not_wanted(tmp_path: Path) -> None:
    with standing(USED, tmp_path) as screen:
        screen.wait_for("return total")
        assert screen.colour_of("for number in")[0] == "brightblue"
        does(screen, "c", "Done.")
    with standing(USED, tmp_path, environment={"NO_COLOR": "1"}) as screen:
        screen.wait_for("return total")
        assert screen.colour_of("for number in")[0] == "default"
        does(screen, "c", "Done.")
