"""`knapper agents run|tree|…` and `run --message`, as people and scripts use them; agents that they create."""

import json
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from tests.interfaces.support import flags
from tests.kit import Repeat, Say, ScriptedModel, scripted
from tests.kit.program import knapper

from .groups import group_file
from .team import Part, by_name, describe, of_whom
from .test_messages_between_agents import asking, calling

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


def talk_to(root: Path, model: ScriptedModel, *options: str) -> CompletedProcess[str]:
    """Send one message to an agent of a workspace."""
    (root / "functions").mkdir(exist_ok=True)
    (root / "knapper.toml").touch()
    return knapper("run", *flags(model), "--message", "Go.", *options, cwd=root)


def test_one_message_runs_all_that_follows_from_it(tmp_path: Path) -> None:
    workspace(tmp_path)
    with scripted([Repeat(by_name(PARTS))]) as model:
        done = knapper("run", *flags(model), "--message", "Ask the editor.", "--json", cwd=tmp_path)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    ends = [
        (line.get("agent", ""), line["reason"]) for line in lines if line["type"] == "turn_ended"
    ]
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
        assert (main["state"], main["waits_on"], main["why"]) == (
            "waiting",
            "editor",
            "Which word is wrong?",
        )
        assert (editor["state"], editor["why"]) == ("paused", "at lunch")
        assert (main["spent"]["messages"], main["left"]["messages"]) == (1, 99)
        assert {"name", "kind", "state", "waits_on", "thread", "since", "spent", "left", "why"} <= {
            *main
        }
        assert knapper("agents", "answer", "editor", "It is `teh`.", cwd=tmp_path).returncode == 0
        assert tree(tmp_path)["main"]["state"] == "queued"
    assert knapper("agents", "stop", "main", cwd=tmp_path).returncode == 0
    assert tree(tmp_path)["main"]["state"] == "stopped"


def test_what_cannot_be_steered_is_told_and_agents_run_until_nothing_is_due(tmp_path: Path) -> None:
    workspace(tmp_path)
    for words, part in {
        "pause editr": "Did you mean `editor`?",
        "answer editor x": "Nobody waits",
        "route editor nobody": "no agent `nobody`",
        "stop editor": "not at work in any thread",
    }.items():
        done = knapper("agents", *words.split(), cwd=tmp_path)
        assert (done.returncode, part in done.stderr) == (2, True), (words, done.stderr)
    done = knapper("agents", "run", "--until-idle", "--json", cwd=tmp_path)
    assert (done.returncode, json.loads(done.stdout)) == (0, {"turns": 0})


def test_an_agent_that_run_makes_has_a_file_and_main_stays_what_it_is(tmp_path: Path) -> None:
    describe(tmp_path, "editor", 'talks_to = ["main"]\n')
    parts = {
        "editor": calling("message_agent", agent="main", message="Ready."),
        "main": lambda _: Say("Good."),
    }
    with scripted([Repeat(by_name(parts))]) as model:
        assert "made" not in talk_to(tmp_path, model, "--agent", "fresh").stderr, (
            "said at a terminal only"
        )
        assert (tmp_path / "agents" / "fresh.toml").is_file()
        assert talk_to(tmp_path, model, "--agent", "editor").stdout == "Done.\n"
        assert [of_whom(seen) for seen in model.requests][-1] == "main"
        assert talk_to(tmp_path, model, "--once").returncode == 0
        assert talk_to(tmp_path, model).stdout == "Good.\n"
    assert sorted(path.stem for path in (tmp_path / "agents").iterdir()) == ["editor", "fresh"]


def test_a_group_makes_no_file_and_its_name_and_those_like_another_are_no_agents(
    tmp_path: Path,
) -> None:
    group_file(tmp_path, "stop = { turns = 0 }\n")
    describe(tmp_path, "team")
    with scripted([]) as model:
        ended = talk_to(tmp_path, model, "--agent", "team")
        assert (ended.returncode, ended.stdout, "0 turns were taken" in ended.stderr) == (
            0,
            "",
            True,
        )
        for name, part in (("Team", "looks like `team`"), ("../spy", "cannot be a name")):
            done = talk_to(tmp_path, model, "--agent", name)
            assert (done.returncode, part in done.stderr) == (2, True), done.stderr
    assert (
        "agents/team.toml config: There is a group `team` already."
        in knapper("agents", "tree", cwd=tmp_path).stderr
    )
    assert sorted(
        path.stem for path in tmp_path.rglob("*.toml") if path.parent.name == "agents"
    ) == [*("coder", "critic", "planner", "team")]


NAMING_ONE = (
    *("agents pause editor", "agents export editor", "agents delete editor", "log --agent editor"),
    *(
        "memory show --agent editor",
        "sources list --agent editor",
        "run --message Go. --agent editor --model tour",
    ),
)


def test_a_command_that_names_an_agent_with_a_broken_file_says_what_is_wrong_in_it(
    tmp_path: Path,
) -> None:
    workspace(tmp_path)
    (tmp_path / "agents" / "editor.toml").write_text('purpose = "Edits."\nmodle = "x"\n')
    for words in NAMING_ONE:
        done = knapper(*words.split(), cwd=tmp_path)
        assert (
            "agents/editor.toml:2: `modle` is not a key.\n  Did you mean `model`?" in done.stderr
        ), words
        assert done.returncode == 2, words
