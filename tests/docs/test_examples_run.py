"""The programs in `examples/` do what their first lines say."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import Ask, Repeat, Say, Script, Wanted, scripted
from tests.kit.program import python

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(example: str, *arguments: str, cwd: Path, model: dict[str, str]) -> str:
    ended = python(EXAMPLES / example, *arguments, cwd=cwd, environment=model)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_a_function_is_grown_by_hand(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "grow_by_hand.py")]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert "REFUSED" not in ended.stdout
    assert ended.stdout.endswith("returned MHH\n")


@pytest.mark.parametrize(
    ("example", "arguments", "shown"),
    [
        ("one_turn.py", ["Hello?"], "(replied after 1 steps; made: nothing)"),
        ("own_memory.py", [".", "Remind me to buy milk."], "To do:"),
        ("group.py", [".", "@writer go."], "[writer: user addressed writer]"),
    ],
)
def test_a_turn_is_taken(tmp_path: Path, example: str, arguments: list[str], shown: str) -> None:
    with scripted([Say("Good day. AGREED")]) as server:
        output = run(example, *arguments, cwd=tmp_path, model=server.environment)
    assert "Good day." in output
    assert shown in output


def test_a_helper_is_called_like_a_function(tmp_path: Path) -> None:
    call, result = {"text": "queueing in the sky"}, {"result": ["queueing"]}
    script: Script = [Ask(Wanted("vowel_finder", call)), Ask(Wanted("give_result", result)), Say("It is queueing.")]
    with scripted(script) as server:
        output = run("helpers.py", ".", "Which words?", cwd=tmp_path, model=server.environment)
    assert "vowel_finder -> list[str]: Say which words" in output
    assert "[vowel_finder: returned, 1 steps of helper--vowel_finder-" in output
    assert "It is queueing. (replied after 2 steps)" in output


def test_memory_that_edits_itself_keeps_each_fact_once_and_drops_the_untrue_one(tmp_path: Path) -> None:
    output = run("self_editing_memory.py", ".", cwd=tmp_path, model={})
    assert 'Nearest to what was written: line 1: "Bob\'s best friends are Alex and Mitua."' in output
    assert output.partition("Remembered:")[2].strip().split("\n- ") == [
        "- Bob's best friend is Alex.",
        "Bob's friend Karl lives in York.",
        "Mitua is not Bob's best friend.",
        "Bob lives in Leeds.",
        "Bob plays the cello.",
        "Bob has a dog, Rex.",
    ]


def test_memory_that_edits_itself_goes_with_another_model_too(tmp_path: Path) -> None:
    with scripted([Repeat(Say("Good day."))]) as server:
        output = run("self_editing_memory.py", ".", "--real", cwd=tmp_path, model=server.environment)
    assert output.count("Good day.") == 6
