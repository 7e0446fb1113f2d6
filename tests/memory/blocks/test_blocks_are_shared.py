"""Agents that share a block see each other's edits and lose none."""

from agent_core.base.clock import Clock
from agent_core.memory.blocks import Blocks
from agent_core.memory.classes import Block, ChatMemory, Memory
from agent_core.storage import Store
from tests.memory.blocks.conftest import HUMAN, OpenBlocks, edit


async def _pair(blocks_of: OpenBlocks) -> tuple[Blocks, Blocks]:
    """Return the blocks of two agents that share one block."""
    one = await blocks_of(
        "a", Memory(blocks=[Block(label="team", value="Ann leads", shared=True, limit=100_000)])
    )
    other = await blocks_of("b", ChatMemory())
    await other.commit(await other.attach("team", HUMAN))
    other.render()
    return one, other


async def test_an_edit_of_another_agent_is_told_once_at_the_next_step(
    blocks_of: OpenBlocks,
) -> None:
    one, other = await _pair(blocks_of)
    await edit(one, "core_memory_append", name="team", content="Bob cooks")
    (said,) = await other.changed_elsewhere()
    assert "changed by agent `a`" in said
    assert "Ann leads\nBob cooks" in said
    assert await other.changed_elsewhere() == []
    assert await one.changed_elsewhere() == []


async def test_an_edit_by_the_human_beside_a_turn_is_told_at_the_next_step(
    blocks_of: OpenBlocks,
) -> None:
    blocks = await blocks_of()
    await blocks.commit(await blocks.write("human", "Name: Bob", HUMAN))
    (said,) = await blocks.changed_elsewhere()
    assert "changed by a human" in said


async def test_a_block_that_comes_or_goes_is_told(blocks_of: OpenBlocks) -> None:
    _, other = await _pair(blocks_of)
    beside = await blocks_of("b", ChatMemory())
    await beside.commit(await beside.detach("team", HUMAN))
    assert await other.changed_elsewhere() == ["The block `team` is no longer in your memory."]
    await beside.commit(await beside.attach("team", HUMAN))
    (said,) = await other.changed_elsewhere()
    assert said.startswith("A block is new in your memory")


async def test_an_edit_that_comes_late_is_made_on_what_is_there_by_then(
    blocks_of: OpenBlocks,
) -> None:
    one, other = await _pair(blocks_of)
    await edit(one, "core_memory_append", name="team", content="Bob cooks")
    await edit(other, "core_memory_append", name="team", content="Cid sings")
    await edit(
        one, "core_memory_replace", name="team", old_content="Bob cooks", new_content="Bob bakes"
    )
    again = await blocks_of("b")
    assert again.memory.team.lines == ["Ann leads", "Bob bakes", "Cid sings"]
    assert [change.agent for change in await again.history("team")] == ["a", "a", "b", "a"]


async def test_a_number_of_a_line_is_that_of_the_text_that_the_model_read(
    blocks_of: OpenBlocks,
) -> None:
    one, other = await _pair(blocks_of)
    await edit(one, "core_memory_append", name="team", content="Bob cooks\nCid sings\nDot reads")
    await other.changed_elsewhere()
    await edit(one, "core_memory_remove", name="team", content="line 1")
    said = await edit(
        other, "core_memory_replace", name="team", old_content="Line 2", new_content="Bob bakes"
    )
    assert said.startswith('Line 1 was "Bob cooks"')
    assert '"Ann leads" does not stand there' in await edit(
        other, "core_memory_remove", name="team", content="line 1"
    )
    await edit(
        other, "core_memory_remove", name="team", content="line 3"
    )  # in the same reply, before its answers
    await edit(other, "core_memory_append", name="team", content="Eve paints")
    assert "does not stand there" in await edit(
        other, "core_memory_remove", name="team", content="line 5"
    )
    assert other.memory.team.lines == ["Bob bakes", "Dot reads", "Eve paints"]
    await other.changed_elsewhere()
    await edit(other, "core_memory_append", name="team", content="Fay runs")
    beyond = await edit(
        other, "core_memory_remove", name="team", content="line 4"
    )  # whose it is, it has not read
    assert '"line 4" does not stand there' in beyond
    await edit(other, "core_memory_remove", name="team", content="line 1")
    assert other.memory.team.lines == ["Dot reads", "Eve paints", "Fay runs"]


async def test_ones_own_block_of_a_label_makes_way_and_its_history_stays(
    blocks_of: OpenBlocks, store: Store
) -> None:
    one = await blocks_of("a", ChatMemory(human="Name: Chad"))
    other = await blocks_of("b", ChatMemory(human="Name: Bob"))
    await one.commit(await one.share("human", HUMAN))
    await other.commit(await other.attach("human", HUMAN))
    assert (other.memory.human.value, other.memory.labels) == ("Name: Chad", ["persona", "human"])
    assert len(await store.block_ids("b")) == 3


async def test_what_nobody_shares_cannot_be_attached_and_the_shared_are_named(
    blocks_of: OpenBlocks,
) -> None:
    one, other = await _pair(blocks_of)
    edit = await one.attach("humans", HUMAN)
    assert (edit.outcome, "team (" in edit.text) == ("refused", True)
    edit = await other.attach("team", HUMAN)
    assert (edit.writes, "already" in edit.text) == ((), True)


async def test_two_agents_that_load_at_once_begin_with_a_block_each(store: Store) -> None:
    first, second = (Blocks(store, "a", ChatMemory(), Clock()) for _ in range(2))
    await first.load()
    await second.load()
    assert [row.id for row in first.rows] == [row.id for row in second.rows]
