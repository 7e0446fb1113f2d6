"""No agent file blocks the event loop, uses unlimited memory, or grows far beyond its size."""

import asyncio
import json

import pytest

from agent_core.workspace.portable import AgentFileError, ImportOptions, Moves, reader_of_files
from tests.kit.drawing import sampled
from tests.kit.heartbeat import MOST_MS, stall_of
from tests.portable.shapes import BUSY, entry, letta, own, turn
from tests.portable.support import KNOWN, moving


@pytest.mark.sampled
@pytest.mark.parametrize("name", sampled(BUSY, 2))
async def test_no_file_of_an_agent_holds_up_the_event_loop(name: str) -> None:
    text = BUSY[name]()
    results: list[object] = []

    async def take_in() -> None:
        async with moving() as (_, moves):
            results.extend(await asyncio.gather(moves.take_in(text, ImportOptions()), return_exceptions=True))

    stall = await stall_of(take_in, within_s=40)
    assert all(isinstance(result, AgentFileError | list) for result in results)
    assert stall.cpu_ms <= MOST_MS, stall


async def test_a_file_with_too_much_of_something_is_rejected_with_what_it_is() -> None:
    agents = [{"name": f"a{n}", "agent_type": "m", "messages": [], "block_ids": ["b"]} for n in range(100)]
    block = {"id": "b", "label": "l", "value": "v" * 1_000_000}
    links = [{"file_id": f"f{n}"} for n in range(10_001)]
    async with moving() as (_, moves):
        for text, told in {
            letta(core_memory=[{"label": "a"}] * 2_001): "blocks: expected at most 2000 items",
            json.dumps({"agents": [{}] * 101}): "agents: expected at most 100 items, got 101",
            own(turns=[turn("t", [])] * 100_001): "turns: expected at most 100000 items",
            letta(files_agents=links): "agents[0].files_agents: expected at most 10000 items, got 10001",
            json.dumps({"agents": agents, "blocks": [block]}): "expected a file that repeats its parts less often",
        }.items():
            with pytest.raises(AgentFileError) as refused:
                await moves.take_in(text, ImportOptions(dry_run=True))
            assert told in refused.value.message


async def test_a_block_or_a_file_that_one_agent_names_twice_comes_once() -> None:
    block = {"id": "b", "label": "l", "value": "v"}
    file = {"id": "f", "file_name": "n", "content": "Herons fish."}
    text = letta(block_ids=["b", "b"], files_agents=[{"file_id": "f"}] * 2, beside={"blocks": [block], "files": [file]})
    async with moving() as (_, moves):
        (report,) = await moves.take_in(text, ImportOptions())
        whole = await moves.whole("a")
    assert [one.row.label for one in whole.blocks] == ["l"]
    assert len(whole.passages) == 1
    assert {"what": "files", "as": "documents", "count": 1} in report.to_json()["mapped"]


async def test_reading_that_takes_too_long_is_given_up_and_its_process_ends() -> None:
    async with moving() as (store, _), reader_of_files(within_s=0.05) as reader:
        moves = Moves(store, reader, KNOWN)
        with pytest.raises(AgentFileError, match="not read within"):
            await moves.take_in(own(), ImportOptions())
        assert reader.pid is None


@pytest.mark.slow  # a quarter of a minute to fill three gigabytes
async def test_a_file_that_takes_too_much_memory_is_given_up_and_the_next_one_is_read() -> None:
    async with moving() as (_, moves):
        with pytest.raises(AgentFileError, match="more memory than is given"):
            await moves.take_in('{"x":[' + "[]," * 50_000_000 + "[]]}", ImportOptions())
        assert await moves.take_in(own(), ImportOptions())


async def test_texts_of_every_length_come_in_as_they_went_out() -> None:
    sizes = (1, 63, 65, 65_535, 65_536, 65_537, 1_000_000)
    said = [entry("user", text="\U0001f600" * size, more={"a": ["x" * size, None]}) for size in sizes]
    async with moving() as (store, moves):
        await moves.take_in(own(turns=[turn("t", said)]), ImportOptions())
        assert [one.payload for one in await store.history("a")] == [one["payload"] for one in said]


async def test_a_second_call_of_one_id_is_answered_as_unknown() -> None:
    calls = [{"id": "c", "function": {"name": name, "arguments": "{}"}} for name in ("f", "g")]
    messages = [{"role": "assistant", "content": "", "tool_calls": calls}]
    messages += [{"role": "tool", "tool_call_id": "c", "content": "done"}]
    async with moving() as (store, moves):
        await moves.take_in(letta(messages), ImportOptions())
        results = [one.payload for one in await store.history("a") if one.kind == "result"]
    assert [(one["name"], one["outcome"]) for one in results] == [("f", "returned"), ("g", "unknown")]
