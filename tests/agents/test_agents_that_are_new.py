"""An agent that the command line creates: its file, its name next to others, and an invalid file."""

from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.interfaces.support import flags
from tests.kit import Repeat, Say, ScriptedModel, scripted
from tests.kit.drawing import sampled
from tests.kit.program import knapper

from .groups import group_file
from .team import by_name, describe, of_whom
from .test_messages_between_agents import calling


def talk_to(root: Path, model: ScriptedModel, *options: str) -> CompletedProcess[str]:
    """Send one message to an agent of a workspace."""
    (root / "functions").mkdir(exist_ok=True)
    (root / "knapper.toml").touch()
    return knapper("run", *flags(model), "--message", "Go.", *options, cwd=root)


def test_an_agent_that_run_makes_has_a_file_and_main_stays_what_it_is(tmp_path: Path) -> None:
    describe(tmp_path, "editor", 'talks_to = ["main"]\n')
    parts = {"editor": calling("message_agent", agent="main", message="Ready."), "main": lambda _: Say("Good.")}
    with scripted([Repeat(by_name(parts))]) as model:
        done = talk_to(tmp_path, model, "--agent", "fresh")
        assert "made" not in done.stderr, "said at a terminal only"
        assert (tmp_path / "agents" / "fresh.toml").is_file()
        assert "made" not in talk_to(tmp_path, model, "--agent", "fresh").stderr
        assert talk_to(tmp_path, model, "--agent", "editor").stdout == "Done.\n"
        assert [of_whom(seen) for seen in model.requests][-1] == "main"
        assert talk_to(tmp_path, model).stdout == "Good.\n"
    assert not (tmp_path / "agents" / "main.toml").exists()


def test_a_question_that_keeps_nothing_and_a_group_make_no_file(tmp_path: Path) -> None:
    group_file(tmp_path, "stop = { turns = 0 }\n")
    with scripted([Repeat(Say("Hm."))]) as model:
        assert talk_to(tmp_path, model, "--once").returncode == 0
        ended = talk_to(tmp_path, model, "--agent", "team")
    assert (ended.returncode, ended.stdout) == (0, "")
    assert "0 turns were taken" in ended.stderr
    assert sorted(path.stem for path in (tmp_path / "agents").iterdir()) == ["coder", "critic", "planner"]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("name", "part"),
    sampled(
        [
            pytest.param("Main", "looks like `main`", id="the usual agent"),
            pytest.param("user", "is reserved", id="the user"),
            pytest.param("../spy", "cannot be a name", id="a path"),
            pytest.param("jörg", "cannot be a name", id="an umlaut"),
            pytest.param("Team", "looks like `team`", id="a group"),
        ],
        2,
    ),
)
def test_a_name_that_could_be_taken_for_another_makes_nothing(tmp_path: Path, name: str, part: str) -> None:
    group_file(tmp_path)
    with scripted([]) as model:
        done = talk_to(tmp_path, model, "--agent", name)
    assert (done.returncode, part in done.stderr) == (2, True)
    assert not (tmp_path / "agents" / f"{name}.toml").exists()


def test_an_agent_whose_file_says_nothing_usable_is_not_opened(tmp_path: Path) -> None:
    describe(tmp_path, "main", 'functions = ["text.*"]\nlimits = { steps = -1 }\n')
    with scripted([]) as model:
        done = talk_to(tmp_path, model)
    assert done.returncode == 2
    assert "agents/main.toml: limits: the limit `steps` cannot be -1" in done.stderr


def test_a_group_named_as_an_agent_is_the_group_and_the_agents_file_is_rejected(tmp_path: Path) -> None:
    group_file(tmp_path, "stop = { turns = 0 }\n")
    describe(tmp_path, "team")
    with scripted([]) as model:
        assert "0 turns were taken" in talk_to(tmp_path, model, "--agent", "team").stderr
    told = knapper("agents", "tree", cwd=tmp_path).stderr
    assert "agents/team.toml config: There is a group `team` already." in told
