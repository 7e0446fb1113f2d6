"""What is typed at a stop: statements, pdb commands, ranges of lines, and breakpoints with counts and conditions."""

import pytest

from agent_core.base.errors import UsageError
from agent_core.functions.debug import typed_breakpoint
from agent_core.workspace.workspace import Workspace
from tests.conftest import OpenDesk
from tests.kit import Ask, Say, Wanted
from tests.kit.desk import answers

from .support import LOOP, SUMMING, Typist, arm, room_of

ASKED = "sum_up", {"numbers": [1, 2, 3, 4]}


async def test_a_statement_that_sets_something_does_so(workspace: Workspace) -> None:
    arm(workspace, condition="index == 0")
    for lines, value in (
        (("numbers[-1] = 100",), 106),
        (("del numbers[-1]",), 6),
        (("numbers[1] += 5", "numbers[3] -= 1"), 14),
        (("result += 1000",), 1010),
        (("result: int = 50",), 60),
    ):
        room_of(workspace).slot.debugger = Typist(*lines, "c")
        assert (await workspace.functions.call(*ASKED)).value == value, lines


async def test_each_line_is_answered_in_plain_words(workspace: Workspace) -> None:
    says = {
        "whatis total_of_all if False else numbers": "<class 'list'>",
        "j 20": "The debugger has no `j`. No line can be skipped here; until LINE",
        "commands 1": "The debugger has no `commands`. display EXPRESSION",
        "interact": "The debugger has no `interact`.",
        "rv": "It is retval.",
        "alias x p 1": "The debugger has no `alias`. `help` lists what it has.",
        "import os": "The debugger runs no `import`. Within an expression: __import__(",
        "for one in numbers: pass": "The debugger takes expressions, and assignments",
        "other, result = 1, 2": "The debugger takes expressions, and assignments",
        "other = 3": "other is no local name of sum_up: no line there would read it.",
        "numbers[0": "*** SyntaxError: '[' was never closed: `numbers[0`",
        "display numbers[0": "*** SyntaxError",
        "p await soon()": "Nothing can be awaited",
        "numbers[9] = 1": "*** IndexError: list assignment index out of range",
        "p f'{'": "*** SyntaxError",
        "n += 1": "n is no local name of sum_up",
        "?": "continue   c    continue",
        "help until": "until, unt: run to a later line: until [LINE]",
        "h p": "p: show the value of an expression\nFor example: p total + 1",
        "help nothing": "There is no command `nothing`. `help` lists them.",
        f"l {LOOP - 1},{LOOP}": f"  {LOOP - 1}       for index",
        "l 3 to 4": "`list` takes nothing, a dot, a line, or two.",
        "l 4000": "functions/sums.py has no line 3995.",
        "help next": "next, n: run this line, without stopping in the functions that it calls",
    }
    arm(workspace, condition="number == 3")
    room_of(workspace).slot.debugger = typist = Typist(*says, "c")
    await workspace.functions.call(*ASKED)
    told = zip(says.items(), typist.said, strict=True)
    assert [
        (line, answer) for (line, said), answer in told if said not in answer or "<debug>" in answer
    ] == []
    assert typist.said[-1] == says["help next"]  # and no other command


async def test_a_list_goes_on_where_the_last_one_ended_and_begins_anew_at_a_dot(
    workspace: Workspace,
) -> None:
    arm(workspace)
    room_of(workspace).slot.debugger = typist = Typist("l", "l", "l 3,4", "l 10,3", "l .", "c")
    await workspace.functions.call("sum_up", {"numbers": [1]})
    shown = [[int(row.split()[0]) for row in said.split("\n")] for said in typist.said]
    here = [*range(LOOP - 5, LOOP + 6)]
    assert shown == [here, [*range(LOOP + 6, LOOP + 17)], [3, 4], [10, 11, 12, 13], here]


async def test_a_call_in_which_an_item_was_set_says_so_at_its_replay(workspace: Workspace) -> None:
    arm(workspace)
    room_of(workspace).slot.debugger = Typist("numbers[0] = 9", "c")
    await workspace.functions.call("sum_up", {"numbers": [1]})
    (one,) = await workspace.functions.replays.calls()
    assert "values were changed" in str(
        (await workspace.functions.replays.show(one.call)).call.lacking
    )


