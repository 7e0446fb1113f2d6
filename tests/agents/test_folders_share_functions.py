"""Two folders at one database: a function made in one appears in the other, and no save is overwritten."""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from agent_core import Workspace
from agent_core.access.grants import Grants
from agent_core.base.clock import Clock
from agent_core.base.errors import StorageError
from agent_core.registry.source import hash_of
from agent_core.storage import open_store
from tests.agents.workers import cluster, until
from tests.kit import Ask, Repeat, Say, Seen, Step, Wanted, scripted
from tests.kit.desk import VOWELS, another
from tests.kit.program import knapper

VOWELS_TOO = another("count_more")


@pytest.fixture
async def both(database: str, tmp_path: Path) -> AsyncIterator[tuple[Workspace, Workspace]]:
    """Two workspaces in separate folders; the second has joined the first."""
    flags = {"storage.url": database, "memory.embedding": "none", "model.base_url": "http://127.0.0.1:9/v1"}
    async with AsyncExitStack() as stack:
        opened: list[Workspace] = []
        for name in ("one", "two"):
            root = tmp_path / name
            (root / "functions").mkdir(parents=True)
            (root / "knapper.toml").touch()
            if opened:
                join(root, database)
            opened.append(await stack.enter_async_context(Workspace.open(root, flags=flags)))
        yield opened[0], opened[1]


def two_folders(tmp_path: Path) -> list[Path]:
    roots = [tmp_path / name for name in ("one", "two")]
    for root in roots:
        (root / "functions").mkdir(parents=True)
        (root / "knapper.toml").touch()
    return roots


def join(root: Path, database: str) -> None:
    done = knapper("storage", "join", cwd=root, environment={"KNAPPER_STORAGE_URL": database})
    assert done.returncode == 0, done.stderr


def file(workspace: Workspace, name: str = "grown.py") -> Path:
    return workspace.root / "functions" / name


async def knows(workspace: Workspace, *names: str) -> None:
    """Wait until a workspace has these functions and no others."""

    async def look() -> list[str]:
        return [*workspace.functions.names()]

    await until(look, lambda found: found == sorted(names))


async def test_a_function_that_is_made_in_one_folder_is_called_in_the_other(both: tuple[Workspace, Workspace]) -> None:
    one, two = both
    assert (await one.functions.create("count_vowels", VOWELS)).admitted
    began = time.monotonic()
    await knows(two, "count_vowels")
    assert time.monotonic() - began < 1
    assert (await two.functions.call("count_vowels", {"text": "queueing"})).value == 5
    assert file(two).read_text() == file(one).read_text()


async def test_a_folder_that_vanishes_deletes_nothing_in_the_other(both: tuple[Workspace, Workspace]) -> None:
    one, two = both
    for name, code in (("count_vowels", VOWELS), ("count_more", VOWELS_TOO)):
        assert (await one.functions.create(name, code, name)).admitted
    await knows(two, "count_more", "count_vowels")
    away = (two.root / "functions").rename(two.root / "elsewhere")
    await two.functions.reload()
    await one.functions.delete("count_more")
    await two.functions.pull()
    assert not (two.root / "functions").exists()
    assert [*one.functions.names()] == ["count_vowels"]
    away.rename(two.root / "functions")
    await knows(two, "count_vowels")
    assert [*one.functions.names()] == ["count_vowels"]


async def test_changes_in_both_directions_come_together(both: tuple[Workspace, Workspace]) -> None:
    one, two = both
    assert (await one.functions.create("count_vowels", VOWELS)).admitted
    await knows(two, "count_vowels")
    assert (await two.functions.create("count_more", VOWELS_TOO)).admitted
    await knows(one, "count_more", "count_vowels")
    await one.functions.delete("count_vowels")
    await knows(two, "count_more")
    await two.functions.delete("count_more")
    await knows(one)


async def test_two_functions_that_are_made_at_once_are_both_there(both: tuple[Workspace, Workspace]) -> None:
    one, two = both
    made = await asyncio.gather(
        one.functions.create("count_vowels", VOWELS), two.functions.create("count_more", VOWELS_TOO)
    )
    assert [verdict.admitted for verdict in made] == [True, True]
    for workspace in both:
        await knows(workspace, "count_more", "count_vowels")


