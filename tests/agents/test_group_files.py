"""A mistake in a group's file is reported with its place and remedy, and the last valid version stays in use."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_core.base import events
from agent_core.base.errors import ConfigError
from agent_core.workspace.workspace import Workspace
from tests.kit import ScriptedModel
from tests.kit.desk import of

from .groups import Cast, group_file, playing, speakers, talk, team
from .team import describe

START = Callable[..., ScriptedModel]


MISTAKES = {
    'rule = ["asked"]': "Did you mean `rules`?",
    "tail_chars = 9999999": "It is at most 50,000.",
    "stop = { turn = 3 }": "Did you mean `turns`?",
    "limits = { tokens = -1 }": "`tokens` cannot be -1",
    "rules = [": "not valid TOML",
    'rules = ["adressed"]': "Did you mean `addressed`?",
    'choose = "function nobody_wrote_it"': "is no rule and no function",
}
MEMBERS = (
    (["planner"], "names 1"),
    ([f"m{n}" for n in range(21)], "names 21"),
    (["planner", "planner"], "look alike"),
    (["planner", "U5ER"], "look alike"),
    (["planner", "team"], "member of itself"),
    (["planner", "other"], "is a group|looks like"),
    (["planner", "cder"], r"`cder` is no agent. Did you mean `coder`\?"),
)


async def test_a_file_that_is_wrong_says_where_and_what_to_write(tmp_path: Path) -> None:
    async with Workspace.open(tmp_path) as workspace:
        for number, (text, part) in enumerate(MISTAKES.items()):
            group_file(tmp_path, text, name=f"team{number}")
            with pytest.raises(ConfigError, match=f"^groups/team{number}.toml.*{re.escape(part)}"):
                await workspace.agent(f"team{number}")


async def test_members_are_two_or_more_agents_whose_names_differ(tmp_path: Path) -> None:
    async with Workspace.open(tmp_path) as workspace:
        for members, part in MEMBERS:
            shutil.rmtree(tmp_path / "agents", ignore_errors=True)
            group_file(tmp_path, name="other")
            path = group_file(tmp_path, members=members)
            for name in ("other", "cder"):
                (tmp_path / "agents" / f"{name}.toml").unlink(missing_ok=True)
            describe(tmp_path, "coder")
            with pytest.raises(ConfigError, match=part):
                await workspace.agent("team")
            path.unlink()


async def test_a_file_that_goes_wrong_leaves_the_last_good_one_in_force(
    tmp_path: Path, scripted: START
) -> None:
    cast = Cast(lambda name, number: f"Speech {number} of {name}.")
    async with team(tmp_path, scripted(playing(cast)), "stop = { turns = 1 }") as group:
        assert speakers(await talk(group, "@critic go")) == ["critic"]
        path = tmp_path / "groups" / "team.toml"
        path.write_text(path.read_text() + "\nnonsense = 1\n")
        heard = await talk(group, "@coder go")
        assert speakers(heard) == ["coder"]
        assert any("`nonsense`" in warned.message for warned in of(events.Warned, heard))


async def test_a_member_in_use_by_another_process_is_told_and_nothing_is_lost(
    tmp_path: Path, scripted: START
) -> None:
    cast = Cast(lambda name, number: f"Speech {number} of {name}.")
    model = scripted(playing(cast))
    async with team(tmp_path, model, "stop = { turns = 1 }") as group:
        async with Workspace.open(tmp_path, environment=model.environment) as other:
            async with other.store.hold(tmp_path / ".knapper", "coder"):
                heard = await talk(group, "@critic go")
            warnings = [warned.message for warned in of(events.Warned, heard)]
            assert any("A turn of `coder` runs in" in message for message in warnings)
        assert speakers(await talk(group, "@critic go")) == ["critic"]