def test_a_breakpoint_is_read_as_it_is_typed() -> None:
    cases: list[tuple[str, tuple[object, ...]]] = [
        ("sum_up", ("sum_up", 0, "", 0, 1, False)),
        ("sum_up:15", ("sum_up", 15, "", 0, 1, False)),
        ("15, number > 2", ("", 15, "number > 2", 0, 1, False)),
        ("sum_up:15 if number > 2 after 3 every 2 once", ("sum_up", 15, "number > 2", 3, 2, True)),
        ("sum_up:15 after 3 every 2 if number > 2", ("sum_up", 15, "number > 2", 3, 2, False)),
        ("sum_up once", ("sum_up", 0, "", 0, 1, True)),
        ("sum_up if once", ("sum_up", 0, "once", 0, 1, False)),
        ("sum_up if ready and once", ("sum_up", 0, "ready and once", 0, 1, False)),
        ('15 if text == "ends after 3"', ("", 15, 'text == "ends after 3"', 0, 1, False)),
    ]
    for text, held in cases:
        one, line = typed_breakpoint(text)
        assert (one.function, line, one.condition, one.after, one.every, one.once) == held, text


def test_what_is_no_breakpoint_says_how_one_is_typed() -> None:
    for text in ("sum_up:soon", "sum_up if", "sum_up:15 afer 3", "sum_up after many"):
        with pytest.raises(UsageError) as refused:
            typed_breakpoint(text)
        assert "[after N] [every N] [once]" in refused.value.fix, text


async def test_a_counted_breakpoint_that_is_typed_at_a_stop_stops_at_its_hits(
    workspace: Workspace,
) -> None:
    arm(workspace, line=13)
    room_of(workspace).slot.debugger = typist = Typist(
        f"b {LOOP} if number > 1 after 1 every 2", "b", *("c",) * 9
    )
    await workspace.functions.call("sum_up", {"numbers": [1, 2, 3, 4, 5, 6]})
    assert [dict(stop.locals)["number"] for stop in typist.stops if stop.at.line == LOOP] == [
        "3",
        "5",
    ]
    assert (
        typist.said[0]
        == f"2: sum_up, functions/sums.py:{LOOP} `result += number` if number > 1 after 1 every 2"
    )
    assert typist.said[0] in typist.said[1]


async def test_a_breakpoint_that_is_changed_at_a_stop_counts_once_and_as_it_is_now(
    workspace: Workspace,
) -> None:
    for line, numbers in (
        ("condition {} number > 4", ["1", "5"]),
        ("ignore {} 3", ["1", "5"]),
        (f"b {LOOP} if number == 4", ["1", "4"]),
        ("condition {}", ["1", "2", "3", "4", "5"]),
    ):
        placed = arm(workspace)
        room_of(workspace).slot.debugger = typist = Typist(
            line.format(placed.breakpoint.id), *("c",) * 9
        )
        await workspace.functions.call("sum_up", {"numbers": [1, 2, 3, 4, 5]})
        assert [
            dict(stop.locals)["number"] for stop in typist.stops if not stop.message
        ] == numbers, line
        room_of(workspace).breakpoints.clear()


async def test_what_is_said_of_a_breakpoint_names_its_number_and_place(
    workspace: Workspace,
) -> None:
    says = {
        "b 1": "`sum_up` does not stop at line 1",
        "b 44": "2: divide, functions/sums.py:44 `return numerator / denominator`",
        f"tbreak {LOOP}": f"functions/sums.py:{LOOP} `result += number` once",
        "condition 7 True": "There is no breakpoint 7.",
        "condition 1 number >": "`number >` is no expression",
        "ignore 1": "is not a number that counts",
        "undisplay number": "`number` is not shown at stops.",
        "b 6": "functions/sums.py:13 `result = 0`\nNothing begins to run at line 6: it stops at 13.",
        "clear 1": "Breakpoint 1 of sum_up is cleared.",
    }
    arm(workspace, line=13)
    room_of(workspace).slot.debugger = typist = Typist(*says, "c")
    await workspace.functions.call("sum_up", {"numbers": []})
    told = zip(says.items(), typist.said, strict=True)
    assert [(line, answer) for (line, said), answer in told if said not in answer] == []


async def test_the_model_arms_a_counted_breakpoint(at_desk: OpenDesk) -> None:
    wanted = {"function_name": "sum_up", "line": LOOP, "after": 1, "every": 2, "once": False}
    called = Wanted("sum_up", {"numbers": [1, 2, 3, 4, 5]})
    desk = await at_desk([Ask(Wanted("debugger", wanted)), Ask(called), Say("Seen.")])
    desk.put("sums.py", SUMMING)
    await desk.workspace.functions.reload()
    said = answers(await desk.say("Look into it."))
    assert "after 1 every 2" in said[0]
    assert [f"hit {number}:" in said[1] for number in (1, 2, 3, 4, 5)] == [
        False,
        True,
        False,
        True,
        False,
    ]
