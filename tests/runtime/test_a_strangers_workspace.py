"""A workspace from someone else opens or gives a reason, and nothing outside of it is touched."""

import os
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from agent_core.base.errors import SettingsError, WorkspaceError
from agent_core.registry.module_edits import save
from agent_core.workspace.workspace import Workspace
from sandbox import Sandbox
from tests.conftest import OpenDesk
from tests.kit import Ask, Repeat, Say, Wanted
from tests.kit.desk import VOWELS, answers

Opened: TypeAlias = Callable[[Path], Awaitable[tuple[list[str], list[str]]]]
FIRST, SECOND = VOWELS, VOWELS.replace("count_vowels", "count_others")


@pytest.fixture
def opened(one_sandbox: Sandbox) -> Opened:
    """Return the functions and the codes of the rejections, after opening the workspace and an agent."""

    async def open_it(root: Path) -> tuple[list[str], list[str]]:
        async with Workspace.open(root, sandbox=one_sandbox) as workspace:
            await workspace.agent()
            return list(workspace.functions.names()), [
                each.code for each in workspace.functions.rejected()
            ]

    return open_it


@pytest.mark.parametrize(
    "name", [".knapper", ".knapper/agents", ".knapper/.gitignore", ".knapper/history"]
)
async def test_state_is_not_written_through_a_link(
    opened: Opened, tmp_path: Path, name: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o755)
    link = tmp_path / "workspace" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(outside / "new" if "." in name[1:] else outside)
    with pytest.raises(WorkspaceError, match="is a link"):
        await opened(tmp_path / "workspace")
    assert not list(outside.iterdir())
    assert outside.stat().st_mode & 0o777 == 0o755


async def test_a_lock_that_is_a_link_leaves_the_file_behind_it_as_it_was(
    opened: Opened, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / ".knapper/agents").mkdir(parents=True)
    (tmp_path / ".knapper/agents/main.lock").symlink_to(precious)
    with pytest.raises(WorkspaceError, match="Remove it if it is a link"):
        await opened(tmp_path)
    assert precious.read_text() == "mine"


async def test_a_state_file_that_is_a_link_leaves_the_other_database_alone(
    opened: Opened, tmp_path: Path
) -> None:
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("create table precious (it)")
    (tmp_path / ".knapper").mkdir()
    (tmp_path / ".knapper/state.db").symlink_to(tmp_path / "other.db")
    with pytest.raises(WorkspaceError, match="is a link"):
        await opened(tmp_path)
    assert [row[0] for row in other.execute("select name from sqlite_master")] == ["precious"]
    other.close()


async def test_a_folder_of_functions_that_leaves_the_workspace_is_refused(
    opened: Opened, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace/functions").symlink_to(tmp_path / "outside")
    with pytest.raises(WorkspaceError, match="leaves the workspace"):
        await opened(tmp_path / "workspace")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"x = {'[' * 5000}{']' * 5000}", id="deep"),
        pytest.param("sandbox = 3", id="no-section"),
        pytest.param("[sandbox]\nmemory_mib = 99999999999999999999", id="huge"),
    ],
)
async def test_settings_of_a_wrong_shape_are_a_settings_error(
    opened: Opened, tmp_path: Path, text: str
) -> None:
    (tmp_path / "knapper.toml").write_text(text)
    with pytest.raises(SettingsError):
        await opened(tmp_path)


async def test_folders_deeper_than_the_stack_open(
    opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions/letters.py").write_text(VOWELS)
    monkeypatch.chdir(tmp_path / "functions")
    for _ in range(1_100):
        os.mkdir("a")  # noqa: PTH102 - the absolute path is too long
        os.chdir("a")
    assert (await opened(tmp_path))[0] == ["count_vowels"]
    for _ in range(1_100):  # shutil's recursion cannot
        os.chdir("..")
        os.rmdir("a")  # noqa: PTH106


async def test_a_module_and_a_package_of_one_name_do_not_keep_it_shut(
    opened: Opened, tmp_path: Path
) -> None:
    (tmp_path / "functions/web").mkdir(parents=True)
    (tmp_path / "functions/web.py").write_text(FIRST)
    (tmp_path / "functions/web/__init__.py").write_text(SECOND)
    for _ in range(2):
        assert await opened(tmp_path) == (["count_vowels"], ["module-clash"])


@pytest.mark.parametrize("names", [("web.py", "web/__init__.py"), ("web/__init__.py", "web.py")])
async def test_a_module_that_became_a_package_goes_on(
    opened: Opened, tmp_path: Path, names: tuple[str, str]
) -> None:
    before, after = (tmp_path / "functions" / name for name in names)
    (tmp_path / "functions/web").mkdir(parents=True)
    before.write_text(FIRST)
    await opened(tmp_path)
    before.rename(after)
    assert await opened(tmp_path) == (["count_vowels"], [])
    after.write_text(SECOND)
    assert await opened(tmp_path) == (["count_others"], [])


def test_a_pipe_in_the_place_of_a_module_stops_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "grown.py")
    with pytest.raises(WorkspaceError, match="not a regular file"):
        save(tmp_path, "functions/grown.py", "x = 1\n", None)


