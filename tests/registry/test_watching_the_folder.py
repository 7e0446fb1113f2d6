"""Every kind of change to a file in the folder is noticed, at once or by a scan."""

import asyncio
import os
import shutil
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from agent_core.registry.folder_access import scan
from agent_core.registry.module_edits import save
from agent_core.registry.watch import Watcher


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "functions"
    folder.mkdir()
    (folder / "a.py").write_text("x = 1\n")
    (folder / "web").mkdir()
    (folder / "web" / "b.py").write_text("x = 1\n")
    return folder


@pytest.fixture
async def watcher(root: Path) -> AsyncIterator[Watcher]:
    async with Watcher(root, rescan_s=3600) as running:  # events alone must suffice
        assert running.is_live
        yield running


async def seen(watcher: Watcher, wanted: set[Path]) -> set[Path]:
    """Return everything that was reported until all of `wanted` was."""
    found: set[Path] = set()
    async with asyncio.timeout(10):
        while not wanted <= found:
            found |= await anext(aiter(watcher))
    return found


def write_in_place(root: Path) -> set[Path]:
    (root / "a.py").write_text("x = 2\n")
    return {root / "a.py"}


def replace_through_a_temporary_file(root: Path) -> set[Path]:
    (root / ".a.py.swp").write_text("x = 2\n")
    (root / ".a.py.swp").replace(root / "a.py")
    return {root / "a.py"}


def move_in_from_elsewhere(root: Path) -> set[Path]:
    (root.parent / "made.py").write_text("x = 2\n")
    (root.parent / "made.py").replace(root / "web" / "made.py")
    return {root / "web" / "made.py"}


def rename(root: Path) -> set[Path]:
    (root / "a.py").rename(root / "c.py")
    return {root / "a.py", root / "c.py"}


def delete(root: Path) -> set[Path]:
    (root / "web" / "b.py").unlink()
    return {root / "web" / "b.py"}


def link(root: Path) -> set[Path]:
    os.link(root / "a.py", root / "linked.py")
    return {root / "linked.py"}


def save_like_the_agent(root: Path) -> set[Path]:
    save(root, "functions/deep/er/new.py", "x = 1\n", None)
    return {root / "deep" / "er" / "new.py"}


def make_a_folder_with_files(root: Path) -> set[Path]:
    shutil.copytree(root / "web", root / "copied" / "deep")
    return {root / "copied" / "deep" / "b.py"}


def rename_a_folder(root: Path) -> set[Path]:
    (root / "web").rename(root / "net")
    return {root / "web" / "b.py", root / "net" / "b.py"}


def move_a_folder_away(root: Path) -> set[Path]:
    (root / "web").rename(root.parent / "web")
    return {root / "web" / "b.py"}


def delete_a_folder(root: Path) -> set[Path]:
    shutil.rmtree(root / "web")
    return {root / "web" / "b.py"}


WAYS = [
    write_in_place,
    replace_through_a_temporary_file,
    move_in_from_elsewhere,
    rename,
    delete,
    link,
    save_like_the_agent,
    make_a_folder_with_files,
    rename_a_folder,
    move_a_folder_away,
    delete_a_folder,
]


@pytest.mark.parametrize("change", WAYS, ids=lambda change: change.__name__)
async def test_a_change_is_told_by_the_kernel_and_found_by_a_scan(
    root: Path, watcher: Watcher, change: Callable[[Path], set[Path]]
) -> None:
    before = scan(root, {})
    wanted = await asyncio.to_thread(change, root)
    found = await seen(watcher, wanted)
    assert all(path.suffix == ".py" and not path.name.startswith(".") for path in found)
    after = scan(root, before.stamps)
    assert after.changed | after.removed == wanted
    assert scan(root, after.stamps).changed == frozenset()


async def test_what_no_event_told_is_found_by_looking(root: Path) -> None:
    async with Watcher(root, rescan_s=0.05) as watcher:
        watcher.is_live = True
        watcher._observer.unschedule_all()  # as if the kernel had dropped all events
        assert await seen(watcher, write_in_place(root)) == {root / "a.py"}


