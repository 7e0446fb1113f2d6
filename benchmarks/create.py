"""`python -m benchmarks.create`: a whole `create_function`, ten lines and three examples, against one sandboxed call.

Creating includes the gate with its compile, import and example workers, the file with its fsync, and the record. The
reference is a call of `add` in a confined worker that is forked on demand, not ahead.
"""

import asyncio
import tempfile
from functools import partial
from itertools import count
from pathlib import Path

from agent_core.functions.service import FunctionService
from agent_core.workspace.workspace import Workspace
from sandbox import Code, FunctionCall, Job, Limits, Returned, Sandbox

from .measure import Row, in_turn, median_ms, options, ratio, show, timed

AIM = 15.0
# Limits other than the spare worker's: such a call is forked on demand.
ON_DEMAND = Limits(memory=Limits().memory - (1 << 20))
ADD = Code(
    "sums", "def add(a: int, b: int) -> int:\n    return a + b\n", "functions/sums.py", "sums"
)
CODE = '''\
def middle_{n}(values: list[float]) -> float:
    """Find the middle of some numbers.

    Args:
        values: The numbers, in any order; at least one.

    Returns:
        The middle one, or the mean of the two in the middle.

    >>> middle_{n}([3, 1, 2])
    2
    >>> middle_{n}([4, 1, 3, 2])
    2.5
    >>> middle_{n}([7])
    7
    """
    if not values:
        raise ValueError("there is no middle {n} of nothing")
    ordered = sorted(values)
    half = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[half]
    below = ordered[half - 1]
    above = ordered[half]
    mean = (below + above) / 2
    return mean
'''


def main() -> None:
    given = options(__doc__, rounds=30)
    show(asyncio.run(bench(given.rounds)), as_json=given.json)


async def bench(rounds: int) -> list[Row]:
    """Return the milliseconds of both, measured in turn."""
    with tempfile.TemporaryDirectory(
        prefix="bench-", dir=Path.cwd()
    ) as folder:  # a disk, not a memory disk
        async with Workspace.open(folder) as workspace, await Sandbox.start() as sandbox:
            await workspace.sandbox_level()
            acts = {
                "call": partial(_call, sandbox),
                "create": partial(_create, workspace.functions, count()),
            }
            taken = await in_turn(acts, rounds, warm_up=3)
    return [
        Row("call of add, confined, forked on demand", median_ms(taken["call"])),
        Row(
            "create_function, 3 examples",
            median_ms(taken["create"]),
            "call",
            ratio(taken, "create", "call"),
            AIM,
        ),
    ]


async def _call(sandbox: Sandbox) -> float:
    call = sandbox.run(
        Job({"sums": ADD}, "sums", FunctionCall("add", {"a": 1, "b": 2}), limits=ON_DEMAND)
    )
    outcomes: list[object] = []

    async def act() -> None:
        outcomes.append(await call)

    seconds = await timed(act())
    assert isinstance(outcomes[0], Returned)
    return seconds


async def _create(workshop: FunctionService, numbers: "count[int]") -> float:
    n = next(numbers)
    seconds = await timed(workshop.create(f"middle_{n}", CODE.format(n=n)))
    assert f"middle_{n}" in workshop.names(), await workshop.pending(f"middle_{n}")
    await workshop.delete(f"middle_{n}")
    return seconds


if __name__ == "__main__":
    main()
