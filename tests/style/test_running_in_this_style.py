"""`knapper run` chooses the preset, persona and human, and who speaks first."""

import json
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.interfaces.support import flags
from tests.kit import scripted
from tests.kit.program import knapper as program
from tests.style.support import WINDOW, send, types

HELLO = send("Hello.", thought="A new face.")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "functions").mkdir()
    (tmp_path / "knapper.toml").touch()
    return tmp_path


def knapper(
    *arguments: str, cwd: Path, **given: Any
) -> CompletedProcess[str]:  # Any: what `program` takes
    """Run the program for a model with a known window."""
    environment = {"KNAPPER_MODEL_CONTEXT_TOKENS": str(WINDOW), **given.pop("environment", {})}
    return program(*arguments, cwd=cwd, environment=environment, **given)


def test_a_preset_is_chosen_at_first_use_and_stays_and_what_does_not_fit_has_exit_code_two(
    root: Path,
) -> None:
    with scripted([HELLO, send("Again.")]) as model:

        def run(*given: str) -> CompletedProcess[str]:
            return knapper("run", *flags(model), *given, "--message", "Hi.", cwd=root)

        for preset, says in (
            (("--preset", "loud"), "no preset `loud`"),
            (("--persona", "./nobody.txt"), "cannot be read"),
        ):
            done = run(*preset)
            assert (done.returncode, says in done.stderr) == (2, True), done.stderr
        first, again, other = run("--preset", "memgpt"), run(), run("--preset", "direct")
    assert (first.stdout, again.stdout) == ("Hello.\n", "Again.\n")
    assert "send_message" not in first.stderr
    assert (other.returncode, "--agent NAME" in other.stderr) == (2, True)


def test_the_agent_speaks_first_and_then_hears_the_message(root: Path) -> None:
    with scripted([HELLO, send("Fine.")]) as model:
        options = ("--preset", "memgpt", "--greet", "--message", "How are you?", "--json")
        done = knapper("run", *flags(model), *options, cwd=root)
    events = [json.loads(text) for text in done.stdout.splitlines()]
    assert [each["reply"] for each in events if each["type"] == "turn_ended"] == ["Hello.", "Fine."]
    assert types(model, 0) == ["login"]
