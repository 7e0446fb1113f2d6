"""Two folders at one database: a function made in one appears in the other, and no save is overwritten."""

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TypeAlias

import pytest

from agent_core import Workspace
from agent_core.access.grants import Grants
from agent_core.base.clock import Clock
from agent_core.base.errors import StorageError
from agent_core.registry.source import hash_of
from agent_core.storage import open_store
from sandbox import Sandbox
from tests.agents.workers import cluster
from tests.kit import Ask, Repeat, Say, Seen, Step, Wanted, scripted
from tests.kit.desk import VOWELS, another
from tests.kit.program import knapper
from tests.kit.waiting import until

VOWELS_TOO = another("count_more")
Opening: TypeAlias = Callable[[Path], AbstractAsyncContextManager[Workspace]]


def folder(root: Path) -> Path:
    """Make a workspace's folder."""
    (root / "functions").mkdir(parents=True)
    (root / "knapper.toml").touch()
    return root


def joined(root: Path, database: str) -> Path:
    """Join a folder, which is made if it is not there, to the database."""
    if not root.exists():
        folder(root)
    done = knapper("storage", "join", cwd=root, environment={"KNAPPER_STORAGE_URL": database})
    assert done.returncode == 0, done.stderr
    return root


@pytest.fixture
def opened(database: str, one_sandbox: Sandbox) -> Opening:
    """Open the workspace of a folder."""
    flags = {
        "storage.url": database,
        "memory.embedding": "none",
        "model.base_url": "http://127.0.0.1:9/v1",
    }
    return partial(Workspace.open, flags=flags, sandbox=one_sandbox)


@pytest.fixture
async def both(
    opened: Opening, database: str, tmp_path: Path
) -> AsyncIterator[tuple[Workspace, Workspace]]:
    """Two workspaces in separate folders; the second has joined the first."""
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(opened(folder(tmp_path / "one")))
        yield one, await stack.enter_async_context(opened(joined(tmp_path / "two", database)))


def file(workspace: Workspace, name: str = "grown.py") -> Path:
    return workspace.root / "functions" / name


async def makes(workspace: Workspace, name: str, code: str = "", module: str = "") -> None:
    """Create a function."""
    assert (
        await workspace.functions.create(name, code or another(name), *([module] if module else []))
    ).admitted


async def knows(workspace: Workspace, *names: str) -> None:
    """Wait until a workspace has these functions and no others."""

    async def look() -> list[str]:
        return [*workspace.functions.names()]

    await until(look, lambda found: found == sorted(names))


def codes(workspace: Workspace) -> list[str]:
    """Return the codes of the problems with its files."""
    return [problem.code for problem in workspace.rejected()]


async def test_what_changes_in_either_folder_comes_to_the_other(
    both: tuple[Workspace, Workspace],
) -> None:
    one, two = both
    await makes(one, "count_vowels", VOWELS)
    began = time.monotonic()
    await knows(two, "count_vowels")
    assert time.monotonic() - began < 1
    assert (await two.functions.call("count_vowels", {"text": "queueing"})).value == 5
    assert file(two).read_text() == file(one).read_text()
    await makes(two, "count_more")
    await knows(one, "count_more", "count_vowels")
    await one.functions.delete("count_vowels")
    await knows(two, "count_more")
    await two.functions.delete("count_more")
    await knows(one)
    await asyncio.gather(makes(one, "count_vowels", VOWELS), makes(two, "count_more"))
    for workspace in both:
        await knows(workspace, "count_more", "count_vowels")
    file(two, "maths.py").write_text(another("count_maths"))
    for workspace in both:  # the other may learn of it before this one has reloaded
        await knows(workspace, "count_maths", "count_more", "count_vowels")
    file(one, "maths.py").unlink()
    await knows(two, "count_more", "count_vowels")
    assert not file(two, "maths.py").exists()


@pytest.mark.slow
async def test_a_folder_that_vanishes_deletes_nothing_in_the_other(
    both: tuple[Workspace, Workspace],
) -> None:
    one, two = both
    await makes(one, "count_vowels", VOWELS, "count_vowels")
    await makes(one, "count_more", VOWELS_TOO, "count_more")
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


async def homes(workspace: Workspace) -> list[str]:
    """Return the modules of the functions that a workspace has."""
    functions = workspace.functions.registry.snapshot().functions
    return [function.module for function in functions.values()]


