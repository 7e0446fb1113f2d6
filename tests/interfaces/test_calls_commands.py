"""`knapper calls` and `functions trace`: a call's record, its replay, and the lines that it ran."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.debugged import SCALE, written
from tests.kit.program import knapper
from tests.kit.sources import function_text
from tests.kit.terminal import terminal

DICE = "import random\n\n\n" + function_text(
    "dice(sides: int) -> int",
    "Throw some dice and add them up.",
    "thrown = [random.randrange(sides) for _ in range(20)]\nreturn sum(thrown)",
)
SHARE = function_text(
    "share(total: int, people: int) -> float",
    "Share something out.",
    "each = total / people\nreturn each",
)
ARGUMENTS = '{"numbers": [1, 2], "factor": 10}'


def in_json(root: Path, *arguments: str) -> Any:
    done = knapper(*arguments, "--json", cwd=root)
    return json.loads(done.stdout)


@pytest.fixture
def called(tmp_path: Path) -> Path:
    """A workspace with one successful call of `dice` and one failed call of `share`."""
    written(tmp_path, DICE, SHARE)
    knapper("functions", "call", "dice", "--args", '{"sides": 1000}', cwd=tmp_path)
    knapper("functions", "call", "share", "--args", '{"total": 7, "people": 0}', cwd=tmp_path)
    return tmp_path


def test_calls_are_listed_shown_and_replayed(called: Path) -> None:
    listed = in_json(called, "calls", "list")
    outcomes = [(row["call"], row["function"], row["outcome"]) for row in listed]
    assert outcomes == [(2, "share", "raised"), (1, "dice", "returned")]
    (failed,) = in_json(called, "calls", "list", "--failed")
    assert (failed["call"], failed["arguments"]) == (2, {"total": 7, "people": 0})
    assert knapper("calls", "list", "dice", cwd=called).stdout.startswith(
        "1  dice(sides=1000)  returned "
    )
    assert (
        "raised ZeroDivisionError: division by zero" in knapper("calls", "list", cwd=called).stdout
    )
    shown = knapper("calls", "show", "2", cwd=called).stdout
    assert all(part in shown for part in ("[2] share  raised", "'people': 0", "ZeroDivisionError"))
    then = in_json(called, "calls", "show", "1")
    again = in_json(called, "calls", "replay", "1")
    assert (then["arguments"], again["same"]) == ({"sides": 1000}, True)
    assert again["outcome"]["value"] == then["outcome"]["value"]
    assert "the same" in knapper("calls", "replay", "1", cwd=called).stdout
    for wrong in (("replay", "9"), ("show", "9"), ("replay", "1", "--debug")):
        assert knapper("calls", *wrong, cwd=called).returncode == 2, wrong
    file = called / "functions" / "words.py"
    file.write_text(file.read_text().replace("return sum(thrown)", "return -1"))
    done = knapper("calls", "replay", "1", "--version", "now", cwd=called)
    assert (done.returncode, "another outcome" in done.stdout) == (1, True)
    assert "  now: returned -1\n" in done.stdout
    assert knapper("calls", "replay", "1", cwd=called).returncode == 0


def test_a_call_is_replayed_at_a_terminal_and_stops_where_it_raised_or_at_its_first_line(
    called: Path,
) -> None:
    with terminal("calls", "replay", "2", "--debug", cwd=called, columns=100) as screen:
        screen.wait_for("(debug)")
        assert any("✗ ZeroDivisionError('division by zero')" in row for row in screen.screen())
        assert any("→" in row and "each = total / people" in row for row in screen.screen())
        for typed, shows in [("a", "people = 0"), ("total * 2", "14"), ("c", "the same")]:
            screen.do(typed, shows)
        assert screen.exit_code() == 0
    with terminal("calls", "replay", "1", "--debug", cwd=called, columns=100) as screen:
        screen.wait_for("(debug)")
        for typed, shows in [
            ("n", "return sum(thrown)"),
            ("len(thrown)", "20"),
            ("q", "ended at the debugger"),
        ]:
            screen.do(typed, shows)
        assert screen.exit_code() == 0


def test_the_lines_that_a_call_ran_are_shown_with_what_they_changed(tmp_path: Path) -> None:
    written(tmp_path, SCALE)
    done = knapper("functions", "trace", "scale", "--args", ARGUMENTS, cwd=tmp_path)
    assert done.returncode == 0
    assert re.search(r"17 ×2 +total \+= number \* factor", done.stdout)
    assert "first total = 10" in done.stdout
    assert done.stdout.endswith("31\n")
    found = in_json(tmp_path, "functions", "trace", "scale", "--args", ARGUMENTS)
    assert [row["count"] for row in found["lines"] if row["line"] == 17] == [2]
