"""`self.memory` in a function: a granted block is read and edited by the host, any other is refused."""

from pathlib import Path

import pytest

from agent_core.base.events import CallAnswered
from tests.conftest import OpenDesk
from tests.grants.support import human
from tests.kit.desk import Desk, of
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


def rewrite(self) -> None:
    """Write a block anew."""
    self.memory.write("human", "Name: Ada")
    self.memory.replace("human", "Ada", "Ada Lovelace")
'''


@pytest.fixture(autouse=True)
def notes(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions, and the user's own data folder outside of the workspace."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("home")))
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "notes.py").write_text(NOTES)


async def _call(desk: Desk, name: str) -> CallAnswered:
    (answered,) = of(CallAnswered, await desk.say(f"Call {name}."))
    return answered


def _asks(name: str, **arguments: str) -> list[Ask | Say]:
    return [Ask(Wanted(name, arguments)), Say("Done.")]


async def test_a_granted_block_is_read_and_edited_by_a_function(at_desk: OpenDesk) -> None:
    desk = await at_desk([*_asks("note", block="human", text="Likes: pie"), *_asks("rewrite")])
    desk.workspace.workshop.granting.approver = human("yes", "yes")
    assert "Likes: pie" in (await _call(desk, "note")).text
    assert (await _call(desk, "rewrite")).outcome == "returned"
    assert desk.agent.memory.blocks.memory["human"].lines == ["Name: Ada Lovelace"]
    changes = await desk.agent.memory.blocks.history("human")
    assert [change.by for change in changes[1:]] == ["function"] * 3


async def test_a_block_without_a_grant_is_refused_with_the_way_to_it(at_desk: OpenDesk) -> None:
    desk = await at_desk(_asks("pry"))
    answered = await _call(desk, "pry")
    assert answered.outcome == "raised"
    assert "toolwright functions grant pry --block persona" in answered.text