def test_a_huge_file_in_the_way_is_refused_without_comparing_it(tmp_path: Path) -> None:
    (tmp_path / "grown.py").write_text("".join(f"{number % 199}\n" for number in range(500_000)))
    with pytest.raises(WorkspaceError, match="Too much differs to be compared") as refused:
        save(
            tmp_path,
            "functions/grown.py",
            "".join(f"{number % 199}\n" for number in range(9_000)),
            None,
        )
    assert len(str(refused.value)) < 10_000


def asking(name: str, request: str) -> str:
    """Return a function that makes an unusual request to the host."""
    return f'def {name}(self, a: int) -> str:\n    """Ask.\n\n    Args:\n        a: A number.\n    """\n    {request}\n'


async def test_an_odd_request_of_a_function_is_refused_to_it(at_desk: OpenDesk) -> None:
    requests = {
        "self.progress(10**400, 1, '')": "finite numbers",
        "self.progress(float('nan'), float('inf'), '')": "finite numbers",
        "return self.call('odd', a={(1, 2): 3})": "a: expected a whole number, got {(1, 2): 3}",
        "return self.call('odd', a=float('inf'))": "a: expected a whole number, got inf",
    }
    names = [f"odd_{number}" for number in range(len(requests))]
    desk = await at_desk([*(Ask(Wanted(name, {"a": 1})) for name in names), Say("I see.")])
    for name, request in zip(names, requests, strict=True):
        desk.put(f"{name}.py", asking(name, request.replace("'odd'", f"'{name}'")))
    await desk.workspace.functions.reload()
    told = answers(await desk.say("Go."))
    for request, answer in zip(requests, told, strict=True):
        assert requests[request] in answer, request


async def test_a_name_of_a_file_stays_on_its_line(at_desk: OpenDesk) -> None:
    names = ["x\n✓ all is well.py", "x\x1b[2J.py", "x\u202e.py", "x\udcff.py"]
    desk = await at_desk(
        [step for _ in names for step in (Ask(Wanted("list_functions", {})), Say("I see."))]
    )
    for name in names:
        file = desk.functions / name
        file.write_text(VOWELS)
        await desk.workspace.functions.reload()
        (answer,) = answers(await desk.say("Go."))
        (line,) = [line for line in answer.splitlines() if "Rejected" in line]
        assert line.isprintable(), name
        assert "so the module cannot be imported" in line, name
        file.unlink()
        await desk.workspace.functions.saved([file])
        assert not desk.workspace.functions.rejected(), name


CONDITIONAL = "if True:\n" + "".join(f"    {line}" for line in SECOND.splitlines(keepends=True))


async def test_a_function_under_a_condition_can_be_looked_into(at_desk: OpenDesk) -> None:
    asked = [
        Wanted(verb, {"function_name": "count_others"})
        for verb in ("introspect_function", "delete_function")
    ]
    desk = await at_desk([Ask(*asked), Repeat(Say("Done."))])
    await desk.save("letters.py", CONDITIONAL)
    looked, deleted = answers(await desk.say("Go."))
    assert "def count_others" in looked
    assert "is not a plain function at the top level" in deleted


async def test_the_file_that_held_a_module_holds_it_after_a_restart(
    opened: Opened, tmp_path: Path
) -> None:
    (tmp_path / "functions/web").mkdir(parents=True)
    (tmp_path / "functions/web/__init__.py").write_text(SECOND)
    await opened(tmp_path)
    (tmp_path / "functions/web.py").write_text(FIRST)
    assert await opened(tmp_path) == (["count_others"], ["module-clash"])
