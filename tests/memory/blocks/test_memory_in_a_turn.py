"""The memory functions in the real loop: shown, called, answered, stored, and in the next turn's prompt."""

from contextlib import aclosing

import pytest

from agent_core.base.events import CallAnswered
from agent_core.memory.classes import Block, ChatMemory, Memory
from agent_core.runtime.agent import Agent
from tests.conftest import OpenDesk
from tests.kit.desk import of
from tests.kit.steps import Ask, Expect, Say, Wanted, contains
from tests.memory.blocks.conftest import HUMAN

MITYA, MITUA = "Best friend: Mitya, who also loves cherry pies", "Best friend: Mitua"


def _append(content: str) -> Wanted:
    return Wanted("core_memory_append", {"name": "human", "content": content})


def _replace(old: str, new: str) -> Wanted:
    return Wanted("core_memory_replace", {"name": "human", "old_content": old, "new_content": new})


CONVERSATION = {
    "My name is Chad.": Ask(_append("Name: Chad")),
    "My favourite food is cherry pie.": Ask(_append("Favourite food: cherry pie")),
    "My best friend is Mitya, he also loves cherry pies.": Ask(_append(MITYA)),
    "Mitua and Ann are my best friends too.": Ask(_append(MITUA), _append("Best friend: Ann")),
    "Mitya is not my best friend.": Ask(
        _replace("Best friend: Mitya", "Mitya is not a best friend")
    ),
    "Mitua and Mitya for sure are not my best friends.": Ask(
        _replace("line 4", "Mitua is not a best friend")
    ),
}


async def _say(agent: Agent, message: str) -> list[CallAnswered]:
    return of(CallAnswered, [event async for event in agent.turn(message)])


async def test_a_known_conversation_leaves_each_fact_once_and_no_contradiction(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk(
        [step for ask in CONVERSATION.values() for step in (ask, Say("All right."))]
    )
    agent = await desk.workspace.agent("blank", memory=ChatMemory())
    answered = [answer for message in CONVERSATION for answer in await _say(agent, message)]
    assert [answer.outcome for answer in answered] == ["returned"] * 7
    human = agent.memory.blocks.memory["human"].lines
    assert sorted(human) == [
        "Best friend: Ann",
        "Favourite food: cherry pie",
        "Mitua is not a best friend",
        "Mitya is not a best friend, who also loves cherry pies",
        "Name: Chad",
    ]
    changes = (await agent.memory.blocks.history("human"))[1:]
    assert (len(changes), len({change.turn for change in changes})) == (7, 6)


async def test_what_was_kept_is_before_the_model_in_the_next_turn(at_desk: OpenDesk) -> None:
    asked = Ask(_append("Name: Chad"))
    desk = await at_desk(
        [
            asked,
            Expect(Say("Yes."), contains("`human` reads now")),
            Expect(Say("Chad."), contains("Chad")),
        ]
    )
    await desk.say("My name is Chad.")
    await desk.say("What is my name?")
    assert "Name: Chad" in str(desk.model.requests[-1].messages[0]["content"])


async def test_older_names_are_understood_and_never_shown(at_desk: OpenDesk) -> None:
    older = [
        ("edit_memory_append", {"name": "human", "content": "Name: Bob"}),
        ("edit_memory", {"name": "human", "content": "Name: Chad\nName: Bob"}),
        (
            "edit_memory_replace",
            {"name": "human", "old_content": "Chad", "new_content": "Chad\nName: Bob"},
        ),
        (
            "core_memory_replace",
            {"label": "human", "old_str": "Chad", "new_str": "Chad\nName: Bob"},
        ),
        ("core_memory_append", {"label": "human", "text": "Name: Bob"}),
        (
            "core_memory_append",
            {"name": "human", "label": "persona", "content": "Name: Bob"},
        ),  # today's name counts
    ]
    desk = await at_desk([step for call in older for step in (Ask(Wanted(*call)), Say("Yes."))])
    for number, call in enumerate(older):
        agent = await desk.workspace.agent(f"blank{number}", memory=ChatMemory(human="Name: Chad"))
        (answer,) = await _say(agent, "My name is Bob, too.")
        assert answer.outcome == "returned", (call, answer.text)
        assert agent.memory.blocks.memory["human"].value == "Name: Chad\nName: Bob", call
    assert not [name for name in desk.model.requests[0].functions if name.startswith("edit_memory")]


async def test_a_shared_block_that_changes_while_a_turn_runs_is_told_of(at_desk: OpenDesk) -> None:
    note = Ask(Wanted("core_memory_append", {"name": "human", "content": "Likes tea"}))
    search = Ask(Wanted("conversation_search", {"query": "tea"}))
    desk = await at_desk([note, search, Expect(Say("Done."), contains("Bob cooks"))])
    lent = Memory(blocks=[Block(label="team", value="Ann leads", shared=True)])
    lender = await desk.workspace.agent("lender", memory=lent)
    beside, theirs = desk.agent.memory.blocks, lender.memory.blocks
    await beside.commit(await beside.attach("team", HUMAN))
    async with aclosing(desk.agent.turn("I like tea.")) as turn:
        async for event in turn:
            if isinstance(event, CallAnswered) and event.name == "core_memory_append":
                await theirs.commit(await theirs.write("team", "Bob cooks", HUMAN))
    assert len(desk.model.requests) == 3


@pytest.mark.parametrize("is_new", [True, False], ids=["a-new-conversation", "the-last-turn-out"])
async def test_what_left_is_found_in_recall(at_desk: OpenDesk, is_new: bool) -> None:
    desk = await at_desk([Say("All right.")] * 2, memory__embedding="none")
    await desk.say("The word is heron.")
    await (desk.begin() if is_new else desk.agent.pop())
    await desk.say("Hello.")
    assert "The word is heron." in str(await desk.agent.memory.recall.search("heron"))
    assert "heron" not in desk.model.requests[-1].text
