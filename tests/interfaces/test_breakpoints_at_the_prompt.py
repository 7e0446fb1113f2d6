"""A human sets, lists and clears breakpoints, stops the next call at once, and interrupts a running loop."""

import time
from pathlib import Path

import pytest

from tests.interfaces.debugged import CALL, LOOP_LINE, SCALE, does, standing, written
from tests.interfaces.support import flags, prompt
from tests.kit import Ask, Expect, Say, Script, Wanted, contains, scripted
from tests.kit.program import knapper
from tests.kit.sources import function_text

DONE = Say("Done.")
SPIN = "import time\n\n\n" + function_text(
    "spin() -> int",
    "Count for long.",
    "rounds = 0\nwhile rounds < 1_000:\n    time.sleep(0.02)\n    rounds += 1\nreturn rounds",
)
ARGUMENTS = '{"numbers": [1, 2], "factor": 10}'


NO_BREAKPOINT = {
    "/break scale:99": "does not stop at line 99",
    "/break scal": "Did you mean `scale`?",
    "/break scale:x": "'x' is no line.",
    "/break scale:17 if number ==": "is no expression",
    "/break clear 7": "There is no breakpoint 7.",
}


def test_breakpoints_are_set_listed_cleared_and_stop_a_call_by_hand(tmp_path: Path) -> None:
    written(tmp_path)
    with prompt([], tmp_path) as (screen, _):
        for typed, told in NO_BREAKPOINT.items():
            does(screen, typed, told)
        does(screen, "/break", "No breakpoint is set.")
        does(screen, "/break scale", "● 1: scale, functions/words.py:14 `total = 0`")
        does(screen, f"/break scale:{LOOP_LINE} if number > 1", "● 2: scale")
        does(screen, "/break", "if number > 1")
        does(screen, "?scale", "??scale shows its source.")  # showing a function does not stop it
        does(screen, f"/break clear scale:{LOOP_LINE}", "✓ cleared 2: scale")
        does(screen, "/break now", "No function is running.")
        does(screen, f"/debug scale {ARGUMENTS}", "(debug)")
        does(screen, "b", "1: scale, functions/words.py:14 `total = 0`")
        does(screen, "/memory", "/memory waits until this call has ended")
        does(screen, "/break clear 1", "✓ cleared 1: scale")
        does(
            screen, "c", "passages in archival"
        )  # `/memory` is over: Enter does nothing while a command runs
        does(screen, "/break scale if factor > 99", "`total = 0` if factor > 99")
        does(screen, f"/debug scale {ARGUMENTS}", "(debug)")
        does(screen, "n", " →  15     even = 0")
        does(screen, "total = 100", "done")
        does(screen, "c", "131")
        does(screen, "/break", "functions/words.py:14 `total = 0` if factor > 99")


@pytest.mark.slow
def test_a_breakpoint_follows_its_line_and_a_function_to_be_debugged_stops_once(
    tmp_path: Path,
) -> None:
    script: Script = [
        Ask(CALL),
        DONE,
        Ask(CALL),
        Say("Again."),
        Ask(CALL),
        DONE,
        Ask(CALL),
        Say("Again."),
    ]
    with standing(script, tmp_path) as screen:
        screen.do("c", "Done.", "∙ ")
        file = tmp_path / "functions" / "words.py"
        file.write_text("# one more\n# and another\n" + file.read_text())
        does(screen, "/reload", "changed")
        does(screen, "/break", f"functions/words.py:{LOOP_LINE + 2} ")
        does(screen, "once more", "(debug)")
        screen.wait_for(f"●→  {LOOP_LINE + 2}         total += number * factor")
        screen.do("c", "Again.", "∙ ")
        does(screen, "/break clear 1", "✓ cleared 1: scale")
        does(screen, "/debug scale", "`total = 0` once")
        does(screen, "use it", "(debug)")
        screen.do("c", "Done.", "∙ ")
        screen.do("once more", "Again.", "∙ ")


@pytest.mark.slow
def test_a_running_function_is_stopped_where_it_is_and_says_so_and_what_was_changed(
    tmp_path: Path,
) -> None:
    written(tmp_path, SPIN)
    with prompt([Ask(Wanted("spin")), Expect(DONE, contains("7777"))], tmp_path) as (screen, _):
        does(screen, "use it", "▸ spin()")
        does(screen, "/break now", "(debug)")
        screen.wait_for("break now")
        does(screen, "rounds = 77_777", "done")
        screen.do("c", "Done.", "∙ ")
        does(screen, "=spin()", "spin runs; Ctrl-C ends it")
        time.sleep(2)  # nothing signals that its worker has begun
        does(screen, "/break now", "(debug)")
        screen.wait_gone("spin runs")
        does(screen, "rounds = 77_777", "done")
        does(screen, "c", "7777")
        screen.wait_for("A human stopped this call")


def test_where_nobody_sits_at_a_debugger_what_is_seen_is_told(tmp_path: Path) -> None:
    written(tmp_path, SCALE)
    seen = Expect(DONE, contains("Breakpoints were passed and recorded"))
    with scripted([Ask(CALL), seen]) as model:
        lines = f"/break scale:{LOOP_LINE} if number == 3\n/break now\nuse it\n"
        done = knapper("run", "-y", *flags(model), cwd=tmp_path, given=lines)
    assert "No debugger is attached here" in done.stdout
    assert done.stdout.endswith("Done.\n")
