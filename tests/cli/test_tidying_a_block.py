"""A model tidies a block: on command, and after a conversation that filled it; nothing is lost."""

from pathlib import Path
from typing import Any

import pytest

from agent_core.base.errors import ModelError
from agent_core.functions.service import Author
from agent_core.memory.agent_memory import checked_plan
from agent_core.memory.classes import ChatMemory
from agent_core.runtime.agent import Agent
from tests.cli.support import run
from tests.conftest import OpenDesk
from tests.interfaces.support import leave, prompt
from tests.kit.steps import Ask, Expect, Say, Script, Wanted, contains

LINES = [
    "Mia lives in Berlin",
    "Mia was born on 3 May 2019",
    "mia's birthday is 3 May 2019 and Mia was born in Kiel",
    "Mia moved to Porto",
    "Likes tea",
    "Likes cake",
]
TIDY = [
    {"why": "untrue", "lines": [1], "by": 4, "becomes": ""},
    {"why": "repeated", "lines": [2], "by": 0, "becomes": ""},
    {"why": "joined", "lines": [5, 6], "by": 0, "becomes": "Likes tea and cake"},
]
TIDIED = [LINES[2], "Mia moved to Porto", "Likes tea and cake"]
HUMAN = Author("human")


def _plan(*changes: dict[str, Any]) -> Ask:
    return Ask(Wanted("tidy_lines", {"changes": [*changes]}))


async def _agent(at_desk: OpenDesk, *script: Any, **settings: Any) -> Agent:
    desk = await at_desk([*script], **settings)
    return await desk.workspace.agent("blank", memory=ChatMemory(human="\n".join(LINES)))


async def test_what_is_repeated_untrue_or_can_be_joined_goes_and_one_undo_brings_it_back(at_desk: OpenDesk) -> None:
    agent = await _agent(at_desk, Expect(_plan(*TIDY), contains("4. Mia moved to Porto")))
    edit = await agent.tidy("human", HUMAN)
    assert "1 repeated, 1 untrue, 1 joined; 1 in archival memory" in edit.text
    assert agent.memory.blocks.memory["human"].lines == TIDIED
    assert [item.text for item in (await agent.memory.archival.search("Berlin")).items] == ["Mia lives in Berlin"]
    assert (await agent.memory.blocks.history("human"))[-1].action.startswith("tidy")
    await agent.memory.blocks.commit(await agent.memory.blocks.undo("human", HUMAN))
    assert agent.memory.blocks.memory["human"].lines == LINES


LOSSES: dict[str, Any] = {
    "a name that no other line has": {"why": "repeated", "lines": [4], "by": 0, "becomes": ""},
    "a lost year": {"why": "joined", "lines": [1, 2], "by": 0, "becomes": "Mia: Berlin, 3 May"},
    "by an earlier line": {"why": "untrue", "lines": [4], "by": 1, "becomes": ""},
    "by none": {"why": "untrue", "lines": [1], "by": 0, "becomes": ""},
    "no such line": {"why": "joined", "lines": [5, 9], "by": 0, "becomes": "Likes tea"},
    "no line": {"why": "repeated", "lines": [], "by": 0, "becomes": ""},
    "another reason": {"why": "tired", "lines": [5], "by": 0, "becomes": ""},
    "another shape": {"lines": "5"},
    "no object": "5",
}


def test_a_change_that_would_lose_something_is_not_made() -> None:
    for what, change in LOSSES.items():
        plan = checked_plan(LINES, [change])
        assert (plan.lines, plan.done, plan.refused) == (tuple(LINES), (), 1), what
    for becomes, is_made in (("安娜住在柏林，喜欢茶。", True), ("安娜住在柏林。", False)):  # a script without capitals
        rows = [{"why": "joined", "lines": [1, 2], "by": 0, "becomes": becomes}]
        assert bool(checked_plan(["安娜住在柏林。", "安娜喜欢茶。"], rows).done) == is_made


@pytest.mark.parametrize(
    ("script", "settings", "says"),
    [
        pytest.param([], {"model__mode": "constrained", "model__context_tokens": 4_000}, "too small", id="small"),
        pytest.param([Say("I would rather not.")], {}, "cannot be read", id="no-plan"),
        pytest.param([Ask(Wanted("tidy_lines", '{"changes": 3}'))], {}, "cannot be read", id="another-plan"),
    ],
)
async def test_a_model_that_cannot_do_it_changes_nothing(
    at_desk: OpenDesk, script: list[Any], settings: dict[str, Any], says: str
) -> None:
    agent = await _agent(at_desk, *script, **settings)
    with pytest.raises(ModelError, match=says):
        await agent.tidy("human", HUMAN)
    assert agent.memory.blocks.memory["human"].lines == LINES


def test_a_block_that_a_conversation_filled_is_tidied_at_its_end_and_on_request(tmp_path: Path) -> None:
    long = "\n".join(["Likes tea", f"Likes cake {'x' * 1_600}", "Likes tea, of course"])
    fills = Ask(Wanted("core_memory_append", {"name": "human", "content": long}))
    joined = {"why": "joined", "lines": [1, 2], "by": 0, "becomes": "Likes tea and cake"}
    repeated = {"why": "repeated", "lines": [3], "by": 0, "becomes": ""}
    script: Script = [fills, Say("Noted."), Expect(_plan(repeated), contains("3. Likes tea, of course")), _plan(joined)]
    with prompt(script, tmp_path, columns=110) as (screen, _):
        screen.do("I like tea and cake.", "Noted.", "∙ ")
        screen.do("/new", "✓ `human`: Tidied: 1 repeated.", "A new conversation.")
        screen.do("/memory tidy human", "Tidied: 1 joined.")
        assert leave(screen) == 0
    assert run(tmp_path, "memory", "show", "human")["blocks"][0]["value"] == "Likes tea and cake"
