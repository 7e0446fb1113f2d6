"""CPU time and memory of a call, as the kernel reports them, whatever the worker says or how it ends."""

import pytest

from sandbox import (
    FunctionCall,
    Job,
    Killed,
    Limits,
    Outcome,
    Raised,
    Refused,
    Returned,
    Sandbox,
    TimedOut,
)
from tests.sandbox.support import modules

MIB = 1 << 20
WORLD = modules(
    use="""
    import json, os, threading, time

    def spin(seconds: float) -> None:
        end = time.process_time() + seconds
        while time.process_time() < end:
            pass

    def spin_in_threads(seconds: float) -> None:
        threads = [threading.Thread(target=spin, args=(seconds,)) for _number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def rest() -> None:
        pass

    def hold(mib: int) -> None:
        bytearray(mib << 20)

    def fail(mib: int) -> None:
        bytearray(mib << 20)
        raise ValueError

    def stay(mib: int) -> None:
        held = bytearray(mib << 20)
        while True:
            pass

    def die(mib: int) -> None:
        held = bytearray(mib << 20)
        spin(0.3)
        os._exit(3)

    def claim() -> None:
        body = json.dumps({"kind": "returned", "value": None, "shown": "", "memory": 1 << 44, "cpu_s": 1e6}).encode()
        os.write(3, len(body).to_bytes(4, "big") + body)
        os._exit(0)
    """
)


async def used(
    sandbox: Sandbox, function: str, *, wall_s: float = 20, **arguments: float
) -> Outcome:
    """Run a call; return its outcome, which must have been measured."""
    outcome = await sandbox.run(
        Job(WORLD, "use", FunctionCall(function, arguments), limits=Limits(wall_s=wall_s))
    )
    assert not isinstance(outcome, Refused)
    assert outcome.cpu_s is not None, outcome
    return outcome


async def test_the_processor_time_of_a_call_is_that_of_all_its_threads(sandbox: Sandbox) -> None:
    for function in ("spin", "spin_in_threads"):
        spun = await used(sandbox, function, seconds=0.5)
        assert isinstance(spun, Returned)
        assert 0.5 <= (spun.cpu_s or 0) < 2
    rested = await used(sandbox, "rest")
    assert isinstance(rested, Returned)
    assert (rested.cpu_s or 0) < 0.3
    assert 4 * MIB < (rested.memory or 0) < 100 * MIB


@pytest.mark.parametrize(
    ("function", "kind"),
    [("hold", Returned), ("fail", Raised), ("stay", TimedOut), ("die", Killed)],
)
async def test_the_peak_of_memory_is_told_however_a_call_ends(
    sandbox: Sandbox, function: str, kind: type
) -> None:
    outcome = await used(sandbox, function, mib=200, wall_s=1.5 if kind is TimedOut else 20)
    assert isinstance(outcome, kind), outcome
    assert 200 * MIB <= (getattr(outcome, "memory", 0) or 0) < 300 * MIB


async def test_a_worker_that_dies_has_the_processor_time_that_it_took(sandbox: Sandbox) -> None:
    outcome = await used(sandbox, "die", mib=1)
    assert 0.3 <= (getattr(outcome, "cpu_s", 0) or 0) < 2


async def test_what_a_worker_claims_to_have_used_is_not_taken(sandbox: Sandbox) -> None:
    outcome = await used(sandbox, "claim")
    assert isinstance(outcome, Returned)
    assert (outcome.cpu_s or 0) < 10
    assert outcome.memory is None or outcome.memory < 300 * MIB
