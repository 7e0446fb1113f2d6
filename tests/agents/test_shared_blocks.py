"""Blocks shared by several agents: who may read and change them, who wrote what, and writes on a stale version."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent_core.base.errors import StorageError
from agent_core.functions.service import Author
from agent_core.interfaces.manual_edits import HUMAN, add_block, done
from agent_core.interfaces.render.memory_view import history_document, history_lines
from agent_core.interfaces.spans import plain
from agent_core.memory.blocks import Blocks
from agent_core.storage import MemoryStore
from agent_core.workspace.workspace import Workspace


@asynccontextmanager
async def agents(root: Path, *names: str) -> AsyncIterator[list[Blocks]]:
    """Open the blocks of agents in one workspace; the first agent has a shared block `plan`."""
    async with Workspace.open(root) as workspace:
        opened = [await workspace.agent(name) for name in names]
        first = opened[0].memory.blocks
        await add_block(first, "plan", value="Step one.")
        await done(first, first.share("plan", HUMAN))
        yield [agent.memory.blocks for agent in opened]


def store_of(blocks: Blocks) -> MemoryStore:
    """Return the store behind the blocks of an agent."""
    return blocks._store


def by(name: str) -> Author:
    """Return an agent as the author of an edit."""
    return Author("agent", name)


async def test_a_reader_sees_a_block_and_cannot_change_it(tmp_path: Path) -> None:
    async with agents(tmp_path, "ada", "bob") as (ada, bob):
        await done(ada, ada.allow("plan", ["bob"], [], HUMAN))
        await done(bob, bob.attach("plan", HUMAN))
        await bob.reload()
        assert 'read_only="true"' in bob.render().partition("<plan")[2]
        edit = await done(bob, bob.call("core_memory_append", {"name": "plan", "content": "Mine."}, by("bob")))
        assert edit.outcome == "refused"
        assert "may read it, and not change it" in edit.text
        assert (await done(ada, ada.call("core_memory_append", {"name": "plan", "content": "Mine."}, by("ada")))).writes


async def test_a_writer_may_read_and_change(tmp_path: Path) -> None:
    async with agents(tmp_path, "ada", "bob") as (ada, bob):
        await done(ada, ada.allow("plan", [], ["bob"], HUMAN))
        await done(bob, bob.attach("plan", HUMAN))
        await bob.reload()
        edit = await done(bob, bob.call("core_memory_append", {"name": "plan", "content": "Step two."}, by("bob")))
        assert edit.outcome == "returned"


async def test_a_block_cannot_be_attached_to_spy(tmp_path: Path) -> None:
    async with agents(tmp_path, "ada", "bob", "eve") as (ada, _, eve):
        await done(ada, ada.allow("plan", ["bob"], ["bob"], HUMAN))
        with pytest.raises(StorageError, match="`eve` may not read the block `plan`") as failure:
            await done(eve, eve.attach("plan", HUMAN))
        assert "memory share plan --readers eve" in str(failure.value)
        assert "plan" not in {row.label for row in await store_of(eve).blocks("eve")}


async def test_who_may_no_longer_read_a_block_loses_it_at_the_next_step(tmp_path: Path) -> None:
    async with agents(tmp_path, "ada", "bob") as (ada, bob):
        await done(bob, bob.attach("plan", HUMAN))
        await bob.reload()
        bob.render()
        await done(ada, ada.allow("plan", [], [], HUMAN))
        assert await bob.changed_elsewhere() == ["The block `plan` is no longer in your memory."]
        assert "plan" not in bob.memory


async def test_only_its_owner_says_who_may_have_a_block(tmp_path: Path) -> None:
    async with agents(tmp_path, "ada", "bob") as (_ada, bob):
        await done(bob, bob.attach("plan", HUMAN))
        await bob.reload()
        edit = await done(bob, bob.allow("plan", ["*"], ["*"], HUMAN))
        assert (edit.outcome, edit.writes) == ("refused", ())
        assert "belongs to ada" in edit.text


async def test_a_write_against_an_older_version_is_answered_with_the_difference(tmp_path: Path) -> None:
    async with agents(tmp_path, "ada", "bob") as (ada, bob):
        await done(bob, bob.attach("plan", HUMAN))
        await bob.reload()
        version = next(row.version for row in bob.rows if row.label == "plan")
        await done(ada, ada.call("core_memory_append", {"name": "plan", "content": "Step two."}, by("ada")))
        edit = await done(bob, bob.write("plan", "All new.", by("bob"), version))
        assert edit.outcome == "refused"
        assert "+Step two." in edit.text
        edit = await done(bob, bob.call("core_memory_rewrite", {"name": "plan", "content": "All new."}, by("bob")))
        assert bob.memory["plan"].text == "All new."
        unseen = await done(ada, ada.call("core_memory_rewrite", {"name": "plan", "content": "Mine."}, by("ada")))
        assert unseen.outcome == "refused"
        assert "+All new." in unseen.text


async def test_the_history_says_who_wrote_which_line(tmp_path: Path) -> None:
    async with agents(tmp_path, "ada", "bob") as (ada, bob):
        await done(bob, bob.attach("plan", HUMAN))
        await bob.reload()
        await done(bob, bob.call("core_memory_append", {"name": "plan", "content": "Step two."}, by("bob")))
        await ada.reload()
        await done(ada, ada.call("core_memory_append", {"name": "plan", "content": "Step three."}, by("ada")))
        document = await history_document(store_of(ada), "ada", "plan")
        assert [(row["text"], row["by"], row["agent"]) for row in document["lines"]] == [
            ("Step one.", "human", "ada"),
            ("Step two.", "agent", "bob"),
            ("Step three.", "agent", "ada"),
        ]
        shown = plain(history_lines(document))
        assert "who wrote the line" in shown
        assert "the agent bob" in shown.partition("who wrote the line")[2]


async def test_a_copy_owns_the_blocks_that_came_with_it_and_keeps_who_may_have_them(tmp_path: Path) -> None:
    async with agents(tmp_path, "ada", "bob") as (ada, bob):
        await done(ada, ada.allow("plan", ["bob"], [], HUMAN))
        await done(bob, bob.attach("plan", HUMAN))
    async with Workspace.open(tmp_path) as workspace:
        document = await workspace.export_agent("bob")  # bob could only read the block
        async with await workspace.import_agent(document, "copy") as copy:
            blocks = copy.memory.blocks
            edit = await done(
                blocks, blocks.call("core_memory_append", {"name": "plan", "content": "Mine."}, by("copy"))
            )
            assert edit.outcome == "returned"
            row = next(row for row in blocks.rows if row.label == "plan")
            access = await store_of(blocks).block_access(row.id)
            assert (access.owner, access.readers, access.writers) == ("copy", ("bob",), ())
            assert (await done(blocks, blocks.allow("plan", ["*"], ["bob"], HUMAN))).outcome == "returned"
            assert (await store_of(blocks).block_access(row.id)).owner == "copy"
            lines = (await history_document(store_of(blocks), "copy", "plan"))["lines"]
        assert [(line["text"], line["agent"]) for line in lines] == [("Step one.", "ada"), ("Mine.", "copy")]
        again = await workspace.export_agent("bob")
    assert again == document


async def test_a_file_that_names_another_agent_as_a_block_s_maker_gives_it_no_right(tmp_path: Path) -> None:
    async with agents(tmp_path, "ada", "bob") as (ada, _):
        await done(ada, ada.allow("plan", [], [], HUMAN))
    async with Workspace.open(tmp_path) as workspace:
        document = (await workspace.export_agent("ada")).replace('"agent": "ada"', '"agent": "bob"')
        async with await workspace.import_agent(document, "copy") as copy:
            row = next(row for row in copy.memory.blocks.rows if row.label == "plan")
            access = await store_of(copy.memory.blocks).block_access(row.id)
            assert (access.owner, access.may_read("bob")) == ("copy", False)
