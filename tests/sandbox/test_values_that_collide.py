"""Values with hashes chosen by a worker: the host puts none into a hash table and never blocks."""

import pytest

from sandbox import FunctionCall, Job, Killed, Limits, Returned, Sandbox
from tests.kit.drawing import crossed
from tests.kit.heartbeat import MOST_MS, stall_of
from tests.sandbox.support import modules

FORGED = modules(
    forged="""
    import json
    import sys

    PRIME = (1 << 61) - 1

    def value(kind: str, count: int) -> list:
        \"\"\"Values of a kind: of `count` nearly half have one hash, or all walk the same way through a table.\"\"\"
        def number(n: int):
            return n * PRIME if n % 9 < 4 else n
        def tagged(tag: str, text: object) -> dict:
            return {"$": tag, "v": text}
        make = {
            "integers": number,
            "decimals": lambda n: tagged("Decimal", str(number(n))),
            "ids": lambda n: tagged("UUID", f"{number(n):032x}"),
            "complex": lambda n: tagged("complex", f"{n * 1000003}j" if n % 2 else f"{n}+0j"),
            "durations": lambda n: tagged("timedelta", f"{n} {n} {n}"),
            "tuples": lambda n: tagged("tuple", [1, number(n)]),
            "frozensets": lambda n: tagged("frozenset", [number(n)]),
            "same-slots": lambda n: n << 44,
            "one-way": lambda n: n if n % 2 else _way(n),
        }[kind]
        return [make(n) for n in range(1, count)]

    def _way(n: int) -> int:
        \"\"\"A number that comes to slot 0 of a table of 2**17 at the end of its own way.\"\"\"
        mask, slot = (1 << 17) - 1, 0
        high = (n * 2654435761) % (1 << 44)
        place, rest = 0, high << 17
        for _ in range(13):
            rest >>= 5
            place = (place * 5 + rest + 1) & mask
        return (high << 17) | ((slot - place) & mask)

    def answer(shape: str, kind: str, count: int) -> int:
        \"\"\"Return a value as the worker claims it, whatever the values are.\"\"\"
        items = value(kind, count)
        if shape == "dict":
            items = [[item, 1] for item in items]
        sys.modules["sandbox.wire.values"]._ENCODERS[int] = lambda v, s, d: {"$": shape, "v": items}
        return 1
    """
)
KINDS = [
    "integers", "decimals", "ids", "complex", "durations", "tuples", "frozensets", "same-slots", "one-way",
]  # fmt: skip

LARGE = modules(
    large="""
    import sys

    def small_lists() -> list:
        return [[n % 10] for n in range(170_000)]

    def many_frames() -> int:
        frames = [["functions/large.py", 1, "f", [["n", "1"]]] for _ in range(20_000)]
        failure = {"kind": "raised", "type": "E", "message": "m", "frames": frames}
        sys.modules["sandbox.inside.channel"].pack = lambda reply: pack(failure)
        return 1

    from sandbox.wire.protocol import pack
    """
)


@pytest.mark.parametrize("function", ["small_lists", "many_frames"])
async def test_no_reply_of_any_size_holds_the_host_up(sandbox: Sandbox, function: str) -> None:
    outcomes = []

    async def reply() -> None:
        outcomes.append(await sandbox.run(Job(LARGE, "large", FunctionCall(function, {}), limits=Limits(wall_s=30))))

    stall, outcome = await stall_of(reply), outcomes[-1]
    assert isinstance(outcome, Returned if function == "small_lists" else Killed), outcome
    assert stall.cpu_ms <= MOST_MS, stall


@pytest.mark.sampled
@pytest.mark.parametrize(("kind", "shape"), crossed(KINDS, ["set", "frozenset", "dict"]))
async def test_no_values_of_any_kind_that_collide_hold_the_host_up(sandbox: Sandbox, kind: str, shape: str) -> None:
    arguments = {"shape": shape, "kind": kind, "count": 12_000}
    outcomes = []

    async def answer() -> None:
        job = Job(FORGED, "forged", FunctionCall("answer", arguments), limits=Limits(wall_s=30))
        outcomes.append(await sandbox.run(job))

    stall, outcome = await stall_of(answer), outcomes[-1]
    assert isinstance(outcome, Returned | Killed), outcome
    assert stall.cpu_ms <= MOST_MS, (stall, outcome.seconds)
