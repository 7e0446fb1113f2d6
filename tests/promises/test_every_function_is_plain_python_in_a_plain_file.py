"""Promises 2 and 8: an admitted function has passed the gate and is a file that Python runs without Knapper."""

import asyncio
import subprocess
import sys

from tests.conftest import OpenDesk
from tests.kit.desk import VOWELS


async def test_a_grown_function_runs_without_knapper(at_desk: OpenDesk) -> None:
    desk = await at_desk([])
    assert (await desk.workspace.functions.create("count_vowels", VOWELS)).admitted
    script = "import sys; sys.path.insert(0, sys.argv[1]); from grown import count_vowels; print(count_vowels('queue'))"
    command = [sys.executable, "-I", "-c", script, str(desk.functions)]
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, check=True
    )
    assert done.stdout == "4\n"


async def test_what_does_not_pass_the_gate_is_neither_written_nor_callable(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([])
    for code in (
        "def count_vowels(text: str) -> int:\n    pass\n",
        VOWELS.replace("    5\n", "    6\n"),  # examples that do not hold
        VOWELS.replace("sum(", "no_such_name("),
        "import socket\n\n"
        + VOWELS.replace("return sum", "return socket.htons(1) * sum"),  # needs a grant
        VOWELS[:-40],
        VOWELS.replace(" -> int", ""),  # no return type that can be known
    ):
        verdict = await desk.workspace.functions.create("count_vowels", code)
        if not verdict.admitted:
            assert verdict.problems, code
            assert desk.workspace.functions.names() == []
            assert list(desk.functions.iterdir()) == []
        else:
            assert (code, bool(verdict.fixes)) == (VOWELS.replace(" -> int", ""), True), (
                "fixed from its examples"
            )
