"""`breakpoint()` and `pdb.set_trace()` in a source stop for a human, record without one, and break no example."""

import pytest

from agent_core.interfaces.render.call_log import head_line
from tests.conftest import OpenDesk
from tests.debugging.support import Typist
from tests.kit import Ask, Say, Wanted

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
        pytest.param("import pdb\n\n\n", "pdb.set_trace()", id="pdb"),
        pytest.param("", "import pdb; pdb.set_trace()", id="pdb-on-the-spot"),
        pytest.param("from pdb import set_trace as here\n\n\n", "here()", id="another-name"),
    ],
)


def creating(head: str, stop: str) -> Ask:
    """Return a reply that creates the function."""
    code = SUM.format(head=head, stop=stop)
    return Ask(Wanted("create_function", {"function_name": "total", "function_code_with_docstring": code}))


CALL = Ask(Wanted("total", {"numbers": [1, 2]}))


@WAYS
async def test_it_is_admitted_with_its_examples_and_records_without_a_human(
    at_desk: OpenDesk, head: str, stop: str
) -> None:
    test = Ask(Wanted("test_function", {"function_name": "total"}))
    desk = await at_desk([creating(head, stop), test, CALL, Say("3.")])
    await desk.say("Add up 1 and 2.")
    made, tested, called = (request.answers[-1] for request in desk.model.requests[1:])
    assert "can be called now" in made
    assert "breakpoint" not in made.replace("breakpoint()`", "")
    assert "2 of 2 examples hold" in tested
    assert "printed" not in tested
    assert called.startswith("3")
    assert "hit 1: " in called
    assert "hit 2: " in called


@WAYS
async def test_it_stops_for_a_human_and_the_model_is_told_what_was_changed_and_for_how_long(
    at_desk: OpenDesk, head: str, stop: str
) -> None:
    desk = await at_desk([creating(head, stop), CALL, CALL, Say("3.")])
    desk.workspace.functions.calls.debugging.seat.debugger = typist = Typist("result = 40", "c", "set result 50", "c")
    await desk.say("Add up 1 and 2.")
    changed, plain = (request.answers[-1] for request in desk.model.requests[2:])
    assert typist.stops[0].why == "breakpoint()"
    title = "".join(text for _, text in head_line(typist.stops[0]))
    assert title.endswith(f":{typist.stops[0].at.line}: after a breakpoint in the source")
    assert changed.startswith("52")
    for text in ("A human stopped this call at the debugger", "for this call only", "`result = 40`", "`result = 50`"):
        assert text in changed
    assert "in total" in changed
    assert plain.startswith("3")
    assert "A human" not in plain


@pytest.mark.parametrize(
    ("typed", "is_told"),
    [
        pytest.param("numbers.append(7)", True, id="an-expression-that-changes"),
        pytest.param("numbers[0] = 7", True, id="an-item"),
        pytest.param("sum(numbers)", False, id="only-looked"),
        pytest.param("nothing = 1", False, id="no-such-local"),
    ],
)
async def test_only_what_changes_something_is_told(at_desk: OpenDesk, typed: str, is_told: bool) -> None:
    desk = await at_desk([creating("", "breakpoint()"), CALL, Say("Well.")])
    desk.workspace.functions.calls.debugging.seat.debugger = Typist(typed, *("c",) * 9)
    await desk.say("Add up 1 and 2.")
    assert (f"`{typed}`" in desk.model.requests[2].answers[-1]) is is_told
