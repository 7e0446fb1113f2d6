"""Without a human, the records of breakpoints and of a traced call are text for the model."""

import pytest

from agent_core.base.errors import UsageError
from agent_core.workspace.workspace import Workspace
from tests.conftest import OpenDesk
from tests.kit import Ask, Say, Wanted
from tests.kit.desk import answers

from .support import LOOP, SUMMING, Typist, arm, room_of


async def test_the_model_arms_a_breakpoint_and_reads_what_it_saw(at_desk: OpenDesk) -> None:
    armed = Wanted(
        "debugger",
        {
            "function_name": "sum_up",
            "line": LOOP,
            "condition": "number > 2",
            "expressions": ["result * 2"],
        },
    )
    called = Wanted("sum_up", {"numbers": [1, 2, 3]})
    desk = await at_desk(
        [Ask(armed), Ask(called), Ask(Wanted("clear_debugger", {})), Ask(called), Say("Seen.")]
    )
    desk.put("sums.py", SUMMING)
    await desk.workspace.functions.reload()
    said = answers(await desk.say("Look into it."))
    assert f"functions/sums.py:{LOOP}" in said[0]
    assert said[1].startswith("6\n")
    assert "hit 1: result * 2 = 6" in said[1]
    assert "number = 3" in said[1]
    assert said[3] == "6"


async def test_a_breakpoint_holds_in_a_function_that_its_decorator_does_not_name(
    at_desk: OpenDesk,
) -> None:
    armed = Wanted("debugger", {"function_name": "sum_up", "line": LOOP, "condition": "number > 2"})
    desk = await at_desk([Ask(armed), Ask(Wanted("sum_up", {"numbers": [1, 2, 3]})), Say("Seen.")])
    hiding = "import random\n_hide = lambda function: lambda *given: function(*given)\n@_hide\n"
    desk.put("sums.py", SUMMING.replace("import random\n\n\n", hiding, 1))
    await desk.workspace.functions.reload()
    said = answers(await desk.say("Look into it."))
    assert said[1].startswith("6\n")
    assert "number = 3" in said[1]


async def test_a_traced_call_shows_each_line_once_with_first_and_last(at_desk: OpenDesk) -> None:
    traced = Wanted(
        "trace_function", {"function_name": "sum_up", "arguments": {"numbers": [1, 2, 3]}}
    )
    desk = await at_desk([Ask(traced), Say("Seen.")])
    desk.put("sums.py", SUMMING)
    await desk.workspace.functions.reload()
    (text,) = answers(await desk.say("Trace it."))
    assert f"{LOOP} ×3            result += number" in text
    assert "first result = 1" in text
    assert "last  result = 6" in text


async def test_of_many_hits_the_first_ones_and_the_last_are_kept(workspace: Workspace) -> None:
    arm(workspace)
    text = (await workspace.functions.call("sum_up", {"numbers": [1] * 500})).debugged
    assert [f"hit {number}:" in text for number in (1, 8, 9, 499, 500)] == [
        True,
        True,
        False,
        False,
        True,
    ]
    assert len(text) < 5_000


async def test_a_trace_of_a_long_loop_is_short_and_its_last_values_are_those_of_the_end(
    workspace: Workspace,
) -> None:
    found = await workspace.functions.trace("sum_up", {"numbers": [1] * 3000})
    (row,) = [row for row in found.lines if row.line == LOOP]
    assert (row.count, row.first, row.last) == (3000, {"result": "1"}, {"result": "3000"})


async def test_a_call_that_never_ends_is_traced_as_far_as_it_came(workspace: Workspace) -> None:
    workspace.functions.granting._limits = workspace.functions.granting._limits.__class__(
        wall_s=2.0
    )
    found = await workspace.functions.trace("busy", {"turns": 10**12})
    assert found.outcome.outcome == "timed_out"
    assert "left -= 1" in found.text


