"""`knapper calls` and `functions trace`: a call's record, its replay, and the lines that it ran."""

import json
import re
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from tests.interfaces.debugged import SCALE, written
from tests.kit.program import knapper
from tests.kit.terminal import terminal

DICE = '''import random


def dice(sides: int) -> int:
    """Throw some dice and add them up."""
    thrown = [random.randrange(sides) for _ in range(20)]
    return sum(thrown)
'''
SHARE = '''def share(total: int, people: int) -> float:
    """Share something out."""
    each = total / people
    return each
'''
ARGUMENTS = '{"numbers": [1, 2], "factor": 10}'


def in_json(root: Path, *arguments: str) -> Any:
    done = knapper(*arguments, "--json", cwd=root)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def calls_made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with one successful call of `dice` and one failed call of `share`."""
    root = tmp_path_factory.mktemp("calls_made")
    written(root, DICE, SHARE)
    knapper("functions", "call", "dice", "--args", '{"sides": 1000}', cwd=root)
    knapper("functions", "call", "share", "--args", '{"total": 7, "people": 0}', cwd=root)
    return root


@pytest.fixture
def called(calls_made: Path, tmp_path: Path) -> Path:
    """A copy of it for one test."""
    return copytree(calls_made, tmp_path, symlinks=True, dirs_exist_ok=True)


def test_calls_are_listed_the_newest_first_and_by_function(called: Path) -> None:
    listed = in_json(called, "calls", "list")
    assert [(row["call"], row["function"], row["outcome"]) for row in listed] == [
        (2, "share", "raised"),
        (1, "dice", "returned"),
    ]
    assert [row["call"] for row in in_json(called, "calls", "list", "--failed")] == [2]
    assert knapper("calls", "list", "dice", cwd=called).stdout.startswith("1  dice(sides=1000)  returned ")
    assert in_json(called, "calls", "list", "--failed")[0]["arguments"] == {"total": 7, "people": 0}
    assert "raised ZeroDivisionError: division by zero" in knapper("calls", "list", cwd=called).stdout


def test_a_call_is_shown_with_its_arguments_and_how_it_ended(called: Path) -> None:
    shown = knapper("calls", "show", "2", cwd=called).stdout
    assert "[2] share  raised" in shown
    assert "'people': 0" in shown
    assert "ZeroDivisionError" in shown
    assert in_json(called, "calls", "show", "1")["arguments"] == {"sides": 1000}


def test_a_replay_throws_the_same_dice_again(called: Path) -> None:
    then = in_json(called, "calls", "show", "1")["outcome"]["value"]
    again = in_json(called, "calls", "replay", "1")
    assert again["same"]
    assert again["outcome"]["value"] == then
    assert "the same" in knapper("calls", "replay", "1", cwd=called).stdout


def test_a_replay_on_the_version_of_now_shows_what_is_different(called: Path) -> None:
    file = called / "functions" / "words.py"
    file.write_text(file.read_text().replace("return sum(thrown)", "return -1"))
    done = knapper("calls", "replay", "1", "--version", "now", cwd=called)
    assert done.returncode == 1
    assert "another outcome" in done.stdout
    assert "  now: returned -1\n" in done.stdout
    assert knapper("calls", "replay", "1", cwd=called).returncode == 0


@pytest.mark.parametrize("arguments", [("replay", "9"), ("show", "9"), ("replay", "1", "--debug")])
def test_what_cannot_be_replayed_is_a_wrong_option(called: Path, arguments: tuple[str, ...]) -> None:
    assert knapper("calls", *arguments, cwd=called).returncode == 2


def test_a_failed_call_is_replayed_at_a_terminal_and_stops_where_it_raised(called: Path) -> None:
    with terminal("calls", "replay", "2", "--debug", cwd=called, columns=100) as screen:
        screen.wait_for("(debug)")
        assert any("✗ ZeroDivisionError('division by zero')" in row for row in screen.screen())
        assert any("→" in row and "each = total / people" in row for row in screen.screen())
        for typed, shows in [("a", "people = 0"), ("total * 2", "14"), ("c", "the same")]:
            screen.type(typed + "\n")
            screen.wait_for(shows)
        assert screen.exit_code() == 0


def test_a_call_that_did_not_fail_stops_at_its_first_line(called: Path) -> None:
    with terminal("calls", "replay", "1", "--debug", cwd=called, columns=100) as screen:
        screen.wait_for("(debug)")
        for typed, shows in [("n", "return sum(thrown)"), ("len(thrown)", "20"), ("q", "ended at the debugger")]:
            screen.type(typed + "\n")
            screen.wait_for(shows)
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
