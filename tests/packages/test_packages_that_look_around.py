"""Packages probe for optional files: a missing file is just missing, and is not reported if the package copes."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_core import Workspace
from agent_core.access.grants import Grants
from agent_core.functions.answers import CallReport
from tests.grants.support import Human, human
from tests.kit.levels import require_imports_ahead, require_namespaces
from tests.packages.support import placed, wheel

pytestmark = pytest.mark.usefixtures("lent")
LOOKS = '''
import glob
import io
import os
import posix
from pathlib import Path


def looked(way, path):
    """What comes of looking at a path, with its last name left out, or of the error."""
    try:
        return repr(_looked(way, path))
    except OSError as error:
        said = f"{type(error).__name__} {error.errno or error}"
        return said.replace(os.path.basename(path), "NAME")


def _looked(way, path):
    path = os.path.expanduser(path)
    match way:
        case "Path.exists":
            return Path(path).exists()
        case "Path.is_dir":
            return Path(path).is_dir()
        case "os.path.exists":
            return os.path.exists(path)
        case "os.path.isfile":
            return os.path.isfile(path)
        case "os.access":
            return os.access(path, os.R_OK)
        case "os.stat":
            return os.stat(path).st_mode
        case "os.lstat":
            return os.lstat(path).st_mode
        case "posix.stat":
            return posix.stat(path).st_mode
        case "open":
            return open(path).read()
        case "os.open":
            return os.open(path, os.O_RDONLY)
        case "os.listdir":
            return os.listdir(path)
        case "os.scandir":
            return [entry.name for entry in os.scandir(path)]
        case "os.path.realpath":
            return os.path.realpath(path, strict=True)
        case "settings":
            tried = ["settings.ini", "c:/settings/fonts", "~/_settings", "/etc/settings.types"]
            found = [os.path.exists(os.path.expanduser(path)) for path in tried]
            return [*found, glob.glob("settings*/*.ini")]
        case "glob":
            return glob.glob(path + "*")
        case "the host":
            return vars(io)["open"].asks.request("file_stat", path, None, is_try=False)
        case "the host, of a folder":
            return vars(io)["open"].asks.request("file_list", path, None, is_try=True)
        case "the host, of a file":
            return vars(io)["open"].asks.request("file_open", path, None, mode="r")
        case _:
            return open(path, "w").write("x")
'''
FUNCTION = '''

def look(who: str, ways: list[str], paths: list[str]) -> list[str]:
    """Look at paths, by itself or through a package.

    Args:
        who: Who looks, and whether the call fails.
        ways: How it looks at each.
        paths: The paths.

    Returns:
        What came of it.
    """
    import scout

    ask = scout.looked if who.endswith("package") else looked
    said = [ask(way, path) for path in paths for way in ways]
    if who.startswith("failing"):
        raise ValueError(said)
    return said
'''
TESTS = ("Path.exists", "Path.is_dir", "os.path.exists", "os.path.isfile", "os.access")
RAISING = ("os.stat", "os.lstat", "open", "os.open", "os.listdir", "os.scandir", "os.path.realpath")
BY_THE_HOST = ("the host", "the host, of a folder", "the host, of a file")
_ABSENT = {
    **dict.fromkeys(TESTS, "False"),
    **dict.fromkeys(RAISING, "FileNotFoundError 2"),
    "glob": "[]",
}


@dataclass(frozen=True)
class Room:
    """A workspace with a function that may import `scout`; `beads` belongs to another function."""

    workspace: Workspace
    root: Path
    env: Path
    own: Path
    other: Path

    async def look(
        self, ways: Iterable[str], *paths: Path | str, who: str = "package"
    ) -> CallReport:
        """Return the report of a call that probes in these ways."""
        arguments = {"who": who, "ways": [*ways], "paths": [*map(str, paths)]}
        return await self.workspace.functions.call("look", arguments)


@asynccontextmanager
async def _room(root: Path, asked: Human | None) -> AsyncIterator[Room]:
    own, other = placed(root, "scout", files={"scout.py": LOOKS}), placed(root, "beads")
    (root / "functions/look.py").write_text(
        LOOKS.replace("settings", "nothing").lstrip() + FUNCTION
    )
    (root / "notes.txt").write_text("mine")
    async with Workspace.open(root, approver=asked) as workspace:
        await workspace.functions.grants.grant("look", Grants(packages=("scout",)))
        yield Room(workspace, root, other.parent, own, other)


@pytest.fixture
async def room(index: Path, root: Path) -> AsyncIterator[Room]:
    """A workspace in which nobody can be asked."""
    async with _room(root, None) as room:
        yield room


async def test_nothing_tells_what_is_absent_in_the_state_of_the_workspace_or_granted_to_others(
    room: Room,
) -> None:
    require_namespaces("elsewhere `stat` reveals whether a path exists, as docs/platforms.md says")
    kept = room.root / ".knapper"
    (kept / "folder").mkdir()
    facts = room.env / f"{room.other.name}.json"
    ways = (*_ABSENT, "posix.stat", *BY_THE_HOST)
    nothing = [
        room.env / ".matplotlib-repo",
        room.own / "nothing",
        room.own / "deep/nothing",
        room.env / "far/nothing",
    ]
    for who in ("package", "itself"):
        report = await room.look(_ABSENT, *nothing, who=who)
        assert (report.value, report.lacks) == ([*_ABSENT.values()] * len(nothing), ""), who
        for place in (
            room.other,
            room.other / "beads.py",
            facts,
            kept / "state.db",
            kept / "folder",
        ):
            there = await room.look(ways, place, who=who)
            missing = await room.look(ways, place.parent / "missing", who=who)
            assert place.exists()
            assert (there.outcome, there.value) == ("returned", missing.value), (who, place)


async def test_what_a_package_has_is_there_and_nothing_is_written_next_to_it(room: Room) -> None:
    report = await room.look(["Path.exists", "open"], room.own / "scout.py")
    assert report.value[0] == "True"
    assert "def looked" in report.value[1]
    for place in (room.own / "new", room.env / "new"):
        report = await room.look(["write"], place)
        assert "PermissionError" in report.value[0]
        assert "can never be granted for writing" in report.lacks
        assert not place.exists()


async def test_a_refusal_is_told_when_the_call_fails_or_the_result_may_be_wrong(room: Room) -> None:
    for way, place, who in (
        ("open", "/sys/fs/cgroup/cpu.max", "package"),
        ("open", "/sys/fs/cgroup/cpu.max", "itself"),
        ("open", "/etc/hostname", "itself"),
        ("open", "notes.txt", "package"),
        ("os.listdir", "data", "package"),
        ("os.path.exists", "notes.txt", "package"),
    ):
        returned = await room.look([way], place, who=who)
        assert (returned.outcome, returned.lacks) == ("returned", ""), (way, place, who)
        failed = await room.look(
            [way], place, who="failing" if who == "itself" else "failing package"
        )
        assert failed.outcome == "raised", (way, place, who)
        assert place in f"{failed.error} {failed.lacks}", (way, place, who)
    for way, place, who in (
        ("write", "notes.txt", "package"),
        ("write", "/etc/hostname", "itself"),
        ("open", "notes.txt", "itself"),
    ):
        report = await room.look([way], place, who=who)
        assert (report.outcome, place in report.lacks) == ("returned", True), (way, place, who)
    report = await room.look(["os.path.exists", "Path.exists", "os.access"], "notes.txt")
    assert report.value == ["False"] * 3, "a package hears no of a file that is not granted"
    report = await room.look(["os.path.exists"], "notes.txt", who="itself")
    assert "PermissionError" in report.value[0]


async def test_a_person_is_asked_for_what_a_package_looks_for_only_if_the_call_or_the_function_names_it(
    root: Path,
) -> None:
    asked = human("once")
    async with _room(root, asked) as room:
        report = await room.look(["os.path.exists", "settings"], "notes.txt")
        assert report.lacks == ""
    assert report.value == ["True", "[False, False, False, False, []]"]
    assert [question.missing.read for question in asked.asked] == [("notes.txt",)]


async def test_a_package_that_keeps_open_from_its_import_still_asks_for_what_it_opens(
    index: Path, root: Path
) -> None:
    require_imports_ahead()
    kept = "OPENERS = {None: open}\n\n\ndef looked(way, path):\n    return OPENERS[None](path).read()\n"
    wheel(index, "scout", "1.0", {"scout.py": kept})
    (root / "functions").mkdir()
    (root / "functions/look.py").write_text(FUNCTION.replace("else looked", "else str").lstrip())
    (root / "notes.txt").write_text("mine")
    asked = human("once")
    async with Workspace.open(root, approver=asked) as workspace:
        await workspace.functions.grants.grant("look", Grants(packages=("scout",)))
        arguments = {"who": "package", "ways": ["open"], "paths": ["notes.txt"]}
        report = await workspace.functions.call("look", arguments)
        assert (await workspace.functions.granting.packages.listing()).packages[0].ahead == (
            "scout",
        )
    assert report.value == ["mine"]
    assert [question.missing.read for question in asked.asked] == [("notes.txt",)]


async def test_a_package_that_looks_before_it_writes_a_new_file_asks_once(
    index: Path, root: Path
) -> None:
    asked = human("once")
    async with _room(root, asked) as room:
        report = await room.look(["os.path.exists", "write"], "picture.png")
        assert (report.value, (room.root / "picture.png").read_text()) == (["False", "1"], "x")
        assert [question.missing for question in asked.asked] == [Grants(write=("picture.png",))]


async def test_what_a_package_may_not_look_at_is_told_from_nothing_by_no_error(room: Room) -> None:
    there, missing = (
        await room.look(["os.stat", "os.lstat"], "notes.txt"),
        await room.look(["os.stat", "os.lstat"], "no.txt"),
    )
    assert there.value == missing.value
