"""A human at the debugger: a call is paused, inspected, changed and continued, and its clock stands."""

import asyncio
import time

import pytest

from agent_core.base.events import CallAnswered
from agent_core.functions.debug import Command, DebugStop
from agent_core.views.call_log import head_line
from agent_core.workspace.workspace import Workspace
from tests.conftest import OpenDesk
from tests.kit import Ask, Say, Wanted
from tests.kit.desk import Desk, of
from tests.kit.waiting import patience_s, until_it_is

from .support import LOOP, SUMMING, Typist, arm, room_of


async def test_a_local_that_is_set_at_a_conditional_breakpoint_changes_the_result(
    workspace: Workspace,
) -> None:
    arm(workspace, condition="number == 3")
    room_of(workspace).slot.debugger = typist = Typist("p result", "set result 100", "n", "c")
    found = await workspace.functions.call("sum_up", {"numbers": [1, 2, 3, 4]})
    assert found.value == 107
    assert typist.said == ["3", "done"]
    assert [stop.at.line for stop in typist.stops] == [LOOP, LOOP, LOOP, LOOP - 1]


async def test_each_command_at_a_stop_answers_from_the_worker(workspace: Workspace) -> None:
    says = {
        "p [one for one in numbers if one > number]": "[4]",
        "p 1 / 0": "*** ZeroDivisionError: division by zero",
        "p (": "*** SyntaxError",
        "numbers[-1] + result": "7",
        "args": "numbers = [1, 2, 3, 4]",
        "locals": "numbers = [1, 2, 3, 4]\nresult = 3\nindex = 2\nnumber = 3",
        "where": f"→ functions/sums.py:{LOOP} in sum_up",
        "ll": f"  {LOOP} →         result += number",
        "up": "This is the outermost frame.",
        "retval": "Nothing is being returned here.",
        "set nothing 3": "nothing is no local name",
        "clear 9": "There is no breakpoint 9.",
        "until soon": "`until` takes a line.",
    }
    arm(workspace, condition="number == 3")
    room_of(workspace).slot.debugger = typist = Typist(*says, "c")
    await workspace.functions.call("sum_up", {"numbers": [1, 2, 3, 4]})
    told = zip(says.items(), typist.said, strict=True)
    assert [(line, answer) for (line, said), answer in told if said not in answer] == []


