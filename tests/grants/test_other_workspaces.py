"""A grant of one workspace does not affect another: not its functions, its settings, or its state."""

from pathlib import Path

import pytest

from agent_core.access.grants import Grants
from agent_core.access.grants.repositories import FAR, MOST_ENTRIES, RepositorySearch, repository_in
from agent_core.base.errors import WorkspaceError
from tests.functions.support import Room
from tests.kit.levels import IS_PORTABLE

from .support import STOPPED, human
from .test_repositories_that_a_call_leaves import made_by

STATE = (".knapper/state.db",)
SET_UP = ("knapper.toml", "functions/evil.py")
READS = '''\
from pathlib import Path


def peek(path: str) -> str:
    """Read a file."""
    return Path(path).read_text()
'''


def workspace(folder: Path, names: tuple[str, ...] = SET_UP + STATE) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("4711")
    return folder


async def grant(here: Room, **items: tuple[str, ...]) -> None:
    here.shop.granting.approver = human("yes")
    await here.save(READS, here.root / "functions" / "reads.py")
    await here.shop.grants.grant("peek", here.shop.grants.wanted(items))


async def never(here: Room, kind: str, item: str) -> None:
    """Assert that a human cannot grant this."""
    says = {"write": "it .*workspace", "read": "it .*state of a workspace"}[kind]
    verb = {"write": "writing", "read": "reading"}[kind]
    with pytest.raises(WorkspaceError, match=rf"can never be granted for {verb}: {says}"):
        await here.shop.grants.grant("peek", here.shop.grants.wanted({kind: (item,)}))


async def test_another_workspace_is_never_granted_for_writing(here: Room, tmp_path: Path) -> None:
    await here.save(READS, here.root / "functions" / "reads.py")
    for at, names in enumerate((STATE, SET_UP)):
        workspace(here.root / f"projects{at}" / "inner", (*names, "data/x.txt"))
        for below in ("", "/inner", "/inner/data", "/inner/data/x.txt", "/inner/deep/new/"):
            await never(here, "write", f"projects{at}{below}")
    other = workspace(tmp_path.parent / f"{tmp_path.name}-other", ("data/x.txt", *SET_UP))
    for item in (f"{other}/", f"{other}/data/", f"{other}/data/x.txt"):
        await never(here, "write", item)


async def test_what_would_make_a_folder_a_workspace_is_never_granted(here: Room) -> None:
    await here.save(READS, here.root / "functions" / "reads.py")
    for at, (present, missing) in enumerate(
        (
            ("functions/a.py", "knapper.toml"),
            ("knapper.toml", "functions/"),
            ("knapper.toml", "functions/new.py"),
            ("functions/a.py", ".knapper/"),
            ("notes.txt", ".Knapper/x"),
        )
    ):
        workspace(here.root / f"sub{at}", (present,))
        await never(here, "write", f"sub{at}/{missing}")


async def test_the_state_of_a_workspace_is_never_granted_for_reading(here: Room) -> None:
    await here.save(READS, here.root / "functions" / "reads.py")
    for at, state in enumerate((".knapper", ".Knapper", "a/b/.knapper")):
        workspace(here.root / f"data{at}" / "inner", (f"{state}/state.db",))
        for item in ("", "inner/", f"inner/{state}/", f"inner/{state}/state.db"):
            await never(here, "read", f"data{at}/{item}")


async def test_files_next_to_the_state_of_another_workspace_can_be_read_and_one_that_comes_takes_the_folder_away(
    here: Room,
) -> None:
    workspace(here.root / "other" / "inner", ("notes/a.txt", "knapper.toml", *STATE))
    await grant(here, read=("other/inner/notes/", "other/inner/knapper.toml", "data"))
    assert (await here.shop.call("peek", {"path": "other/inner/notes/a.txt"})).value == "4711"
    assert (
        await here.shop.call("peek", {"path": "other/inner/.knapper/state.db"})
    ).outcome == "raised"
    assert (await here.shop.call("peek", {"path": "data/1"})).value == "1"
    workspace(here.root / "data" / "inner")
    found = await here.shop.call("peek", {"path": "data/inner/.knapper/state.db"})
    assert (found.outcome, "`inner/.knapper`" in str(found.lacks)) == ("raised", True)


async def test_a_workspace_that_came_after_the_yes_is_not_written_to(here: Room) -> None:
    await made_by(here, "pass")
    for inner in (
        ("out",) if IS_PORTABLE else ("out", "out/a/b")
    ):  # the host opens each file by itself
        made = workspace(here.root / inner, SET_UP)
        found = await here.shop.call("make", {"number": 2})
        assert (found.outcome, "workspace" in str(found.lacks)) == ("raised", True)
        (made / "knapper.toml").unlink()


@pytest.mark.parametrize(
    ("body", "left"),
    [
        pytest.param('Path("out/a/.knapper").mkdir(parents=True)', ".knapper", id="state"),
        pytest.param(
            'Path("out/functions").mkdir()\n    Path("out/knapper.toml").touch()',
            "knapper.toml",
            id="settings",
        ),
    ],
)
async def test_a_workspace_that_a_call_makes_is_told_and_has_no_effect(
    here: Room, body: str, left: str
) -> None:
    found = await made_by(here, body)
    assert (found["outcome"], "a workspace" in str(found), left in str(found)) == (
        STOPPED,
        True,
        True,
    )
    assert repository_in(here.root / "out", FAR) == RepositorySearch()


async def test_the_workspace_itself_and_one_inside_another_are_granted_as_before(
    here: Room, tmp_path: Path
) -> None:
    workspace(tmp_path.parent, ("knapper.toml", "functions/a.py"))
    try:
        await grant(here, write=("data", "new/file.txt"))
        assert (await here.shop.call("peek", {"path": "data/1"})).value == "1"
    finally:
        (tmp_path.parent / "knapper.toml").unlink()


async def test_a_folder_for_reading_that_grew_too_large_is_granted_again_by_a_human_alone(
    here: Room,
) -> None:
    await grant(here, read=("data",))
    for at in range(MOST_ENTRIES + 10):
        (here.root / "data" / f"x{at}").touch()
    found = await here.shop.call("peek", {"path": "data/1"})
    assert (found.outcome, "--read" in str(found.lacks)) == ("raised", True)
    assert "its state can be read" in str(here.shop.granting.reach.doubts(Grants(read=("data/",))))
    await here.shop.grants.grant("peek", here.shop.grants.wanted({"read": ("data",)}))
    assert (await here.shop.call("peek", {"path": "data/1"})).value == "1"
