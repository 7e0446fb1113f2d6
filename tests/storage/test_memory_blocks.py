"""Blocks, their versions, history and owners; sections; the identity of an agent."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agent_core.base.errors import StorageError
from agent_core.storage import (
    AttachBlock,
    BlockConflict,
    BlockRow,
    DetachBlock,
    DropAgent,
    DropSection,
    Entry,
    ManifestConflict,
    SaveAgent,
    SaveBlock,
    SaveRecorded,
    SaveSection,
    SaveText,
    SectionRow,
    Store,
    Value,
    content_hash,
)
from tests.storage.support import ManualClock, begin, saving, say

HUMAN = BlockRow("b1", "human", "Bob", 2000, "who is spoken to", position=1)
PERSONA = BlockRow("b2", "persona", ("kind", "quick"), 500, read_only=True)
TEAM = BlockRow("b3", "team", "we", 300, shared=True, position=2)


def edit(block: BlockRow, value: Value, agent: str = "main", turn: str = "") -> SaveBlock:
    changed = replace(block, value=value, version=block.version + 1)
    return SaveBlock(changed, agent, f"now {value}", turn=turn)


async def save(store: Store, *blocks: BlockRow, agent: str = "main") -> None:
    await store.apply([SaveBlock(block, agent, "new", by="human") for block in blocks])


async def test_blocks_come_back_in_order_and_an_edit_leaves_a_line_of_history(
    store: Store, clock: ManualClock
) -> None:
    await save(store, HUMAN, PERSONA, TEAM)
    assert await store.blocks("main") == [
        replace(block, edited=clock.time) for block in (PERSONA, HUMAN, TEAM)
    ]
    clock.time += 5
    await store.apply([edit(HUMAN, "Ann", turn="t1")])
    block = (await store.blocks("main"))[1]
    assert (block.value, block.version, block.edited) == ("Ann", 2, clock.time)
    history = await store.block_history("b1")
    assert [(line.version, line.value, line.by, line.turn, line.at) for line in history] == [
        (1, "Bob", "human", "", clock.time - 5),
        (2, "Ann", "agent", "t1", clock.time),
    ]


async def test_of_two_writers_from_one_version_the_second_is_refused(store: Store) -> None:
    with pytest.raises(BlockConflict, match=r"expected version 1, found 0"):
        await store.apply([edit(HUMAN, "x")])
    await save(store, HUMAN)
    await store.apply([edit(HUMAN, "first")])
    with pytest.raises(BlockConflict, match=r"expected version 1, found 2") as caught:
        await store.apply([SaveSection("main", SectionRow("s", 0, "x")), edit(HUMAN, "second")])
    assert isinstance(caught.value, ManifestConflict)
    assert [block.value for block in await store.blocks("main")] == ["first"]
    assert await store.sections("main") == []
    assert len(await store.block_history("b1")) == 2


async def test_a_second_block_of_one_label_is_refused_to_whoever_comes_later(store: Store) -> None:
    await save(store, HUMAN)
    with pytest.raises(BlockConflict):
        await save(store, replace(HUMAN, id="b9"))
    await store.apply([DetachBlock("main", "b1")])
    await save(store, replace(HUMAN, id="b9"))
    assert await store.block_ids("main") == {"b1": "human", "b9": "human"}


async def test_a_shared_block_is_seen_changed_by_all_who_have_it(
    store: Store, open_again: Callable[[], Store]
) -> None:
    other = open_again()
    await save(store, TEAM)
    await other.apply([AttachBlock("other", "b3", 7)])
    assert await store.block_versions("other") == {"b3": 1}
    await other.apply([edit(replace(TEAM, position=7), "all of us", "other")])
    assert await store.block_versions("main") == {"b3": 2}
    [mine], [theirs] = await store.blocks("main"), await store.blocks("other")
    assert (mine.value, mine.position, theirs.position) == ("all of us", 2, 7)


async def test_a_block_that_is_taken_away_stays_with_its_history(store: Store) -> None:
    await save(store, TEAM)
    await store.apply([DetachBlock("main", "b3")])
    assert (await store.blocks("main"), await store.block_versions("main")) == ([], {})
    assert [block.label for block in await store.shared_blocks()] == ["team"]
    assert len(await store.block_history("b3")) == 1
    await store.apply([AttachBlock("main", "b3", 0)])
    assert [block.id for block in await store.blocks("main")] == ["b3"]


async def test_only_a_shared_block_can_be_given_to_another_agent(store: Store) -> None:
    await save(store, HUMAN)
    for block, message in (("b1", "not shared"), ("nowhere", "There is no block")):
        with pytest.raises(StorageError, match=message):
            await store.apply([AttachBlock("other", block)])


async def test_sections_stand_in_order_and_a_later_one_takes_the_place(
    store: Store, clock: ManualClock
) -> None:
    rows = [SectionRow("b", 1, "two"), SectionRow("a", 1, "one"), SectionRow("z", 0, "zero", 9)]
    await store.apply([SaveSection("main", row) for row in rows])
    await store.apply([SaveSection("main", SectionRow("b", 5, "new")), DropSection("main", "a")])
    found = await store.sections("main")
    assert found == [
        SectionRow("z", 0, "zero", 9, clock.time),
        SectionRow("b", 5, "new", 4000, clock.time),
    ]
    assert await store.sections("other") == []


async def test_agents_are_found_by_the_beginning_of_their_name_and_a_text_in_their_settings(
    store: Store,
) -> None:
    conversations: dict[str, dict[str, Any]] = {
        "main--a": {"sent": ["3f"]},
        "main--b": {"sent": []},
    }
    others = ("main", "main-", "main-0--a", "main_", "Main--a", "other--a")
    settings = {**conversations, **{name: {"sent": ["3f"]} for name in others}}
    await store.apply([SaveAgent(name, values) for name, values in settings.items()])
    assert await store.agents_with("main--", "3f") == {"main--a": {"sent": ["3f"]}}
    assert await store.agents_with("main--", "") == conversations


async def test_a_deleted_agent_leaves_no_text_of_its_conversation_and_no_recorded_call(
    store: Store,
) -> None:
    own, shared, source = "You know Quillon.", "You are kind.", "def find(): ..."
    for agent, texts in (("main", [own, shared, source]), ("other", [shared])):
        turn, names = await begin(store, agent), [content_hash(text) for text in texts]
        request = Entry("request", {"instructions": names[0], "sections": names})
        recorded = SaveRecorded("find", "returned", turn.id, {"arguments": agent})
        await store.append(turn.id, 1, 0, [request], writes=[*map(SaveText, texts), recorded])
        await store.finish(turn.id, 1)
    answer = Entry(
        "result",
        {"call_id": "c", "name": "f", "text": "It", "whole": content_hash("It is."), "chars": 6},
    )
    turn = await begin(store)
    await store.append(
        turn.id, 1, 0, [answer], writes=[SaveText("It is."), *saving("find.py", source)]
    )
    await store.finish(turn.id, 1)
    whole = await store.read_agent("main")
    assert whole is not None
    await store.write_agent(whole, drop=True)
    assert [row.data["arguments"] for row in await store.recorded_calls("find")] == [
        "other",
        "main",
    ], "as it was"
    await store.apply([DropAgent("main")])
    assert [row.data["arguments"] for row in await store.recorded_calls("find")] == ["other"]
    left = [await store.text(content_hash(text)) for text in (own, "It is.", shared, source)]
    assert left == [None, None, shared, source]


async def test_a_deleted_agent_is_gone_but_for_what_it_shared_and_can_begin_again(
    store: Store,
) -> None:
    await save(store, HUMAN, TEAM, replace(TEAM, id="b4", label="alone"))
    await save(store, replace(HUMAN, id="o1"), agent="other")
    await store.apply(
        [
            AttachBlock("other", "b3", 9),
            SaveAgent("main", {}),
            SaveSection("main", SectionRow("s", 0, "x")),
        ]
    )
    await say(store, "a", "b")
    await say(store, "theirs", agent="other")
    await store.apply([DropAgent("main")])
    assert [agent.name for agent in await store.agents()] == ["other"]
    assert (await store.blocks("main"), await store.sections("main")) == ([], [])
    assert (await store.agent_settings("main"), await store.history("main"), await store.due()) == (
        None,
        [],
        [],
    )
    assert [block.id for block in await store.blocks("other")] == ["o1", "b3"]
    assert [block.id for block in await store.shared_blocks()] == ["b4", "b3"]
    assert await store.block_history("b1") == []
    assert len(await store.history("other")) == 1
    assert await store.check() is None
    await save(store, HUMAN)
    await say(store, "after")
    assert [entry.payload["text"] for entry in await store.history("main")] == ["after"]
    assert len(await store.block_history("b1")) == 1