async def test_a_file_that_a_person_saves_or_removes_reaches_the_other_folder(
    both: tuple[Workspace, Workspace],
) -> None:
    one, two = both
    file(two, "maths.py").write_text(VOWELS)
    for workspace in both:  # the other may learn of it before this one has reloaded
        await knows(workspace, "count_vowels")
    file(one, "maths.py").unlink()
    await knows(two)
    assert not file(two, "maths.py").exists()


async def test_a_name_that_is_taken_is_kept_by_the_same_file_in_all_folders(database: str, tmp_path: Path) -> None:
    flags = {"storage.url": database, "memory.embedding": "none"}
    roots = two_folders(tmp_path)
    async with Workspace.open(roots[0], flags=flags) as one:
        file(one, "letters.py").write_text(VOWELS)
        await knows(one, "count_vowels")
        file(one, "a.py").write_text("def count_vowels(text: str) -> int:\n    return 0\n")
        await until(lambda: rejected(one), lambda found: bool(found))
        join(roots[1], database)
        async with Workspace.open(roots[1], flags=flags) as two:
            for workspace in (one, two):
                assert workspace.functions.registry.snapshot().functions["count_vowels"].module == "letters"
                assert [problem.code for problem in workspace.rejected()] == ["name-clash"]
                assert len(await workspace.functions.history.versions("count_vowels")) == 1
            file(one, "letters.py").unlink()
            for workspace in (one, two):
                await until(lambda: rejected(workspace), lambda found: not found)  # noqa: B023 - awaited at once
                assert workspace.functions.registry.snapshot().functions["count_vowels"].module == "a"
            found = await two.functions.history.versions("count_vowels")
            assert [version.row.module for version in found if version.hash] == ["letters", "a"]


async def test_what_changed_while_a_folder_was_closed_is_there_at_its_next_start(database: str, tmp_path: Path) -> None:
    flags = {"storage.url": database, "memory.embedding": "none"}
    roots = two_folders(tmp_path)
    async with Workspace.open(roots[0], flags=flags) as one:
        assert (await one.functions.create("count_vowels", VOWELS)).admitted
    join(roots[1], database)
    async with Workspace.open(roots[1], flags=flags) as two:
        assert [*two.functions.names()] == ["count_vowels"]
        await two.functions.delete("count_vowels")
        assert (await two.functions.create("count_more", VOWELS_TOO, "twice")).admitted
    async with Workspace.open(roots[0], flags=flags) as one:
        assert [*one.functions.names()] == ["count_more"]
        assert not file(one).exists()


async def test_a_save_of_a_module_that_was_changed_elsewhere_is_told_and_kept(database: str, tmp_path: Path) -> None:
    flags = {"storage.url": database, "memory.embedding": "none"}
    roots = two_folders(tmp_path)
    async with Workspace.open(roots[0], flags=flags) as one:
        assert (await one.functions.create("count_vowels", VOWELS)).admitted
    join(roots[1], database)
    async with Workspace.open(roots[1], flags=flags) as two:
        assert (await two.functions.create("count_more", VOWELS_TOO)).admitted
        mine = (roots[0] / "functions/grown.py").read_text() + "\n# mine\n"
        (roots[0] / "functions/grown.py").write_text(mine)
        async with Workspace.open(roots[0], flags=flags) as one:
            assert [*one.functions.names()] == ["count_more", "count_vowels"]
            [problem] = one.rejected()
            assert problem.code == "changed-elsewhere"
            assert file(one).read_text() == mine
            theirs = file(one, "grown.py.theirs")
            assert theirs.read_text() == file(two).read_text()
            file(one).write_text(f"{theirs.read_text()}\n# mine\n")
            await until(lambda: rejected(one), lambda found: not found)
            await until(lambda: text(two), lambda found: "# mine" in found)


async def rejected(workspace: Workspace) -> object:
    return workspace.rejected()


async def text(workspace: Workspace) -> str:
    return file(workspace).read_text()


async def test_a_folder_that_has_not_joined_is_refused(database: str, tmp_path: Path) -> None:
    async with open_store(database, clock=Clock(), workspace="another"):
        pass
    (tmp_path / "functions").mkdir()
    (tmp_path / "knapper.toml").touch()
    with pytest.raises(StorageError, match="another folder") as refusal:
        async with Workspace.open(tmp_path, flags={"storage.url": database}):
            pass
    assert "knapper storage join" in refusal.value.fix


