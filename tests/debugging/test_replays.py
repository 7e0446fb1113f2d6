"""Replayed calls: equal if all input came through `self`; what was not recorded is reported."""

import re

import pytest

from agent_core.base.errors import UsageError
from agent_core.views.verdicts import replay_lines
from agent_core.workspace.workspace import Workspace

from .support import Typist, arm, room_of

PLAYING = '''\
import random
import time
import uuid


def roll(count: int) -> list[int]:
    """Roll dice."""
    return [random.randint(1, 6) for _ in range(count)]


def mixed(self, words: list[str]) -> str:
    """Mix the clock, another function, chance and the order of a set."""
    rolled = self.call("roll", count=3)
    return f"{self.now().isoformat()} {rolled} {random.random()} {list(set(words))}"


def unlike(count: int) -> str:
    """Use what nobody records."""
    return f"{uuid.uuid4()} {time.time()}"


def failing(number: int) -> float | str:
    """Fail."""
    return 1 / number
'''


async def play(workspace: Workspace) -> None:
    (workspace.root / "functions" / "playing.py").write_text(PLAYING, "utf-8")
    await workspace.functions.reload()


async def test_calls_give_the_same_bytes_again(workspace: Workspace) -> None:
    await play(workspace)
    for number in range(2):
        await workspace.functions.call("mixed", {"words": ["a", "b", f"c{number}"]})
        await workspace.functions.call("roll", {"count": number})
    await workspace.functions.call("failing", {"number": 0})
    calls = await workspace.functions.replays.calls()
    assert len(calls) == 5
    for call in calls:
        found = await workspace.functions.replays.replay(call.call)
        assert (found.same, found.lacking) == (True, ()), found


async def test_what_no_replay_can_give_is_said(workspace: Workspace) -> None:
    await play(workspace)
    await workspace.functions.call("unlike", {"count": 1})
    (call,) = await workspace.functions.replays.calls("unlike")
    found = await workspace.functions.replays.replay(call.call)
    assert not found.same
    assert [one.split(" (")[0] for one in found.lacking] == [
        "randomness of the system",
        "the clock",
    ]


async def test_after_a_change_the_difference_is_shown_and_the_old_version_is_as_it_was(
    workspace: Workspace,
) -> None:
    await play(workspace)
    await workspace.functions.call("roll", {"count": 3})
    (old,) = await workspace.functions.history.versions("roll")
    file = workspace.root / "functions" / "playing.py"
    file.write_text(PLAYING.replace("randint(1, 6)", "randint(10, 60)"), "utf-8")
    await workspace.functions.reload()
    (call,) = await workspace.functions.replays.calls("roll")
    now = await workspace.functions.replays.replay(call.call, "now")
    assert not now.same
    assert re.fullmatch(r"then: returned \[.*\]\nnow: returned \[.*\]", now.difference)
    for version in ("", "1", old.short):
        found = await workspace.functions.replays.replay(call.call, version)
        assert (found.same, found.number, found.version) == (True, 1, old.hash)
    assert (now.number, now.version == old.hash) == (2, False)
    with pytest.raises(
        UsageError, match=rf"has no version `3`. Its versions: 1 \({old.short}\), 2"
    ):
        await workspace.functions.replays.replay(call.call, "3")


async def test_a_version_that_stood_in_another_module_is_replayed_from_there(
    workspace: Workspace,
) -> None:
    await play(workspace)
    await workspace.functions.call("failing", {"number": 0})
    (call,) = await workspace.functions.replays.calls("failing")
    moved = PLAYING[PLAYING.index("def failing") :]
    folder = workspace.root / "functions"
    (folder / "playing.py").write_text(PLAYING.replace(moved, ""), "utf-8")
    (folder / "moved.py").write_text(moved.replace("1 / number", "number"), "utf-8")
    await workspace.functions.reload()
    found = await workspace.functions.replays.replay(
        call.call, "3"
    )  # it ends at 2 where it was recorded
    assert (found.outcome.value, found.number) == (0, 3)
    assert (await workspace.functions.replays.replay(call.call, "now")).outcome.value == 0
    assert (await workspace.functions.replays.replay(call.call, "1")).same


async def test_a_call_that_a_human_ends_at_the_debugger_is_not_kept(workspace: Workspace) -> None:
    await play(workspace)
    await workspace.functions.call("failing", {"number": 0})
    arm(workspace, line=0, name="roll")
    room_of(workspace).slot.debugger = Typist("q")
    assert (await workspace.functions.call("roll", {"count": 1})).outcome == "killed"
    (call,) = await workspace.functions.replays.calls(failed=True)
    assert call.function == "failing"
    arm(workspace, line=0, name="failing")
    room_of(workspace).slot.debugger = Typist("q")
    found = await workspace.functions.replays.replay(call.call)
    assert found.quit
    assert "".join(text for _, text in replay_lines(found)[0]).endswith(
        "version 1 " + f"({found.version[:8]}): ended at the debugger"
    )


