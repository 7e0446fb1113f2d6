"""A workspace is a folder with `knapper.toml`, found upward; on a read-only disk it is only read."""

import json
import os
from pathlib import Path

import pytest

from agent_core import Workspace
from agent_core.base.errors import NoWorkspace, WorkspaceError
from tests.interfaces.support import COUNT_VOWELS
from tests.kit import Say, scripted
from tests.kit.levels import require_functions
from tests.kit.program import knapper
from tests.kit.sources import function_text
from tests.kit.terminal import terminal

STRANGERS = 'import flask\n\n\ndef hello_http(request):\n    return "hi"\n'
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files away")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that is not in a workspace, with the home set to it."""
    (tmp_path / "knapper.toml").unlink()
    return tmp_path


def run(*arguments: str, cwd: Path, home: Path | None = None) -> tuple[int, str, str]:
    done = knapper(*arguments, cwd=cwd, environment={"HOME": str(home or cwd)})
    return done.returncode, done.stdout, done.stderr


def test_functions_of_somebody_else_are_not_taken_over(folder: Path) -> None:
    (folder / "functions").mkdir()
    (folder / "functions" / "main.py").write_text(STRANGERS)
    for arguments in (
        ("run", "--message", "hi"),
        ("functions", "call", "hello_http"),
        ("mcp",),
    ):
        code, out, err = run(*arguments, cwd=folder)
        assert (code, out) == (1, ""), arguments
        assert f"{folder} is not a workspace: it has no knapper.toml" in err
        assert "knapper init" in err
    with terminal("run", cwd=folder, environment={"HOME": str(folder)}) as screen:
        screen.wait_for("Make one here")
        screen.wait_for("then Enter")
        screen.answer("n", "Nothing was changed")
    assert [path.name for path in folder.iterdir() if not path.name.startswith(".cache")] == [
        "functions"
    ]
    with scripted([Say("Hm.")]) as model:
        says = ("run", "-y", "--base-url", model.base_url, "--model", "scripted", "--message", "hi")
        assert run(*says, cwd=folder)[:2] == (0, "Hm.\n")
    assert (folder / "knapper.toml").is_file()


def test_a_workspace_is_found_upward_and_files_stay_where_one_stands(folder: Path) -> None:
    run("init", cwd=folder)
    (below := folder / "src" / "deep").mkdir(parents=True)
    (below / "vowels.py").write_text(COUNT_VOWELS)
    (below / "note.txt").write_text("A note about cats.\n")
    code, out, err = run("functions", "list", "--json", cwd=below, home=folder)
    assert (code, err) == (0, "")
    assert "days_between" in {row["name"] for row in json.loads(out)["functions"]}
    assert run("functions", "check", "vowels.py", cwd=below, home=folder)[0] == 0
    assert (
        run("functions", "create", "count_vowels", "--file", "vowels.py", cwd=below, home=folder)[0]
        == 0
    )
    call = ("functions", "call", "count_vowels", "--args", '{"text": "queueing"}')
    assert run(*call, cwd=below, home=folder)[1] == "5\n"
    assert run("sources", "load", "note.txt", cwd=below, home=folder)[0] == 0
    assert sorted(path.name for path in below.iterdir()) == ["note.txt", "vowels.py"]
    code, _, err = run(
        "-C", ".", "functions", "list", cwd=below, home=folder
    )  # an option names one exactly
    assert code == 1
    assert f"{below} is not a workspace" in err
    assert f"knapper -C {folder}" in err
    assert run("init", cwd=below, home=folder)[0] == 0
    assert (below / "knapper.toml").is_file()
    assert "days_between" in run("functions", "list", cwd=below, home=folder)[1]
    (
        folder / "knapper.toml"
    ).unlink()  # functions next to the state of this program stay a workspace
    for place in (folder, folder / "src"):
        assert "days_between" in run("functions", "list", cwd=place, home=folder)[1]


