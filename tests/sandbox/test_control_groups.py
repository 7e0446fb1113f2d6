"""Control groups for memory, processes and CPU time: where they are created, their limits, and their removal."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import FunctionCall, Job, Killed, Raised, Sandbox
from sandbox.processes import cgroup
from sandbox.processes.cgroup import CgroupFolder, CgroupTree, Group, Share
from tests.attacks.world import REPOSITORY
from tests.kit.levels import require_functions
from tests.sandbox.support import modules

SHARE = Share(1 << 30, 50, 1.5)
V1 = "31 23 0:2 / /cg/memory rw - cgroup cgroup rw,memory\n32 23 0:3 / /cg/pids\\040here rw - cgroup cgroup rw,pids\n"
V2 = "41 23 0:9 / /cg rw - cgroup2 cgroup2 rw,nsdelegate\n"


def system(tmp_path: Path, own: str, mounts: str, user: int = 0) -> CgroupTree:
    """Return a machine whose control groups are folders."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(own)
    (tmp_path / "proc/self/mountinfo").write_text(mounts)
    return CgroupTree(tmp_path, user)


def group(folder: Path, **files: str) -> Path:
    """Create a group as a folder with the kernel's files; a double underscore stands for a dot."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in ({"cgroup__procs": ""} | files).items():
        folder.joinpath(name.replace("__", ".")).write_text(text)
    return folder


def delegated(folder: Path) -> Path:
    """Mark the group as delegated to its user."""
    try:
        os.setxattr(folder, "user.delegate", b"1")
    except OSError:
        pytest.skip("this file system keeps no marks")
    return folder


def _give(folder: Path, user: int) -> None:
    try:
        os.chown(folder, user, -1)
    except PermissionError:
        pytest.skip("only root can give a folder to another user")


def settings(made: Group) -> dict[str, str]:
    """Return what was written into a group's folders."""
    return {file.name: file.read_text() for folder in made.folders for file in folder.iterdir()}


def test_version_1_at_the_root_of_each_hierarchy_has_every_limit_and_no_swap(
    tmp_path: Path,
) -> None:
    here = system(tmp_path, "4:memory:/\n8:pids:/\n", V1)
    group(tmp_path / "cg/memory")
    group(tmp_path / "cg/pids here")
    made = cgroup.make(SHARE, here)
    assert dict(made.active_controllers) == {"memory": "v1", "pids": "v1"}
    assert [name for name, _why in made.missing] == ["cpu"]
    assert settings(made) == {"memory.limit_in_bytes": str(1 << 30), "pids.max": "50"}


def test_version_2_below_what_was_delegated_has_every_limit(tmp_path: Path) -> None:
    here = system(tmp_path, "0::/user/app/mine\n", V2)
    all_three = "cpu memory pids\n"
    delegated(
        group(
            tmp_path / "cg/user", cgroup__controllers=all_three, cgroup__subtree_control=all_three
        )
    )
    for below in ("app", "app/mine"):
        group(
            tmp_path / "cg/user" / below,
            cgroup__controllers=all_three,
            memory__max="max\n",
            cpu__max="max 100000\n",
        )
    made = cgroup.make(SHARE, here)
    assert [folder.parent for folder in made.folders] == [tmp_path / "cg/user"]
    assert settings(made) == {
        "memory.max": str(1 << 30),
        "pids.max": "50",
        "cpu.max": "150000 100000",
    }
    assert cgroup.described(made) == dict.fromkeys(("memory", "pids", "cpu"), "cgroup v2")


def test_a_group_that_limits_is_not_left_for_one_above_it(tmp_path: Path) -> None:
    here = system(tmp_path, "0::/user/app\n", V2)
    words = {"cgroup__controllers": "memory", "cgroup__subtree_control": "memory"}
    delegated(group(tmp_path / "cg/user", **words))
    mine = group(tmp_path / "cg/user/app", cgroup__controllers="memory", memory__max="max")
    assert [place.folder for place in cgroup.find(here)] == [tmp_path / "cg/user"]
    group(mine, memory__max="1000000")
    assert list(cgroup.find(here)) == []