async def test_an_expression_finds_nothing_of_the_environment_of_the_host(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KNAPPER_TEST_SECRET", "a-secret-of-the-host")
    arm(workspace)
    lines = (
        "p __import__('os').environ",
        "p open('/proc/1/environ').read()",
        "p open('/etc/passwd').read()",
    )
    room_of(workspace).slot.debugger = typist = Typist(*lines, "c")
    report = await workspace.functions.call("sum_up", {"numbers": [1]})
    assert (len(typist.said), report.lacks) == (
        3,
        "",
    )  # typed input is not a request of the function
    assert not any("a-secret-of-the-host" in said for said in typist.said)
    assert all("***" in said for said in typist.said[1:])


async def test_stepping_goes_into_a_called_function_and_out_of_it_again(
    workspace: Workspace,
) -> None:
    arm(workspace, line=0, name="outer")
    room_of(workspace).slot.debugger = typist = Typist(
        "s", "up", "p numbers", "r", "retval", "n", "c"
    )
    assert (await workspace.functions.call("outer", {"numbers": [2, 3]})).value == 10
    assert [stop.at.function for stop in typist.stops] == [
        "outer",
        "sum_up",
        "outer",
        "outer",
        "sum_up",
        "sum_up",
        "outer",
    ]
    assert typist.said == ["functions/sums.py:38 in outer", "[2, 3]", "5"]


async def test_the_stack_tells_the_frames_of_a_recursion_apart_by_their_arguments(
    workspace: Workspace,
) -> None:
    text = 'def fib(n: int) -> int:\n    """Count."""\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n'
    (workspace.root / "functions" / "fibs.py").write_text(text, "utf-8")
    await workspace.functions.reload()
    arm(workspace, line=3, name="fib", condition="n == 1", once=True)
    room_of(workspace).slot.debugger = typist = Typist("where", "c")
    assert (await workspace.functions.call("fib", {"n": 3})).value == 2
    assert [line.rpartition(" in ")[2] for line in typist.said[0].split("\n")] == [
        "fib(n=3)",
        "fib(n=2)",
        "fib(n=1)",
    ]


async def test_an_async_function_is_stepped_over_its_awaits(workspace: Workspace) -> None:
    arm(workspace, line=31, name="count_slowly")
    room_of(workspace).slot.debugger = typist = Typist("n", "n", "set done 10", "clear 1", "c")
    assert (await workspace.functions.call("count_slowly", {"steps": 3})).value == 12
    assert [stop.at.line for stop in typist.stops][:3] == [31, 32, 30]


async def test_a_step_at_an_await_says_that_it_waits_and_comes_back(workspace: Workspace) -> None:
    for pause in ("0", "0.01"):
        path = workspace.root / "functions" / "sums.py"
        path.write_text(SUMMING.replace("sleep(0)", f"sleep({pause})"), "utf-8")
        await workspace.functions.reload()
        arm(workspace, line=31, name="count_slowly", once=True)
        room_of(workspace).slot.debugger = typist = Typist("s", "s", "s", "c")
        assert (await workspace.functions.call("count_slowly", {"steps": 1})).value == 1
        assert [(stop.why, stop.at.line, stop.value) for stop in typist.stops[1:3]] == [
            ("waits", 31, None),
            ("step", 32, None),
        ]


async def test_a_step_in_a_generator_says_that_it_yields_and_what(workspace: Workspace) -> None:
    text = 'def pairs(count: int) -> int:\n    """Add."""\n    return sum(one for one in range(count))\n'
    (workspace.root / "functions" / "pairs.py").write_text(text, "utf-8")
    await workspace.functions.reload()
    arm(workspace, line=0, name="pairs", once=True)
    room_of(workspace).slot.debugger = typist = Typist(*("s",) * 12)
    assert (await workspace.functions.call("pairs", {"count": 2})).value == 1
    assert [stop.value for stop in typist.stops if stop.why == "yields"] == ["0", "1"]


async def test_breakpoint_in_source_stops_where_it_stands(workspace: Workspace) -> None:
    room_of(workspace).slot.debugger = typist = Typist("n", "set doubled 1", "c")
    assert (await workspace.functions.call("halting", {"number": 4})).value == 1
    assert typist.stops[0].why == "breakpoint()"


async def test_counted_breakpoints_and_those_that_count_once(workspace: Workspace) -> None:
    arm(workspace, after=2, every=3)
    room_of(workspace).slot.debugger = typist = Typist(*("c",) * 9)
    await workspace.functions.call("sum_up", {"numbers": [1] * 10})
    assert [dict(stop.locals)["index"] for stop in typist.stops] == ["2", "5", "8"]
    room_of(workspace).breakpoints.clear()
    arm(workspace, once=True)
    await workspace.functions.call("sum_up", {"numbers": [1] * 10})
    assert len(typist.stops) == 4
    assert not room_of(workspace).breakpoints.held


async def test_a_breakpoint_that_is_set_at_a_stop_is_hit_in_the_same_call(
    workspace: Workspace,
) -> None:
    arm(workspace, line=13)
    room_of(workspace).slot.debugger = typist = Typist(
        f"tb {LOOP} if number == 2", "c", "p number", "c"
    )
    await workspace.functions.call("sum_up", {"numbers": [1, 2, 2]})
    assert [stop.at.line for stop in typist.stops] == [13, 13, LOOP, LOOP]
    assert typist.said[-1] == "2"


async def test_quit_ends_the_call_and_says_why(workspace: Workspace) -> None:
    arm(workspace)
    room_of(workspace).slot.debugger = Typist("q")
    found = await workspace.functions.call("sum_up", {"numbers": [1]})
    assert (found.outcome, "told to end it" in str(found.error)) == ("killed", True)


async def test_the_clock_stands_while_a_human_looks_and_goes_on_after(workspace: Workspace) -> None:
    class Slow(Typist):
        async def stopped(self, stop: DebugStop) -> Command:
            await asyncio.sleep(1.2)
            return await super().stopped(stop)

    arm(workspace)
    workspace.functions.calls._sandbox.limits = workspace.functions.calls._sandbox.limits.__class__(
        wall_s=1.0
    )
    workspace.functions.granting._limits = workspace.functions.calls._sandbox.limits
    room_of(workspace).slot.debugger = Slow()
    assert (await workspace.functions.call("sum_up", {"numbers": [1]})).outcome == "returned"
    assert (await workspace.functions.call("busy", {"turns": 10**9})).outcome == "timed_out"


async def test_a_human_who_is_gone_for_long_ends_the_call(workspace: Workspace) -> None:
    class Gone(Typist):
        async def stopped(self, stop: DebugStop) -> Command:
            await asyncio.sleep(60)
            return Command("continue")

    arm(workspace)
    room = room_of(workspace)
    room.wait_s, room.slot.debugger = 0.2, Gone()
    found = await workspace.functions.call("sum_up", {"numbers": [1]})
    assert "nobody said anything" in str(found.error)
    room.slot.debugger = Typist()
    assert (await workspace.functions.call("sum_up", {"numbers": [1]})).value == 1


async def test_break_now_stops_a_call_that_runs(workspace: Workspace) -> None:
    room = room_of(workspace)
    room.slot.debugger = typist = Typist("set left 3", "c")
    call = asyncio.create_task(workspace.functions.call("busy", {"turns": 10**10}))
    await until_it_is(room.break_now)
    await until_it_is(lambda: typist.stops or room.break_now(), lambda _: typist.stops)
    assert (await call).value == 0
    assert typist.stops[0].why == "break now"
    assert typist.stops[0].at.function == "busy"


async def test_an_expression_without_end_is_stopped_alone(workspace: Workspace) -> None:
    room = room_of(workspace)
    arm(workspace)
    endless = "sum(1 for _ in iter(int, 1))"
    for line in (endless, "__import__('time').sleep(60)", f"numbers[{endless}] = 1"):
        room.slot.debugger = typist = Typist(line, "result", "c")
        assert not room.stop_evaluation()
        call = asyncio.create_task(workspace.functions.call("sum_up", {"numbers": [5]}))
        async with asyncio.timeout(patience_s()):
            while not typist.said:
                await asyncio.sleep(0.3)  # one stop must not meet the next expression
                room.stop_evaluation()
            assert (await call).value == 5
        assert typist.said == ["*** KeyboardInterrupt: it was stopped at the prompt", "0"]
        assert not room.stop_evaluation()


async def test_a_breakpoint_follows_its_line_when_the_file_is_edited_above_it(
    workspace: Workspace,
) -> None:
    arm(workspace)
    file = workspace.root / "functions" / "sums.py"
    file.write_text(
        "# one\n# two\n" + SUMMING.replace("    result = 0\n", "    result = 0\n    extra = 1\n"),
        "utf-8",
    )
    await workspace.functions.reload()
    room_of(workspace).slot.debugger = typist = Typist()
    await workspace.functions.call("sum_up", {"numbers": [1]})
    assert [stop.at.line for stop in typist.stops] == [LOOP + 3]
    file.write_text(SUMMING.replace("result += number", "result = result + number"), "utf-8")
    await workspace.functions.reload()
    (placed,) = room_of(workspace).breakpoints.placed(workspace.functions.registry.snapshot())
    assert "is gone" in placed.text
    arm(workspace)
    room_of(workspace).slot.debugger = typist = Typist("condition 1 number > 3", "ignore 1 2", "c")
    assert (await workspace.functions.call("sum_up", {"numbers": [1]})).value == 1
    assert ["is gone" in said for said in typist.said] == [True, True]


THOUGHT_S = 1.5


class Thinking(Typist):
    """A human who takes time at the first stop."""

    async def stopped(self, stop: DebugStop) -> Command:
        await asyncio.sleep(0 if self.stops else THOUGHT_S)
        return await super().stopped(stop)


async def at_sums(at_desk: OpenDesk, *calls: Wanted, pause_s: float = 0.5) -> Desk:
    desk = await at_desk([Ask(*calls), Say("Done.")])
    slow = SUMMING.replace("import random", "import time")
    desk.put("sums.py", slow.replace("result = 0", f"result = 0 * bool(time.sleep({pause_s}))", 1))
    await desk.workspace.functions.reload()
    arm(desk.workspace, line=15)  # a line that all calls pass
    return desk


async def test_the_time_of_a_call_is_without_that_of_the_human(at_desk: OpenDesk) -> None:
    desk = await at_sums(at_desk, Wanted("sum_up", {"numbers": [1]}))
    room_of(desk.workspace).slot.debugger = typist = Thinking()
    began = time.monotonic()
    (answered,) = of(CallAnswered, await desk.say("Call it."))
    assert len(typist.stops) == 1
    assert 0 < answered.seconds <= time.monotonic() - began - THOUGHT_S


async def test_of_several_calls_that_stop_the_header_says_which_it_is(at_desk: OpenDesk) -> None:
    calls = [Wanted("sum_up", {"numbers": [number]}) for number in (1, 2)]
    desk = await at_sums(
        at_desk, *calls, pause_s=1
    )  # the second is at work before the first one stops
    room_of(desk.workspace).slot.debugger = typist = Thinking()
    await desk.say("Call it twice.")
    heads = ["".join(text for _, text in head_line(stop)) for stop in typist.stops]
    assert {head.partition("  ")[0] for head in heads} == {
        "■ sum_up(numbers=[1])",
        "■ sum_up(numbers=[2])",
    }


async def test_of_one_call_the_header_is_short(at_desk: OpenDesk) -> None:
    desk = await at_sums(at_desk, Wanted("outer", {"numbers": [1]}))
    room_of(desk.workspace).slot.debugger = typist = Typist()
    await desk.say("Call it.")
    assert "".join(text for _, text in head_line(typist.stops[0])).startswith(
        "■ sum_up  functions/sums.py:15, in a call of"
    )


async def test_a_turn_stops_at_its_own_debugger_instead_of_the_workspaces(
    at_desk: OpenDesk,
) -> None:
    desk = await at_sums(at_desk, Wanted("sum_up", {"numbers": [1]}))
    usual, own = Typist(), Typist()
    room_of(desk.workspace).slot.debugger = usual
    assert of(CallAnswered, [event async for event in desk.agent.turn("Call it.", debugger=own)])
    assert (len(own.stops), usual.stops) == (1, [])