def test_nothing_above_the_home_folder_is_looked_at(folder: Path) -> None:
    (folder / "knapper.toml").touch()
    (work := folder / "me" / "work").mkdir(parents=True)
    assert run("functions", "list", cwd=work, home=folder / "me")[0] == 1
    (folder / "me" / "knapper.toml").touch()
    assert run("functions", "list", cwd=work, home=folder / "me")[0] == 0


@needs_root
@pytest.mark.parametrize("planted", ["knapper.toml", ".knapper"])
def test_what_a_stranger_put_into_a_shared_folder_is_not_used(folder: Path, planted: str) -> None:
    (shared := folder / "shared").mkdir(mode=0o1777)
    (shared / "functions").mkdir()
    (shared / planted).mkdir() if planted == ".knapper" else (shared / planted).touch()
    for path in (shared / "functions", shared / planted):
        os.chown(path, 4711, 4711)
    (work := shared / "work").mkdir()
    for place in (work, shared):
        code, out, err = run("functions", "list", cwd=place, home=folder / "home")
        assert (code, out) == (1, ""), err
    assert run("init", cwd=shared, home=folder / "home")[0] == 1


async def test_a_library_makes_what_it_opens_and_finds_only_what_is_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "functions").mkdir()
    with pytest.raises(NoWorkspace, match=r"has no knapper\.toml"):
        Workspace.find(folder)
    async with Workspace.open(folder) as workspace:
        assert workspace.root == folder
    assert Workspace.find(folder) == folder
    (below := folder / "src").mkdir()
    monkeypatch.chdir(below)
    assert Workspace.find() == folder
    with pytest.raises(NoWorkspace):
        Workspace.find(below)
    (below / "file").touch()
    with pytest.raises(WorkspaceError, match="is a file"):
        Workspace.find(below / "file")


@needs_root
def test_a_folder_of_somebody_else_ends_the_search(folder: Path) -> None:
    (folder / "knapper.toml").touch()
    (work := folder / "theirs" / "work").mkdir(parents=True)
    os.chown(folder / "theirs", 4711, 4711)
    code, _, err = run("functions", "list", cwd=work, home=folder / "home")
    assert code == 1
    assert f"if you mean the workspace above and trust it: knapper -C {folder}" in err
    assert run("-C", str(folder), "functions", "list", cwd=work, home=folder / "home")[0] == 0


PLANTS = function_text(
    "water_plan(days: int) -> list",
    "Plan on which days of a month the plants in the garden get water.",
    "return [*range(1, 31, days)]",
)
SOMEBODY = 65_534


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A workspace with a state that this user cannot write: root can write all files except a foreign user's."""
    require_functions()
    (tmp_path / "functions").mkdir()
    (tmp_path / "functions" / "plants.py").write_text(PLANTS)
    assert knapper("functions", "reload", cwd=tmp_path).returncode == 0
    os.mkfifo(tmp_path / "functions" / "pipe.py")
    state = tmp_path / ".knapper"
    if os.geteuid() == 0:
        os.chown(state, SOMEBODY, SOMEBODY)
    else:
        (state / "state.db").chmod(0o400)
    return tmp_path


def content(root: Path) -> dict[str, tuple[int, bytes]]:
    paths = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return {str(path): (path.stat().st_mode, path.read_bytes()) for path in paths}


def test_what_only_looks_works_and_what_changes_something_says_why_it_cannot(closed: Path) -> None:
    before = content(closed)
    done = knapper("functions", "search", "water the garden", "--json", cwd=closed)
    assert "cannot be written to, so it is only read" in done.stderr
    assert [match["name"] for match in json.loads(done.stdout)["results"]] == ["water_plan"]
    listed = knapper("functions", "list", "--json", cwd=closed)
    assert [function["name"] for function in json.loads(listed.stdout)["functions"]] == [
        "water_plan"
    ]
    for words in (("audit",), ("show", "water_plan")):
        done = knapper("functions", *words, cwd=closed)
        assert (done.returncode, "water_plan" in done.stdout) == (0, True)
    assert content(closed) == before
    done = knapper("functions", "delete", "water_plan", cwd=closed)
    assert done.returncode == 1
    assert "belongs to" in done.stderr or "cannot be opened for writing" in done.stderr
    assert content(closed) == before