async def test_a_function_made_here_is_called_by_an_agent_on_a_worker_elsewhere(database: str, tmp_path: Path) -> None:
    def play(seen: Seen) -> Step:
        if seen.answers:
            return Say(f"It is {seen.answers[0]}.")
        return Ask(Wanted("count_vowels", {"text": "queueing"}))

    here, there = tmp_path / "here", tmp_path / "there"
    (here / "functions").mkdir(parents=True)
    (here / "knapper.toml").touch()
    flags = {"storage.url": database, "memory.embedding": "none"}
    with scripted([Repeat(play)]) as model:
        async with Workspace.open(here, flags=flags) as workspace, cluster(database, model) as made:
            (there / "functions").mkdir(parents=True)
            (there / "knapper.toml").touch()
            join(there, database)
            made.start(there)
            await made.at_work(1)
            assert (await workspace.functions.create("count_vowels", VOWELS)).admitted
            await made.say("a0", "Count.")
            await made.replied("a0", "It is 5.")


async def test_a_yes_holds_on_another_machine_in_the_same_place_with_its_entry_and_nowhere_else(
    both: tuple[Workspace, Workspace], database: str, tmp_path: Path
) -> None:
    one, two = both
    assert (await one.functions.create("count_vowels", VOWELS)).admitted
    await knows(two, "count_vowels")
    await one.functions.grants.grant("count_vowels", Grants(read=("data/",)))
    shutil.copy(file(one, "grants.toml"), file(two, "grants.toml"))
    assert [await granted(one), await granted(two)] == [Grants(read=("data/",)), Grants()]
    one.root.rename(tmp_path / "the other machine")  # a machine without any of it takes its place
    (one.root / "functions").mkdir(parents=True)
    (one.root / "knapper.toml").touch()
    shutil.copy(file(two, "grants.toml"), file(one, "grants.toml"))
    join(one.root, database)
    async with Workspace.open(one.root, flags={"storage.url": database, "memory.embedding": "none"}) as again:
        await knows(again, "count_vowels")
        assert await granted(again) == Grants(read=("data/",))


async def granted(workspace: Workspace) -> Grants:
    """Return what the function may reach now."""
    snapshot = workspace.functions.registry.snapshot()
    return await workspace.functions.granting.in_force(snapshot.functions["count_vowels"], snapshot)


async def test_a_package_comes_to_a_folder_that_joins_as_a_package(
    both: tuple[Workspace, Workspace], database: str, tmp_path: Path
) -> None:
    one, _two = both
    file(one, "web").mkdir()
    file(one, "web/pages.py").write_text(VOWELS)
    file(one, "web/__init__.py").write_text('"""Pages of the web."""\n\nfrom .pages import count_vowels\n')
    await one.functions.reload()
    root = tmp_path / "three"
    (root / "functions").mkdir(parents=True)
    (root / "knapper.toml").touch()
    join(root, database)
    flags = {"storage.url": database, "memory.embedding": "none", "model.base_url": "http://127.0.0.1:9/v1"}
    async with Workspace.open(root, flags=flags) as three:
        await knows(three, *one.functions.names())
        assert file(three, "web/__init__.py").read_text() == file(one, "web/__init__.py").read_text()
        await one.functions.reload()
    assert file(one, "web/__init__.py").is_file()


async def test_a_folder_that_was_emptied_and_joins_again_gets_the_functions_back(
    both: tuple[Workspace, Workspace], database: str, tmp_path: Path
) -> None:
    one, _two = both
    assert (await one.functions.create("count_vowels", VOWELS)).admitted
    root = tmp_path / "three"
    flags = {"storage.url": database, "memory.embedding": "none", "model.base_url": "http://127.0.0.1:9/v1"}
    (root / "functions").mkdir(parents=True)
    (root / "knapper.toml").touch()
    for _ in range(2):
        join(root, database)
        async with Workspace.open(root, flags=flags) as three:
            await knows(three, "count_vowels")
        (root / "functions" / "grown.py").unlink()
    await knows(one, "count_vowels")


