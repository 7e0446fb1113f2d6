"""`python -m benchmarks.gate_stages`: a verdict on ten lines with three examples, by stage.

The text stages are compared with one parse of the code and its docstring; the stages that run code with one call of
`add` in a confined worker that is forked on demand, not ahead.
"""

import ast
import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import count

from agent_core.functions.gate import Candidate, Gate, Verdict
from agent_core.functions.gate.gate import STAGES
from agent_core.registry import docstring
from agent_core.registry.registry import Snapshot
from sandbox import FunctionCall, Job, Returned, Sandbox

from .create import ADD, CODE, ON_DEMAND
from .measure import Row, in_turn, median_ms, options, ratio, show, timed

AIMS = {"text": 3.0, "examples": 15.0, "all": 60.0}
LAST = {"text": "capability", "examples": "examples", "all": STAGES[-1].name}


def main() -> None:
    given = options(__doc__, rounds=30)
    show(asyncio.run(bench(given.rounds)), as_json=given.json)


async def bench(rounds: int) -> list[Row]:
    """Return the milliseconds of each, measured in turn."""
    numbers = count()
    async with await Sandbox.start() as sandbox:
        acts: dict[str, Callable[[], Awaitable[float]]] = {
            "call": partial(_call, sandbox),
            "parse": partial(_parse, numbers),
        }
        acts |= {
            name: partial(_judge, _gate(sandbox, last), numbers) for name, last in LAST.items()
        }
        taken = await in_turn(acts, rounds, warm_up=3)
    return [
        Row("call of add, confined, forked on demand", median_ms(taken["call"])),
        Row("ast.parse and parse of the docstring", median_ms(taken["parse"])),
        Row(
            "verdict, stages 1 to 6",
            median_ms(taken["text"]),
            "parse",
            ratio(taken, "text", "parse"),
            AIMS["text"],
        ),
        *(
            Row(
                f"verdict, {text}",
                median_ms(taken[name]),
                "call",
                ratio(taken, name, "call"),
                AIMS[name],
            )
            for name, text in (("examples", "stages 1 to 8"), ("all", "all stages"))
        ),
    ]


def _gate(sandbox: Sandbox, last: str) -> Gate:
    until = [stage.name for stage in STAGES].index(last) + 1
    return Gate(sandbox, stages=STAGES[:until])


async def _call(sandbox: Sandbox) -> float:
    outcomes: list[object] = []

    async def act() -> None:
        outcomes.append(
            await sandbox.run(
                Job({"sums": ADD}, "sums", FunctionCall("add", {"a": 1, "b": 2}), limits=ON_DEMAND)
            )
        )

    seconds = await timed(act())
    assert isinstance(outcomes[0], Returned)
    return seconds


def _code(n: int) -> str:
    """Return the candidate with a docstring that no cache has seen."""
    return CODE.format(n=n).replace('"""', f'"""Number {n}. ', 1)


async def _parse(numbers: "count[int]") -> float:
    code = _code(next(numbers))
    began = time.perf_counter()
    node = ast.parse(code).body[0]
    assert isinstance(node, ast.FunctionDef)
    docstring.read(ast.get_docstring(node))
    return time.perf_counter() - began


async def _judge(gate: Gate, numbers: "count[int]") -> float:
    n = next(numbers)
    verdicts: list[Verdict] = []

    async def act() -> None:
        candidate = Candidate(f"middle_{n}", _code(n), "middles")
        verdicts.append(await gate.judge(candidate, Snapshot.empty()))

    seconds = await timed(act())
    assert verdicts[0].name
    assert not verdicts[0].refusals, verdicts[0].problems
    return seconds


if __name__ == "__main__":
    main()
