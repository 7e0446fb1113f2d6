"""The display of a paused call: its own running time, and which of several calls it is."""

import asyncio

from agent_core.base.events import CallAnswered
from agent_core.functions.debug import Command, DebugStop
from agent_core.interfaces.render.call_log import head_line
from tests.conftest import OpenDesk
from tests.kit import Ask, Say, Wanted
from tests.kit.desk import Desk, of

from .support import SUMMING, Typist, arm, room_of

THOUGHT_S = 5


class Thinking(Typist):
    """A human who takes time at the first stop."""

    async def stopped(self, stop: DebugStop) -> Command:
        await asyncio.sleep(0 if self.stops else THOUGHT_S)
        return await super().stopped(stop)


async def at_sums(at_desk: OpenDesk, *calls: Wanted) -> Desk:
    desk = await at_desk([Ask(*calls), Say("Done.")])
    desk.put(
        "sums.py",
        SUMMING.replace("import random", "import time").replace("result = 0", "result = 0 * bool(time.sleep(0.5))", 1),
    )
    await desk.workspace.functions.reload()
    arm(desk.workspace, line=15)  # a line that all calls pass
    return desk


async def test_the_time_of_a_call_is_without_that_of_the_human(at_desk: OpenDesk) -> None:
    desk = await at_sums(at_desk, Wanted("sum_up", {"numbers": [1]}))
    room_of(desk.workspace).seat.debugger = typist = Thinking()
    (answered,) = of(CallAnswered, await desk.say("Call it."))
    assert len(typist.stops) == 1
    assert 0 < answered.seconds < THOUGHT_S


async def test_of_several_calls_that_stop_the_header_says_which_it_is(at_desk: OpenDesk) -> None:
    calls = [Wanted("sum_up", {"numbers": [number]}) for number in (1, 2)]
    desk = await at_sums(at_desk, *calls)
    room_of(desk.workspace).seat.debugger = typist = Thinking()
    await desk.say("Call it twice.")
    heads = ["".join(text for _, text in head_line(stop)) for stop in typist.stops]
    assert {head.partition("  ")[0] for head in heads} == {"■ sum_up(numbers=[1])", "■ sum_up(numbers=[2])"}


async def test_of_one_call_the_header_is_short(at_desk: OpenDesk) -> None:
    desk = await at_sums(at_desk, Wanted("outer", {"numbers": [1]}))
    room_of(desk.workspace).seat.debugger = typist = Typist()
    await desk.say("Call it.")
    assert "".join(text for _, text in head_line(typist.stops[0])).startswith(
        "■ sum_up  functions/sums.py:15, in a call of"
    )


async def test_a_turn_stops_at_its_own_debugger_instead_of_the_workspaces(at_desk: OpenDesk) -> None:
    desk = await at_sums(at_desk, Wanted("sum_up", {"numbers": [1]}))
    usual, own = Typist(), Typist()
    room_of(desk.workspace).seat.debugger = usual
    assert of(CallAnswered, [event async for event in desk.agent.turn("Call it.", debugger=own)])
    assert (len(own.stops), usual.stops) == (1, [])