@pytest.mark.parametrize(("saved", "is_kept"), [pytest.param(0, True, id="older"), pytest.param(2, False, id="newer")])
async def test_an_older_text_that_is_saved_again_is_a_change_and_a_newer_one_is_only_behind(
    both: tuple[Workspace, Workspace], database: str, tmp_path: Path, saved: int, is_kept: bool
) -> None:
    one, _two = both
    root, names, texts = tmp_path / "three", ["count_a", "count_b", "count_c", "count_d"], list[str]()
    (root / "functions").mkdir(parents=True)
    (root / "knapper.toml").touch()
    join(root, database)
    flags = {"storage.url": database, "memory.embedding": "none"}
    for place, name in enumerate(names):
        assert (await one.functions.create(name, another(name))).admitted
        texts.append(file(one).read_text())
        if place < 2:  # it receives the first two versions, then closes
            async with Workspace.open(root, flags=flags) as three:
                assert file(three).read_text() == texts[place]
    (root / "functions" / "grown.py").write_text(texts[saved])
    async with Workspace.open(root, flags=flags) as three:
        assert [*three.functions.names()] == names
        assert [problem.code for problem in three.rejected()] == ["changed-elsewhere"] * is_kept
        assert file(three).read_text() == texts[saved if is_kept else -1]


async def test_two_programs_in_a_folder_that_has_joined_see_what_each_and_the_others_make(
    both: tuple[Workspace, Workspace], database: str
) -> None:
    one, two = both
    async with Workspace.open(two.root, flags={"storage.url": database, "memory.embedding": "none"}) as beside:
        for made, (maker, name) in enumerate(zip((one, two, beside), ("count_a", "count_b", "count_c"), strict=True)):
            assert (await maker.functions.create(name, another(name))).admitted
            for workspace in (one, two, beside):
                await knows(workspace, *("count_a", "count_b", "count_c")[: made + 1])
        file(two).write_text(file(two).read_text() + "\n# mine\n")
        await until(lambda: text(one), lambda found: "# mine" in found)
        for workspace in (one, two, beside):
            await workspace.functions.reload()
            assert workspace.rejected() == ()
        assert len(await one.store.module_history("grown")) == 4


async def test_two_programs_in_a_folder_with_a_save_that_is_not_taken_have_what_is_made_elsewhere(
    both: tuple[Workspace, Workspace], database: str, tmp_path: Path
) -> None:
    one, _two = both
    root, flags = tmp_path / "three", {"storage.url": database, "memory.embedding": "none"}
    (root / "functions").mkdir(parents=True)
    (root / "knapper.toml").touch()
    join(root, database)
    assert (await one.functions.create("count_vowels", VOWELS)).admitted
    async with Workspace.open(root, flags=flags):
        pass
    assert (await one.functions.create("count_more", VOWELS_TOO)).admitted
    (root / "functions" / "grown.py").write_text(f"{VOWELS}\n# mine\n")
    async with Workspace.open(root, flags=flags) as first, Workspace.open(root, flags=flags) as second:
        assert (await one.functions.create("count_most", another("count_most"))).admitted
        for workspace in (first, second):
            await knows(workspace, "count_more", "count_most", "count_vowels")
            assert [problem.code for problem in workspace.rejected()] == ["changed-elsewhere"]
        assert file(first).read_text() == f"{VOWELS}\n# mine\n"


async def test_a_module_that_is_a_folder_here_and_a_file_there_stays_in_both(
    both: tuple[Workspace, Workspace], database: str
) -> None:
    one, two = both
    file(one, "words").mkdir()
    file(one, "words/__init__.py").write_text(VOWELS)
    await knows(two, "count_vowels")
    assert file(two, "words.py").read_text() == VOWELS
    flags = {"storage.url": database, "memory.embedding": "none"}
    async with Workspace.open(two.root, flags=flags) as beside, Workspace.open(one.root, flags=flags) as last:
        for workspace in (beside, last, two, one):
            await workspace.functions.reload()
            assert [*workspace.functions.names()] == ["count_vowels"]
    assert await one.store.manifest() == {"words": hash_of(VOWELS)}
    judged = await one.store.readings()
    assert judged.keys() == {"functions/words/__init__.py", "functions/words.py"}  # neither is judged again
