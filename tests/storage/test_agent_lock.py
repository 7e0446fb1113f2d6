"""One process per agent; a second one is told which process has it."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent_core.base.errors import AgentBusy, UsageError, WorkspaceError
from agent_core.storage import lock_agent, prepare_state_dir

HOLD = """
import sys, time
from pathlib import Path
from agent_core.storage import lock_agent
lock = lock_agent(Path(sys.argv[1]), "main")
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    process.stdout.close()
    return process


def test_a_second_process_is_told_which_one_has_the_agent(tmp_path: Path, holder: "subprocess.Popen[str]") -> None:
    with pytest.raises(AgentBusy) as caught:
        lock_agent(tmp_path, "main")
    holder.kill()
    holder.wait()
    expected = rf"Agent `main` is in use by process {holder.pid} \(since \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d\)\."
    assert re.fullmatch(expected, caught.value.message)
    assert caught.value.fix == "Use an agent of another name for a second conversation, or end that process."


def test_a_lock_ends_with_its_process_however_it_ends(tmp_path: Path, holder: "subprocess.Popen[str]") -> None:
    os.kill(holder.pid, signal.SIGKILL)
    holder.wait()
    with lock_agent(tmp_path, "main"):
        assert (tmp_path / "agents" / "main.lock").read_text(encoding="utf-8") == f"{os.getpid()}\n"


def test_a_lock_that_was_let_go_can_be_taken_again(tmp_path: Path) -> None:
    with lock_agent(tmp_path, "main"), pytest.raises(AgentBusy):
        lock_agent(tmp_path, "main")
    lock = lock_agent(tmp_path, "main")
    lock.close()
    lock.close()


def test_two_agents_of_one_workspace_are_locked_apart(tmp_path: Path) -> None:
    with lock_agent(tmp_path, "main"), lock_agent(tmp_path, "other"):
        assert sorted(file.name for file in (tmp_path / "agents").iterdir()) == ["main.lock", "other.lock"]


def test_a_lock_is_not_inherited_by_a_started_program(tmp_path: Path) -> None:
    with lock_agent(tmp_path, "main"):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        lock_agent(tmp_path, "main").close()
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("../main", id="climbs"),
        pytest.param("", id="empty"),
        pytest.param("a" * 65, id="too long"),
        pytest.param("main\n", id="line break"),
        pytest.param("naïve", id="not plain"),
    ],
)
def test_a_name_that_cannot_be_an_agent_is_refused_before_a_file_is_made(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be an agent's name"):
        lock_agent(tmp_path, name)
    assert list(tmp_path.iterdir()) == []


def test_a_lock_where_no_folder_can_be_made_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "agents").write_text("in the way", encoding="utf-8")
    with pytest.raises(WorkspaceError, match=r"main\.lock` cannot be made"):
        lock_agent(tmp_path, "main")


def test_the_state_folder_is_private_and_ignored_by_git(tmp_path: Path) -> None:
    folder = prepare_state_dir(tmp_path)
    assert folder == tmp_path / ".knapper"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / ".gitignore").read_text(encoding="utf-8") == "*\n"


def test_a_state_folder_that_is_there_keeps_its_files_and_becomes_private(tmp_path: Path) -> None:
    (tmp_path / ".knapper").mkdir(mode=0o755)
    (tmp_path / ".knapper" / ".gitignore").write_text("mine\n", encoding="utf-8")
    folder = prepare_state_dir(tmp_path)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / ".gitignore").read_text(encoding="utf-8") == "mine\n"


def test_a_state_folder_that_cannot_be_made_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / ".knapper").write_text("in the way", encoding="utf-8")
    with pytest.raises(WorkspaceError, match=r"\.knapper` cannot be made"):
        prepare_state_dir(tmp_path)