async def test_a_folder_made_later_is_watched_from_then_on(root: Path, watcher: Watcher) -> None:
    await seen(watcher, await asyncio.to_thread(make_a_folder_with_files, root))
    path = root / "copied" / "deep" / "b.py"
    path.write_text("x = 3\n")
    assert path in await seen(watcher, {path})


async def test_what_is_queued_comes_as_one_batch(root: Path, watcher: Watcher) -> None:
    paths = tuple(root / f"m{n}.py" for n in range(3))
    for path in paths:
        watcher.note((path,))
    assert await anext(aiter(watcher)) == frozenset(paths)


async def test_caches_hidden_files_and_other_endings_are_not_told(
    root: Path, watcher: Watcher
) -> None:
    (root / "__pycache__").mkdir()
    for name in ("__pycache__/a.py", ".hidden.py", "notes.txt"):
        (root / name).write_text("x")
    assert await seen(watcher, write_in_place(root)) == {root / "a.py"}


async def test_a_slow_writer_is_seen_when_it_has_closed_the_file(
    root: Path, watcher: Watcher
) -> None:
    with (root / "slow.py").open("w") as file:
        file.write("x = ")
        file.flush()
        assert await seen(watcher, write_in_place(root)) == {root / "a.py"}
        file.write("1\n")
    assert await seen(watcher, {root / "slow.py"}) == {root / "slow.py"}


def watching() -> int:
    """Return the number of watchdog threads; the event loop's own threads for blocking calls come and go."""
    return sum(type(thread).__module__.startswith("watchdog") for thread in threading.enumerate())


async def test_leaving_the_block_ends_the_iteration_and_the_threads(root: Path) -> None:
    async with Watcher(root) as watcher:
        assert watching()
        iteration = asyncio.ensure_future(anext(aiter(watcher)))
        await asyncio.sleep(0)
    with pytest.raises(StopAsyncIteration):
        await iteration
    assert not watching()


async def test_a_folder_that_comes_later_goes_and_comes_again_is_seen_each_time(
    tmp_path: Path,
) -> None:
    root = tmp_path / "later"
    async with Watcher(root, suffix=".toml", rescan_s=3600) as watcher:
        for text in (
            f"x = {number}" for number in range(6)
        ):  # the next folder often has the same inode
            root.mkdir()
            (root / "a.toml").write_text(text)
            (root / "a.py").write_text(text)
            assert await seen(watcher, {root / "a.toml"}) == {root / "a.toml"}
            (root / "b.toml").write_text(text)
            assert await seen(watcher, {root / "b.toml"}) == {root / "b.toml"}
            shutil.rmtree(root)
            assert await seen(watcher, {root / "a.toml", root / "b.toml"}) == {
                root / "a.toml",
                root / "b.toml",
            }


async def test_a_folder_that_cannot_be_watched_is_looked_at_instead(tmp_path: Path) -> None:
    root = tmp_path / "much" / "later"
    async with Watcher(root) as watcher:
        assert not watcher.is_live
        root.mkdir(parents=True)
        (root / "a.py").write_text("x = 1\n")
        assert await seen(watcher, {root / "a.py"}) == {root / "a.py"}


def test_a_scan_of_an_unchanged_folder_finds_nothing(root: Path) -> None:
    stamps = scan(root, {}).stamps
    assert set(stamps) == {root / "a.py", root / "web" / "b.py"}
    assert (scan(root, stamps).changed, scan(root, stamps).removed) == (frozenset(), frozenset())


def test_a_scan_shows_links_to_folders_and_broken_links(root: Path) -> None:
    (root / "shared").symlink_to(root.parent, target_is_directory=True)
    (root / "gone.py").symlink_to(root / "nowhere.py")
    assert {root / "shared", root / "gone.py"} <= scan(root, {}).changed
