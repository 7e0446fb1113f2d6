"""A stateful function's worker: it is reused for its own key, and ends after anything but plain success."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from sandbox import Access, FunctionCall, Job, Limits, Outcome, Returned, Sandbox
from sandbox.processes import pool, sessions
from tests.attacks.outside import descendants
from tests.kit.levels import start
from tests.sandbox.support import modules

TEXT = """
    import os, threading, time

    count = 0

    def add(self, n: int = 1) -> int:
        global count
        count += n
        return count

    def say(text: str, lines: int = 1) -> int:
        for _line in range(lines):
            print(text)
        return add(None)

    def fail() -> None:
        add(None)
        raise ValueError("no")

    def die() -> None:
        os._exit(3)

    def hang() -> None:
        while True:
            pass

    def write(self, name: str) -> list[str]:
        (self.scratch / name).write_text("x")
        return sorted(path.name for path in self.scratch.iterdir())

    def read(path: str) -> str:
        return open(path).read()

    def relay(self) -> object:
        return self.call("again")

    def tick() -> int:
        global count
        count += 1
        time.sleep(0.01)
        threading.Thread(target=tick).start()
        return count

    def forge() -> int:
        body = b'{"kind":"returned","value":7,"shown":"7"}'
        os.write(3, len(body).to_bytes(4, "big") + body)
        return add(None)

    def late(self) -> int:
        import functions.helper
        return add(None)

    def dynamic() -> int:
        import importlib
        return importlib.import_module("functions.helper").VALUE + 0 * add(None)