async def test_a_replay_asks_nothing_anew_of_self(workspace: Workspace) -> None:
    await play(workspace)
    await workspace.functions.call("mixed", {"words": []})
    file = workspace.root / "functions" / "playing.py"
    file.write_text(PLAYING.replace('"roll", count=3', '"failing", number=1'), "utf-8")
    await workspace.functions.reload()
    (call,) = await workspace.functions.replays.calls("mixed")
    found = await workspace.functions.replays.replay(call.call, "now")
    assert found.outcome.error is not None
    assert found.outcome.error.type == "PermissionError"
    assert found.lacking[-1].startswith("an answer to self.call")


async def test_an_error_that_became_a_value_is_told_on_two_lines_and_another_long_text_as_a_diff(
    workspace: Workspace,
) -> None:
    await play(workspace)
    await workspace.functions.call("failing", {"number": 0})
    file = workspace.root / "functions" / "playing.py"
    file.write_text(PLAYING.replace("1 / number", 'print("so") or "A!"'), "utf-8")
    await workspace.functions.reload()
    (call,) = await workspace.functions.replays.calls("failing")
    found = await workspace.functions.replays.replay(call.call, "now")
    head, printed = found.difference.split("\n--- then\n")
    assert head == 'then: raised ZeroDivisionError: division by zero\nnow: returned "A!"'
    assert printed.endswith("\n+so")
    for last in ("x", "y"):
        file.write_text(
            PLAYING.replace("return 1 / number", f'return "a\\n" * 9 + "{last}"'), "utf-8"
        )
        await workspace.functions.reload()
        await workspace.functions.call("failing", {"number": 0})
    found = await workspace.functions.replays.replay(call.call + 1, "now")
    assert found.difference.endswith("\n a\n a\n-x\n+y")


async def test_a_call_in_which_a_human_changed_a_value_says_so(workspace: Workspace) -> None:
    await play(workspace)
    arm(workspace, line=0, name="failing")
    for lines, lacks in [
        (("p number", "c"), []),
        (("set number 2", "c"), ["values were changed at the debugger"]),
    ]:
        room_of(workspace).slot.debugger = Typist(*lines)
        await workspace.functions.call("failing", {"number": 1})
        assert (await workspace.functions.replays.calls("failing"))[0].lacking == tuple(lacks)


async def calls_of(workspace: Workspace) -> int:
    """Return how many calls are on record."""
    (row,) = (await workspace.functions.list("failing")).functions
    return int(row.calls)


async def test_a_call_that_a_human_stopped_in_counts_neither_for_nor_against_the_function(
    workspace: Workspace,
) -> None:
    await play(workspace)
    before = await calls_of(workspace)
    arm(workspace, line=0, name="failing")
    room_of(workspace).slot.debugger = Typist("c")
    await workspace.functions.call("failing", {"number": 0})
    assert await calls_of(workspace) == before
    room_of(workspace).slot.debugger = None
    await workspace.functions.call("failing", {"number": 0})
    assert await calls_of(workspace) == before + 1


GREEDY = '''\
def greedy(self, times: int) -> int:
    """Ask for many secrets by other names."""
    for number in range(times):
        try:
            self.secret(f"S{number}")
        except PermissionError:
            pass
    return times


def fetching(self, times: int) -> int:
    """Ask for nothing."""
    return times
'''


async def test_of_many_things_that_are_lacking_the_first_are_kept_and_the_rest_is_counted(
    workspace: Workspace,
) -> None:
    file = workspace.root / "functions" / "greedy.py"
    file.write_text(GREEDY, "utf-8")
    await workspace.functions.reload()
    await workspace.functions.call("greedy", {"times": 300})
    await workspace.functions.call("fetching", {"times": 300})
    (call,) = await workspace.functions.replays.calls("greedy")
    assert len(call.lacking) == 21
    assert call.lacking[-1] == "… and 280 more"
    wanted = "for number in range(times):\n        try:\n            self._channel.request(f'odd{number}', {})"
    asking = f"{wanted}\n        except PermissionError:\n            pass\n    return times"
    file.write_text(
        GREEDY.replace(
            'Ask for nothing."""\n    return times', f'Ask for nothing."""\n    {asking}'
        ),
        "utf-8",
    )
    await workspace.functions.reload()
    (call,) = await workspace.functions.replays.calls("fetching")
    found = await workspace.functions.replays.replay(call.call, "now")
    assert len(found.lacking) == 21
    assert found.lacking[-1] == "… and 280 more"
