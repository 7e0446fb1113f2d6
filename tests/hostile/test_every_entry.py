"""Hostile input from a worker, a model's call or an earlier version never blocks the event loop, at any entry point."""

import json
from functools import partial
from zlib import crc32

import pytest

from agent_core.functions.answers import CallReport
from agent_core.registry.source import OF_THE_PROGRAM
from tests.conftest import OpenDesk
from tests.hostile import entries
from tests.hostile.forge import FORGE, packed
from tests.hostile.texts import function, worst
from tests.kit import Ask, Repeat, Say, Wanted
from tests.kit.desk import VOWELS, answers
from tests.kit.drawing import sampled
from tests.kit.heartbeat import MOST_MS, heartbeat, stall_of
from tests.kit.pace import slowness


def test_there_is_hostile_input_for_every_tag_and_every_request_of_the_protocol() -> None:
    assert entries.covered_tags() == entries.tags()
    assert entries.REQUESTS.keys() == entries.requests()


@pytest.mark.sampled
@pytest.mark.timeout(300)
async def test_no_value_that_a_worker_claims_holds_up_the_event_loop(at_desk: OpenDesk) -> None:
    here = await at_desk([])
    here.put("forge.py", FORGE)
    await here.workspace.functions.reload()
    for name, value in sampled(entries.hostile_values().items(), 9):
        reports = list[CallReport]()

        async def claim(value: object = value, reports: list[CallReport] = reports) -> None:
            reports.append(await here.workspace.functions.call("claim", packed(value)))

        stall = await stall_of(claim)
        assert "as it is" not in repr(reports[-1])[:1_000], f"{name} was not claimed"
        assert stall.cpu_ms <= MOST_MS, (name, stall)


async def test_no_picture_of_a_worker_holds_up_the_event_loop(at_desk: OpenDesk) -> None:
    pictures = entries.hostile_pictures()
    claims = [Ask(Wanted("claim", packed(value))) for value in pictures.values()]
    here = await at_desk([step for claim in claims for step in (claim, Say("done"))])
    here.put("forge.py", FORGE)
    await here.workspace.functions.reload()
    for name in pictures:
        async with heartbeat() as stall:
            told = answers(await here.say("claim"))
        assert told, f"{name} was not even returned"
        assert "as it is" not in told[-1], f"{name} was not claimed"
        assert stall.cpu_ms <= MOST_MS * slowness(), (name, stall)
        await here.begin()


async def test_no_request_of_a_worker_holds_up_the_event_loop(at_desk: OpenDesk) -> None:
    asked = [
        Wanted("ask", packed([name, entries.REQUESTS[name]])) for name in sorted(entries.requests())
    ]
    here = await at_desk([step for each in asked for step in (Ask(each), Say("done"))])
    here.put("forge.py", FORGE)
    await here.workspace.functions.reload()
    for name in sorted(entries.requests()):
        async with heartbeat() as stall:
            told = answers(await here.say("ask"))
        assert told, f"{name} was not even called"
        assert stall.cpu_ms <= MOST_MS * slowness(), (name, stall, told)
        await here.begin()


@pytest.mark.sampled
@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", range(5))
async def test_no_call_of_a_function_of_the_host_holds_up_the_event_loop(
    at_desk: OpenDesk, part: int
) -> None:
    here = await at_desk([Repeat(Say("done"))])  # for `message_llm`
    for name in sorted(OF_THE_PROGRAM)[part::5]:
        here.put("letters.py", VOWELS)
        await here.workspace.functions.reload()
        parameters = entries.host_functions(here.agent)[name].function.parameters
        tried = [
            (shown, parameter, arguments)
            for shown, text in worst().items()
            for parameter, arguments in entries.hostile_arguments(parameters, text)
        ]
        for shown, parameter, arguments in sampled(tried, 61, at=crc32(name.encode())):
            stall = await stall_of(partial(entries.called, here.agent, name, json.dumps(arguments)))
            assert stall.cpu_ms <= MOST_MS, (name, parameter, shown, stall)


async def test_no_look_at_a_past_of_lines_that_repeat_holds_up_the_event_loop(
    at_desk: OpenDesk,
) -> None:
    here = await at_desk([])
    lines = [f"#{n % 128}" for n in range(5_000)]
    for each in (
        lines,
        lines[::-1],
        ["#", "##"] * 2_500,
        [f"#{n * 7919 % 5_000}" for n in range(5_000)],
    ):
        here.put("long.py", function([*each, "return a"]))
        await here.workspace.functions.reload()
    found = []
    for look in ("of", "diff"):

        async def read(look: str = look) -> None:
            found.append(await getattr(here.workspace.functions.history, look)("f"))

        stall = await stall_of(read)
        assert found[-1].name == "f"
        assert stall.cpu_ms <= MOST_MS, (look, stall)
