"""How calls end, and what the host learns of each end."""

import asyncio
import os
import time

import pytest

from sandbox import (
    Evaluation,
    FunctionCall,
    Job,
    Killed,
    Limits,
    ModuleImport,
    Raised,
    Refused,
    Returned,
    Sandbox,
    TimedOut,
)
from tests.kit.pace import least_s_of
from tests.sandbox.support import modules

WORK = modules(
    work="""
    import asyncio
    import os

    def add(a: int, b: int = 2) -> int:
        print("adding")
        return a + b

    def fail(x: int) -> float:
        api_key = DB_PASSWORD = "very secret"
        return inner(x)

    def inner(value):
        return 1 / (value - value)

    async def wait(seconds: float) -> str:
        await asyncio.sleep(seconds)
        return "waited"

    def leave(status: int) -> None:
        os._exit(status)

    def spin() -> None:
        while True:
            pass

    def stop(x: int) -> None:
        breakpoint()
        return x

    def ask() -> str:
        return input("name? ")

    def count(n: int):
        yield from range(n)

    def quit() -> None:
        raise SystemExit(3)

    async def later(n: int):
        for number in range(n):
            yield number

    def pairs(n: int):
        return {"squares": (number * number for number in range(n)), "pairs": zip("ab", range(n))}

    def broken(n: int):
        yield n
        raise ValueError("half way")

    def endless(n: int):
        import itertools
        return itertools.repeat(n)

    def gather(a, b=2, /, c=3, *rest: int, d=4, **more):
        return [a, b, c, list(rest), d, more]

    def where() -> int:
        return os.getpid()

    def grow(n: int) -> int:
        return len(bytearray(n))

    def only(a, /, b, *, c=3):
        return [a, b, c]
    """
)


async def value(sandbox: Sandbox, function: str, **arguments: object) -> object:
    outcome = await sandbox.run(Job(WORK, "work", FunctionCall(function, arguments)))
    return outcome.value if isinstance(outcome, Returned) else outcome


async def test_a_call_returns_its_value_and_what_it_printed(sandbox: Sandbox) -> None:
    outcome = await sandbox.run(Job(WORK, "work", FunctionCall("add", {"a": 1})))
    assert isinstance(outcome, Returned)
    assert (outcome.value, outcome.shown, outcome.output) == (3, "3", "adding\n")
    assert await value(sandbox, "wait", seconds=0) == "waited", (
        "what is asynchronous is awaited in the worker"
    )
    assert await value(sandbox, "only", a=1, b=2) == [1, 2, 3], (
        "parameters of every kind are given by name"
    )


async def test_an_exception_is_told_with_the_functions_own_frames_and_no_secret(
    sandbox: Sandbox,
) -> None:
    outcome = await sandbox.run(Job(WORK, "work", FunctionCall("fail", {"x": 4})))
    assert isinstance(outcome, Raised)
    assert outcome.failure.type == "ZeroDivisionError"
    frames = [(frame.path, frame.function, frame.source) for frame in outcome.failure.frames]
    assert frames == [
        ("functions/work.py", "fail", "return inner(x)"),
        ("functions/work.py", "inner", "return 1 / (value - value)"),
    ]
    assert dict(outcome.failure.frames[0].locals) == {
        "x": "4",
        "api_key": "<masked>",
        "DB_PASSWORD": "<masked>",
    }


async def test_a_worker_that_dies_is_killed_with_a_reason(sandbox: Sandbox) -> None:
    for status in (3, 0):
        outcome = await sandbox.run(Job(WORK, "work", FunctionCall("leave", {"status": status})))
        assert isinstance(outcome, Killed)
        assert f"exit status {status}" in outcome.reason


async def test_what_cannot_work_is_said_clearly(sandbox: Sandbox) -> None:
    for function, kind, says in (
        ("ask", "EOFError", "take the value as a parameter"),
        ("broken", "ValueError", "half way"),  # a generator that fails
        ("quit", "SystemExit", "3"),
    ):
        outcome = await sandbox.run(
            Job(WORK, "work", FunctionCall(function, {"n": 3} if function == "broken" else {}))
        )
        assert isinstance(outcome, Raised)
        assert (outcome.failure.type, says in outcome.failure.message) == (kind, True), outcome


async def test_what_iterates_comes_back_as_a_list(sandbox: Sandbox) -> None:
    pairs = {"squares": [0, 1, 4], "pairs": [("a", 0), ("b", 1)]}
    for function, expected in (("count", [0, 1, 2]), ("later", [0, 1, 2]), ("pairs", pairs)):
        outcome = await sandbox.run(Job(WORK, "work", FunctionCall(function, {"n": 3})))
        assert isinstance(outcome, Returned)
        assert (outcome.value, outcome.output) == (expected, "")


async def test_of_an_endless_iterator_the_first_items_come_back_and_that_is_said(
    sandbox: Sandbox,
) -> None:
    outcome = await sandbox.run(Job(WORK, "work", FunctionCall("endless", {"n": 7})))
    assert isinstance(outcome, Returned)
    assert (outcome.value, outcome.output) == (
        [7] * 1000,
        "[only the first 1,000 items are returned]\n",
    )


async def test_stars_are_given_as_a_list_and_an_object(sandbox: Sandbox) -> None:
    cases: list[tuple[dict[str, object], list[object]]] = [
        ({"a": 1}, [1, 2, 3, [], 4, {}]),
        ({"a": 1, "rest": [8, 9]}, [1, 2, 3, [8, 9], 4, {}]),
        ({"a": 1, "c": 0, "rest": [8], "d": 5}, [1, 2, 0, [8], 5, {}]),
        ({"a": 1, "more": {"x": 1, "rest": 2}}, [1, 2, 3, [], 4, {"x": 1, "rest": 2}]),
    ]
    for arguments, expected in cases:
        assert await value(sandbox, "gather", **arguments) == expected