async def test_a_taken_name_is_kept_by_the_same_file_everywhere(
    opened: Opening, database: str, tmp_path: Path
) -> None:
    async with opened(folder(tmp_path / "one")) as one:
        file(one, "letters.py").write_text(VOWELS)
        await knows(one, "count_vowels")
        file(one, "a.py").write_text("def count_vowels(text: str) -> int:\n    return 0\n")
        await until(lambda: rejected(one), bool)
        async with opened(joined(tmp_path / "two", database)) as two:
            for workspace in (one, two):
                assert (
                    workspace.functions.registry.snapshot().functions["count_vowels"].module
                    == "letters"
                )
                assert codes(workspace) == ["name-clash"] * (workspace is one)
                assert len(await workspace.functions.history.versions("count_vowels")) == 1
            file(one, "letters.py").unlink()
            for workspace in (one, two):
                await until(lambda: homes(workspace), lambda found: found == ["a"])  # noqa: B023 - awaited at once
                assert not codes(workspace)
            found = await two.functions.history.versions("count_vowels")
            assert [version.row.module for version in found if version.hash] == ["letters", "a"]


async def test_what_changed_while_a_folder_was_closed_is_there_at_its_next_start_and_no_save_is_lost(
    opened: Opening, database: str, tmp_path: Path
) -> None:
    async with opened(folder(tmp_path / "one")) as one:
        await makes(one, "count_vowels", VOWELS)
    async with opened(joined(tmp_path / "two", database)) as two:
        assert [*two.functions.names()] == ["count_vowels"]
        await two.functions.delete("count_vowels")
        await makes(two, "count_more", VOWELS_TOO, "twice")
    async with opened(tmp_path / "one") as one:
        assert [*one.functions.names()] == ["count_more"]
        assert not file(one).exists()
    async with opened(tmp_path / "two") as two:
        await makes(two, "count_most", "", "twice")
        mine = file(one, "twice.py").read_text() + "\n# mine\n"
        file(one, "twice.py").write_text(mine)
        async with opened(tmp_path / "one") as one:
            assert [*one.functions.names()] == ["count_more", "count_most"]
            assert codes(one) == ["changed-elsewhere"]
            assert file(one, "twice.py").read_text() == mine
            theirs = file(one, "twice.py.theirs").read_text()
            assert theirs == file(two, "twice.py").read_text()
            file(one, "twice.py").write_text(f"{theirs}\n# mine\n")
            await until(lambda: rejected(one), lambda found: not found)
            await until(lambda: text(two, "twice.py"), lambda found: "# mine" in found)


async def rejected(workspace: Workspace) -> object:
    return workspace.rejected()


async def text(workspace: Workspace, name: str = "grown.py") -> str:
    return file(workspace, name).read_text()


async def test_a_folder_that_has_not_joined_is_refused(
    opened: Opening, database: str, tmp_path: Path
) -> None:
    async with open_store(database, clock=Clock(), workspace="another"):
        pass
    with pytest.raises(StorageError, match="another folder") as refusal:
        async with opened(folder(tmp_path / "one")):
            pass
    assert "knapper storage join" in refusal.value.fix


async def test_a_function_made_here_is_called_on_a_worker_there(
    opened: Opening, database: str, tmp_path: Path
) -> None:
    def play(seen: Seen) -> Step:
        if seen.answers:
            return Say(f"It is {seen.answers[0]}.")
        return Ask(Wanted("count_vowels", {"text": "queueing"}))

    with scripted([Repeat(play)]) as model:
        async with opened(folder(tmp_path / "here")) as here, cluster(database, model) as made:
            made.start(joined(tmp_path / "there", database))
            await made.at_work(1)
            await makes(here, "count_vowels", VOWELS)
            await made.say("a0", "Count.")
            await made.replied("a0", "It is 5.")


async def test_a_yes_holds_on_another_machine_in_the_same_place_with_its_entry_and_nowhere_else(
    opened: Opening, both: tuple[Workspace, Workspace], database: str, tmp_path: Path
) -> None:
    one, two = both
    await makes(one, "count_vowels", VOWELS)
    await knows(two, "count_vowels")
    await one.functions.grants.grant("count_vowels", Grants(read=("data/",)))
    shutil.copy(file(one, "grants.toml"), file(two, "grants.toml"))
    assert [await granted(one), await granted(two)] == [Grants(read=("data/",)), Grants()]
    one.root.rename(tmp_path / "the other machine")  # a machine without any of it takes its place
    folder(one.root)
    shutil.copy(file(two, "grants.toml"), file(one, "grants.toml"))
    async with opened(joined(one.root, database)) as again:
        await knows(again, "count_vowels")
        assert await granted(again) == Grants(read=("data/",))


async def granted(workspace: Workspace) -> Grants:
    """Return what the function may reach now."""
    snapshot = workspace.functions.registry.snapshot()
    return await workspace.functions.granting.in_force(snapshot.functions["count_vowels"], snapshot)


