"""The programs in `examples/` do what their first lines say."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit import Say, scripted

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(example: str, *arguments: str, cwd: Path, model: dict[str, str]) -> str:
    command = [sys.executable, str(EXAMPLES / example), *arguments]
    ended = subprocess.run(command, cwd=cwd, env={**os.environ, **model}, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_a_function_is_grown_by_hand(tmp_path: Path) -> None:
    output = run("grow_by_hand.py", cwd=tmp_path, model={})
    assert "REFUSED" not in output
    assert output.endswith("returned MHH\n")


@pytest.mark.parametrize(
    ("example", "arguments", "shown"),
    [
        ("one_turn.py", ["Hello?"], "(replied after 1 steps; made: nothing)"),
        ("own_memory.py", [".", "Remind me to buy milk."], "To do:"),
    ],
)
def test_a_turn_is_taken(tmp_path: Path, example: str, arguments: list[str], shown: str) -> None:
    with scripted([Say("Good day.")]) as server:
        output = run(example, *arguments, cwd=tmp_path, model=server.environment)
    assert "Good day." in output
    assert shown in output
