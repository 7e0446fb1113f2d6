"""One process per agent; a second one is told which process has it."""

import os
import re
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


def test_a_second_process_is_told_which_one_has_the_agent_until_that_is_killed(
    tmp_path: Path,
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(AgentBusy) as caught:
            lock_agent(tmp_path, "main")
        holder.kill()
    expected = rf"A turn of `main` runs in process {holder.pid} \(since \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d\)\."
    assert re.fullmatch(expected, caught.value.message)
    assert caught.value.fix == "Try again when it has ended, or interrupt it."
    with lock_agent(tmp_path, "main"):
        assert (tmp_path / "agents" / "main.lock").read_text(encoding="utf-8") == f"{os.getpid()}\n"


def test_a_lock_is_not_inherited_by_a_started_program(tmp_path: Path) -> None:
    with lock_agent(tmp_path, "main"):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        lock_agent(tmp_path, "main").close()
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("name", ["../main", "", "a" * 65, "main\n", "naïve"])
def test_a_name_that_cannot_be_an_agent_is_refused_before_a_file_is_made(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(UsageError, match="cannot be an agent's name"):
        lock_agent(tmp_path, name)
    assert list(tmp_path.iterdir()) == []


def test_what_is_in_the_way_of_a_lock_or_a_state_folder_is_named(tmp_path: Path) -> None:
    for name in ("agents", ".knapper"):
        (tmp_path / name).write_text("in the way", encoding="utf-8")
    with pytest.raises(WorkspaceError, match=r"main\.lock` cannot be made"):
        lock_agent(tmp_path, "main")
    with pytest.raises(WorkspaceError, match=r"\.knapper` cannot be made"):
        prepare_state_dir(tmp_path)


def test_a_lock_that_is_a_pipe_is_told_and_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    os.mkfifo(tmp_path / "agents" / "main.lock")
    with pytest.raises(WorkspaceError, match=r"main\.lock` cannot be made"):
        lock_agent(tmp_path, "main")


def test_a_state_folder_is_private_and_ignored_by_git_and_keeps_its_files(tmp_path: Path) -> None:
    folder = prepare_state_dir(tmp_path)
    assert (folder, folder.stat().st_mode & 0o777) == (tmp_path / ".knapper", 0o700)
    assert (folder / ".gitignore").read_text(encoding="utf-8") == "*\n"
    folder.chmod(0o755)
    (folder / ".gitignore").write_text("mine\n", encoding="utf-8")
    prepare_state_dir(tmp_path)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert (folder / ".gitignore").read_text(encoding="utf-8") == "mine\n"
