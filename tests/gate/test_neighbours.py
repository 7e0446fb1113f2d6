"""A version that breaks its callers is rejected with the caller's name; earlier failures are not its fault."""

from typing import get_args

from agent_core.functions.gate import Candidate, Gate, Policy, Rules, Verdict
from agent_core.registry.registry import Snapshot
from sandbox import Limits, Sandbox
from tests.kit.sources import function_text

from .support import ADD, snapshot_of

TWICE = "\n\n".join(
    [
        "from functions.lib import add\n",
        function_text(
            "twice(n: int) -> int",
            "Double a number.\n\nArgs:\n    n: The number.\n\nExamples:\n    >>> twice(3)\n    6\n    "
            ">>> twice(0)\n    0",
            "return add(n, n)",
        ),
    ]
)
FAR = (
    TWICE.replace("lib import add", "near import twice")
    .replace("twice(n", "fourfold(n")
    .replace("Double", "Quadruple")
)
FAR = FAR.replace("twice(3)\n        6", "fourfold(3)\n        12").replace(
    ">>> twice(0)", ">>> fourfold(0)"
)
FAR = FAR.replace("add(n, n)", "twice(twice(n))")
LIBRARY = snapshot_of(lib=ADD, near=TWICE, far=FAR)
LARGER = ADD.replace("a + b", "a + b + (a == 3)")


async def replaced(
    gate: Gate, code: str, snapshot: Snapshot = LIBRARY, policy: Policy = "agent"
) -> Verdict:
    return await gate.judge(Candidate("add", code, "lib", replaces=True), snapshot, policy)


def broken(verdict: Verdict) -> list[str]:
    return [one.message for one in verdict.problems if one.code == "breaks-caller"]


def note(verdict: Verdict) -> str:
    return next(one.note for one in verdict.stages if one.stage == "neighbours")


async def test_callers_of_any_depth_that_break_are_named_and_only_a_human_may_break_them(
    gate: Gate,
) -> None:
    for policy in get_args(Policy):
        verdict = await replaced(gate, LARGER, policy=policy)
        severity = "warns" if policy == "human" else "refuses"
        assert {one.severity for one in verdict.problems if one.code == "breaks-caller"} == {
            severity
        }
        assert verdict.admitted == (policy == "human")
        assert [what.split("`")[1] for what in broken(verdict)] == ["twice", "fourfold"]
        assert broken(verdict)[0].startswith(
            "`twice` (functions/near.py:4) uses `add`: `twice(3)` gave"
        )
        assert "6" in broken(verdict)[0]
        assert "7" in broken(verdict)[0]
        assert note(verdict) == "2 of 2 callers with examples tried"


async def test_a_change_that_keeps_callers_well_is_admitted_and_what_failed_before_is_not_its_fault(
    gate: Gate,
) -> None:
    wrong = TWICE.replace("        6\n", "        5\n")
    verdict = await replaced(gate, LARGER, snapshot_of(lib=ADD, near=wrong))
    assert (verdict.admitted, broken(verdict)) == (True, [])
    kept = await replaced(gate, ADD.replace("a + b", "b + a"))
    assert (kept.admitted, broken(kept)) == (True, [])


async def test_a_call_that_no_longer_fits_is_read_from_the_text(gate: Gate) -> None:
    for signature, reason in (
        ("a: int, b: int, c: int", "needs `c`"),
        ("a: int, *, b: int", "takes 1 arguments by place"),
    ):
        bare = TWICE.split("    Examples:")[0] + '    """\n    return add(n, n)\n'
        code = ADD.replace("a: int, b: int", signature).replace(
            "        b: The second.\n", "        b: B.\n        c: C.\n"
        )
        verdict = await replaced(gate, code, snapshot_of(lib=ADD, near=bare))
        assert any(f"calls `add(n, n)`, but `add` {reason}" in what for what in broken(verdict)), (
            signature
        )


async def test_a_call_that_the_change_does_not_break_is_not_named(gate: Gate) -> None:
    head = 'from functions.lib import add\n\n\ndef use(n: int) -> int:\n    """Use."""\n    '
    for user in (
        'def collect(n: int) -> set[int]:\n    """Collect."""\n    add = set().add\n    add(n)\n    return {n}\n',
        f"{head}add = max\n    return add(n, n)\n",  # a name of its own
        f"{head}return add(n)\n",  # wrong before
    ):
        code = ADD.replace("b: int", "b: int, c: int")
        assert broken(await replaced(gate, code, snapshot_of(lib=ADD, near=user))) == [], user


async def test_a_call_by_name_that_no_longer_fits_is_read_too(gate: Gate) -> None:
    user = 'def use(self, n: int) -> int:\n    """Use."""\n    return self.call("add", a=n, b=n)\n'
    found = broken(
        await replaced(
            gate, ADD.replace("b: int", "b: int, c: int"), snapshot_of(lib=ADD, near=user)
        )
    )
    assert [what.rpartition(", but ")[2] for what in found] == ["`add` needs `c`"]


async def test_callers_that_were_not_reached_are_counted(one_sandbox: Sandbox) -> None:
    slow = TWICE.replace("return add", "while True: pass\n    return add")
    gate = Gate(one_sandbox, limits=Limits(wall_s=5), rules=Rules(neighbours_s=0.2))
    verdict = await replaced(gate, LARGER, snapshot_of(lib=ADD, near=slow))
    assert note(verdict) == "0 of 1 callers with examples tried: time was up"
    assert (verdict.stages[-1].passed, verdict.stages[-1].late) == (False, True)


THROUGH = '''\
from functools import partial

from functions.lib import add

_same = partial(add, 0)


class Adder:
    def both(self, n: int) -> int:
        return add(n, n)


def by_a_value(n: int) -> int:
    """Return a number.

    >>> by_a_value(3)
    3
    """
    return _same(n)


def by_a_class(n: int) -> int:
    """Double a number.

    >>> by_a_class(3)
    6
    """
    return Adder().both(n)
'''


async def test_callers_through_a_value_or_a_class_are_found(gate: Gate) -> None:
    verdict = await replaced(
        gate, ADD.replace("a + b", "a + b + 1"), snapshot_of(lib=ADD, through=THROUGH)
    )
    assert not verdict.admitted
    assert [what.split("`")[1] for what in broken(verdict)] == ["by_a_value", "by_a_class"]