async def test_a_trace_goes_on_where_the_debugger_stopped(workspace: Workspace) -> None:
    asked = "sum_up", {"numbers": [1, 2, 3]}
    whole = await workspace.functions.trace(*asked)
    for typed in (("n", "n", "c"), (f"tb {LOOP} if number == 3", "c", "c"), ("p result", "r", "c")):
        arm(workspace, line=LOOP - 1)
        room_of(workspace).slot.debugger = typist = Typist(*typed)
        found = await workspace.functions.trace(*asked)
        assert len(typist.stops) > 1
        assert (found.lines, found.text) == (whole.lines, whole.text), typed
        room_of(workspace).breakpoints.clear()


async def test_a_trace_of_a_call_that_is_quit_shows_what_ran_and_where_it_ends(
    workspace: Workspace,
) -> None:
    room_of(workspace).slot.debugger = Typist("n", "q")
    text = (await workspace.functions.trace("halting", {"number": 3})).text
    assert "doubled = 6" in text
    assert "The call was ended about here" in text


async def test_introspection_says_which_lines_the_examples_reach(workspace: Workspace) -> None:
    found = (await workspace.functions.introspect("sum_up")).coverage
    assert (found.reached, found.lines, found.missed) == (5, 6, (17,))


async def test_a_breakpoint_that_cannot_be_is_refused(workspace: Workspace) -> None:
    for name, line, condition, says in (
        ("sum_upp", 0, "", "Did you mean `sum_up`"),
        ("sum_up", 400, "", "does not stop at line 400"),
        ("sum_up", LOOP, "number >", "is no expression"),
        ("sum_up", LOOP, "(yield)", "it awaits, yields"),
    ):
        with pytest.raises(UsageError) as error:
            arm(workspace, line, condition, name)
        assert says in f"{error.value} {error.value.fix}"


PROGRAMS = {
    "sum_up([1, 2, 3])": ("6\n", "hit 1:"),
    "[sum_up([4]), sum_up([5])]": ("[4, 5]\n", "number = 5"),
    "each(sum_up, [([4],), ([7],)])": ("[4, 7]\n", "number = 7"),
    "outer([8])": ("16\n", "number = 8"),
    "sum_up([9])\n1 / 0": ("The program raised", "number = 9"),
    "try:\n    divide(sum_up([3]), 0)\nexcept CallFailed:\n    x = 'no'\nx": (
        '"no"\n',
        "number = 3",
    ),
    "x = sum_up([6])": ("6\n", "number = 6"),
    "print(sum_up([2]))": ("null\n", "number = 2"),
}


async def test_a_programs_answer_has_what_breakpoints_saw_in_its_calls(at_desk: OpenDesk) -> None:
    armed = Wanted("debugger", {"function_name": "sum_up", "line": LOOP})
    programs = [Ask(Wanted("run_program", {"code": code})) for code in PROGRAMS]
    desk = await at_desk(
        [Ask(armed), *programs, Ask(Wanted("clear_debugger", {})), programs[0], Say("Seen.")]
    )
    desk.put("sums.py", SUMMING)
    await desk.workspace.functions.reload()
    _, *told, _, after = answers(await desk.say("Look into it."))
    for (begins, has), (code, text) in zip(
        PROGRAMS.values(), zip(PROGRAMS, told, strict=True), strict=True
    ):
        assert text.startswith(begins), code
        assert "Breakpoints were passed" in text, code
        assert has in text, code
    assert after == "6"


async def test_the_model_reads_the_values_where_a_person_stopped_at_its_breakpoint(
    at_desk: OpenDesk,
) -> None:
    armed = Wanted("debugger", {"function_name": "sum_up", "line": LOOP})
    desk = await at_desk(
        [Ask(armed), Ask(Wanted("run_program", {"code": "sum_up([5])"})), Say("Seen.")]
    )
    desk.put("sums.py", SUMMING)
    await desk.workspace.functions.reload()
    person = Typist("p number", "c")
    room_of(desk.workspace).slot.debugger = person
    armed_told, told = answers(await desk.say("Look into it."))
    assert "A person at a prompt stops there" in armed_told
    assert len(person.stops) == 2
    assert "hit 1:" in told
    assert "number = 5" in told
