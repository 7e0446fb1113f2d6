"""`breakpoint()` and `pdb.set_trace()` in a source stop for a human, record without one, and break no example."""

import pytest

from agent_core.views.call_log import head_line
from tests.conftest import OpenDesk
from tests.debugging.support import Typist
from tests.kit import Ask, Say, Wanted
from tests.kit.desk import outcomes

SUM = '''\
{head}def total(numbers: list[int]) -> int:
    """Add up numbers.

    Args:
        numbers: The numbers.

    >>> total([1, 2])
    3
    >>> total([4])
    4
    """
    result = 0
    for number in numbers:
        {stop}
        result += number
    return result
'''
WAYS = pytest.mark.parametrize(
    ("head", "stop"),
    [
        pytest.param("", "breakpoint()", id="breakpoint"),
        pytest.param("from pdb import set_trace as here\n\n\n", "here()", id="another-name"),
    ],
)


def creating(head: str, stop: str) -> Ask:
    """Return a reply that creates the function."""
    code = SUM.format(head=head, stop=stop)
    return Ask(
        Wanted("create_function", {"function_name": "total", "function_code_with_docstring": code})
    )


CALL = Ask(Wanted("total", {"numbers": [1, 2]}))


@WAYS
async def test_it_breaks_no_example_records_without_a_human_and_stops_for_one(
    at_desk: OpenDesk, head: str, stop: str
) -> None:
    test = Ask(Wanted("test_function", {"function_name": "total"}))
    desk = await at_desk([creating(head, stop), test, CALL, Say("3."), CALL, CALL, Say("3.")])
    assert outcomes(await desk.say("Add up 1 and 2.")) == ["returned"] * 3
    made, tested, called = (request.answers[-1] for request in desk.model.requests[1:])
    assert "breakpoint" not in made.replace("breakpoint()`", "")
    assert "2 of 2 examples hold" in tested
    assert "printed" not in tested
    assert called.startswith("3")
    assert "hit 1: " in called
    assert "hit 2: " in called
    desk.workspace.functions.calls.debugging.slot.debugger = typist = Typist(
        "result = 40", "c", "set result 50", "c"
    )
    await desk.say("Add up 1 and 2.")
    changed, plain = (request.answers[-1] for request in desk.model.requests[-2:])
    assert typist.stops[0].why == "breakpoint()"
    title = "".join(text for _, text in head_line(typist.stops[0]))
    assert title.endswith(f":{typist.stops[0].at.line}: after a breakpoint in the source")
    assert changed.startswith("52")
    for text in (
        "A human stopped this call at the debugger",
        "for this call only",
        "`result = 40`",
        "`result = 50`",
    ):
        assert text in changed
    assert "in total" in changed
    assert plain.startswith("3")
    assert "A human" not in plain


async def test_only_what_changes_something_is_told(at_desk: OpenDesk) -> None:
    lines = {
        "numbers.append(7)": True,
        "numbers[0] = 7": True,
        "sum(numbers)": False,
        "nothing = 1": False,
    }
    desk = await at_desk([creating("", "breakpoint()"), *[CALL] * len(lines), Say("Well.")])
    typed = [each for line in lines for each in (line, *("c",) * (3 if "append" in line else 2))]
    desk.workspace.functions.calls.debugging.slot.debugger = typist = Typist(*typed)
    await desk.say("Add up 1 and 2.")
    assert typist.lines == []
    assert len(typist.stops) == len(typed)
    told = [
        f"`{line}`" in request.answers[-1]
        for line, request in zip(lines, desk.model.requests[2:], strict=True)
    ]
    assert told == [*lines.values()]
