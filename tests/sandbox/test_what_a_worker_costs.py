"""What a worker may cost the host: surplus zygotes end, and colliding values do not block the event loop."""

from pathlib import Path

import pytest

from sandbox import Access, FunctionCall, Job, Killed, Limits, Returned, Sandbox
from tests.kit.levels import start
from tests.sandbox.support import modules


async def test_zygotes_for_other_needs_end_when_there_are_too_many(tmp_path: Path) -> None:
    world = modules(m="def f() -> int:\n    return 1\n")
    reach = Access(readable=(str(tmp_path),))
    async with await start(packages=()) as sandbox:
        for access, most in ((Access(), 6), (reach, 12)):
            for size in range(1, 10):
                outcome = await sandbox.run(
                    Job(world, "m", FunctionCall("f", {}), limits=Limits(scratch=size << 20), access=access)
                )
                assert isinstance(outcome, Returned), outcome
            assert sandbox.zygotes <= most


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


@pytest.mark.parametrize(("function", "kind"), [("members", Killed), ("keys", Killed), ("honest", Returned)])
async def test_values_that_all_collide_do_not_hold_the_host_up(sandbox: Sandbox, function: str, kind: type) -> None:
    outcome = await sandbox.run(Job(COLLIDING, "crowd", FunctionCall(function, {}), limits=Limits(wall_s=30)))
    assert isinstance(outcome, kind), outcome


async def test_a_function_sees_nothing_of_the_rehearsals_before_it(sandbox: Sandbox) -> None:
    world = modules(
        look="""
        import sys

        def look() -> list[str]:
            finders = [type(one).__name__ for one in sys.meta_path if not isinstance(one, type)]
            return finders + sorted(name for name in sys.modules if name.startswith("functions"))
        """
    )
    outcome = await sandbox.run(Job(world, "look", FunctionCall("look", {})))
    assert isinstance(outcome, Returned), outcome
    assert outcome.value == ["_Finder", "PackageFinder", "Finder", "functions", "functions.look"]
