"""What examples show: their output apart from their result, and the wrong bodies that none of them notices."""

from agent_core.context import presentation
from agent_core.views.verdicts import examples_lines
from tests.conftest import OpenDesk
from tests.kit.sources import function_text

PRINTING = "\n\n".join(
    [
        function_text(
            "add_up(numbers: list[float]) -> float",
            "Add numbers up.",
            'total = 0.0\nfor number in numbers:\n    total += number\n    print("so far", total)\nreturn total',
            "add_up([1, 2]) → 3.0",
        ),
        function_text(
            "greet(name: str) -> None",
            "Greet.",
            'print("hello", name)',
            'greet("you") → hello you',
        ),
    ]
)


async def test_a_print_that_an_example_lacks_is_named_and_the_value_stands_alone(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([])
    desk.put("sums.py", PRINTING)
    await desk.workspace.functions.reload()
    found = await desk.workspace.functions.test("add_up")
    (row,) = found.examples
    assert (row.value, row.printed, row.agreed) == ("3.0", "so far 1.0\nso far 3.0", False)
    shown = ["".join(text for _, text in one) for one in examples_lines(found)]
    assert shown[:4] == [
        "✗ add_up([1, 2]) → 3.0",
        "  printed  so far 1.0",
        "  printed  so far 3.0",
        "  expected 3.0",
    ]
    assert "gave `3.0` and printed `so far 1.0" in presentation.tested(found)
    (row,) = (await desk.workspace.functions.test("greet")).examples
    assert (row.agreed, row.value, row.printed) == (True, "None", "hello you")


CLAMP = function_text(
    "clamp(value: int, low: int, high: int) -> int",
    "Hold a value within two bounds.\n\nArgs:\n    value: The value.\n    low: The least that it may be.\n    "
    "high: The most that it may be.\n\nReturns:\n    The value, or the bound that it is beyond.",
    "if value < low:\n    return low\nif value > high:\n    return high\nreturn value",
    "clamp(5, 1, 9) → 5",
    "clamp(6, 0, 8) → 6",
)
