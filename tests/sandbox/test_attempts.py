"""Many attempts in one worker: in order, as isolated as one process can be, and never at the host's expense."""

import math
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from sandbox import (
    Attempt,
    Attempts,
    Code,
    Evaluation,
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
from sandbox.host import RESULT
from tests.sandbox.support import modules

EACH_S = 0.5
WORLD = modules(
    near="BASE = 10\n",
    world="""
    import os, sys, time
    from functions import near

    SEEN = []

    def double(value: int) -> int:
        return 2 * value

    def remember(item: list[int]) -> int:
        SEEN.append(item)
        item.append(0)
        return len(SEEN)

    def process() -> int:
        return os.getpid()

    def make(self, name: str) -> int:
        folder = self.scratch / name
        folder.mkdir()
        (folder / "new").open("x").close()
        (self.scratch / f"{name}.txt").open("x").close()
        return len([*self.scratch.iterdir()])

    def wrong() -> int:
        return "text"

    def greet(self) -> str:
        print("hello", file=sys.stderr)
        return "done"

    def shout(text: str, times: int) -> int:
        return os.write(1, text.encode() * times)

    def sleep(seconds: float) -> int:
        time.sleep(seconds)
        return 1

    def reckon(seconds: float) -> int:
        began = time.process_time()
        while time.process_time() - began < seconds:
            pass
        return 1

    def large(size: int) -> str:
        return "x" * size
    """,
)


async def tries(
    sandbox: Sandbox,
    function: str,
    *attempts: Attempt | dict[str, Any],
    world: dict[str, Code] = WORLD,
    **options: Any,
) -> tuple[Outcome | None, ...]:
    many = [one if isinstance(one, Attempt) else Attempt(one) for one in attempts]
    (module,) = [name for name in world if name != "near"]
    own = {name: options.pop(name) for name in ("then", "is_patient") if name in options}
    work = Attempts(function, many, options.pop("each_s", EACH_S), **own)
    return await sandbox.attempt(Job(world, module, work, **options))


def example(expression: str, *setup: str, text: str | None = None) -> Attempt:
    return Attempt(Evaluation(setup, expression), text)


def values(outcomes: tuple[Outcome | None, ...]) -> list[Any]:
    return [getattr(outcome, "value", outcome) for outcome in outcomes]


def kinds(outcomes: tuple[Outcome | None, ...]) -> list[str]:
    return [type(outcome).__name__ for outcome in outcomes]


async def test_attempts_come_back_in_order_from_one_worker_for_each_series(
    sandbox: Sandbox,
) -> None:
    outcomes = await tries(
        sandbox, "double", {"value": 1}, example("double(n)", "n = 2"), {"value": 3}
    )
    assert values(outcomes) == [2, 4, 6]
    first = values(await tries(sandbox, "process", {}, {}, {}))
    assert len(set(first)) == 1
    drawn = modules(world="import random\ndef f() -> float:\n    return random.random()\n")
    series = await tries(sandbox, "f", {}, world=drawn) + await tries(sandbox, "f", {}, world=drawn)
    assert len(set(values(series))) == 2


async def test_each_attempt_has_its_own_copy_of_the_arguments(sandbox: Sandbox) -> None:
    item = [1]
    assert values(
        await tries(sandbox, "remember", {"item": item}, {"item": item}, example("SEEN"))
    ) == [
        1,
        2,
        [[1, 0], [1, 0]],
    ]
    assert item == [1]


async def test_an_attempt_finds_no_files_of_those_before_it(sandbox: Sandbox) -> None:
    twice = await tries(sandbox, "make", {"name": "a"}, {"name": "a"}, example("make('b')"))
    assert values(twice) == [2, 2, 2]


async def test_an_attempt_with_its_own_text_has_a_module_of_its_own(sandbox: Sandbox) -> None:
    text = (
        "from . import near\nCOUNT = []\ndef double(value: int) -> int:\n"
        "    COUNT.append(1)\n    return value * near.BASE + len(COUNT)\n"
    )
    outcomes = await tries(
        sandbox,
        "double",
        Attempt({"value": 1}, text),
        example("double(2)", text=text),
        example("double(1)"),
    )
    assert values(outcomes) == [11, 21, 2]


async def test_a_text_that_cannot_be_compiled_fails_alone(sandbox: Sandbox) -> None:
    broken = example("1", text="def double(:\n")
    first, deep, last = await tries(
        sandbox, "double", broken, example("1", text="x = " + "(" * 500 + ")" * 500), {"value": 1}
    )
    assert isinstance(first, Raised)
    assert first.failure.type == "SyntaxError"
    assert isinstance(deep, Raised)
    assert values((last,)) == [2]


async def test_frames_of_an_attempt_show_the_lines_of_its_own_text(sandbox: Sandbox) -> None:
    text = "def double(value):\n    return value / 0  # own\n"
    outcome, other = await tries(
        sandbox, "double", example("double(1)", text=text), example("double(None)")
    )
    assert isinstance(outcome, Raised)
    assert isinstance(other, Raised)
    assert outcome.failure.frames[-1].source == "return value / 0  # own"
    assert other.failure.frames[-1].source == "return 2 * value"
    assert other.failure.frames[0].source == "double(None)"


async def test_what_comes_back_is_checked_as_in_a_call_and_with_its_own_output(
    sandbox: Sandbox,
) -> None:
    wrong, missing, absent, unsendable = (
        await tries(sandbox, "wrong", {})
        + await tries(sandbox, "double", {})
        + await tries(sandbox, "absent", {})
        + await tries(sandbox, "double", {"value": object()})
    )
    assert isinstance(wrong, Raised)
    assert wrong.failure.type == "ReturnTypeError"
    for refused in (missing, absent, unsendable):
        assert isinstance(refused, Refused), refused
    printed = await tries(sandbox, "greet", {}, example("print('ä', end='')"), {})
    assert [getattr(one, "output", None) for one in printed] == ["hello\n", "ä", "hello\n"]


async def test_one_that_hangs_costs_only_itself_and_its_own_time_which_may_be_less(
    sandbox: Sandbox,
) -> None:
    hang = {"seconds": 60.0}
    outcomes = await tries(
        sandbox, "sleep", {"seconds": 0.0}, hang, {"seconds": 0.0}, hang, {"seconds": 0.0}
    )
    assert kinds(outcomes) == ["Returned", "TimedOut", "Returned", "TimedOut", "Returned"]
    assert isinstance(outcomes[1], TimedOut)
    assert outcomes[1].limit_s == EACH_S
    short = Attempt({"seconds": 0.4}, most_s=0.05)
    quick, late, again = await tries(
        sandbox, "sleep", {"seconds": 0.0}, short, {"seconds": 0.0}, each_s=5
    )
    assert kinds((quick, late, again)) == ["Returned", "TimedOut", "Returned"]
    assert isinstance(late, TimedOut)
    assert late.limit_s == 0.05


@pytest.fixture
def busy_machine() -> Iterator[None]:
    """Run programs that leave at most a sixth of each CPU."""
    with ExitStack() as stack:
        for _ in range(5 * (os.cpu_count() or 1)):
            busy = stack.enter_context(
                subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"])
            )
            stack.callback(busy.kill)
        yield


@pytest.mark.slow  # on an even busier machine, it gets too little CPU time to finish
@pytest.mark.usefixtures("busy_machine")
async def test_what_waits_for_a_processor_gets_that_time_back_if_it_is_patient(
    sandbox: Sandbox,
) -> None:
    work = {"seconds": 0.2}  # of CPU time
    (outcome,) = await tries(
        sandbox, "reckon", work, each_s=0.25, limits=Limits(wall_s=4), is_patient=True
    )
    assert isinstance(outcome, Returned)


async def test_what_the_whole_time_did_not_reach_is_none(sandbox: Sandbox) -> None:
    rest = {"seconds": 0.5}
    outcomes = await tries(sandbox, "sleep", *[rest] * 8, each_s=5, limits=Limits(wall_s=2))
    assert kinds(outcomes)[0] == "Returned"
    assert outcomes[-1] is None
    assert sorted(kinds(outcomes), key=["Returned", "NoneType"].index) == kinds(outcomes)


async def test_a_large_value_is_told_and_not_sent_and_the_room_ends(sandbox: Sandbox) -> None:
    large, fitting = await tries(sandbox, "large", {"size": 2 * RESULT}, {"size": 100})
    assert isinstance(large, Raised)
    assert large.failure.type == "ResultTooLarge"
    assert isinstance(fitting, Returned)
    many = await tries(sandbox, "large", *[{"size": 20_000}] * 40, limits=Limits(result=40_000))
    assert 3 <= sum(outcome is not None for outcome in many) < 16


async def test_a_module_that_cannot_be_imported_ends_every_attempt_at_once(
    sandbox: Sandbox,
) -> None:
    for text, kind in (
        ("import os\nos._exit(3)\n", Killed),
        ("1 / 0\n", Raised),
        ("def f(:\n", Raised),
    ):
        outcomes = await tries(sandbox, "f", {}, {}, {}, world=modules(broken=text))
        assert [type(outcome) for outcome in outcomes] == [kind] * 3
    assert await tries(sandbox, "f", world=modules(empty="")) == ()


async def test_values_cross_as_they_do_in_a_call(sandbox: Sandbox) -> None:
    crossing = [math.nan, (1, 2), {1: {2}}, None, "ü" * 100]
    attempts = [example(repr(value).replace("nan", "float('nan')")) for value in crossing]
    assert list(map(repr, values(await tries(sandbox, "double", *attempts)))) == list(
        map(repr, crossing)
    )


async def test_what_is_to_be_tried_next_may_hang_on_what_came_back(sandbox: Sandbox) -> None:
    seen: list[list[Any]] = []

    def then(outcomes: Sequence[Outcome | None]) -> list[Attempt]:
        seen.append(values(tuple(outcomes)))
        more = example(f"double({seen[-1][-1]})", text="def double(value):\n    return 3 * value\n")
        return [more, Attempt({"value": object()}), example("process()")] if len(seen) < 3 else []

    outcomes = values(await tries(sandbox, "double", example("process()"), {"value": 1}, then=then))
    assert [len(one) for one in seen] == [2, 5, 8]
    assert outcomes[1:3] == [2, 6]
    assert len({outcomes[0], outcomes[4], outcomes[7]}) == 1  # all in one worker
    assert kinds((outcomes[3], outcomes[6])) == ["Refused", "Refused"]


async def test_a_worker_that_ends_in_a_later_round_costs_that_attempt_alone(
    sandbox: Sandbox,
) -> None:
    rounds = [[example("os._exit(3)"), Attempt({"value": 2})], [Attempt({"value": 3})]]
    outcomes = await tries(
        sandbox, "double", {"value": 1}, then=lambda _known: rounds.pop(0) if rounds else []
    )
    assert kinds(outcomes) == ["Returned", "Killed", "Returned", "Returned"]
