"""A process was killed between the file and its rows: the next start finishes the change, under its author's name."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent_core.base.errors import LostLease, StorageError
from agent_core.functions.sandbox_client import SandboxClient
from agent_core.functions.service.plan import USER as USER_HERSELF
from agent_core.functions.service.plan import PlannedChange
from agent_core.registry.source import hash_of
from agent_core.storage import BeginWrite
from tests.functions.support import USER, Room, room
from tests.kit.desk import VOWELS

OTHER = VOWELS.replace("count_vowels", "count_more")
EDITED = VOWELS.replace("aeiou", "aieou")
BOTH = f"{VOWELS}\n\n{OTHER}"


async def crashed(
    root: Path, sandbox: SandboxClient, before: str | None, after: str | None
) -> None:
    """Create a workspace as a kill leaves it: the intent exists, the file is written, the rows are missing."""
    file = root / "functions" / "letters.py"
    file.parent.mkdir(exist_ok=True)
    if before is not None:
        file.write_text(before)
    async with room(root, sandbox) as here:
        version, expected = (
            hash_of(text) if text is not None else None for text in (after, before)
        )
        await here.store.apply([BeginWrite("functions/letters.py", version, after, expected)])
    file.write_text(after) if after is not None else file.unlink()


@pytest.mark.parametrize(
    ("before", "after", "by"),
    [
        pytest.param(None, VOWELS, {"count_vowels": "agent"}, id="created"),
        pytest.param(VOWELS, EDITED, {"count_vowels": "agent"}, id="changed"),
        pytest.param(
            VOWELS, BOTH, {"count_vowels": "human", "count_more": "agent"}, id="beside-a-humans"
        ),
    ],
)
async def test_verdict_and_version_of_a_finished_write_are_both_the_agents(
    tmp_path: Path, sandbox: SandboxClient, before: str | None, after: str, by: dict[str, str]
) -> None:
    await crashed(tmp_path, sandbox, before, after)
    async with room(tmp_path, sandbox) as here:
        rows = (await here.shop.list()).functions
        assert {row.name: row.source for row in rows} == by
        newest = (await here.shop.introspect("count_vowels")).versions[-1]
        assert (newest.by, newest.reason) == ("agent", "finished after an interruption")
        assert await here.store.open_writes() == []


async def test_a_file_that_an_agent_had_deleted_is_gone_in_its_name(
    tmp_path: Path, sandbox: SandboxClient
) -> None:
    await crashed(tmp_path, sandbox, VOWELS, None)
    async with room(tmp_path, sandbox) as here:
        assert here.shop.names() == []
        assert (await here.store.module_history("letters"))[-1].by == "agent"


def never_written(file: Path) -> None:
    file.write_text(VOWELS)


def saved_by_a_human(file: Path) -> None:
    file.write_text(BOTH)


@pytest.mark.parametrize("then", [never_written, saved_by_a_human], ids=lambda then: then.__name__)
async def test_a_write_that_was_not_done_is_given_up_and_the_file_stays(
    tmp_path: Path, sandbox: SandboxClient, then: Callable[[Path], None]
) -> None:
    await crashed(tmp_path, sandbox, VOWELS, EDITED)
    then(file := tmp_path / "functions" / "letters.py")
    text = file.read_text()
    async with room(tmp_path, sandbox) as here:
        assert file.read_text() == text
        rows = (await here.shop.list()).functions
        assert {row.source for row in rows} == {"human"}
        assert await here.store.open_writes() == []


async def test_an_agents_function_stays_its_own_when_a_human_saves_a_neighbour_while_nothing_runs(
    tmp_path: Path, sandbox: SandboxClient
) -> None:
    await crashed(tmp_path, sandbox, None, VOWELS)
    async with room(tmp_path, sandbox):
        pass
    (tmp_path / "functions" / "letters.py").write_text(BOTH)
    async with room(tmp_path, sandbox) as here:
        rows = (await here.shop.list()).functions
        assert {row.name: row.source for row in rows} == {
            "count_vowels": "agent",
            "count_more": "human",
        }


WORDS = {"words.py": VOWELS, "uses.py": f"from functions.words import count_vowels\n\n\n{USER}"}
LATER = {name: text.replace("count_vowels", "vowels_of") for name, text in WORDS.items()}


@pytest.mark.parametrize("written", [(), ("words.py",), ("uses.py",), ("words.py", "uses.py")])
@pytest.mark.parametrize("is_new", [False, True], ids=["changed", "a new file"])
async def test_files_of_one_change_are_all_put_back(
    tmp_path: Path, sandbox: SandboxClient, written: tuple[str, ...], *, is_new: bool
) -> None:
    folder = tmp_path / "functions"
    folder.mkdir()
    before = dict(WORDS)
    if is_new:
        before = {"words.py": f"{VOWELS}\n\n{OTHER}"}
    after = LATER if not is_new else {"words.py": VOWELS, "uses.py": OTHER}
    for name, text in before.items():
        (folder / name).write_text(text)
    async with room(tmp_path, sandbox) as here:
        intents = [
            BeginWrite(
                f"functions/{name}",
                hash_of(text),
                text,
                hash_of(before[name]) if name in before else None,
                is_part=True,
            )
            for name, text in after.items()
        ]
        await here.store.apply(intents)
    for name in written:
        (folder / name).write_text(after[name])
    async with room(tmp_path, sandbox) as here:
        assert {path.name: path.read_text() for path in folder.glob("*.py")} == before
        assert here.shop.rejected() == ()
        assert await here.store.open_writes() == []
        newest = (await here.shop.introspect("count_vowels")).versions
        assert len(newest) == 1, "nothing of it is in the history"


async def test_a_file_that_was_saved_after_the_crash_is_not_put_back(
    tmp_path: Path, sandbox: SandboxClient
) -> None:
    folder = tmp_path / "functions"
    folder.mkdir()
    for name, text in WORDS.items():
        (folder / name).write_text(text)
    async with room(tmp_path, sandbox) as here:
        await here.store.apply(
            [
                BeginWrite(
                    f"functions/{name}", hash_of(text), text, hash_of(WORDS[name]), is_part=True
                )
                for name, text in LATER.items()
            ]
        )
    saved = VOWELS.replace("Count the vowels", "Count all vowels")
    (folder / "words.py").write_text(saved)
    (folder / "uses.py").write_text(LATER["uses.py"])
    async with room(tmp_path, sandbox) as here:
        assert (folder / "words.py").read_text() == saved
        assert (folder / "uses.py").read_text() == WORDS["uses.py"]
        assert here.shop.rejected() == ()


@pytest.mark.parametrize("error", [StorageError("full"), LostLease()])
async def test_a_change_of_several_files_that_cannot_be_recorded_is_taken_back(
    here: Room, error: BaseException
) -> None:
    folder = here.root / "functions"
    for name, text in WORDS.items():
        await here.save(text, folder / name)
    plan = await here.shop.relocations.rename("count_vowels", "vowels_of", USER_HERSELF)

    async def record(made: PlannedChange) -> None:
        assert (folder / "words.py").read_text() == LATER["words.py"]
        raise error

    with pytest.raises(type(error)):
        await here.shop.carry_out(plan, record, USER_HERSELF)
    assert {path.name: path.read_text() for path in folder.glob("*.py")} == WORDS
    assert await here.store.open_writes() == []
    assert "count_vowels" in here.shop.names()


async def test_a_save_between_plan_and_change_is_in_the_change(here: Room) -> None:
    folder = here.root / "functions"
    for name, text in WORDS.items():
        await here.save(text, folder / name)
    plan = await here.shop.relocations.rename("count_vowels", "vowels_of", USER_HERSELF)
    more = f"{WORDS['uses.py']}\n\n{USER.replace('count_twice', 'count_thrice')}"
    (folder / "uses.py").write_text(more)
    made = await here.shop.finish(plan, USER_HERSELF)
    assert made.outcome == "returned"
    assert (folder / "uses.py").read_text() == more.replace("count_vowels", "vowels_of")
    assert "count_thrice" in here.shop.names()
