"""Less common input at a stop: statements, pdb commands, ranges of lines, help for one command."""

import pytest

from agent_core.workspace.workspace import Workspace

from .support import LOOP, Typist, arm, room_of

ASKED = "sum_up", {"numbers": [1, 2, 3, 4]}


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        (("numbers[-1] = 100",), 106),
        (("del numbers[-1]",), 6),
        (("numbers[1] += 5", "numbers[3] -= 1"), 14),
        (("result += 1000",), 1010),
        (("result: int = 50",), 60),
    ],
    ids=str,
)
async def test_a_statement_that_sets_something_does_so(
    workspace: Workspace, lines: tuple[str, ...], value: int
) -> None:
    arm(workspace, condition="index == 0")
    room_of(workspace).seat.debugger = Typist(*lines, "c")
    assert (await workspace.functions.call(*ASKED)).value == value


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("whatis total_of_all if False else numbers", "<class 'list'>"),
        ("j 20", "The debugger has no `j`. No line can be skipped here; until LINE"),
        ("commands 1", "The debugger has no `commands`. display EXPRESSION"),
        ("interact", "The debugger has no `interact`."),
        ("rv", "It is retval."),
        ("alias x p 1", "The debugger has no `alias`. `help` lists what it has."),
        ("import os", "The debugger runs no `import`. Within an expression: __import__("),
        ("for one in numbers: pass", "The debugger takes expressions, and assignments"),
        ("other, result = 1, 2", "The debugger takes expressions, and assignments"),
        ("other = 3", "other is no local name of sum_up: no line there would read it."),
        ("numbers[0", "*** SyntaxError: '[' was never closed: `numbers[0`"),
        ("display numbers[0", "*** SyntaxError"),
        ("p await soon()", "Nothing can be awaited"),
        ("numbers[9] = 1", "*** IndexError: list assignment index out of range"),
        ("p f'{'", "*** SyntaxError"),
        ("n += 1", "n is no local name of sum_up"),
        ("?", "continue   c    continue"),
        ("help until", "until, unt: run to a later line: until [LINE]"),
        ("h p", "p: show the value of an expression\nFor example: p total + 1"),
        ("help nothing", "There is no command `nothing`. `help` lists them."),
        (f"l {LOOP - 1},{LOOP}", f"  {LOOP - 1}       for index"),
        ("l 3 to 4", "`list` takes nothing, a dot, a line, or two."),
        ("l 4000", "functions/sums.py has no line 3995."),
    ],
    ids=lambda value: str(value)[:20],
)
async def test_each_line_is_answered_in_plain_words(workspace: Workspace, line: str, said: str) -> None:
    arm(workspace, condition="number == 3")
    room_of(workspace).seat.debugger = typist = Typist(line, "c")
    await workspace.functions.call(*ASKED)
    assert said in typist.said[0]
    assert "<debug>" not in typist.said[0]


async def test_help_for_one_command_shows_no_other(workspace: Workspace) -> None:
    arm(workspace)
    room_of(workspace).seat.debugger = typist = Typist("help next", "c")
    await workspace.functions.call("sum_up", {"numbers": [1]})
    assert typist.said == ["next, n: run this line, without stopping in the functions that it calls"]


async def test_a_list_goes_on_where_the_last_one_ended_and_begins_anew_at_a_dot(workspace: Workspace) -> None:
    arm(workspace)
    room_of(workspace).seat.debugger = typist = Typist("l", "l", "l 3,4", "l 10,3", "l .", "c")
    await workspace.functions.call("sum_up", {"numbers": [1]})
    shown = [[int(row.split()[0]) for row in said.split("\n")] for said in typist.said]
    here = [*range(LOOP - 5, LOOP + 6)]
    assert shown == [here, [*range(LOOP + 6, LOOP + 17)], [3, 4], [10, 11, 12, 13], here]


async def test_a_call_in_which_an_item_was_set_says_so_at_its_replay(workspace: Workspace) -> None:
    arm(workspace)
    room_of(workspace).seat.debugger = Typist("numbers[0] = 9", "c")
    await workspace.functions.call("sum_up", {"numbers": [1]})
    (one,) = await workspace.functions.replays.calls()
    assert "changed values" in str((await workspace.functions.replays.show(one.call)).call.lacking)
