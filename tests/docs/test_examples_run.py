"""The programs in `examples/` do what their first lines say."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import Ask, Say, Script, Wanted, scripted
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
        ("group.py", ["@writer go."], "[writer: user addressed writer]"),
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
