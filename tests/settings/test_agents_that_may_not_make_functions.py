"""With `growth.create` off, agents are not offered functions that create or change functions; people still can."""

from pathlib import Path

from agent_core.workspace.workspace import Workspace
from tests.kit import Say, scripted

_MAKES = {"create_function", "edit_function", "delete_function"}


async def test_an_agent_is_not_offered_what_makes_functions(tmp_path: Path) -> None:
    (tmp_path / "functions").mkdir()
    with scripted([Say("Hello."), Say("Hello.")]) as model:
        flags = {
            "model.base_url": model.base_url,
            "model.name": "scripted",
            "memory.embedding": "none",
        }
        for creates in (True, False):
            async with Workspace.open(
                tmp_path, flags={**flags, "growth.create": creates}
            ) as workspace:
                agent = await workspace.agent()
                _ = [event async for event in agent.turn("Hello")]
        offered, withheld = ({*request.functions} for request in model.requests)
    assert offered >= _MAKES
    assert not withheld & _MAKES
    assert "list_functions" in withheld
