"""`self.memory` in a function: the host reads and edits a granted block, and rejects any other."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from agent_core.base.clock import Clock
from agent_core.base.events import CallAnswered, Progress
from agent_core.functions.service import Author
from agent_core.memory.blocks import Blocks
from tests.conftest import OpenDesk
from tests.grants.support import human
from tests.kit.desk import Desk, of
from tests.kit.levels import lend
from tests.kit.steps import Ask, Say, Wanted

NOTES = '''
def note(self, block: str, text: str) -> str:
    """Keep a line, and give all of them.

    Args:
        block: The block.
        text: The line.
    """
    self.memory.append("human", text)
    return self.memory.read("human")


def pry(self) -> str:
    """Read a block that nobody granted."""
    return self.memory.read("persona")


def pause(self) -> str:
    """Keep a line, stay a while, and give all of them."""
    self.memory.append("human", "Likes: pie")
    self.progress(1, 2)
    import time

    time.sleep(0.7)
    return self.memory.read("human")


def rewrite(self) -> None:
    """Write a block anew."""
    self.memory.write("human", "Name: Ada")
    self.memory.replace("human", "Ada", "Ada Lovelace")


def twice(self) -> str:
    """Write a block anew, two times, and stay a while."""
    self.memory.write("human", "Mine: 1")
    self.memory.write("human", "Mine: 2")
    self.progress(1, 2)
    import time

    time.sleep(0.7)
    return "written"


def flood(self) -> None:
    """Edit a block without end."""
    for number in range(1_000):
        self.memory.write("human", str(number))
'''


@pytest.fixture(autouse=True)
def notes(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The functions, and the user's data folder outside of the workspace."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("XDG_DATA_HOME", str(home))
    lend(home)
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "notes.py").write_text(NOTES)


async def _call(desk: Desk, name: str) -> CallAnswered:
    (answered,) = of(CallAnswered, await desk.say(f"Call {name}."))
    return answered


def _asks(name: str, **arguments: str) -> list[Ask | Say]:
    return [Ask(Wanted(name, arguments)), Say("Done.")]


async def test_a_block_is_refused_until_it_is_granted_and_then_edited_within_bounds(
    at_desk: OpenDesk,
) -> None:
    note = _asks("note", block="human", text="Likes: pie")
    desk = await at_desk([*_asks("pry"), *note, *_asks("rewrite"), *_asks("flood")])
    answered = await _call(desk, "pry")
    assert answered.outcome == "raised"
    assert "knapper functions grant pry --block persona" in answered.text
    desk.workspace.functions.granting.approver = human("yes", "yes", "yes")
    assert "Likes: pie" in (await _call(desk, "note")).text
    assert (await _call(desk, "rewrite")).outcome == "returned"
    assert desk.agent.memory.blocks.memory["human"].lines == ["Name: Ada Lovelace"]
    changes = await desk.agent.memory.blocks.history("human")
    assert [change.by for change in changes[1:]] == ["function"] * 3
    assert "one call can edit memory 100 times" in (await _call(desk, "flood")).text


async def _while_it_runs(desk: Desk, act: Callable[[], Awaitable[object]]) -> CallAnswered | None:
    """Run `act` after the function's edit and before its return."""
    answered = None
    async for event in desk.agent.turn("Call it."):
        if isinstance(event, Progress):
            await act()
        if isinstance(event, CallAnswered):
            answered = event
    return answered


async def test_a_turn_that_lost_its_place_leaves_no_edit_of_a_function_behind(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk([*_asks("pause")[:1], Say("Here again.")])
    desk.workspace.functions.granting.approver = human("yes")
    store = desk.workspace._store
    # It goes on with the turn, because the other one does not.
    await _while_it_runs(desk, lambda: store.next(desk.agent.name, "somebody else"))
    (block,) = [row for row in await store.blocks(desk.agent.name) if row.label == "human"]
    assert (block.value, block.version) == ("", 1)
    assert desk.agent.memory.blocks.memory["human"].lines == []


async def test_an_edit_of_a_function_comes_on_disk_with_its_answer(at_desk: OpenDesk) -> None:
    desk = await at_desk(_asks("pause"))
    desk.workspace.functions.granting.approver = human("yes")
    store, seen = desk.workspace._store, list[str]()

    async def look() -> None:
        seen.extend(
            str(row.value) for row in await store.blocks(desk.agent.name) if row.label == "human"
        )

    answered = await _while_it_runs(desk, look)
    await look()
    assert answered is not None
    assert "Likes: pie" in answered.text
    assert ["Likes: pie" in value for value in seen] == [False, True]


async def test_no_edit_of_a_function_takes_away_what_somebody_else_wrote_meanwhile(
    at_desk: OpenDesk,
) -> None:
    desk = await at_desk(_asks("twice"))
    desk.workspace.functions.granting.approver = human("yes")
    beside = Blocks(
        desk.workspace._store, desk.agent.name, desk.agent.memory.blocks.memory, Clock()
    )
    await beside.load()

    async def write() -> None:
        await beside.commit(await beside.write("human", "Allergic to nuts", Author("human")))

    answered = await _while_it_runs(desk, write)
    assert answered is not None
    assert desk.agent.memory.blocks.memory["human"].lines == ["Allergic to nuts"]
    assert answered.text.count("was not made") == 1
