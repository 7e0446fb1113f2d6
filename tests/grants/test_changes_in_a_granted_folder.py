"""Changes that a function makes in a granted folder: alike at each level, by the kernel or by the host."""

import ctypes
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent_core.access.grants import Grants
from agent_core.base.errors import WorkspaceError
from tests.functions.support import Room
from tests.grants.support import human
from tests.kit.drawing import sampled
from tests.kit.levels import level_here
from tests.kit.sources import function_text

REPOSITORY = Path(__file__).resolve().parents[2]
CHANGES = "\n\n".join(
    [
        function_text(
            'change(self, how: str, path: str, other: str = "") -> str',
            "Change a path, and tell how that ended.",
            'import os, pathlib, shutil\nown = self.scratch / "own"\nown.write_text("own")\nways = {\n    '
            '"remove": lambda: os.remove(path),\n    "unlink": lambda: pathlib.Path(path).unlink(),\n    '
            '"rmdir": lambda: os.rmdir(path),\n    "rmtree": lambda: shutil.rmtree(path),\n    '
            '"rename": lambda: os.rename(path, other),\n    "replace": lambda: os.replace(path, other),\n    '
            '"mkdir": lambda: os.mkdir(path),\n    "makedirs": lambda: os.makedirs(path),\n    '
            '"looks": lambda: (os.path.islink(path), pathlib.Path(path).is_symlink(), os.lstat(path).st_size),\n    '
            '"entries": lambda: [(one.name, one.is_symlink(), one.stat(follow_symlinks=False).st_size)\n           '
            "             for one in os.scandir(path)],\n    "
            '"bytes": lambda: sorted(one.name for one in os.scandir(os.fsencode(path))),\n    '
            '"touch": lambda: os.utime(path, (1000, 1000)),\n    '
            '"touch by ns": lambda: os.utime(path, ns=(1000 * 10**9, 1000 * 10**9)),\n    '
            '"replace by own": lambda: os.replace(own, path),\n    "move own": lambda: shutil.move(own, path),\n    '
            '"rename to own": lambda: os.rename(path, own),\n    '
            '"move to own": lambda: (shutil.move(path, own), own.read_text())[1],\n    '
            '"try for long": lambda: [_attempt(lambda: os.remove(path)) for _ in range(20)][-1],\n    '
            '"update": lambda: open(path, "r+").close(),\n}\nreturn str(_attempt(ways[how]))',
        ),
        function_text(
            "_attempt(act: object) -> object",
            "Do something, and return the error if there is one.",
            "import errno\ntry:\n    return act()\nexcept OSError as error:\n    "
            'return f"{type(error).__name__}: {errno.errorcode.get(error.errno)} {error}"',
        ),
    ]
)


@pytest.fixture
async def granted(here: Room) -> Room:
    """A workspace in which a function may change `data/`; next to it is another folder."""
    await here.save(CHANGES)
    await here.shop.grants.grant("change", Grants(write=("data/",)))
    for name in ("data/keep", "data/old", "other"):
        (here.root / name).mkdir()
        (here.root / name / "precious").write_text(name)
    return here


async def change(room: Room, how: str, path: object, other: object = "") -> str:
    """Return how a change ended; a human would say no."""
    who = room.shop.granting.approver = human("no")
    report = await room.shop.call("change", {"how": how, "path": str(path), "other": str(other)})
    assert report.outcome == "returned", report
    asked = [item for question in who.asked for item in question.missing.write]
    assert how in {"mkdir", "makedirs"} or not any(item.startswith("data/") for item in asked), (
        asked
    )
    return str(report.value)


@pytest.mark.sampled
@pytest.mark.parametrize(
    "target",
    sampled(["../keep/precious", "../keep", "nothing", "../../other/precious", "/etc/hostname"], 3),
)
async def test_a_link_itself_is_removed_or_renamed_and_never_what_it_leads_to(
    granted: Room, target: str
) -> None:
    data = granted.root / "data"
    link, moved = data / "old/link", data / "old/moved"
    for how, path in (
        ("remove", "data/old/link"),
        ("unlink", link),
        ("rename", "data/old/link"),
        ("replace", link),
    ):
        link.symlink_to(target)
        assert await change(granted, "looks", path) == f"(True, True, {len(target)})", how
        told, is_moved = (
            await change(granted, how, path, "data/old/moved"),
            how in {"rename", "replace"},
        )
        is_refused = is_moved and told.startswith(
            "PermissionError: EACCES"
        )  # the kernel lets nobody make a link
        assert told == "None" or is_refused, (how, told)
        assert (link.is_symlink(), moved.is_symlink()) == (
            is_refused,
            is_moved and not is_refused,
        ), how
        link.unlink(missing_ok=True)
        assert sorted(one.name for one in data.iterdir()) == ["1", "2", "3", "keep", "old"], how
        moved.unlink(missing_ok=True)
    link.symlink_to(target)
    assert f"('link', True, {len(target)})" in await change(granted, "entries", "data/old")
    (data / "new").write_text("new")
    await change(
        granted, "replace", "data/new", "data/old/link"
    )  # to another folder: not at level `portable`
    assert await change(granted, "rmtree", "data/old") == "None"
    assert not (data / "old").exists()
    for name in ("data/keep", "other"):
        assert (granted.root / name / "precious").read_text() == name, name


async def test_a_file_takes_the_place_of_a_link_and_not_of_what_it_leads_to(granted: Room) -> None:
    data = granted.root / "data"
    (data / "link").symlink_to("keep/precious")
    (data / "new").write_text("new")
    assert await change(granted, "replace", "data/new", "data/link") == "None"
    assert ((data / "link").is_symlink(), (data / "link").read_text()) == (False, "new")
    assert (data / "keep/precious").read_text() == "data/keep"