async def test_a_folder_that_joins_or_was_emptied_and_joins_again_gets_packages_and_functions(
    opened: Opening, both: tuple[Workspace, Workspace], database: str, tmp_path: Path
) -> None:
    one, _two = both
    file(one, "web").mkdir()
    file(one, "web/pages.py").write_text(VOWELS)
    file(one, "web/__init__.py").write_text(
        '"""Pages of the web."""\n\nfrom .pages import count_vowels\n'
    )
    await one.functions.reload()
    await makes(one, "count_more")
    for _ in range(2):
        async with opened(joined(tmp_path / "three", database)) as three:
            await knows(three, *one.functions.names())
            assert (
                file(three, "web/__init__.py").read_text()
                == file(one, "web/__init__.py").read_text()
            )
            await one.functions.reload()
        file(three).unlink()
    await knows(one, "count_more", "count_vowels")
    assert file(one, "web/__init__.py").is_file()


@pytest.mark.parametrize(
    ("saved", "is_kept"),
    [pytest.param(0, True, id="older"), pytest.param(2, False, id="newer", marks=pytest.mark.slow)],
)
async def test_an_older_text_that_is_saved_again_is_a_change_and_a_newer_one_is_only_behind(
    opened: Opening,
    both: tuple[Workspace, Workspace],
    database: str,
    tmp_path: Path,
    saved: int,
    is_kept: bool,
) -> None:
    one, _two = both
    root, names, texts = (
        tmp_path / "three",
        ["count_a", "count_b", "count_c", "count_d"],
        list[str](),
    )
    joined(root, database)
    for place, name in enumerate(names):
        await makes(one, name)
        texts.append(file(one).read_text())
        if place < 2:  # it receives the first two versions, then closes
            async with opened(root) as three:
                assert file(three).read_text() == texts[place]
    (root / "functions" / "grown.py").write_text(texts[saved])
    async with opened(root) as three:
        assert [*three.functions.names()] == names
        assert codes(three) == ["changed-elsewhere"] * is_kept
        assert file(three).read_text() == texts[saved if is_kept else -1]


async def test_two_programs_in_a_joined_folder_see_each_other(
    opened: Opening, both: tuple[Workspace, Workspace]
) -> None:
    one, two = both
    async with opened(two.root) as beside:
        names = ("count_a", "count_b", "count_c")
        for made, (maker, name) in enumerate(zip((one, two, beside), names, strict=True)):
            await makes(maker, name)
            for workspace in (one, two, beside):
                await knows(workspace, *names[: made + 1])
        file(two).write_text(file(two).read_text() + "\n# mine\n")
        await until(lambda: text(one), lambda found: "# mine" in found)
        for workspace in (one, two, beside):
            await workspace.functions.reload()
            assert workspace.rejected() == ()
        assert len(await one.store.module_history("grown")) == 4


@pytest.mark.slow
async def test_two_programs_in_a_folder_with_a_save_that_is_not_taken_have_what_is_made_elsewhere(
    opened: Opening, both: tuple[Workspace, Workspace], database: str, tmp_path: Path
) -> None:
    one, _two = both
    root = joined(tmp_path / "three", database)
    await makes(one, "count_vowels", VOWELS)
    async with opened(root):
        pass
    await makes(one, "count_more")
    (root / "functions" / "grown.py").write_text(f"{VOWELS}\n# mine\n")
    async with opened(root) as first, opened(root) as second:
        await makes(one, "count_most")
        for workspace in (first, second):
            await knows(workspace, "count_more", "count_most", "count_vowels")
            assert codes(workspace) == ["changed-elsewhere"]
        assert file(first).read_text() == f"{VOWELS}\n# mine\n"


@pytest.mark.slow
async def test_a_module_may_be_a_folder_here_and_a_file_there(
    opened: Opening, both: tuple[Workspace, Workspace]
) -> None:
    one, two = both
    file(one, "words").mkdir()
    file(one, "words/__init__.py").write_text(VOWELS)
    await knows(two, "count_vowels")
    assert file(two, "words.py").read_text() == VOWELS
    async with opened(two.root) as beside, opened(one.root) as last:
        for workspace in (beside, last, two, one):
            await workspace.functions.reload()
            assert [*workspace.functions.names()] == ["count_vowels"]
    assert await one.store.manifest() == {"words": hash_of(VOWELS)}
    judged = await one.store.readings()
    assert judged.keys() == {
        "functions/words/__init__.py",
        "functions/words.py",
    }  # neither is judged again
