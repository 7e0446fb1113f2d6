"""Links and races in `functions/` while the host writes: nothing outside is written, read as a module or removed."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from agent_core.base.errors import WorkspaceError
from agent_core.registry.module_edits import remove, save
from agent_core.registry.source import ModuleSource, hash_of, read_file

SECRET = "x = 'outside'\n"
ROUNDS = 0.2


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder outside of the workspace with a file that has a module's name."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "pages.py").write_text(SECRET)
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """`functions/`, with a folder in it."""
    (tmp_path / "functions" / "web").mkdir(parents=True)
    (tmp_path / "functions" / "web" / "pages.py").write_text("x = 1\n")
    return tmp_path / "functions"


@contextmanager
def _at_the_same_time(act: Callable[[], None]) -> Iterator[None]:
    stopped = threading.Event()

    def again() -> None:
        while not stopped.is_set():
            with suppress(OSError):
                act()

    thread = threading.Thread(target=again)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def _exchange_folder(root: Path, outside: Path) -> Callable[[], None]:
    """Alternate the folder and a link to the outside one at one name."""
    link = root.parent / "link"
    link.symlink_to(outside, target_is_directory=True)

    def act() -> None:
        (root / "web").rename(root.parent / "kept")
        link.rename(root / "web")
        (root / "web").rename(link)
        (root.parent / "kept").rename(root / "web")

    return act


def _exchange_file(root: Path, outside: Path) -> Callable[[], None]:
    """Alternate the file and a link to the outside one at one name."""

    def act() -> None:
        (root.parent / "next").symlink_to(outside / "pages.py")
        (root.parent / "next").replace(root / "web" / "pages.py")
        (root.parent / "next").write_text("x = 1\n")
        (root.parent / "next").replace(root / "web" / "pages.py")

    return act


RACES = pytest.mark.parametrize("race", [_exchange_folder, _exchange_file], ids=["folder", "file"])


def _for_a_while(act: Callable[[int], None]) -> int:
    done, end = 0, time.monotonic() + ROUNDS
    while time.monotonic() < end or done < 20:
        with suppress(WorkspaceError, OSError):
            act(done)
        done += 1
    return done


@RACES
def test_what_is_written_while_links_come_and_go_stays_inside(
    root: Path, outside: Path, race: Callable[[Path, Path], Callable[[], None]]
) -> None:
    def write(number: int) -> None:
        save(root, f"functions/web/new_{number}.py", "x = 2\n", None)
        save(root, "functions/web/pages.py", "x = 1\n", hash_of("x = 1\n"))

    with _at_the_same_time(race(root, outside)):
        assert _for_a_while(write) >= 20
    assert [path.name for path in outside.iterdir()] == ["pages.py"]
    assert (outside / "pages.py").read_text() == SECRET


@RACES
def test_what_is_read_or_removed_while_links_come_and_go_is_never_outside(
    root: Path, outside: Path, race: Callable[[Path, Path], Callable[[], None]]
) -> None:
    seen: set[str] = set()

    def read(_number: int) -> None:
        found = read_file(root, root / "web" / "pages.py")
        seen.add(found.text if isinstance(found, ModuleSource) else found.code)

    with _at_the_same_time(race(root, outside)):
        _for_a_while(read)
        assert SECRET not in seen
        (outside / "pages.py").write_text(
            "x = 1\n"
        )  # the same content, so that only the place distinguishes them
        _for_a_while(lambda _number: remove(root, "functions/web/pages.py", hash_of("x = 1\n")))
    assert (outside / "pages.py").exists()