def test_a_group_is_divided_only_by_whom_it_was_made_for(tmp_path: Path) -> None:
    words = {"cgroup__controllers": "memory", "cgroup__subtree_control": "memory"}
    for number, (own, mounts, user, found) in enumerate(
        (
            ("4:memory:/managed\n", V1, 0, False),  # root's in a manager's group
            ("4:memory:/managed\n", V1, 1234, True),  # its owner's
            ("4:memory:/managed\n", V1, 77, False),  # another user's
            ("0::/managed\n", V2, 0, False),
            ("0::/\n", V2, 0, True),  # all that is seen
            ("0::/../managed\n", V2, 0, False),  # outside of what is seen
            ("4:memory:/elsewhere\n", V1, 0, False),
            ("4:memory:/\n", "", 0, False),  # nothing mounted
            ("", V1, 0, False),
        )
    ):
        root = tmp_path / str(number)
        here = system(root, own, mounts, user)
        for folder in ("cg", "cg/managed", "cg/memory/managed"):
            group(root / folder, **words)
        _give(root / "cg/memory/managed", 1234)
        assert bool(list(cgroup.find(here))) is found, (own, user)


def test_where_no_group_can_be_made_the_reason_is_said_and_nothing_stays(tmp_path: Path) -> None:
    made = Group((tmp_path / "gone", tmp_path / "made"), (("pids", "v1"),), (("cpu", "so"),))
    made.folders[1].mkdir()
    refused = made.take(1)
    assert not made.folders[1].exists()
    assert (refused.folders, refused.active_controllers) == ((), ())
    said = cgroup.described(refused)
    assert said["cpu"] == "limits of each worker: so"
    assert said["pids"].startswith(
        "limits of each worker: a process could not be put in: No such file"
    )


def test_what_dead_hosts_left_is_removed_and_what_living_ones_have_stays(tmp_path: Path) -> None:
    own = os.getpid(), cgroup._start_time(os.getpid())
    alive, other = f"knapper-{own[0]}-{own[1]}-0", f"knapper-{own[0]}-{int(own[1]) - 1}-0"
    for name in (alive, other, "knapper-999999999-5-0", "knapper-x", "somebody"):
        (tmp_path / name).mkdir()
    cgroup.sweep(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {alive, "knapper-x", "somebody"}


BOMB = modules(
    bomb="""
    import threading

    def threads(count: int) -> int:
        threading.stack_size(64 << 10)
        lock = threading.Lock()
        lock.acquire()
        for number in range(count):
            threading.Thread(target=lock.acquire, daemon=True).start()
        return count
    """
)


def here() -> list[CgroupFolder]:
    """Return where groups can be created on this machine."""
    places = list(cgroup.find())
    if not places:
        pytest.skip("no control group was delegated to this process")
    return places


def left(places: list[CgroupFolder], host: int) -> Iterator[Path]:
    """Yield the groups of a host."""
    for place in places:
        yield from place.folder.glob(f"knapper-{host}-*")


async def test_a_sandbox_says_what_holds_its_resources_and_leaves_no_group() -> None:
    places = here()
    before = set(left(places, os.getpid()))
    async with await Sandbox.start(packages=()) as sandbox:
        held = {name: f"cgroup {place.version}" for place in places for name in place.controllers}
        assert held.items() <= sandbox.resources.items()
        assert sandbox.resources["workers"].startswith("at most 18 at a time")
        (made,) = {path.name for path in set(left(places, os.getpid())) - before}
        assert all((place.folder / made / "cgroup.procs").read_text().split() for place in places)
    assert set(left(places, os.getpid())) == before


async def test_a_worker_starts_no_more_threads_than_its_group_may_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not any("pids" in place.controllers for place in here()):
        pytest.skip("no control group for processes")
    monkeypatch.setattr(cgroup, "share_of", lambda *_given: Share(1 << 30, 40, 1.0))
    async with await Sandbox.start(packages=()) as sandbox:
        outcome = await sandbox.run(Job(BOMB, "bomb", FunctionCall("threads", {"count": 60})))
        assert isinstance(outcome, Raised | Killed), outcome
        assert "thread" in str(outcome)


def test_a_host_that_is_killed_leaves_groups_that_the_next_one_removes() -> None:
    require_functions()
    places = here()
    code = (
        "import asyncio, os, signal; from sandbox import Sandbox; from sandbox.processes import cgroup\n"
        "async def main():\n"
        "    await Sandbox.start(packages=())\n"
        "    own = f'knapper-{os.getpid()}-*'\n"
        "    print(*[path for place in cgroup.find() for path in place.folder.glob(own)], flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    made = [Path(path) for path in done.stdout.split()]
    assert {path.parent for path in made} == {place.folder for place in places}
    patience = time.monotonic() + 20
    while any(path.exists() for path in made) and time.monotonic() < patience:
        cgroup.make(SHARE).close()
        time.sleep(0.05)
    assert not any(path.exists() for path in made)
