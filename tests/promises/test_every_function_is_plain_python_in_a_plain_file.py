"""Promises 2 and 8: an admitted function has passed the gate and is a file that Python runs without Knapper."""

import asyncio
import subprocess
import sys

import pytest

from tests.conftest import OpenDesk
from tests.kit.desk import VOWELS

HUMAN = '''\
"""Letters.   A human's module, formatted as humans do."""
import   math

CONSTANT = { 'a':1 }   # kept as it is


# about half
def half( x:float ) -> float:
    """Halve a number.

    Args:
        x: The number.

    >>> half(3)
    1.5
    """
    return x/2
'''


async def test_a_grown_function_runs_without_knapper(at_desk: OpenDesk) -> None:
    desk = await at_desk([])
    assert (await desk.workspace.functions.create("count_vowels", VOWELS)).admitted
    script = "import sys; sys.path.insert(0, sys.argv[1]); from grown import count_vowels; print(count_vowels('queue'))"
    command = [sys.executable, "-I", "-c", script, str(desk.functions)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
    assert done.stdout == "4\n"


async def test_growing_into_a_humans_module_keeps_every_byte_of_it(at_desk: OpenDesk) -> None:
    desk = await at_desk([])
    file = desk.put("letters.py", HUMAN)
    await desk.workspace.functions.reload()
    assert (await desk.workspace.functions.create("count_vowels", VOWELS, "letters")).admitted
    assert file.read_text().startswith(HUMAN)
    await desk.workspace.functions.delete("count_vowels")
    assert file.read_text() == HUMAN


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("def count_vowels(text: str) -> int:\n    pass\n", id="placeholder"),
        pytest.param(VOWELS.replace("    5\n", "    6\n"), id="examples-that-do-not-hold"),
        pytest.param(VOWELS.replace(" -> int", ""), id="no-return-type-that-can-be-known"),
        pytest.param(VOWELS.replace("sum(", "no_such_name("), id="raises-when-run"),
        pytest.param(
            "import socket\n\n" + VOWELS.replace("return sum", "return socket.htons(1) * sum"), id="needs-a-grant"
        ),
        pytest.param(VOWELS[:-40], id="cut-off"),
    ],
)
async def test_what_does_not_pass_the_gate_is_neither_written_nor_callable(at_desk: OpenDesk, code: str) -> None:
    desk = await at_desk([])
    verdict = await desk.workspace.functions.create("count_vowels", code)
    if not verdict.admitted:
        assert verdict.problems
        assert desk.workspace.functions.names() == []
        assert list(desk.functions.iterdir()) == []
    else:
        assert verdict.fixes  # what follows from the examples is fixed, and shown


async def test_a_file_changed_by_a_human_meanwhile_is_never_overwritten(at_desk: OpenDesk) -> None:
    desk = await at_desk([])
    file = desk.put("letters.py", HUMAN)
    await desk.workspace.functions.reload()
    file.write_text(HUMAN + "\n\ndef broken(:\n")
    with pytest.raises(Exception, match=r"functions/letters\.py"):
        await desk.workspace.functions.create("count_vowels", VOWELS, "letters")
    assert file.read_text().endswith("def broken(:\n")
