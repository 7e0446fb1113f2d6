"""Values that are costly to write for a worker are written beside the event loop, and once."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from agent_core.access.grants.approval import Question
from agent_core.access.secrets import CallSecrets, MaskedChannel
from agent_core.client.client import connect
from agent_core.functions.debug import Watch
from agent_core.functions.service.replay import ReplayedRequests
from agent_core.storage import QuestionRow, SavePending
from agent_core.workspace.workspace import Workspace
from sandbox import Sandbox
from tests.functions.support import Room
from tests.kit import scripted
from tests.kit.desk import desk
from tests.kit.heartbeat import MOST_MS, heartbeat, stall_of
from tests.kit.pace import slowness
from tests.kit.program import knapper
from tests.kit.sources import function_text

_MOST = 50_000  # values in the arguments of a call
_DEEP = 30
_MANY = 2_000  # rows that wait for a user
_FUNCTIONS = 400  # of one file; its text has as many names, numbers and signs as a text may


def _tagged(levels: int) -> Any:  # Any: JSON
    value: Any = 1
    for _ in range(levels):
        value = {"$": value}
    return value


async def test_arguments_with_keys_that_mark_types_do_not_hold_up_the_event_loop(
    here: Room,
) -> None:
    text = function_text(
        "count(value: object) -> int", "Count.\n\nArgs:\n    value: It.", "return len(value)"
    )
    (here.root / "functions").mkdir(exist_ok=True)
    await here.save(text, here.root / "functions" / "count.py")
    rows = [_tagged(_DEEP) for _ in range(_MOST // _DEEP - 100)]
    returned: list[object] = []

    async def call() -> None:
        returned.append((await here.shop.call("count", {"value": rows})).value)

    stall = await stall_of(call)
    assert returned[0] == len(rows)
    assert stall.cpu_ms <= MOST_MS * slowness(), stall


async def test_requests_with_many_values_are_recorded_beside_the_event_loop(here: Room) -> None:
    async def answered(_name: str, _arguments: dict[str, Any]) -> None:
        return None

    def keep(*_given: object, **_named: object) -> None:
        threads.append(threading.current_thread() is threading.main_thread())

    threads: list[bool] = []
    channel = MaskedChannel(CallSecrets(here.sandbox.secrets, "f"), answered, keep=keep)
    await channel("memory", {"block": "human", "value": [[at] for at in range(_MOST)]})
    await channel("memory", {"block": "human", "value": 1})
    assert threads == [False, True], "only what is small is recorded on the event loop"


async def test_rejected_candidates_are_read_beside_the_event_loop(here: Room) -> None:
    (here.root / "functions").mkdir(exist_ok=True)
    await here.shop.create("f", "def f(a):\n    return a\n", "grown")
    (candidate,) = (await here.store.all_pending()).values()
    await here.store.apply([SavePending(f"f{at}", candidate) for at in range(_MANY)])
    stall = await stall_of(here.shop.all_pending)
    assert stall.cpu_ms <= MOST_MS * slowness(), stall


async def test_questions_to_the_user_are_read_and_written_beside_the_event_loop(
    tmp_path: Path, one_sandbox: Sandbox
) -> None:
    with scripted([]) as model:
        async with (
            desk(tmp_path, model, one_sandbox) as here,
            await connect(here.workspace) as client,
        ):
            for question in (
                Question.of_text(f"add_{at}", "a text", "program") for at in range(_MANY)
            ):
                row = QuestionRow(question.id, "main", f"turn {question.id}", question.to_json())
                await here.workspace.store.ask_user(row)
            assert len(await client.approvals()) == _MANY
            stall = await stall_of(client.approvals)
    assert stall.cpu_ms <= MOST_MS * slowness(), stall


async def test_replayed_requests_are_looked_up_and_not_searched_for(here: Room) -> None:
    taken = []
    for count in (400, 1_600):
        rows = [
            {"name": "memory", "arguments": {"block": f"b{at}"}, "value": at} for at in range(count)
        ]
        heard = ReplayedRequests(rows, Watch(here.sandbox.debugging), here.shop.registry.snapshot())
        began = time.process_time()
        assert [await heard("memory", {"block": f"b{at}"}) for at in reversed(range(count))] == [
            *reversed(range(count))
        ]
        taken.append(time.process_time() - began)
    assert taken[1] / taken[0] <= 8, taken  # the square would be 16


@pytest.mark.parametrize("operation", ["call", "delete"])
async def test_what_is_asked_first_after_a_start_is_read_beside_the_event_loop(
    tmp_path: Path, operation: str
) -> None:
    rows = (
        function_text(
            f"f_{n}(a: int) -> str",
            "Give it.\n\nArgs:\n    a: It.",
            f'return f"{{a}} {n} {{a * 2}}"',
        )
        for n in range(_FUNCTIONS)
    )
    (tmp_path / "functions").mkdir()
    (tmp_path / "knapper.toml").touch()
    (tmp_path / "functions" / "large.py").write_text("\n\n".join(rows), "utf-8")
    (tmp_path / "functions" / "small.py").write_text(
        function_text("zenith() -> int", "Give it.", "return 1")
    )
    listed = knapper("functions", "list", cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    async with Workspace.open(tmp_path) as workspace:
        functions = workspace.functions
        assert await functions.delete("zenith")  # modules of the program are loaded
        work = functions.call("f_3", {"a": 1}) if operation == "call" else functions.delete("f_3")
        async with heartbeat() as stall:
            assert await work
    assert stall.cpu_ms <= MOST_MS * slowness(), stall