async def test_no_link_leads_a_change_out_of_the_granted_folder(granted: Room) -> None:
    root = granted.root
    (root / "data/way").symlink_to("../other")
    (root / "data/out").symlink_to("/etc")
    (root / "data/link").symlink_to("keep")
    (root / "data/file").symlink_to("keep/precious")
    (root / "other/empty").mkdir()
    paths = [
        f"{start}data/{name}"
        for start in ("", f"{root}/")
        for name in ("way/", "way/../other/", "old/../../other/")
    ]
    for path in paths:
        for how, last in (
            ("remove", "precious"),
            ("rmdir", "empty"),
            ("mkdir", "new"),
            ("makedirs", "new/er"),
        ):
            assert "Error: " in await change(granted, how, f"{path}{last}"), (how, path)
        assert "Error: " in await change(granted, "rename", f"{path}precious", "data/stolen"), path
        assert "Error: " in await change(granted, "rename", "data/1", f"{path}given"), path
    for path in ("data/out/hostname", "data/out/../etc/hostname"):
        assert "Error: " in await change(granted, "remove", path), path
    for path in (
        "data/link/",
        "data/file/",
        "data/way/",
        "data/keep/..",
        "data/keep/.",
        "data/none/..",
    ):
        for how in ("remove", "rmdir"):
            assert "Error: " in await change(granted, how, path), (how, path)
    for path in ("data/link/", f"{root}/data/link/", "data/1/", f"{root}/data/1/"):
        assert "Error: " in await change(granted, "rename", path, "data/moved"), path
    assert "Error: " in await change(granted, "rename", "data/1", "data/moved/")
    assert sorted(one.name for one in (root / "other").iterdir()) == ["empty", "precious"]
    assert (root / "data/keep/precious").read_text() == "data/keep"
    assert sorted(one.name for one in (root / "data").iterdir()) == sorted(
        ["1", "2", "3", "file", "keep", "link", "old", "out", "way"]
    )


_RENAMEAT2, _EXCHANGE = 316, 2


async def test_a_parent_that_changes_places_with_a_link_all_the_time_loses_nothing_of_the_other(
    granted: Room,
) -> None:
    root, over = granted.root, threading.Event()
    (root / "data/way").symlink_to("../other")
    libc, one, other = ctypes.CDLL(None), f"{root}/data/old".encode(), f"{root}/data/way".encode()

    def swap() -> None:
        while not over.is_set():
            libc.syscall(_RENAMEAT2, -100, one, -100, other, _EXCHANGE)
            over.wait(0.0001)

    with ThreadPoolExecutor() as pool:
        swapping = pool.submit(swap)
        try:
            await change(granted, "try for long", "data/old/precious")
        finally:
            over.set()
            swapping.result()
    assert (root / "other/precious").read_text() == "other"


async def test_what_is_moved_between_scratch_and_a_granted_folder_is_copied_or_refused(
    granted: Room,
) -> None:
    file = granted.root / "data/1"
    for how, left in (("replace by own", "own"), ("rename to own", "")):
        told = await change(granted, how, "data/1")
        is_moved = (
            level_here() == "core" and told == "None"
        )  # there, both may be in one file system
        assert is_moved or told.startswith("OSError: EXDEV"), (how, told)
        assert (file.read_text() if file.exists() else "") == (left if is_moved else "1")
    for path in ("data/1", granted.root / "data/2", "data/new"):
        assert (await change(granted, "move own", path)).startswith(
            ("PermissionError", str(path))
        )  # for its times
        assert (granted.root / path).read_text() == "own"
    told = await change(granted, "move to own", "data/3")
    assert told == "3" or (granted.root / "data/3").read_text() == "3", told


async def test_new_folders_are_made_with_those_above_them(granted: Room) -> None:
    data = granted.root / "data"
    for path in ("data/p/q", data / "r/s", "data/p/t/u/"):
        assert await change(granted, "makedirs", path) == "None", path
        assert (granted.root / path).is_dir()
        assert (await change(granted, "makedirs", path)).startswith("FileExistsError"), path
    assert (await change(granted, "mkdir", "data/v/w")).startswith("FileNotFoundError")
    (data / "link").symlink_to("nothing")
    assert (await change(granted, "mkdir", "data/link")).startswith("FileExistsError")
    assert not (data / "nothing").exists()


async def test_times_are_set_as_given_or_refused_and_names_are_of_the_kind_of_the_path(
    granted: Room,
) -> None:
    assert await change(granted, "bytes", "data/keep") == "[b'precious']"
    file = granted.root / "data/1"
    before = file.stat().st_mtime
    for how in ("touch", "touch by ns"):
        told = await change(granted, how, "data/1")
        assert file.stat().st_mtime == (1000 if told == "None" else before), told
        assert told == "None" or told.startswith("PermissionError"), told


async def test_the_programs_own_folders_are_never_written(here: Room) -> None:
    await here.save(CHANGES)
    for place in (
        "sandbox/wire/",
        "knapper_ext/portable/",
        "agent_core/__init__.py",
        "meta_functions/",
        "",
    ):
        with pytest.raises(WorkspaceError, match="can never be granted for writing"):
            await here.shop.grants.grant("change", Grants(write=(f"{REPOSITORY}/{place}",)))
    here.shop.granting.approver = human("once")
    file = REPOSITORY / "agent_core/__init__.py"
    report = await here.shop.call("change", {"how": "update", "path": str(file)})
    assert str(report.value).startswith("PermissionError"), report
    assert here.shop.granting.approver.asked == []
    assert os.access(file, os.W_OK)
