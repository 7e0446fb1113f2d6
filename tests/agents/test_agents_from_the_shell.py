"""`knapper agents run|tree|…` and `run --message`, as a person and a script use them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.interfaces.support import flags
from tests.kit import Repeat, Say, scripted
from tests.kit.program import knapper

from .team import Part, by_name, describe
from .test_messages_between_agents import asking

PARTS: dict[str, Part] = {"main": asking, "editor": lambda _: Say("It is `teh`.")}


def workspace(root: Path) -> Path:
    """A folder with an editor."""
    (root / "functions").mkdir()
    (root / "knapper.toml").touch()
    describe(root, "editor", 'purpose = "Edits texts."\n')
    return root


def tree(root: Path) -> dict[str, Any]:
    """Return the states by name, as `agents tree --json` prints them."""
    done = knapper("agents", "tree", "--json", cwd=root)
    assert done.returncode == 0, done.stderr
    return {state["name"]: state for state in json.loads(done.stdout)["agents"]}


def test_one_message_runs_all_that_follows_from_it(tmp_path: Path) -> None:
    workspace(tmp_path)
    with scripted([Repeat(by_name(PARTS))]) as model:
        done = knapper("run", *flags(model), "--message", "Ask the editor.", "--json", cwd=tmp_path)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    ends = [(line.get("agent", ""), line["reason"]) for line in lines if line["type"] == "turn_ended"]
    assert ends == [("", "parked"), ("editor", "replied"), ("", "replied")]
    assert lines[-1]["reply"] == "They say: [from: editor] answers:\nIt is `teh`."
    assert done.returncode == 0
    assert tree(tmp_path)["main"]["state"] == "idle"


def test_the_tree_shows_who_waits_for_whom_and_a_person_steers(tmp_path: Path) -> None:
    workspace(tmp_path)
    assert knapper("agents", "pause", "editor", "--why", "at lunch", cwd=tmp_path).returncode == 0
    with scripted([Repeat(by_name(PARTS))]) as model:
        knapper("run", *flags(model), "--message", "Ask the editor.", cwd=tmp_path)
        states = tree(tmp_path)
        main, editor = states["main"], states["editor"]
        assert (main["state"], main["waits_on"], main["why"]) == ("waiting", "editor", "Which word is wrong?")
        assert (editor["state"], editor["why"]) == ("paused", "at lunch")
        assert main["spent"]["messages"] == 1
        assert main["left"]["messages"] == 99
        assert {"name", "kind", "state", "waits_on", "thread", "since", "spent", "left", "why"} <= {*main}
        assert knapper("agents", "answer", "editor", "It is `teh`.", cwd=tmp_path).returncode == 0
        assert tree(tmp_path)["main"]["state"] == "queued"
    assert knapper("agents", "stop", "main", cwd=tmp_path).returncode == 0
    assert tree(tmp_path)["main"]["state"] == "stopped"


def test_the_tree_says_what_the_last_turn_of_an_agent_took_that_wrote_to_nobody(tmp_path: Path) -> None:
    workspace(tmp_path)
    with scripted([Say("Fine."), Say("Fine, too.")]) as model:
        for text in ("How are you?", "And now?"):
            knapper("run", *flags(model), "--message", text, cwd=tmp_path)
        spent = tree(tmp_path)["main"]["spent"]
    assert spent["steps"] == 1
    assert spent["tokens"] > 0


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        pytest.param(("pause", "editr"), "Did you mean `editor`?", id="pause nobody"),
        pytest.param(("resume", "editr"), "Did you mean `editor`?", id="resume nobody"),
        pytest.param(("answer", "editor", "x"), "Nobody waits", id="answer nothing"),
        pytest.param(("route", "editor", "nobody"), "no agent `nobody`", id="route to nobody"),
        pytest.param(("stop", "editor"), "not at work in any thread", id="stop nothing"),
    ],
)
def test_what_cannot_be_steered_is_told(tmp_path: Path, arguments: tuple[str, ...], part: str) -> None:
    done = knapper("agents", *arguments, cwd=workspace(tmp_path))
    assert done.returncode == 2
    assert part in done.stderr


def test_agents_run_without_a_prompt_until_nothing_is_due(tmp_path: Path) -> None:
    done = knapper("agents", "run", "--until-idle", "--json", cwd=workspace(tmp_path))
    assert (done.returncode, json.loads(done.stdout)) == (0, {"turns": 0})