async def test_a_breakpoint_is_passed_over_and_said_in_the_output(sandbox: Sandbox) -> None:
    outcome = await sandbox.run(Job(WORK, "work", FunctionCall("stop", {"x": 1})))
    assert "breakpoint() at functions/work.py:27: no debugger is attached" in getattr(
        outcome, "output", ""
    )


async def test_a_call_that_never_ends_is_stopped_by_the_hosts_clock_or_the_kernels(
    sandbox: Sandbox,
) -> None:
    outcome = await sandbox.run(
        Job(WORK, "work", FunctionCall("spin", {}), limits=Limits(wall_s=0.2))
    )
    assert isinstance(outcome, TimedOut)
    assert outcome.limit_s == 0.2
    killed = await sandbox.run(
        Job(WORK, "work", FunctionCall("spin", {}), limits=Limits(wall_s=30, cpu_s=1))
    )
    assert isinstance(killed, Killed)
    assert "more than 1 s of processor time" in killed.reason


async def test_a_call_gets_the_memory_of_its_own_limits(sandbox: Sandbox) -> None:
    small = await sandbox.run(
        Job(WORK, "work", FunctionCall("grow", {"n": 300 << 20}), limits=Limits(memory=200 << 20))
    )
    large = await sandbox.run(Job(WORK, "work", FunctionCall("grow", {"n": 300 << 20})))
    assert isinstance(small, Raised)
    assert small.failure.type == "MemoryError"
    assert isinstance(large, Returned)


async def test_cancelling_a_call_kills_its_worker_at_once(sandbox: Sandbox) -> None:
    call = asyncio.ensure_future(sandbox.run(Job(WORK, "work", FunctionCall("spin", {}))))
    await asyncio.sleep(0.05)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert isinstance(await sandbox.run(Job(WORK, "work", FunctionCall("add", {"a": 1}))), Returned)


async def test_calls_run_beside_one_another_in_processes_of_their_own(sandbox: Sandbox) -> None:
    async def eight() -> float:
        began = time.monotonic()
        outcomes = await asyncio.gather(
            *(
                sandbox.run(Job(WORK, "work", FunctionCall("wait", {"seconds": 0.3})))
                for _ in range(8)
            )
        )
        assert [getattr(outcome, "value", outcome) for outcome in outcomes] == ["waited"] * 8
        return time.monotonic() - began

    assert await least_s_of(8 * 0.3, eight) < 8 * 0.3
    here = await sandbox.run(Job(WORK, "work", FunctionCall("where", {})))
    assert getattr(here, "value", None) != os.getpid()


@pytest.mark.parametrize(
    ("module", "function", "arguments", "says"),
    [
        pytest.param("nowhere", "f", {}, "there is no module functions.nowhere", id="module"),
        pytest.param("work", "nothing", {}, "has no function 'nothing'", id="function"),
        pytest.param("work", "add", {}, "a: add needs this argument", id="missing"),
        pytest.param(
            "work",
            "add",
            {"a": 1, "c": 2},
            "c: add has no such parameter; it has a, b",
            id="unknown",
        ),
        pytest.param(
            "work", "add", {"a": object()}, "object cannot be sent as JSON", id="unsendable"
        ),
        pytest.param(
            "work",
            "gather",
            {"a": 1, "rest": [8, "x"]},
            "rest[1]: expected a whole number",
            id="a-star",
        ),
        pytest.param(
            "work",
            "gather",
            {"a": 1, "more": {"d": 1}, "d": 2},
            "more: d is given twice",
            id="twice",
        ),
        pytest.param(
            "work",
            "gather",
            {"a": 1, "more": {"c": 1}},
            "more: c is a parameter of its own",
            id="a-name-of-another",
        ),
    ],
)
async def test_a_call_that_does_not_fit_is_refused(
    sandbox: Sandbox, module: str, function: str, arguments: dict[str, object], says: str
) -> None:
    outcome = await sandbox.run(Job(WORK, module, FunctionCall(function, arguments)))
    assert isinstance(outcome, Refused)
    assert says in outcome.reason


async def test_a_module_that_cannot_be_compiled_or_imported_is_an_answer(sandbox: Sandbox) -> None:
    outcome = await sandbox.run(Job(modules(broken="x = 1\ndef f(:\n"), "broken", ModuleImport()))
    assert isinstance(outcome, Raised)
    assert outcome.failure.type == "SyntaxError"
    assert (outcome.failure.frames[0].line, outcome.failure.frames[0].source) == (2, "def f(:")
    endless = Job(
        modules(endless="while True: pass"), "endless", ModuleImport(), limits=Limits(wall_s=0.2)
    )
    assert isinstance(await sandbox.run(endless), TimedOut)
    bomb = modules(bomb="x = " + "-" * 200_000 + "1")  # for the compiler
    assert isinstance(
        await sandbox.run(Job(bomb, "bomb", ModuleImport())), Raised | Killed | TimedOut
    )


async def test_an_example_is_evaluated_after_its_setup_and_its_own_line_comes_first(
    sandbox: Sandbox,
) -> None:
    outcome = await sandbox.run(Job(WORK, "work", Evaluation(("n = 3", "m = n + 1"), "add(n, m)")))
    assert isinstance(outcome, Returned)
    assert outcome.value == 7
    outcome = await sandbox.run(Job(WORK, "work", Evaluation((), "fail(2)")))
    assert isinstance(outcome, Raised)
    assert outcome.failure.frames[0].source == "fail(2)"
