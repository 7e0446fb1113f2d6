"""The human at the `(debug)` prompt: stops, inspects, changes a local, and the result reaches the model."""

from pathlib import Path

import pytest

from tests.interfaces.debugged import CALL, LOOP_LINE, does, standing
from tests.interfaces.support import leave
from tests.kit import Ask, Expect, Say, Script, contains
from tests.kit.terminal import CTRL_C, TAB, UP

DONE = Say("Done.")
USED: Script = [Ask(CALL), DONE]
STEPS = [
    ("w", "→ functions/words.py"),
    ("locals", "even = 1"),
    ("p sorted(locals())", "['even', 'factor', 'number', 'numbers', 'total']"),
    ("l", f"●→  {LOOP_LINE}"),
    ("p total * 2", "60"),
    ("x = 3", "x is no local name of scale"),
    ("set total 7", "done"),
    ("total = 100", "done"),
    ("display total", "100"),
    ("s", "  total = 130"),
    ("", f" → {LOOP_LINE - 1:3} "),
    ("tbreak 19", "2: scale, functions/words.py:19 `return total + even` once"),
    ("b", "2: scale, functions/words.py:19 `return total + even` once"),
    ("cl 1", "Breakpoint 1 of scale is cleared."),
    ("until 19", "■ scale  functions/words.py:19"),
    ("r", "← 172"),
    ("retval", "172"),
    ("u", "This is the outermost frame."),
    ("h", "!EXPRESSION or p EXPRESSION"),
]
OF_THE_HOST = [
    "__import__('os').environ.get('HOST_WORD')",
    "dict(__import__('os').environ)",
    "open('/proc/1/environ').read()",
    "open(f'/proc/{__import__(\"os\").getppid()}/environ').read()",
    "__import__('subprocess').run('env', capture_output=True)",
]
FORGED = [
    "3",
    "? scale asks, before it runs, to:",
    "o once · y yes, kept",
    "› ",
    "wide " * 60,
    "✗ Failed",
]


def test_every_command_of_the_debugger_does_what_it_says_and_a_set_local_reaches_the_model(
    tmp_path: Path,
) -> None:
    with standing([Ask(CALL), Expect(DONE, contains("172"))], tmp_path) as screen:
        screen.wait_for(f"●→  {LOOP_LINE}         total += number * factor")
        for typed, shows in STEPS:
            does(screen, typed, shows)
        screen.do("c", "Done.", "∙ ")


def test_an_expression_finds_nothing_of_the_host_and_acts_on_no_screen(tmp_path: Path) -> None:
    with standing(USED, tmp_path, environment={"HOST_WORD": "hunter2"}) as screen:
        screen.wait_for("return total")
        assert screen.colour_of("for number in")[0] == "magenta"
        for expression in OF_THE_HOST:
            screen.line(expression)
            does(screen, "p 'asked'.upper()", "'ASKED'")
        assert "hunter2" not in screen.scrolled()
        does(
            screen, r"type('X', (), {'__repr__': lambda self: chr(27) + '[2Jred'})()", r"\x1b[2Jred"
        )
        does(screen, "'x' * 100_000", "…")
        assert screen.scrolled().count("x") < 10_000
        assert b"\x1b[2Jred" not in screen.sent
        does(
            screen,
            f"type('X', (), {{'__repr__': lambda self: {chr(10).join(FORGED)!r}}})()",
            "│ ✗ Failed",
        )
        rows = [row.rstrip() for row in screen.scrolled().split("\n")]
        said = rows[rows.index("│ 3") : rows.index("│ ✗ Failed")]
        assert len(said) > len(FORGED)
        assert all(row.startswith("│ ") for row in said if row != "│")
        screen.do("c", "Done.", "∙ ")


@pytest.mark.slow
def test_keys_complete_recall_and_interrupt_and_ctrl_c_twice_ends_the_turn(tmp_path: Path) -> None:
    script: Script = [*USED, Expect(Say("As you say."), contains("c")), *USED, Ask(CALL)]
    with standing(script, tmp_path) as screen:
        screen.wait_for(
            "▸ scale(numbers=[1, 2, 3, 4], factor=10)  … paused"
        )  # no seconds for a paused call
        for typed, whole in [
            ("loc", "locals"),
            ("p num", "p number"),
            ("tbreak sca", "tbreak scale"),
        ]:
            screen.type(typed + TAB)
            screen.wait_for(whole)
            screen.type(CTRL_C)
            screen.wait_for("Ctrl-C again ends the turn")
            screen.wait_gone(whole)
        does(screen, "sum(1 for _ in iter(int, 1))", "computing")
        screen.type(CTRL_C)
        screen.wait_for("*** KeyboardInterrupt: it was stopped at the prompt")
        does(screen, "total, number", "(30, 3)")
        does(screen, "total + 5", "│ 35")
        screen.type(UP)
        screen.wait_for("(debug) total + 5")
        screen.type(CTRL_C)
        screen.do("c", "Done.", "∙ ")
        does(screen, "c", "The call has ended, so this was not a debugger command.")
        does(screen, "", "As you say.")
        screen.wait_count("∙ ", 2)
        screen.type(UP + UP)
        screen.wait_for("› use it")
        kept = (tmp_path / ".knapper" / "debug_history").read_text()
        assert ("+total + 5\n" in kept, "use it" in kept) == (True, False)
        does(screen, "", "(debug)")  # the recalled line is sent
        screen.type(
            "n\rn\rp 'now', total\rc\rtotal\r"
        )  # typed ahead: what is left of it is not sent
        screen.wait_for("('now', 60)")
        screen.wait_count("Done.", 2)
        screen.wait_for("› total")
        screen.wait_count("∙ ", 3)
        screen.type(CTRL_C)
        screen.wait_gone("› total")
        does(screen, "use it", "(debug)")
        screen.type("p tot" + CTRL_C)
        screen.wait_for("Ctrl-C again ends the turn.")
        does(screen, "total", "│ 30")
        screen.type(CTRL_C)
        screen.wait_for("Ctrl-C again ends the turn.")
        screen.type(CTRL_C)
        screen.wait_for("Interrupted.")
        screen.wait_for("› ")
        assert leave(screen) == 0
