"""The cost of the debugger for a call: nothing armed, a human attached, a breakpoint not hit, and one in a hot loop.

Every ratio is to the same call without a debugger, measured in turn.
"""

import asyncio
import hashlib
from functools import partial

from sandbox import CallHooks, Code, Debug, FunctionCall, Job, Point, Returned, Sandbox

from .measure import Row, in_turn, median_ms, options, ratio, show, timed

_TEXT = """\
def add(a: int, b: int) -> int:
    if a < 0:
        return 0
    return a + b


def loop(turns: int) -> int:
    total = 0
    for number in range(turns):
        total += number % 7
        total ^= 1
    return total
"""
_CODE = Code("sums", _TEXT, "functions/sums.py", hashlib.sha256(_TEXT.encode()).hexdigest())
_ADD, _LOOP = (part.rstrip("\n") for part in _TEXT.split("\n\n\n"))
_LOOP_FIRST, _TURNS = 7, 300_000
AIM = 3.0


async def _call(
    sandbox: Sandbox, function: str, arguments: dict[str, int], debug: Debug | None
) -> float:
    around = CallHooks(seed=1, debug=debug)
    call = sandbox.run(
        Job({"sums": _CODE}, "sums", FunctionCall(function, arguments), around=around)
    )
    outcome: list[object] = []

    async def act() -> None:
        outcome.append(await call)

    taken = await timed(act())
    assert isinstance(outcome[0], Returned), outcome
    await asyncio.sleep(0.01)
    return taken


async def bench(rounds: int) -> list[Row]:
    """Return the rows."""
    add, loop = {"a": 1, "b": 2}, {"turns": _TURNS}
    unreached = Debug((Point(1, "sums", "add", _ADD, 1, 3),))
    false = Debug((Point(1, "sums", "loop", _LOOP, _LOOP_FIRST, 10, "total < 0"),))
    async with await Sandbox.start() as sandbox:
        call = partial(_call, sandbox)
        acts = {
            "add": lambda: call("add", add, None),
            "nothing armed, again": lambda: call("add", add, None),
            "a human at the debugger": lambda: call("add", add, Debug((), human=True)),
            "armed, not hit": lambda: call("add", add, unreached),
            "loop": lambda: call("loop", loop, None),
            "condition in a hot loop, never true": lambda: call("loop", loop, false),
        }
        taken = await in_turn(acts, rounds, warm_up=5)
    rows = [
        Row("call of add", median_ms(taken["add"])),
        Row("call of loop", median_ms(taken["loop"])),
    ]
    for name in [*acts][1:4] + [*acts][5:]:
        reference = "loop" if "loop" in name else "add"
        rows.append(
            Row(
                name,
                median_ms(taken[name]),
                f"the same call of {reference}",
                ratio(taken, name, reference),
                AIM,
            )
        )
    return rows


def main() -> None:
    given = options(__doc__, 60)
    show(asyncio.run(bench(given.rounds)), as_json=given.json)


if __name__ == "__main__":
    main()
