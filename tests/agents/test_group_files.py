"""A mistake in a group's file is reported with its place and remedy, and the last valid version stays in use."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_core.base import events
from agent_core.base.errors import ConfigError
from agent_core.workspace.workspace import Workspace
from tests.kit import ScriptedModel
from tests.kit.desk import of

from .groups import Cast, group_file, playing, speakers, talk, team

START = Callable[..., ScriptedModel]


async def opened(root: Path) -> None:
    """Open the group."""
    async with Workspace.open(root) as workspace:
        await workspace.agent("team")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        pytest.param('rule = ["asked"]', "Did you mean `rules`?", id="an unknown key"),
        pytest.param('rules = ["adressed"]', "Did you mean `addressed`?", id="an unknown rule"),
        pytest.param('choose = "function nobody_wrote_it"', "is no rule and no function", id="an unknown function"),
        pytest.param('no_repeat = "yes"', "It is true or false.", id="a wrong type"),
        pytest.param("tail_chars = -1", "a whole number from 0", id="a negative number"),
        pytest.param("tail_chars = 9999999", "It is at most 50,000.", id="too large a number"),
        pytest.param("stop = { turn = 3 }", "Did you mean `turns`?", id="an unknown stop condition"),
        pytest.param("stop = { turns = -3 }", "a whole number from 0", id="a negative number of turns"),
        pytest.param("limits = { tokens = -1 }", "`tokens` cannot be -1", id="a negative limit"),
        pytest.param("stop = 3", "a table", id="no table"),
        pytest.param("rules = [", "not valid TOML", id="no TOML"),
    ],
)
async def test_a_file_that_is_wrong_says_where_and_what_to_write(tmp_path: Path, text: str, part: str) -> None:
    group_file(tmp_path, text)
    with pytest.raises(ConfigError) as failure:
        await opened(tmp_path)
    assert str(failure.value).startswith("groups/team.toml")
    assert part in str(failure.value)


@pytest.mark.parametrize(
    ("members", "part"),
    [
        pytest.param(["planner"], "names 1", id="one"),
        pytest.param([f"m{n}" for n in range(21)], "names 21", id="too many"),
        pytest.param(["planner", "planner"], "look alike", id="twice"),
        pytest.param(["planner", "p1anner"], "look alike", id="a name that looks like another's"),
        pytest.param(["planner", "Planner"], "look alike", id="in another case"),
        pytest.param(["planner", "user"], "look alike", id="the user"),
        pytest.param(["planner", "U5ER"], "look alike", id="a name that looks like the user's"),
        pytest.param(["planner", "team"], "member of itself", id="itself"),
    ],
)
async def test_members_are_two_or_more_agents_whose_names_differ(tmp_path: Path, members: list[str], part: str) -> None:
    group_file(tmp_path, members=members)
    with pytest.raises(ConfigError, match=part):
        await opened(tmp_path)


async def test_a_member_that_is_gone_is_told_with_the_nearest_name(tmp_path: Path) -> None:
    group_file(tmp_path)
    (tmp_path / "agents" / "coder.toml").rename(tmp_path / "agents" / "coders.toml")
    with pytest.raises(ConfigError, match=r"`coder` is no agent. Did you mean `coders`\?"):
        await opened(tmp_path)


async def test_a_group_is_no_member_of_a_group(tmp_path: Path) -> None:
    group_file(tmp_path, name="other")
    group_file(tmp_path, members=["planner", "other"])
    with pytest.raises(ConfigError, match=r"is a group|looks like"):
        await opened(tmp_path)


async def test_a_file_that_goes_wrong_leaves_the_last_good_one_in_force(tmp_path: Path, scripted: START) -> None:
    cast = Cast(lambda name, number: f"Speech {number} of {name}.")
    async with team(tmp_path, scripted(playing(cast)), "stop = { turns = 1 }") as group:
        assert speakers(await talk(group, "@critic go")) == ["critic"]
        path = tmp_path / "groups" / "team.toml"
        path.write_text(path.read_text() + "\nnonsense = 1\n")
        heard = await talk(group, "@coder go")
        assert speakers(heard) == ["coder"]
        assert any("`nonsense`" in warned.message for warned in of(events.Warned, heard))


async def test_a_member_in_use_by_another_process_is_told_and_nothing_is_lost(tmp_path: Path, scripted: START) -> None:
    cast = Cast(lambda name, number: f"Speech {number} of {name}.")
    model = scripted(playing(cast))
    async with team(tmp_path, model, "stop = { turns = 1 }") as group:
        async with Workspace.open(tmp_path, environment=model.environment) as other:
            busy = await other.agent("coder")
            heard = await talk(group, "@critic go")
            assert any("`coder` is in use" in warned.message for warned in of(events.Warned, heard))
            await busy.aclose()
        assert speakers(await talk(group, "@critic go")) == ["critic"]
