"""Blocks shared by several agents: who may read and change them, who wrote what, and writes on a stale version."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent_core.base.errors import StorageError
from agent_core.functions.service import Author
from agent_core.memory.blocks import Blocks
from agent_core.operations.manual_edits import HUMAN, add_block, done
from agent_core.storage import MemoryStore
from agent_core.views.memory_view import history_document, history_lines
from agent_core.views.styled_lines import plain
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


def append(text: str) -> tuple[str, dict[str, str]]:
    """Return the call that appends a line to the shared block."""
    return "core_memory_append", {"name": "plan", "content": text}


async def test_who_may_read_and_who_may_change_a_block_is_said_by_its_owner(tmp_path: Path) -> None:
    async with agents(tmp_path, "ada", "bob", "eve") as (ada, bob, eve):
        await done(ada, ada.share("plan", HUMAN, ["bob"], []))
        await done(bob, bob.attach("plan", HUMAN))
        await bob.reload()
        assert 'read_only="true"' in bob.render().partition("<plan")[2]
        edit = await done(bob, bob.call(*append("Mine."), by("bob")))
        assert (edit.outcome, "may read it, and not change it" in edit.text) == ("refused", True)
        edit = await done(bob, bob.share("plan", HUMAN, ["*"], ["*"]))
        assert (edit.outcome, edit.writes, "belongs to ada" in edit.text) == ("refused", (), True)
        with pytest.raises(StorageError, match="`eve` may not read the block `plan`") as failure:
            await done(eve, eve.attach("plan", HUMAN))
        assert "memory share plan --readers bob,eve" in str(failure.value)
        assert "plan" not in {row.label for row in await store_of(eve).blocks("eve")}
        await done(ada, ada.share("plan", HUMAN, [], ["bob"]))
        await bob.reload()
        assert (await done(bob, bob.call(*append("Step two."), by("bob")))).outcome == "returned"
        await ada.reload()
        assert (await done(ada, ada.call(*append("Step three."), by("ada")))).writes
        document = await history_document(store_of(ada), "ada", "plan")
        assert [(row["text"], row["by"], row["agent"]) for row in document["lines"]] == [
            ("Step one.", "human", "ada"),
            ("Step two.", "agent", "bob"),
            ("Step three.", "agent", "ada"),
        ]
        assert "the agent bob" in plain(history_lines(document)).partition("who wrote the line")[2]
        await bob.reload()
        bob.render()
        await done(ada, ada.share("plan", HUMAN, [], []))
        assert await bob.changed_elsewhere() == ["The block `plan` is no longer in your memory."]
        assert "plan" not in bob.memory


async def test_a_write_against_an_older_version_is_answered_with_the_difference(
    tmp_path: Path,
) -> None:
    async with agents(tmp_path, "ada", "bob") as (ada, bob):
        await done(bob, bob.attach("plan", HUMAN))
        await bob.reload()
        version = next(row.version for row in bob.rows if row.label == "plan")
        await done(
            ada, ada.call("core_memory_append", {"name": "plan", "content": "Step two."}, by("ada"))
        )
        edit = await done(bob, bob.write("plan", "All new.", by("bob"), version))
        assert edit.outcome == "refused"
        assert "+Step two." in edit.text
        edit = await done(
            bob, bob.call("core_memory_rewrite", {"name": "plan", "content": "All new."}, by("bob"))
        )
        assert bob.memory["plan"].text == "All new."
        unseen = await done(
            ada, ada.call("core_memory_rewrite", {"name": "plan", "content": "Mine."}, by("ada"))
        )
        assert unseen.outcome == "refused"
        assert "+All new." in unseen.text


async def test_a_copy_owns_the_blocks_that_came_with_it_and_keeps_who_may_have_them(
    tmp_path: Path,
) -> None:
    async with agents(tmp_path, "ada", "bob") as (ada, bob):
        await done(ada, ada.share("plan", HUMAN, ["bob"], []))
        await done(bob, bob.attach("plan", HUMAN))
    async with Workspace.open(tmp_path) as workspace:
        document = await workspace.export_agent("bob")  # bob could only read the block
        async with await workspace.import_agent(document, "copy") as copy:
            blocks = copy.memory.blocks
            edit = await done(
                blocks,
                blocks.call("core_memory_append", {"name": "plan", "content": "Mine."}, by("copy")),
            )
            assert edit.outcome == "returned"
            row = next(row for row in blocks.rows if row.label == "plan")
            access = await store_of(blocks).block_access(row.id)
            assert (access.owner, access.readers, access.writers) == ("copy", ("bob",), ())
            assert (
                await done(blocks, blocks.share("plan", HUMAN, ["*"], ["bob"]))
            ).outcome == "returned"
            assert (await store_of(blocks).block_access(row.id)).owner == "copy"
            lines = (await history_document(store_of(blocks), "copy", "plan"))["lines"]
        assert [(line["text"], line["agent"]) for line in lines] == [
            ("Step one.", "ada"),
            ("Mine.", "copy"),
        ]
        again = await workspace.export_agent("bob")
        assert again == document
        ada = (await workspace.agent("ada")).memory.blocks
        await done(ada, ada.share("plan", HUMAN, [], []))
        forged = (await workspace.export_agent("ada")).replace('"agent": "ada"', '"agent": "bob"')
        async with await workspace.import_agent(forged, "forged") as copy:
            row = next(row for row in copy.memory.blocks.rows if row.label == "plan")
            access = await store_of(copy.memory.blocks).block_access(row.id)
            rights = access.may_read("bob"), access.may_write("bob")
            assert (access.owner, *rights) == ("forged", False, False), (
                "a named maker gets no right"
            )
