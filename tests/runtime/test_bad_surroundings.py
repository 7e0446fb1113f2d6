"""A damaged or full workspace: a clear message, and nothing lost."""

import resource
from pathlib import Path

import pytest

from agent_core.base.errors import KnapperError
from agent_core.base.messages import User
from agent_core.storage import SUMMARY
from agent_core.workspace.workspace import Workspace
from tests.conftest import OpenDesk
from tests.kit import Expect, Say, Seen, contains
from tests.kit import scripted as running
from tests.kit.desk import VOWELS, desk, ended
from tests.kit.postgres import Server, name_of


async def test_a_corrupt_state_file_is_put_aside_and_functions_still_load(tmp_path: Path) -> None:
    async with Workspace.open(tmp_path) as workspace:
        (tmp_path / "functions" / "letters.py").write_text(VOWELS)
        await workspace.functions.reload()
    state = tmp_path / ".knapper" / "state.db"
    state.write_bytes(b"this is not a database" * 500)
    async with Workspace.open(tmp_path) as workspace:
        assert "state.db" in workspace.recovered[0]
        assert workspace.functions.names() == ["count_vowels"]
    assert list(state.parent.glob("state.db.corrupt-*"))


async def test_a_module_whose_import_never_returns_is_rejected_and_the_others_work(
    at_desk: OpenDesk,
) -> None:
    at = await at_desk([], sandbox__wall_s=1)
    at.put("endless.py", "while True:\n    pass\n")
    at.put("letters.py", VOWELS)
    found = await at.workspace.functions.reload()
    assert [problem.where.path for problem in found.rejected] == ["functions/endless.py"]
    assert at.workspace.functions.names() == ["count_vowels"]


async def test_a_turn_whose_end_did_not_fit_on_the_disk_is_closed_before_the_next_one(
    tmp_path: Path,
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def cramped(seen: Seen) -> Say:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
        return Say("Lost.")

    try:
        with running([cramped, Say("Here.")]) as model:
            async with desk(tmp_path, model) as at:
                with pytest.raises(KnapperError):
                    await at.say("one")
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
                assert ended(await at.say("two")).reply == "Here."
                history = await at.agent.history()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [each.text for each in history if isinstance(each, User)] == ["one", "two"]


def alter(postgres: Server, database: str, table: str) -> None:
    """Make a table reject some kind of new rows, or accept them again."""
    postgres.execute(f"alter table knapper.{table}", name_of(database))


@pytest.mark.parametrize("sums_up", [False, True])
async def test_a_turn_that_a_full_database_cut_off_goes_on_when_it_has_room(
    tmp_path: Path, database: str, postgres: Server, sums_up: bool
) -> None:
    def cramped(seen: Seen) -> Say:
        alter(postgres, database, "entry add constraint room check (false) not valid")
        return Say("Lost.")

    with running([cramped, Expect(Say("Here."), contains("Go on with it"))]) as model:
        async with desk(tmp_path, model, storage__url=database) as at:
            agent = await at.workspace.agent("a0", answers=True)
            with pytest.raises(KnapperError):
                assert [event async for event in agent.turn("one")]
            alter(postgres, database, "entry drop constraint room")
            if sums_up:
                assert await agent.summarize()
            assert ended([event async for event in agent.turn(None)]).reply == "Here."
            assert [
                entry.payload["text"]
                for entry in await at.workspace.store.history("a0", kinds=("user",))
            ] == ["one"]


async def test_a_summary_whose_end_did_not_fit_into_the_database_is_no_turn_to_go_on_with(
    tmp_path: Path, database: str, postgres: Server
) -> None:
    with running([Say("One."), Say("Two."), Say("Three.")]) as model:
        async with desk(tmp_path, model, storage__url=database) as at:
            agent = await at.workspace.agent("a0", answers=True)
            assert await agent.ask("one") == "One."
            assert await agent.ask("two") == "Two."
            alter(postgres, database, "turn add constraint room check (state = 'open') not valid")
            with pytest.raises(KnapperError):
                await agent.summarize()
            alter(postgres, database, "turn drop constraint room")
            assert await agent.ask("three") == "Three."
            assert await at.workspace.store.due() == []
            kinds = ("user", "notice", SUMMARY)
            entries = await at.workspace.store.history("a0", kinds=kinds)
            assert [entry.kind for entry in entries] == ["user", "user", SUMMARY, "user"]
