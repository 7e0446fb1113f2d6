"""An example's output is separate from its result, for the human, the model and a script."""

from agent_core.context import presentation
from agent_core.interfaces.render.verdicts import examples_lines
from tests.conftest import OpenDesk

PRINTING = '''\
def add_up(numbers: list[float]) -> float:
    """Add numbers up.

    >>> add_up([1, 2])
    3.0
    """
    total = 0.0
    for number in numbers:
        total += number
        print("so far", total)
    return total


def greet(name: str) -> None:
    """Greet.

    >>> greet("you")
    hello you
    """
    print("hello", name)
'''


async def test_a_print_that_an_example_lacks_is_named_and_the_value_stands_alone(at_desk: OpenDesk) -> None:
    desk = await at_desk([])
    desk.put("sums.py", PRINTING)
    await desk.workspace.functions.reload()
    found = await desk.workspace.functions.test("add_up")
    (row,) = found.examples
    assert (row.value, row.printed, row.agreed) == ("3.0", "so far 1.0\nso far 3.0", False)
    shown = ["".join(text for _, text in one) for one in examples_lines(found)]
    assert shown[:4] == ["✗ add_up([1, 2]) → 3.0", "  printed  so far 1.0", "  printed  so far 3.0", "  expected 3.0"]
    assert "gave `3.0` and printed `so far 1.0" in presentation.tested(found)


async def test_an_example_of_what_is_printed_holds_as_it_did(at_desk: OpenDesk) -> None:
    desk = await at_desk([])
    desk.put("sums.py", PRINTING)
    await desk.workspace.functions.reload()
    (row,) = (await desk.workspace.functions.test("greet")).examples
    assert (row.agreed, row.value, row.printed) == (True, "None", "hello you")
