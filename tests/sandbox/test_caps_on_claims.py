"""The host enforces every limit that the worker enforces, too: a message may be forged."""

import time
from textwrap import dedent
from typing import Any

import pytest

from sandbox import FunctionCall, Job, Killed, Limits, Raised, Returned, Sandbox
from sandbox.wire import caps

from .support import modules

FORGED = dedent("""
    import gc
    import os


    def forge(reply: dict) -> int:
        channel = next(one for one in gc.get_objects() if type(one).__name__ == "Channel")
        channel.say(reply)
        os._exit(0)


    def many(count: int) -> int:
        frame = ["functions/forged.py", 1, "forge", [], 0]
        return forge({"kind": "raised", "type": "E", "message": "m", "frames": [frame] * count})


    def deep(depth: int) -> int:
        if depth:
            return deep(depth - 1)
        raise ValueError("m" * 9000) from KeyError("k" * 9000)
""")
FRAME = ["functions/forged.py", 1, "forge", [], 0]


def raised(**claims: object) -> dict[str, Any]:
    return {"kind": "raised", "type": "E", "message": "m", "frames": [FRAME], **claims}


def caused(**claims: object) -> dict[str, Any]:
    return raised(cause={"type": "C", "message": "m", "frames": [FRAME], **claims})


def framed(
    path: str = "functions/forged.py", line: int = 1, name: str = "f", *pairs: list[str]
) -> dict[str, Any]:
    return raised(frames=[[path, line, name, [*pairs], 0]])


CLAIMS: list[dict[str, Any]] = [
    raised(frames=[FRAME] * (caps.MOST_FRAMES + 1)),
    raised(message="m" * (caps.MOST_MESSAGE + 1)),
    raised(type="E" * (caps.MOST_NAME + 1)),
    framed("functions/forged.py", 1, "f", *[["a", "1"]] * (caps.MOST_LOCALS + 1)),
    framed("functions/forged.py", 1, "f", ["a", "1" * (caps.MOST_TEXT + 1)]),
    framed("functions/forged.py", 1, "f", ["a" * (caps.MOST_NAME + 1), "1"]),
    framed("functions/forged.py", 1, "f" * (caps.MOST_NAME + 1)),
    framed("p" * (caps.MOST_PATH + 1)),
    framed("functions/forged.py", -1),
    caused(frames=[FRAME] * (caps.MOST_CAUSE_FRAMES + 1)),
    caused(message="m" * (caps.MOST_CAUSE_MESSAGE + 1)),
    {"kind": "returned", "value": 1, "shown": "s" * (caps.MOST_SHOWN + 1)},
    {"kind": "refused", "reason": "r" * (caps.MOST_MESSAGE + 1)},
]


async def test_a_claim_beyond_a_cap_of_the_worker_is_not_taken(sandbox: Sandbox) -> None:
    for number, claim in enumerate(CLAIMS):
        outcome = await sandbox.run(
            Job(modules(forged=FORGED), "forged", FunctionCall("forge", {"reply": claim}))
        )
        assert isinstance(outcome, Killed), number
        assert "the most is" in outcome.reason, number


async def test_frames_by_the_thousand_hold_nobody_up(sandbox: Sandbox) -> None:
    text = FORGED + "#\n" * 30_000
    began = time.perf_counter()
    outcome = await sandbox.run(
        Job(modules(forged=text), "forged", FunctionCall("many", {"count": 12_000}))
    )
    assert isinstance(outcome, Killed)
    assert time.perf_counter() - began < 5


async def test_as_many_frames_as_the_worker_tells_are_taken_with_their_lines(
    sandbox: Sandbox,
) -> None:
    outcome = await sandbox.run(
        Job(modules(forged=FORGED), "forged", FunctionCall("many", {"count": caps.MOST_FRAMES}))
    )
    assert isinstance(outcome, Raised)
    assert {frame.source for frame in outcome.failure.frames} == {"import gc"}


async def test_an_honest_failure_is_cut_by_the_worker_to_what_the_host_takes(
    sandbox: Sandbox,
) -> None:
    outcome = await sandbox.run(
        Job(modules(forged=FORGED), "forged", FunctionCall("deep", {"depth": 90}))
    )
    assert isinstance(outcome, Raised)
    assert (len(outcome.failure.frames), len(outcome.failure.message)) == (
        caps.MOST_FRAMES,
        caps.MOST_MESSAGE,
    )
    assert outcome.failure.cause is not None
    assert len(outcome.failure.cause.message) == caps.MOST_CAUSE_MESSAGE


async def test_what_an_honest_function_does_stays_within_the_caps(sandbox: Sandbox) -> None:
    for body in (
        "return '\\udcff' * 20000",  # escapes in a representation
        "raise type('E' * 5000, (Exception,), {})()",
        "raise SyntaxError('x', ('functions/honest.py', -5, 1, 'text'))",
        f"{'n' * 400} = 1\n    raise ValueError",
        "error = ValueError('m')\n    error.add_note('n' * 9000)\n    raise error",
    ):
        honest = modules(honest=f"def honest():\n    {body}\n")
        outcome = await sandbox.run(Job(honest, "honest", FunctionCall("honest", {})))
        assert isinstance(outcome, Raised | Returned), body


@pytest.mark.parametrize("total", ["None", "1"], ids=["on-its-way", "as-the-last"])
async def test_progress_is_told_no_more_often_than_the_worker_tells_it(
    sandbox: Sandbox, total: str
) -> None:
    text = f"""
        def often(self) -> int:
            for _ in range(2000):
                self._channel.request("progress", {{"done": 1, "total": {total}, "note": ""}})
            return 1
    """
    told: list[float] = []

    async def hear(_name: str, _arguments: dict[str, Any]) -> None:
        told.append(time.monotonic())

    outcome = await sandbox.run(
        Job(modules(often=text), "often", FunctionCall("often", {}), handler=hear)
    )
    assert isinstance(outcome, Returned)
    assert 1 <= len(told) <= 2 + outcome.seconds / (caps.PROGRESS_EVERY_S / 2)


COLLIDING = modules(
    crowd="""
    def members() -> set:
        return {i * (2**61 - 1) for i in range(1, 5_000)}

    def keys() -> dict:
        return {i * (2**61 - 1): i for i in range(1, 5_000)}

    def honest() -> set:
        return {i * 3 for i in range(5_000)}
    """
)


async def test_values_that_all_collide_are_not_taken(sandbox: Sandbox) -> None:
    for function, kind in (("members", Killed), ("keys", Killed), ("honest", Returned)):
        outcome = await sandbox.run(
            Job(COLLIDING, "crowd", FunctionCall(function, {}), limits=Limits(wall_s=30))
        )
        assert isinstance(outcome, kind), outcome
