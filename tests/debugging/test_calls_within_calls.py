"""Calls that make calls, and threads: each stops and continues."""

from agent_core.workspace.workspace import Workspace
from tests.kit.sources import function_text

from .support import Typist, arm, room_of

NESTED = "\n\n".join(
    [
        function_text(
            "inner(number: int) -> int",
            "Add one.",
            "made = number + 1\nreturn made",
        ),
        function_text(
            "through(self, number: int) -> int",
            "Call another.",
            'got = self.call("inner", number=number)\nreturn got * 2',
        ),
        function_text(
            "threaded(number: int) -> int",
            "Work in a thread.",
            "import threading\n\nfound: list[int] = []\n\ndef work() -> None:\n    found.append(number)\n\n"
            "thread = threading.Thread(target=work)\nthread.start()\nthread.join()\nreturn found[0]",
        ),
    ]
)
COUNTED = """\
held = 0


def count(by: int) -> int:
    global held
    held += by
    return held
"""


async def with_nested(workspace: Workspace) -> None:
    (workspace.root / "functions" / "nested.py").write_text(NESTED, "utf-8")
    await workspace.functions.reload()


async def test_a_function_that_another_calls_stops_and_the_outer_clock_stands_too(
    workspace: Workspace,
) -> None:
    await with_nested(workspace)
    arm(workspace, line=4, name="inner")
    room_of(workspace).slot.debugger = typist = Typist("set made 10", "c")
    assert (await workspace.functions.call("through", {"number": 1})).value == 20
    assert [stop.call for stop in typist.stops] == ["inner", "inner"]


async def test_a_call_that_is_typed_at_a_stop_may_stop_itself(workspace: Workspace) -> None:
    await with_nested(workspace)
    arm(workspace, line=9, name="through")
    arm(workspace, line=4, name="inner")
    room_of(workspace).slot.debugger = typist = Typist(
        "p self.call('inner', number=4)", "c", "clear 2", "c"
    )
    assert (await workspace.functions.call("through", {"number": 1})).value == 4
    assert [stop.call for stop in typist.stops] == ["through", "inner", "through", "through"]
    assert typist.said == ["5", "Breakpoint 2 of inner is cleared."]


async def test_a_thread_of_a_function_stops_as_its_main_one_does(workspace: Workspace) -> None:
    await with_nested(workspace)
    arm(workspace, line=20, name="threaded")
    room_of(workspace).slot.debugger = typist = Typist("n", "c")
    assert (await workspace.functions.call("threaded", {"number": 7})).value == 7
    assert typist.stops[0].at.function.endswith("work")