"""
STATE = modules(state=TEXT)


async def call(sandbox: Sandbox, function: str, keep: str = "k", **rest: Any) -> Outcome:
    code = rest.pop("code", STATE)
    options = {name: rest.pop(name) for name in ("limits", "access", "handler") if name in rest}
    return await sandbox.run(Job(code, "state", FunctionCall(function, rest), keep=keep, **options))


async def value(sandbox: Sandbox, function: str = "add", keep: str = "k", **rest: Any) -> Any:
    outcome = await call(sandbox, function, keep, **rest)
    return outcome.value if isinstance(outcome, Returned) else outcome


async def test_what_a_call_leaves_is_there_for_the_next_of_its_key_alone(sandbox: Sandbox) -> None:
    found = [await value(sandbox, keep=key) for key in ("a", "a", "b", "a", "", "")]
    assert found == [1, 2, 1, 3, 1, 1]
    assert await value(sandbox, "write", "files", name="one") == ["one"]
    assert await value(sandbox, "write", "files", name="two") == ["one", "two"]
    assert await value(sandbox, "write", "other files", name="two") == ["two"]


async def test_calls_of_one_key_are_made_one_after_another_and_only_so_many_by_one_worker(sandbox: Sandbox) -> None:
    code = modules(state=f"{TEXT}    # compiled by none before\n")
    found = await asyncio.gather(*(value(sandbox, keep="line", code=code) for _time in range(6)))
    assert found == [1, 2, 3, 4, 5, 6]
    found = [await value(sandbox, keep="many", limits=Limits(calls=3)) for _time in range(7)]
    assert found == [1, 2, 3, 1, 2, 3, 1]


@pytest.mark.parametrize("function", ["fail", "die", "hang"])
async def test_whatever_is_no_good_return_ends_the_worker(sandbox: Sandbox, function: str) -> None:
    assert await value(sandbox, keep=function) == 1
    outcome = await call(sandbox, function, function, limits=Limits(wall_s=1))
    assert not isinstance(outcome, Returned), outcome
    assert await value(sandbox, keep=function, limits=Limits(wall_s=30)) == 1


async def test_a_call_that_is_cancelled_ends_the_worker(sandbox: Sandbox) -> None:
    assert await value(sandbox, keep="cancelled") == 1
    task = asyncio.ensure_future(call(sandbox, "hang", "cancelled"))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await value(sandbox, keep="cancelled") == 1


async def test_another_text_of_the_module_or_its_neighbour_has_another_worker(sandbox: Sandbox) -> None:
    def world(comment: str, number: int) -> Any:
        return modules(state=f"{TEXT}    # {comment}\n", helper=f"VALUE = {number}\n")

    found = [
        await value(sandbox, "late", "text", code=world(*each)) for each in (("a", 1), ("a", 1), ("b", 1), ("b", 2))
    ]
    assert found == [1, 2, 1, 1]
    worlds = [modules(state=TEXT, helper=f"VALUE = {number}\n") for number in (1, 2)]  # imported by its name
    assert [await value(sandbox, "dynamic", "name", code=each) for each in (*worlds, worlds[0])] == [1, 2, 1]


async def test_another_reach_or_other_limits_have_another_worker(sandbox: Sandbox, tmp_path: Path) -> None:
    wide, big = Access(readable=(str(tmp_path),)), Limits(memory=600 << 20)
    found = [await value(sandbox, keep="reach", access=each) for each in (Access(), wide, wide, Access())]
    assert found == [1, 1, 2, 1]
    assert await value(sandbox, keep="reach", limits=big) == 1


async def test_a_granted_file_that_was_replaced_is_read_as_it_is_now(sandbox: Sandbox, tmp_path: Path) -> None:
    file, new = tmp_path / "file", tmp_path / "new"
    for text in ("old", "new"):
        new.write_text(text)
        new.replace(file)
        access = Access(readable=(str(file),))
        assert await value(sandbox, "read", "reads", path=str(file), access=access) == text


async def test_each_call_has_its_own_output_however_much_the_last_printed(sandbox: Sandbox) -> None:
    limits = Limits(output=1000)
    first = await call(sandbox, "say", "printing", text="first", lines=2000, limits=limits)
    second = await call(sandbox, "say", "printing", text="second", limits=limits)
    assert isinstance(first, Returned), first
    assert isinstance(second, Returned), second
    assert "output cut after 1000 bytes" in first.output
    assert (second.value, second.output) == (2, "second\n")


async def test_a_worker_that_says_more_than_its_reply_is_ended(sandbox: Sandbox) -> None:
    assert await value(sandbox, "forge", "forge") == 7
    assert await value(sandbox, keep="forge") == 1


async def test_between_two_calls_a_worker_and_its_threads_stand_still(sandbox: Sandbox) -> None:
    before = descendants(os.getpid())
    assert await value(sandbox, "tick", "tick") >= 1
    for _time in range(100):
        await asyncio.sleep(0.05 if not _standing(descendants(os.getpid()) - before) else 0)
    assert _standing(descendants(os.getpid()) - before)
    assert await value(sandbox, keep="tick", n=0) >= 1


def _standing(processes: set[int]) -> set[int]:
    """Return those of the processes that are stopped."""
    states = {pid: Path(f"/proc/{pid}/stat") for pid in processes}
    return {
        pid for pid, stat in states.items() if stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "T"
    }


async def test_a_stateful_function_that_calls_itself_is_told_so(sandbox: Sandbox) -> None:
    async def again(_name: str, _arguments: dict[str, Any], /) -> str:
        return repr(await call(sandbox, "add", "itself"))

    assert "cannot be called by its own call" in await value(sandbox, "relay", "itself", handler=again)


async def test_more_keys_than_may_rest_end_the_one_that_rested_longest(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MOST", 2)
    found = [await value(sandbox, keep=key) for key in ("x", "y", "x", "z", "x", "y")]
    assert found == [1, 1, 2, 1, 3, 1]


async def test_a_worker_and_a_zygote_that_nobody_calls_end_and_closing_ends_the_rest(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = descendants(os.getpid())
    async with await start(packages=()) as own:
        reach = Access(readable=(str(tmp_path),))
        with monkeypatch.context() as patch:
            patch.setattr(sessions, "REST_S", 0.1)
            patch.setattr(pool, "REST_S", 0.1)
            assert [await value(own), await value(own, keep="", access=reach)] == [1, 1]
            for _time in range(400):
                await asyncio.sleep(0.05 if own.zygotes > 1 else 0)
            assert own.zygotes == 1
        assert [await value(own), await value(own, keep="", access=reach)] == [1, 1]
    assert descendants(os.getpid()) <= before, "closing ends the workers that rest"
