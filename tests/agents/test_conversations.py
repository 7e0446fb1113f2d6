"""Conversations of one agent: several are open at once, with a context of their own and one memory."""

import asyncio
import json

import pytest

from agent_core.base.errors import AgentBusy, UsageError
from agent_core.runtime.agent import Agent, Origin
from agent_core.storage import NAME_CHARS, Post
from agent_core.storage.turn_store import N_BITS
from agent_core.workspace.forgetting import ForgetRequest, Forgetting
from agent_core.workspace.portable import AgentFileError
from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Seen, Step, Wanted
from tests.kit.desk import ended

COUNT = 10


def said(seen: Seen) -> list[str]:
    """Return what the user said in a request."""
    return [str(row["content"]) for row in seen.messages if row["role"] == "user"]


async def found(agent: Agent, words: str) -> list[str]:
    """Return the texts that a search finds in a conversation."""
    return [item.text for item in (await agent.memory.recall.search(words)).items]


async def test_each_conversation_has_its_own_context_and_the_agent_one_memory(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([Say("Teal."), Say("Which?"), Say("Still teal.")])
    await desk.say("The colour is teal.")
    other = await desk.workspace.agent(conversation="new")
    assert (other.name, other.conversation.name) == ("main", "")
    assert await other.ask("Which colour?") == "Which?"
    assert other.conversation.name == "Which colour?"
    assert said(desk.model.requests[-1]) == ["Which colour?"]
    await desk.say("And now?")
    assert said(desk.model.requests[-1]) == ["The colour is teal.", "And now?"]
    own = desk.workspace.conversations()
    assert [(row.name, row.messages) for row in await own.list()] == [
        ("main", 2),
        ("Which colour?", 1),
    ]
    found = str(await other.memory.recall.search("teal"))
    assert "in the conversation “main”: The colour is teal." in found
    own_hits = [
        item for item in (await desk.agent.memory.recall.search("teal")).items if not item.where
    ]
    assert "The colour is teal." in [item.text for item in own_hits]


async def test_a_conversation_is_opened_once_by_its_name_or_its_id(at_desk: OpenDesk) -> None:
    desk = await at_desk([Say("Fine.")] * 2)
    own = desk.workspace.conversations()
    for words in ("Plan the garden", "Plan the kitchen"):
        async with await desk.workspace.agent(conversation="new") as agent:
            await agent.ask(words)
    garden = await own.find("plan the GARDEN")
    with pytest.raises(UsageError, match="no conversation `plan the gardn`") as caught:
        await desk.workspace.agent(None, "plan the gardn")
    assert f"{garden.id} (Plan the garden)" in caught.value.fix
    await own.rename(garden.id, "Plan the kitchen")
    with pytest.raises(UsageError, match="Several conversations are called"):
        await own.find("Plan the kitchen")
    async with await desk.workspace.agent("main", garden.id) as agent:
        assert agent.conversation.name == "Plan the kitchen"
        with pytest.raises(AgentBusy, match=rf"`main` \(conversation {garden.id}\) is in use"):
            await desk.workspace.agent("main", garden.id)
    with pytest.raises(UsageError, match="at most"):
        await own.rename(garden.id, "x" * (NAME_CHARS + 1))
    with pytest.raises(UsageError, match="needs a name"):
        await own.rename(garden.id, " ")


async def test_ten_conversations_edit_one_block_at_once_and_nothing_is_lost(
    at_desk: OpenDesk,
) -> None:
    seen_by: dict[str, list[str]] = {}

    def step(seen: Seen) -> Step:
        word = said(seen)[0].split()[0]
        seen_by.setdefault(word, []).append(seen.text)
        calls = sum(row["role"] == "tool" for row in seen.messages)
        if calls < 2:
            line = {"name": "human", "content": f"{word} line {calls}"}
            return Ask(Wanted("core_memory_append", line))
        return Say("Kept.")

    desk = await at_desk([Repeat(step)])
    agents = [await desk.workspace.agent(conversation="new") for _ in range(COUNT)]
    replies = await asyncio.gather(*(agent.ask(f"word{at} go") for at, agent in enumerate(agents)))
    assert replies == ["Kept."] * COUNT
    await desk.agent.memory.blocks.reload()
    lines = desk.agent.memory.blocks.memory["human"].lines
    kept = [f"word{at} line {n}" for at in range(COUNT) for n in range(2)]
    assert sorted(line for line in lines if line.startswith("word")) == sorted(kept)
    for at, agent in enumerate(agents):  # each is told all that the others wrote, by its next step
        await agent.ask("and?")
        text = seen_by[f"word{at}"][-1]
        assert not [line for line in kept if line not in text], at
    told = [text for texts in seen_by.values() for text in texts]
    assert any("changed by you in another conversation" in text for text in told)


async def test_a_branch_is_asked_what_was_said_until_then(at_desk: OpenDesk) -> None:
    desk = await at_desk([Say("One."), Say("Two."), Say("Three."), Say("Four.")])
    await desk.say("first")
    await desk.say("second")
    store = desk.workspace.store
    first_turn = (await store.history("main"))[0].turn
    upto = [row for row in await store.history("main") if row.turn == first_turn][-1].seq
    own = desk.workspace.conversations()
    branch = await own.branch("main", upto)
    async with await desk.workspace.agent(None, branch.id) as agent:
        assert agent.conversation.parent == "main"
        await agent.ask("other")
        assert said(desk.model.requests[-1]) == ["first", "other"]
        while await desk.agent.pop():
            pass
        assert await agent.user_texts() == ["first", "other"]
    again = await own.branch(branch.id)
    async with await desk.workspace.agent(None, again.id) as agent:
        assert await agent.user_texts() == ["first", "other"]
        assert await agent.pop()
        assert await agent.user_texts() == ["first"]
        await agent.ask("third")
        assert said(desk.model.requests[-1]) == ["first", "third"]
    async with await desk.workspace.agent(None, branch.id) as agent:
        assert await agent.user_texts() == ["first", "other"]


async def test_what_is_private_to_a_token_is_found_in_itself_alone(at_desk: OpenDesk) -> None:
    desk = await at_desk([Say("Fine.")] * 2)
    own = desk.workspace.conversations()
    row = await own.begin(Origin("door", token="t1", user="ann"))
    async with await desk.workspace.agent(None, row.id) as private:
        await private.ask("The word is heron.")
        await desk.say("The word is crane.")
        assert await found(private, "word") == ["The word is heron.", "Fine."]
        assert await found(desk.agent, "word") == ["The word is crane.", "Fine."]
        assert (await private.memory.counts()).messages == 2


async def test_a_deleted_conversation_is_in_no_list_and_no_search_until_it_is_brought_back(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([Say("Fine.")] * 2)
    own = desk.workspace.conversations()
    async with await desk.workspace.agent(conversation="new") as agent:
        await agent.ask("The word is heron.")
    await desk.say("Hello.")
    assert "The word is heron." in await found(desk.agent, "heron")
    gone = await own.delete("The word is heron.")
    assert [row.id for row in await own.list()] == ["main"]
    assert "The word is heron." not in await found(desk.agent, "heron")
    with pytest.raises(UsageError, match="has no conversation"):
        await own.find(gone.id)
    with pytest.raises(UsageError, match="No deleted conversation") as caught:
        await own.undelete("abc")
    assert gone.id in caught.value.fix
    await own.undelete(gone.id)
    assert "The word is heron." in await found(desk.agent, "heron")


async def test_a_long_text_that_a_search_finds_elsewhere_is_read_on(at_desk: OpenDesk) -> None:
    desk = await at_desk([Say("Fine.")] * 1)
    await desk.say("heron " + "word " * 5_000)
    other = await desk.workspace.agent(conversation="new")
    hit = (await other.memory.recall.search("heron")).items[0]
    assert (await other.read_on(f"text-{hit.seq:x}", 1)).startswith("Page 1 of ")
    own = desk.workspace.conversations()
    row = await own.begin(Origin("door", token="t1"))
    async with await desk.workspace.agent(None, row.id) as private:
        with pytest.raises(UsageError, match="There is no long text"):
            await private.read_on(f"text-{hit.seq:x}", 1)


async def test_an_agents_file_has_its_conversations_and_their_branches(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([Say("Fine.")] * 4)
    await desk.say("first")
    await desk.say("popped")
    await desk.agent.pop()
    own = desk.workspace.conversations()
    async with await desk.workspace.agent(conversation="new") as agent:
        await agent.ask("garden")
    await own.rename("garden", "Plants")
    branch = await own.branch("main")
    async with await desk.workspace.agent(None, branch.id) as agent:
        await agent.ask("second")
    text = await desk.workspace.export_agent()
    copy = await desk.workspace.import_agent(text, "copy")
    rows = await desk.workspace.conversations("copy").list()
    assert [(row.id, row.name, row.parent) for row in rows] == [
        (branch.id, "second", "copy"),
        ((await own.find("Plants")).id, "Plants", ""),
        ("main", "main", ""),
    ]
    assert await copy.user_texts() == ["first"]
    async with await desk.workspace.agent("copy", branch.id) as agent:
        assert await agent.user_texts() == ["first", "second"]
    assert (await desk.workspace.store.check_journal()).faults == ()


async def test_a_file_of_an_agent_with_one_conversation_is_as_before(at_desk: OpenDesk) -> None:
    desk = await at_desk([Say("Fine.")])
    await desk.say("first")
    text = await desk.workspace.export_agent()
    assert '"conversation"' not in text
    assert '"conversations"' not in text


async def test_a_turn_that_was_cut_off_in_one_conversation_leaves_the_others_alone(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([Say("Here.")])
    store = desk.workspace.store
    other = await desk.workspace.agent(conversation="new")
    await other.aclose()
    await store.post(Post(other.line, "message", {"text": "there"}))
    assert await store.next(other.line, "a process that ended") is not None
    assert ended(await desk.say("here")).reply == "Here."
    async with await desk.workspace.agent(None, other.conversation.id) as again:
        assert "cut off" in again.restored
        assert await again.user_texts() == ["there"]


async def test_forgetting_reaches_every_conversation_also_a_deleted_one_and_its_name(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([Say("Fine.")] * 3)
    own = desk.workspace.conversations()
    ids = []
    for _ in range(2):
        async with await desk.workspace.agent(conversation="new") as agent:
            await agent.ask("The heron nests here")
            ids.append(agent.conversation.id)
    await own.delete(ids[0])
    await desk.say("The heron is back.")
    await desk.agent.memory.recall.catch_up()
    root, store = desk.workspace.root, desk.workspace.store
    forgetting = Forgetting(root, root / ".knapper", store)
    await forgetting.carry_out(await forgetting.order(ForgetRequest("heron"), "main"))
    said = [
        row for line in ("main", *await store.lines("main")) for row in await store.history(line)
    ]
    assert len(said) == 6
    assert not [row for row in said if "heron" in str(row.payload)]
    for id in ids:
        row = await store.conversation(f"main/{id}")
        assert row is not None
        assert "heron" not in row.name
    turn = (await store.history(f"main/{ids[1]}"))[0].seq >> N_BITS
    order = await forgetting.order(ForgetRequest(turn=str(turn)), "main")
    await forgetting.carry_out(order)
    assert await store.history(f"main/{ids[1]}") == []
    row = await store.conversation(f"main/{ids[1]}")
    assert row is not None
    assert row.name == ""


@pytest.mark.parametrize(
    ("where", "changes"),
    [
        ("conversations[0].parent", {"parent": "nobody"}),
        ("conversations[0].parent", {"parent": "abc123"}),
        ("conversations[0].id", {"id": "../x"}),
        ("conversations", {"id": "abc124"}),
        ("turns[1].conversation", {"id": "abc125"}),
        ("turns[1].conversation", {"upto": 1_000}),
        ("conversations[0].name", {"name": "x" * 61}),
    ],
)
async def test_a_file_with_an_odd_conversation_is_refused_at_its_place(
    at_desk: OpenDesk, where: str, changes: dict[str, object]
) -> None:
    desk = await at_desk([Say("Fine.")] * 2)
    await desk.say("first")
    branch = await desk.workspace.conversations().branch("main")
    async with await desk.workspace.agent(None, branch.id) as agent:
        await agent.ask("second")
    file = json.loads((await desk.workspace.export_agent()).replace(branch.id, "abc123"))
    assert [turn.get("conversation") for turn in file["turns"]] == [None, "abc123"]
    file["conversations"][0].update(changes)
    if where == "conversations":
        file["conversations"].append(file["conversations"][0])
        file["turns"][1]["conversation"] = "abc124"
    with pytest.raises(AgentFileError) as caught:
        await desk.workspace.import_agent(file, "guest")
    assert str(caught.value).startswith(where)
