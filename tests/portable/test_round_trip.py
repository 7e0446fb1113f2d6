"""An agent that is exported and imported is the same agent, with the same text."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from agent_core.base.errors import ConfigError, UsageError
from agent_core.base.programs import ReaderProcess
from agent_core.storage import BlockRow, PassageRow, SaveBlock, SavePassages, WholeAgent
from agent_core.workspace.portable import AgentExists, ImportOptions, NoAgent
from tests.kit.drawing import drawn
from tests.portable.support import agents, moving
from tests.storage.support import say


@settings(max_examples=drawn(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(whole=agents())
async def test_an_agent_comes_in_as_it_went_out(reader: ReaderProcess, whole: WholeAgent) -> None:
    async with moving() as (store, moves), moving(reader=reader) as (_, others):
        await store.write_agent(whole)
        assert await moves.whole("main") == whole
        text = await moves.export("main")
        await others.take_in(text, ImportOptions())
        assert await others.export("main") == text
        assert await others.whole("main") == whole


@settings(max_examples=drawn(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(whole=agents())
async def test_a_copy_beside_the_original_differs_in_names_alone(
    reader: ReaderProcess, whole: WholeAgent
) -> None:
    async with moving(reader=reader) as (store, moves):
        await store.write_agent(whole)
        text = await moves.export("main")
        await moves.take_in(text, ImportOptions(name="copy"))
        copy = await moves.whole("copy")
        assert [turn.entries for turn in copy.turns] == [turn.entries for turn in whole.turns]
        assert [block.row.value for block in copy.blocks] == [
            block.row.value for block in whole.blocks
        ]
        assert not {block.row.id for block in copy.blocks} & {
            block.row.id for block in whole.blocks
        }
        here = {old.id: new.id for old, new in zip(whole.turns, copy.turns, strict=True)}
        changes = [[change.turn for change in block.history] for block in copy.blocks]
        assert changes == [
            [here.get(change.turn, change.turn) for change in one.history] for one in whole.blocks
        ]
        assert copy.passages == tuple(replace(one, agent="copy") for one in whole.passages)
        assert await moves.export("main") == text


async def test_a_block_that_an_earlier_version_made_larger_than_its_limit_comes_in() -> None:
    async with moving() as (store, moves), moving() as (other, others):
        await store.apply([SaveBlock(BlockRow("b", "note", "x" * 30, 20), "main", "made")])
        await others.take_in(await moves.export("main"), ImportOptions())
        assert [(row.value, row.limit) for row in await other.blocks("main")] == [("x" * 30, 30)]


async def test_nothing_is_written_over_and_the_other_name_is_named() -> None:
    async with moving() as (store, moves):
        await say(store, "mine")
        text = await moves.export("main")
        with pytest.raises(AgentExists, match="--as NAME"):
            await moves.take_in(text, ImportOptions())
        with pytest.raises(AgentExists):
            await moves.take_in(text, ImportOptions(name="main", dry_run=True))
        assert [
            report.name
            for report in await moves.take_in(text, ImportOptions(name="two", dry_run=True))
        ] == ["two"]
        assert await moves.names() == ["main"]
        with pytest.raises(UsageError, match="cannot be an agent's name"):
            await moves.take_in(text, ImportOptions(name="../main"))
        with pytest.raises(NoAgent, match="There are: main"):
            await moves.export("nobody")


async def test_a_name_that_could_be_taken_for_another_is_refused_wherever_it_stands(
    tmp_path: Path,
) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "editor.toml").write_text("")
    async with moving(tmp_path) as (store, moves):
        await say(store, "mine", agent="writer")
        text = await moves.export("writer")
        for name, told in {
            **dict.fromkeys(("user", "System", "helper--x", "once--x"), "is reserved"),
            "ma1n": "looks like `main`",
            "ed1tor": "looks like `editor`",
            "Writer": "looks like `writer`",
            "main--notes": "is the name of a conversation",
        }.items():
            for document, options in (
                (text, ImportOptions(name)),
                (text.replace("writer", name), ImportOptions()),
            ):
                with pytest.raises(ConfigError, match=told):
                    await moves.take_in(document, options)
        assert await moves.names() == ["writer"]
        for name in ("editor", "main"):
            await moves.take_in(text, ImportOptions(name))


async def test_a_shared_block_is_a_copy_unless_sharing_is_asked_for() -> None:
    async with moving() as (store, moves):
        await store.apply(
            [SaveBlock(BlockRow("b", "team", "we", 100, shared=True), "main", "begun")]
        )
        text = await moves.export("main")
        (copied,) = await moves.take_in(text, ImportOptions(name="copy"))
        (shared,) = await moves.take_in(text, ImportOptions(name="together", share=True))
        ids = [(await store.blocks(name))[0].id for name in ("copy", "together")]
        assert ids[0] != "b"
        assert ids[1] == "b"
        assert "blocks of its own" in str(copied.to_json())
        assert "here already" in str(shared.to_json())


async def test_to_load_in_place_keeps_what_it_shares_and_replaces_the_rest() -> None:
    async with moving() as (store, moves):
        await store.apply(
            [SaveBlock(BlockRow("b", "team", "we", 100, shared=True), "main", "begun")]
        )
        await say(store, "kept")
        text = await moves.export("main")
        await say(store, "later")
        await store.apply([SavePassages((PassageRow("p", "main", "later", "later", 1.0),))])
        await moves.replace(*await moves.check(text, "main"))
        assert [entry.payload["text"] for entry in await store.history("main")] == ["kept"]
        assert (await store.blocks("main"))[0].id == "b"
        assert (await store.memory_counts("main")).passages == 0


async def test_a_deleted_agent_leaves_nothing_but_what_others_share(tmp_path: Path) -> None:
    async with moving(tmp_path) as (store, moves):
        await store.apply(
            [SaveBlock(BlockRow("b", "team", "we", 100, shared=True), "main", "begun")]
        )
        await moves.take_in(await moves.export("main"), ImportOptions(name="two", share=True))
        await moves.delete("main")
        assert await moves.names() == ["two"]
        assert [block.id for block in await store.blocks("two")] == ["b"]
        with pytest.raises(NoAgent):
            await moves.delete("main")
