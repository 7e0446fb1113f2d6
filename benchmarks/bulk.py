"""The speedup of two cores in a check of many candidates: `python -m benchmarks.bulk [PATH]`.

PATH is a `.jsonl` file for `functions check`; without one, candidates are generated. For one core, this process and its
children are pinned to it. Both times cover the whole check, including the start of processes and sandboxes.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import agent_core
from agent_core.base.machine import cores
from agent_core.functions.service import CheckRequest

from .measure import Row, in_turn, median_ms, ratio, show

AIM = 1.7
_MADE = 144
_BODY = '''def count_{name}(text: str, limit: int = {limit}) -> int:
    """Count the letters {letters!r} in a text, up to a limit.

    Args:
        text: Where to count.
        limit: The most that is counted.

    Examples:
        >>> count_{name}("{letters}{letters}")
        {twice}
        >>> count_{name}("---")
        0
        >>> count_{name}("{letters}", 1)
        1
    """
    found = sum(letter in {letters!r} for letter in text.lower())
    return min(found, limit)
'''


def made(count: int) -> Iterator[str]:
    """Return candidates that differ in their letters."""
    for number in range(count):
        letters = "".join(chr(97 + (number * step + step) % 26) for step in (1, 3, 7))
        letters = "".join(dict.fromkeys(letters))
        code = _BODY.format(
            name=f"n{number}", limit=50 + number, letters=letters, twice=2 * len(letters)
        )
        yield json.dumps({"name": f"count_n{number}", "code": code, "module": f"made{number}"})


@contextmanager
def one_core() -> Iterator[None]:
    """Pin this process and its new children to one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


async def checked(path: Path) -> float:
    """Return the seconds for a check of all lines on the cores available to this process."""
    count = 0

    def tell(_: object) -> None:
        nonlocal count
        count += 1

    with tempfile.TemporaryDirectory() as folder:
        async with agent_core.Workspace.open(folder) as workspace:
            began = time.perf_counter()
            await workspace.functions.checks.check(
                CheckRequest((path,), "import"), tell, processes=cores()
            )
            return time.perf_counter() - began


async def bench(rounds: int, path: Path | None = None, count: int = _MADE) -> list[Row]:
    """Return the rows: on one core, and on all of them."""
    with tempfile.TemporaryDirectory() as folder:
        if path is None:
            path = Path(folder) / "made.jsonl"
            path.write_text("\n".join(made(count)), "utf-8")
        held = path

        async def alone() -> float:
            with one_core():
                return await checked(held)

        taken = await in_turn({"one": alone, "all": lambda: checked(held)}, rounds, warm_up=0)
    return [
        Row("check of many candidates, on one core", median_ms(taken["one"])),
        Row(
            f"the same on {cores()} cores",
            median_ms(taken["all"]),
            "one core",
            ratio(taken, "all", "one"),
            1 / AIM,
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bulk", description=__doc__)
    parser.add_argument(
        "path", type=Path, nargs="?", help="candidates, one a line; made here if not given"
    )
    parser.add_argument("--rounds", type=int, default=1, help="how often each is timed")
    parser.add_argument(
        "--json", action="store_true", help="one JSON document instead of the table"
    )
    options = parser.parse_args()
    show(asyncio.run(bench(options.rounds, options.path)), as_json=options.json)


if __name__ == "__main__":
    main()
