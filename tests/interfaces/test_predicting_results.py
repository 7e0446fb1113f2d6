"""The author of a function whose examples leave much open is asked for results: in pipes, terminals, and the prompt."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.support import prompt
from tests.kit.desk import SHIPPING, right
from tests.kit.program import knapper
from tests.kit.terminal import Terminal, terminal

WRONG = SHIPPING.replace("weight <= 10", "weight < 10").replace("price + 4", "price - 4")
QUESTION = re.compile(r"What must (shipping\(.*?\)) return\?")


@pytest.fixture
def folder(folder: Path) -> Path:
    """A workspace with files of functions whose examples leave much open."""
    (folder / "shipping.py").write_text(SHIPPING)
    (folder / "wrong.py").write_text(WRONG)
    return folder


def created(folder: Path, file: str = "shipping.py") -> dict[str, Any]:
    done = knapper("functions", "create", "shipping", file, "--json", cwd=folder)
    assert done.returncode == 1, done.stderr
    verdict: dict[str, Any] = json.loads(done.stdout)
    return verdict


def test_in_a_pipe_the_calls_are_named_with_the_command_that_gives_their_results(
    folder: Path,
) -> None:
    done = knapper("functions", "create", "shipping", "shipping.py", cwd=folder)
    assert done.returncode == 1
    assert (
        "challenged: the examples of `shipping` leave open what it does with other arguments"
        in done.stdout
    )
    assert "Next: knapper functions confirm shipping --expected RESULT" in done.stderr
    waiting = knapper("functions", "pending", cwd=folder)
    assert "knapper functions confirm shipping" in waiting.stdout + waiting.stderr
    calls = created(folder)["challenges"]
    few = knapper("functions", "confirm", "shipping", "--expected", right(calls[0]), cwd=folder)
    assert (few.returncode, f"Expected {len(calls)} results, but got 1." in few.stderr) == (2, True)
    assert ", ".join(calls) in few.stderr
    given = [word for call in calls for word in ("--expected", right(call))]
    done = knapper("functions", "confirm", "shipping", *given, "--json", cwd=folder)
    verdict = json.loads(done.stdout)
    assert (done.returncode, verdict["admitted"], verdict["standing"]) == (0, True, "trial")
    assert verdict["predicted"] == calls
    text = (folder / "functions" / "grown.py").read_text()
    assert all(f">>> {call}\n" in text for call in calls)


def test_at_a_terminal_each_result_is_asked_for(folder: Path) -> None:
    with terminal(
        "functions", "create", "shipping", "shipping.py", cwd=folder, columns=200
    ) as screen:
        answer(screen, 1)
        screen.wait_for("added to grown, on trial")
        assert screen.exit_code() == 0
        assert asked_of(screen)


def answer(screen: Terminal, count: int) -> None:
    """Give the right results from number `count` on, until no more are requested."""
    screen.wait(
        lambda: "added to grown" in screen.scrolled() or len(asked_of(screen)) == count,
        "a question",
    )
    if len(asked_of(screen)) == count:
        screen.line(right(asked_of(screen)[-1]))
        answer(screen, count + 1)


def asked_of(screen: Terminal) -> list[str]:
    return QUESTION.findall(screen.scrolled())


def test_a_script_that_calls_a_function_reads_what_is_unproven_of_it(folder: Path) -> None:
    calls = created(folder)["challenges"]
    guesses = [word for _ in calls for word in ("--expected", "77")]
    assert knapper("functions", "confirm", "shipping", *guesses, cwd=folder).returncode == 1
    assert knapper("functions", "confirm", "shipping", cwd=folder).returncode == 0
    call = ("functions", "call", "shipping", "--args", '{"weight": 12}')
    shown, as_json = knapper(*call, cwd=folder), knapper(*call, "--json", cwd=folder)
    assert (shown.returncode, shown.stdout) == (0, "9\n")
    assert "[unproven: nobody predicted what shipping(" in shown.stderr
    assert json.loads(as_json.stdout)["unproven"].startswith(
        "[unproven: nobody predicted what shipping("
    )
    assert knapper("functions", "good", "shipping", cwd=folder).returncode == 0
    settled = knapper(*call, "--json", cwd=folder)
    assert "unproven" not in settled.stdout + settled.stderr


def test_at_the_prompt_the_results_follow_the_name(folder: Path) -> None:
    (folder / "functions" / "half.py").write_text(
        'def half(of: int) -> float:\n    """Halve."""\n    return of / 2\n'
    )
    calls = created(folder)["challenges"]
    with prompt([], folder, columns=200) as (screen, _model):
        screen.do("/pending", "Say what the calls must return: /confirm shipping")
        screen.do(f"/confirm shipping = {', '.join(map(right, calls))}", "added to grown, on trial")
        screen.do("=half(5)", "2.5")
        assert "unproven" not in screen.scrolled()  # who wrote it without examples knows
