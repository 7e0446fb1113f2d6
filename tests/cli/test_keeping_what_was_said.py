"""At the end of a conversation a model chooses what to keep, and tidies a block that it filled; both can be undone."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_core.base.errors import ModelError
from agent_core.base.events import Warned
from agent_core.functions.service import Author
from agent_core.memory.agent_memory import checked_plan
from agent_core.memory.classes import ChatMemory
from agent_core.runtime.agent import Agent
from tests.cli.support import run
from tests.conftest import OpenDesk
from tests.context.long_talk import in_json
from tests.interfaces.support import leave, prompt
from tests.kit import Expect, Repeat, Say, Script, Seen, Step, contains
from tests.kit.steps import Ask, Wanted

SAID = "My best friend is Alya. How is the weather? Please tell me a long story about a heron."
LATER = SAID.replace("Alya", "Berta").replace("a heron", "an owl")  # a sentence is asked about once


def asked(said: str) -> Callable[[Seen], str | None]:
    return contains("1. {}\n2. {}".format(*said.split(" How is the weather? ")))


@pytest.fixture
def asking(tmp_path: Path) -> Path:
    (tmp_path / "knapper.toml").write_text("[memory]\nkeep_unsaved = true\n")
    return tmp_path


def human_of(root: Path) -> str:
    return str(run(root, "memory", "show", "human")["blocks"][0]["value"])


def test_what_the_model_chooses_is_kept_shown_and_undone_when_a_conversation_ends(asking: Path) -> None:
    script: Script = [Say("Fine."), Expect(Say("1"), asked(SAID)), Say("Hi."), Say("Fine.")]
    with prompt([*script, Expect(Say("1"), asked(LATER))], asking, columns=110) as (screen, _):
        screen.do(SAID, "1 step")
        screen.do("/new", "✓ kept in memory: My best friend is Alya.", "A new conversation.")
        assert human_of(asking) == "My best friend is Alya."
        screen.do("/undo", "restore the block human")
        screen.answer("y")
        screen.wait_count("✓ ", 3)
        assert human_of(asking) == ""
        screen.do("hello there", "1 step")
        screen.do(LATER, "1 step")
        screen.do("/summarize", "✓ kept in memory: My best friend is Berta.")
        assert leave(screen) == 0
    assert human_of(asking) == "My best friend is Berta."


@pytest.mark.slow
def test_leaving_asks_too_and_nothing_but_a_number_keeps_anything(asking: Path) -> None:
    answers = ("Everything! And also that the user is rich.", "none", "7", "0")
    said = [SAID.replace("Alya", name).replace("heron", name) for name in ("Alya", "Berta", "Carla", "Dora")]
    script: list[Say | Expect] = []
    for text, answer in zip(said, answers, strict=True):
        script += [Say("Fine."), Expect(Say(answer), asked(text))]
    with prompt(script, asking, columns=110) as (screen, _):
        for text in said[:-1]:
            screen.do(text, "1 step")
            screen.do("/new", "A new conversation.")
        screen.do(said[-1], "1 step")
        assert leave(screen) == 0
    assert human_of(asking) == ""


async def test_before_the_context_is_full_what_matters_is_kept_and_told(at_desk: OpenDesk) -> None:
    def step(seen: Seen) -> Step:
        return Say("1") if "You choose what an assistant remembers" in seen.text else in_json("Some words. " * 90)

    small = {"model__mode": "constrained", "model__context_tokens": 4_000, "memory__keep_unsaved": True}
    here = await at_desk([Repeat(step)], **small)
    events = [event for number in range(12) for event in await here.say(f"My cat is called Minka{number}.")]
    warned = [event.message for event in events if isinstance(event, Warned)]
    assert "Kept in memory: My cat is called Minka0." in warned
    assert "My cat is called Minka0." in here.agent.memory.blocks.memory["human"].value


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
    "by none": {"why": "untrue", "lines": [1], "by": 0, "becomes": ""},
    "no such line": {"why": "joined", "lines": [5, 9], "by": 0, "becomes": "Likes tea"},
    "another reason": {"why": "tired", "lines": [5], "by": 0, "becomes": ""},
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
