"""Writes into a workspace: a link in an untrusted folder never redirects them."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_core.base.errors import ConfigError, KnapperError, SettingsError, WorkspaceError
from agent_core.base.plain_files import NotPlainError, add_to
from agent_core.base.settings import write_values
from agent_core.storage import prepare_state_dir
from agent_core.storage.folder import open_lock
from agent_core.views.faults import report_crash
from agent_core.workspace import scaffold as starters
from agent_core.workspace.agent_files import AgentFiles, file_problems, patterns_in_files
from agent_core.workspace.portable import write_file
from agent_core.workspace.presets import named, preset, text_of
from knapper.prompt.completion import KeptHistory
from knapper.shell.cli import main
from knapper_ext.server.guard import access_log
from tests.kit.program import knapper

Plant = Callable[[Path, Path], None]


def link(name: str, target: str) -> Plant:
    def plant(root: Path, outside: Path) -> None:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).symlink_to(outside / target)

    return plant


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    made = tmp_path / "outside"
    (made / "folder").mkdir(parents=True)
    return made


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    made.mkdir()
    return made


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("name", ["agents/main.lock", "access.log"])
def test_a_second_name_of_a_file_elsewhere_is_not_written_to(
    root: Path, outside: Path, name: str
) -> None:
    place = prepare_state_dir(root) / name
    place.parent.mkdir(exist_ok=True)
    (outside / "diary").write_text("dear diary")
    place.hardlink_to(outside / "diary")
    with pytest.raises(OSError, match="hard link"):
        os.close(open_lock(place))
    with pytest.raises(NotPlainError, match="hard link"):
        add_to(place, b"more")
    with pytest.raises(WorkspaceError, match="hard link"), access_log(place):
        pass
    assert (outside / "diary").read_text() == "dear diary"


@pytest.mark.parametrize("name", ["state.db", "state.db-wal"])
def test_a_state_with_a_second_name_elsewhere_is_used_once_it_has_none(
    root: Path, outside: Path, name: str
) -> None:
    (root / ".knapper").mkdir()
    (outside / "diary").write_text("dear diary")
    (root / ".knapper" / name).hardlink_to(outside / "diary")
    with pytest.raises(WorkspaceError, match="hard link") as refused:
        prepare_state_dir(root)
    command = refused.value.fix.partition(": ")[2]
    subprocess.run(["sh", "-c", command], check=True)
    prepare_state_dir(root)
    assert (outside / "diary").stat().st_nlink == 1


def test_descriptions_of_agents_and_groups_are_not_read_through_a_linked_folder(
    root: Path, outside: Path
) -> None:
    (outside / "folder" / "spy.toml").write_text('purpose = "Looks around."\n')
    for name in ("agents", "groups"):
        (root / name).symlink_to(outside / "folder")
    agents = AgentFiles(root, "main")
    assert agents.names() == {}
    problems = file_problems(root, agents)
    assert [problem.where.path for problem in problems] == ["agents/", "groups/"]
    assert all("is a link, which is not followed" in problem.message for problem in problems)
    with pytest.raises(ConfigError, match="put the folder itself or a copy"):
        agents.folder.must_hold("spy")


@pytest.mark.parametrize("name", ["agents", "groups", "helpers"])
def test_names_in_quotes_are_not_looked_for_through_a_linked_folder(
    root: Path, outside: Path, name: str
) -> None:
    (outside / "folder" / "spy.toml").write_text('functions = ["secret"]\n')
    (root / name).symlink_to(outside / "folder")
    with pytest.raises(ConfigError, match="is a link, which is not followed"):
        patterns_in_files(root)


def test_names_of_texts_are_not_listed_through_a_linked_folder(root: Path, outside: Path) -> None:
    (outside / "folder" / "spy.txt").write_text("x")
    (root / "personas").symlink_to(outside / "folder")
    with pytest.raises(SettingsError, match="is a link, or behind one"):
        named(root, "persona")


@pytest.mark.parametrize("folder", ["personas", "humans"])
@pytest.mark.parametrize("is_folder", [False, True], ids=["file", "folder"])
def test_a_text_of_an_agent_is_not_read_through_a_link_into_the_state_of_the_workspace(
    root: Path, folder: str, is_folder: bool
) -> None:
    (prepare_state_dir(root) / "private.txt").write_text("the token")
    if is_folder:
        (root / folder).symlink_to(".knapper")
    else:
        (root / folder).mkdir()
        (root / folder / "private.txt").symlink_to("../.knapper/private.txt")
    with pytest.raises(SettingsError, match="is a link, or behind one"):
        text_of(root, "persona" if folder == "personas" else "human", "private")


def test_instructions_are_not_read_through_a_link_into_the_state_of_the_workspace(
    root: Path,
) -> None:
    (prepare_state_dir(root) / "private.md").write_text("the token")
    (root / "presets").mkdir()
    (root / "presets" / "mine.toml").write_text('about = "x"\ninstructions = "i.md"\n')
    (root / "presets" / "i.md").symlink_to("../.knapper/private.md")
    with pytest.raises(SettingsError, match="is a link, or behind one"):
        preset(root, "mine")


@pytest.mark.parametrize(
    "plant",
    [
        pytest.param(link("functions", "folder"), id="the-folder-of-functions"),
        pytest.param(link("knapper.toml", "new.toml"), id="the-settings-to-nothing"),
    ],
)
def test_init_makes_nothing_through_a_link(root: Path, outside: Path, plant: Plant) -> None:
    plant(root, outside)
    with pytest.raises(WorkspaceError, match="is a link"):
        starters.create(root)
    assert everything(outside) == ["folder"]
    assert not (root / "knapper.toml").is_file()


def test_init_writes_over_nothing_that_is_put_there_meanwhile(
    root: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The place was checked; at the moment of writing it is a link."""
    opened = os.open

    def swap(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "text.py" and flags & os.O_CREAT:
            os.symlink(outside / "new.py", path, dir_fd=dir_fd)
        return opened(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swap)
    assert "functions/text.py" not in starters.create(root)
    assert everything(outside) == ["folder"]


def test_neither_the_state_folder_nor_the_file_of_a_crash_is_made_through_a_link(
    root: Path, outside: Path
) -> None:
    (root / ".knapper").symlink_to(outside / "folder")
    with pytest.raises(WorkspaceError, match="is a link"):
        prepare_state_dir(root)
    report_crash(RuntimeError("planted"), root, as_json=True)
    assert everything(outside) == ["folder"]


def test_settings_are_not_written_through_a_link(root: Path, outside: Path) -> None:
    (root / "knapper.toml").symlink_to(outside / "new.toml")
    with pytest.raises(KnapperError, match="is a link"):
        write_values(root, {"model.name": "m"})
    assert everything(outside) == ["folder"]


@pytest.mark.parametrize(
    "plant", [link(".knapper", "folder"), link(".knapper/history", "new")], ids=["folder", "file"]
)
def test_what_is_typed_is_not_kept_through_a_link(root: Path, outside: Path, plant: Plant) -> None:
    plant(root, outside)
    KeptHistory(root / ".knapper/history").store_string("my secret plan")
    if (root / ".knapper/history").is_symlink():
        with pytest.raises(NotPlainError):
            add_to(root / ".knapper/history", b"x")
    assert everything(outside) == ["folder"]


def test_a_file_that_is_saved_is_not_put_behind_a_link_of_the_folder(
    root: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    (root / "out").symlink_to(outside / "folder")
    with pytest.raises(KnapperError, match="is a link"):
        write_file("out/agent.json", "{}")
    assert everything(outside) == ["folder"]


def test_neither_functions_nor_an_agent_are_exported_behind_a_link_of_the_folder(
    root: Path, outside: Path
) -> None:
    starters.create(root)
    knapper("agents", "list", cwd=root)
    (root / "out").symlink_to(outside / "folder")
    done = knapper("functions", "export", "out/package", cwd=root)
    assert (done.returncode != 0, "is a link" in done.stderr) == (True, True)
    assert knapper("agents", "export", "main", "out/agent.json", cwd=root).returncode != 0
    assert everything(outside) == ["folder"]


def test_an_export_is_not_written_through_a_link_with_the_name_of_an_unfinished_one(
    root: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder may have such a link for every number that a process can have."""
    starters.create(root)
    monkeypatch.chdir(root)
    Path(f".out.{os.getpid()}.partial").symlink_to(outside)
    assert main(["functions", "export", "out", "--package", "pack"]) == 0
    assert everything(outside) == ["folder"]
    assert (root / "out/pyproject.toml").is_file()
