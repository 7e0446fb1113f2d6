"""`self` in a function: progress, scratch, calls of other functions, and requests that need a grant."""

import time
from typing import Any

import pytest

from sandbox import (
    Evaluation,
    FunctionCall,
    Job,
    Killed,
    Limits,
    Raised,
    RequestRefused,
    Returned,
    Sandbox,
    TimedOut,
)
from tests.kit.levels import start
from tests.sandbox.support import modules

ASKING = modules(
    asking="""
    def work(self, n: int) -> int:
        for step in range(n):
            self.progress(step + 1, n, f"step {step}")
        return n

    def relay(self, function: str, depth: int) -> object:
        return self.call(function, depth=depth)

    def keep(self, name: str = "note.txt") -> list[str]:
        (self.scratch / name).write_text("kept")
        return sorted(path.name for path in self.scratch.iterdir())

    def reach(self, what: str) -> object:
        return getattr(self, what)

    def swallow(self) -> str:
        try:
            self.call("anything")
        except PermissionError as error:
            return str(error)
        return "it was allowed"

    async def threads(self) -> list[object]:
        import asyncio
        return await asyncio.gather(*(asyncio.to_thread(self.call, "echo", n=n) for n in range(5)))
    """
)


class Handler:
    """Answers like a host and records the requests."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def __call__(self, name: str, arguments: dict[str, Any], /) -> Any:
        self.asked.append((name, arguments))
        if name == "progress":
            return None
        if arguments["function"] == "echo":
            return arguments["arguments"]["n"]
        if arguments["arguments"].get("depth", 0) <= 0:
            raise RequestRefused("that is deep enough")
        depth = arguments["arguments"]["depth"] - 1
        further = {"function": "relay", "depth": depth}
        outcome = await self._sandbox.run(
            Job(ASKING, "asking", FunctionCall("relay", further), handler=self)
        )
        return outcome.value if isinstance(outcome, Returned) else repr(outcome)


async def test_progress_reaches_the_handler_with_its_last_step(sandbox: Sandbox) -> None:
    handler = Handler(sandbox)
    outcome = await sandbox.run(
        Job(ASKING, "asking", FunctionCall("work", {"n": 500}), handler=handler)
    )
    assert isinstance(outcome, Returned), outcome
    assert handler.asked[-1] == ("progress", {"done": 500, "total": 500, "note": "step 499"})
    assert len(handler.asked) < 50


async def test_without_a_handler_progress_is_ignored_and_a_call_is_refused(
    sandbox: Sandbox,
) -> None:
    assert isinstance(
        await sandbox.run(Job(ASKING, "asking", FunctionCall("work", {"n": 3}))), Returned
    )
    outcome = await sandbox.run(Job(ASKING, "asking", FunctionCall("swallow", {})))
    assert isinstance(outcome, Returned)
    assert "made without a handler" in outcome.value
    for what in ("secret", "memory.read", "fetch"):
        world = modules(m=f"def f(self) -> str:\n    return self.{what}('x')\n")
        refused = await sandbox.run(Job(world, "m", FunctionCall("f", {})))
        assert isinstance(refused, Raised), refused
        assert (refused.failure.type, "nobody to ask" in refused.failure.message) == (
            "PermissionError",
            True,
        ), what


async def test_calls_within_calls_need_no_second_place_and_end_where_they_nest_without_end() -> (
    None
):
    async with await start(parallel=1, packages=()) as narrow:
        for depth, says in (
            (3, "that is deep enough"),
            (100, "too many calls wait for calls of their own"),
        ):
            handler, given = Handler(narrow), {"function": "relay", "depth": depth}
            outcome = await narrow.run(
                Job(ASKING, "asking", FunctionCall("relay", given), handler=handler)
            )
            assert says in repr(outcome)
            if depth == 3:
                assert [arguments["arguments"]["depth"] for _name, arguments in handler.asked] == [
                    3,
                    2,
                    1,
                    0,
                ]


async def test_scratch_is_a_folder_of_the_calls_own_and_empty_at_start(sandbox: Sandbox) -> None:
    example = await sandbox.run(Job(ASKING, "asking", Evaluation((), "work(2) + len(keep())")))
    assert getattr(example, "value", example) == 3, "an example gets a bare context"
    for name in (
        "one",
        "two",
        "three",
        "four",
    ):  # more than the spare workers, so a folder is used again
        outcome = await sandbox.run(Job(ASKING, "asking", FunctionCall("keep", {"name": name})))
        assert isinstance(outcome, Returned), outcome
        assert outcome.value == [name]


async def test_what_needs_a_grant_is_asked_of_the_host_by_name(sandbox: Sandbox) -> None:
    async def record(name: str, arguments: dict[str, Any], /) -> str:
        return repr((name, arguments))

    for expression, asked in (
        ("self.secret('token')", ("secret", {"name": "token"})),
        ("self.memory.read('notes')", ("memory", {"act": "read", "block": "notes"})),
    ):
        world = modules(m=f"def f(self) -> str:\n    return {expression}\n")
        outcome = await sandbox.run(Job(world, "m", FunctionCall("f", {}), handler=record))
        assert isinstance(outcome, Returned), outcome
        assert outcome.value == repr(asked)


async def test_memory_is_changed_by_requests_that_say_how(sandbox: Sandbox) -> None:
    world = modules(
        m="""
        def f(self) -> None:
            self.memory.append("notes", "more")
            self.memory.replace("notes", "old", "new")
            self.memory.write("notes", "all")
        """
    )
    seen: list[dict[str, Any]] = []

    async def remember(_name: str, arguments: dict[str, Any], /) -> None:
        seen.append(arguments)

    assert isinstance(
        await sandbox.run(Job(world, "m", FunctionCall("f", {}), handler=remember)), Returned
    )
    assert [one["act"] for one in seen] == ["append", "replace", "write"]
    assert seen[1] == {"act": "replace", "block": "notes", "old": "old", "new": "new"}


async def test_what_self_does_not_have_is_said_with_what_it_has(sandbox: Sandbox) -> None:
    outcome = await sandbox.run(Job(ASKING, "asking", FunctionCall("reach", {"what": "nothing"})))
    assert isinstance(outcome, Raised), outcome
    assert (
        outcome.failure.type,
        "it has ask, confirm, progress, scratch, state, call" in outcome.failure.message,
    ) == (
        "AttributeError",
        True,
    )


async def test_threads_of_a_function_may_ask_at_once(sandbox: Sandbox) -> None:
    outcome = await sandbox.run(
        Job(ASKING, "asking", FunctionCall("threads", {}), handler=Handler(sandbox))
    )
    assert isinstance(outcome, Returned), outcome
    assert outcome.value == [0, 1, 2, 3, 4]


async def test_a_call_that_asks_too_often_is_stopped(sandbox: Sandbox) -> None:
    world = modules(nag="def nag(self) -> None:\n    while True:\n        self.call('echo', n=1)\n")
    handler = Handler(sandbox)
    outcome = await sandbox.run(
        Job(world, "nag", FunctionCall("nag", {}), limits=Limits(requests=20), handler=handler)
    )
    assert isinstance(outcome, Killed)
    assert len(handler.asked) == 20


AHEAD = modules(
    ahead="""
    def ahead(self, times: int) -> None:
        import json, os, threading
        channel = self._channel._descriptor
        body = json.dumps({"kind": "request", "name": "progress", "arguments": {"done": 1}}).encode()
        threading.Thread(target=lambda: [*iter(lambda: os.read(channel, 1 << 16), b"")], daemon=True).start()
        for _ in range(times):
            os.write(channel, len(body).to_bytes(4, "big") + body)
        threading.Event().wait()
    """
)


async def test_requests_that_are_sent_ahead_hold_up_no_clock(sandbox: Sandbox) -> None:
    answered = []

    async def slow(name: str, _arguments: dict[str, Any], /) -> None:
        answered.append(name)
        time.sleep(0.005)  # noqa: ASYNC251 - the host's work for each

    outcome = await sandbox.run(
        Job(
            AHEAD,
            "ahead",
            FunctionCall("ahead", {"times": 4_000}),
            limits=Limits(wall_s=1.0),
            handler=slow,
        )
    )
    assert isinstance(outcome, TimedOut), outcome
    assert len(answered) < 1_000


async def test_a_handler_that_fails_ends_only_its_call(
    sandbox: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    world = modules(
        m="def f(self, name: str) -> object:\n    return self._channel.request(name, {})\n"
    )

    async def failing(name: str, _arguments: dict[str, Any], /) -> Any:
        return {"fine": 1}[name]

    outcome = await sandbox.run(
        Job(world, "m", FunctionCall("f", {"name": "\x1b[2J\nbad"}), handler=failing)
    )
    assert isinstance(outcome, Killed), outcome
    assert "the program itself failed while it answered a request (KeyError)" in outcome.reason
    assert "Traceback" in caplog.text
    assert "\x1b" not in caplog.text
    assert isinstance(
        await sandbox.run(Job(world, "m", FunctionCall("f", {"name": "fine"}), handler=failing)),
        Returned,
    )
