"""Breakpoints as typed: counts, conditions, later changes, and the line at which they are placed."""

import pytest

from agent_core.base.errors import UsageError
from agent_core.functions.debug import typed_breakpoint
from agent_core.workspace.workspace import Workspace
from tests.conftest import OpenDesk
from tests.kit import Ask, Say, Wanted
from tests.kit.desk import answers

from .support import LOOP, SUMMING, Typist, arm, room_of


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("sum_up", ("sum_up", 0, "", 0, 1, False)),
        ("sum_up:15", ("sum_up", 15, "", 0, 1, False)),
        ("15, number > 2", ("", 15, "number > 2", 0, 1, False)),
        ("sum_up:15 if number > 2 after 3 every 2 once", ("sum_up", 15, "number > 2", 3, 2, True)),
        ("sum_up:15 after 3 every 2 if number > 2", ("sum_up", 15, "number > 2", 3, 2, False)),
        ("sum_up once", ("sum_up", 0, "", 0, 1, True)),
        ("sum_up if once", ("sum_up", 0, "once", 0, 1, False)),
        ("sum_up if ready and once", ("sum_up", 0, "ready and once", 0, 1, False)),
        ('15 if text == "ends after 3"', ("", 15, 'text == "ends after 3"', 0, 1, False)),
    ],
)
def test_a_breakpoint_is_read_as_it_is_typed(text: str, held: tuple[object, ...]) -> None:
    one, line = typed_breakpoint(text)
    assert (one.function, line, one.condition, one.after, one.every, one.once) == held


@pytest.mark.parametrize("text", ["sum_up:soon", "sum_up if", "sum_up:15 afer 3", "sum_up after many"])
def test_what_is_no_breakpoint_says_how_one_is_typed(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        typed_breakpoint(text)
    assert "[after N] [every N] [once]" in refused.value.fix


async def test_a_counted_breakpoint_that_is_typed_at_a_stop_stops_at_its_hits(workspace: Workspace) -> None:
    arm(workspace, line=13)
    room_of(workspace).seat.debugger = typist = Typist(f"b {LOOP} if number > 1 after 1 every 2", "b", *("c",) * 9)
    await workspace.functions.call("sum_up", {"numbers": [1, 2, 3, 4, 5, 6]})
    assert [dict(stop.locals)["number"] for stop in typist.stops if stop.at.line == LOOP] == ["3", "5"]
    assert typist.said[0] == f"2: sum_up, functions/sums.py:{LOOP} `result += number` if number > 1 after 1 every 2"
    assert typist.said[0] in typist.said[1]


@pytest.mark.parametrize(
    ("line", "numbers"),
    [
        ("condition 1 number > 4", ["1", "5"]),
        ("ignore 1 3", ["1", "5"]),
        (f"b {LOOP} if number == 4", ["1", "4"]),
        ("condition 1", ["1", "2", "3", "4", "5"]),
    ],
)
async def test_a_breakpoint_that_is_changed_at_a_stop_counts_once_and_as_it_is_now(
    workspace: Workspace, line: str, numbers: list[str]
) -> None:
    arm(workspace)
    room_of(workspace).seat.debugger = typist = Typist(line, *("c",) * 9)
    await workspace.functions.call("sum_up", {"numbers": [1, 2, 3, 4, 5]})
    assert [dict(stop.locals)["number"] for stop in typist.stops if not stop.message] == numbers


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("b 1", "`sum_up` does not stop at line 1"),
        ("b 6", "functions/sums.py:13 `result = 0`\nNothing begins to run at line 6: it stops at 13."),
        ("b 44", "2: divide, functions/sums.py:44 `return numerator / denominator`"),
        (f"tbreak {LOOP}", f"functions/sums.py:{LOOP} `result += number` once"),
        ("clear 1", "Breakpoint 1 of sum_up is cleared."),
        ("condition 7 True", "There is no breakpoint 7."),
        ("condition 1 number >", "`number >` is no expression"),
        ("ignore 1", "is not a number that counts"),
        ("undisplay number", "`number` is not shown at stops."),
    ],
)
async def test_what_is_said_of_a_breakpoint_names_its_number_and_place(
    workspace: Workspace, line: str, said: str
) -> None:
    arm(workspace, line=13)
    room_of(workspace).seat.debugger = typist = Typist(line, "c")
    await workspace.functions.call("sum_up", {"numbers": []})
    assert said in typist.said[0]


async def test_the_model_arms_a_counted_breakpoint(at_desk: OpenDesk) -> None:
    wanted = {"function_name": "sum_up", "line": LOOP, "after": 1, "every": 2, "once": False}
    called = Wanted("sum_up", {"numbers": [1, 2, 3, 4, 5]})
    desk = await at_desk([Ask(Wanted("debugger", wanted)), Ask(called), Say("Seen.")])
    desk.put("sums.py", SUMMING)
    await desk.workspace.functions.reload()
    said = answers(await desk.say("Look into it."))
    assert "after 1 every 2" in said[0]
    assert [f"hit {number}:" in said[1] for number in (1, 2, 3, 4, 5)] == [False, True, False, True, False]
