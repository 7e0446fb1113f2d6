"""`knapper run` chooses the preset, persona and human, and who speaks first."""

import json
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.interfaces.support import flags
from tests.kit import Repeat, scripted
from tests.kit.program import knapper as program
from tests.style.support import WINDOW, send, types

HELLO = send("Hello.", thought="A new face.")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "functions").mkdir()
    (tmp_path / "knapper.toml").touch()
    return tmp_path


def knapper(*arguments: str, cwd: Path, **given: Any) -> CompletedProcess[str]:  # Any: what `program` takes
    """Run the program for a model with a known window."""
    environment = {"KNAPPER_MODEL_CONTEXT_TOKENS": str(WINDOW), **given.pop("environment", {})}
    return program(*arguments, cwd=cwd, environment=environment, **given)


def test_a_preset_is_chosen_at_first_use_and_stays_and_what_does_not_fit_has_exit_code_two(root: Path) -> None:
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


def test_a_first_reply_that_stays_unusable_is_an_error_with_exit_code_one(root: Path) -> None:
    with scripted([Repeat(send("Hello."), 4)]) as model:
        done = knapper("run", *flags(model), "--preset", "memgpt", "--message", "Hi.", cwd=root)
    assert (done.returncode, done.stdout) == (1, "")
    assert "first reply was not usable, 4 times: it has no inner thought" in done.stderr


def test_the_agent_speaks_first_and_then_hears_the_message(root: Path) -> None:
    with scripted([HELLO, send("Fine.")]) as model:
        options = ("--preset", "memgpt", "--greet", "--message", "How are you?", "--json")
        done = knapper("run", *flags(model), *options, cwd=root)
    events = [json.loads(text) for text in done.stdout.splitlines()]
    assert [each["reply"] for each in events if each["type"] == "turn_ended"] == ["Hello.", "Fine."]
    assert types(model, 0) == ["login"]


def test_a_workspace_is_made_without_asking_when_told_so(tmp_path: Path) -> None:
    with scripted([send("Hello.")]) as model:
        asked = ("--preset", "memgpt", "--no-verify", "--message", "Hi.")
        refused = knapper("run", *flags(model), *asked, cwd=tmp_path / "..")
        done = knapper("run", *flags(model), *asked, "-y", cwd=tmp_path)
    assert refused.returncode != 0
    assert (done.returncode, done.stdout) == (0, "Hello.\n")
    assert (tmp_path / "functions").is_dir()


def test_a_heartbeat_wakes_the_agent_while_a_pipe_is_open(root: Path) -> None:
    with scripted([HELLO]) as model:
        environment = {"KNAPPER_HEARTBEAT_EVERY_MINUTES": "60"}
        options = ("--preset", "memgpt")
        done = knapper("run", *flags(model), *options, cwd=root, given="Hi.\n", environment=environment)
    assert (done.returncode, done.stdout) == (0, "Hello.\n")
