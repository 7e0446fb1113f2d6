"""Control groups: limits of memory without swap, processes and CPU time for a zygote with all its workers.

A group is created only where that is allowed: below a group that was delegated to this user or service, or at the
root that this process sees. A group of another manager is neither divided nor left. Both cgroup versions are
supported, also together. If no group can be created, only each worker's limits apply, and the program reports that.
"""

import contextlib
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final, Literal

Version = Literal["v1", "v2"]
Settings = tuple[tuple[str, str, bool], ...]  # file, text, whether it is required

CONTROLLERS: Final = ("memory", "pids", "cpu")
_PREFIX: Final = "knapper-"
_PERIOD_US: Final = 100_000
_PATIENCE_S: Final = 2.0  # time for killed workers to leave
_NUMBERS: Final = count()
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Share:
    """The resources that a zygote and its workers may use together."""

    memory: int
    pids: int
    cpus: float


@dataclass(frozen=True, slots=True)
class CgroupFolder:
    """A folder in which this process can create groups, and the controllers that these groups have."""

    version: Version
    folder: Path
    controllers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """One group, with a folder in each hierarchy. `active_controllers` has versions, `missing` the reasons."""

    folders: tuple[Path, ...] = ()
    active_controllers: tuple[tuple[str, Version], ...] = ()
    missing: tuple[tuple[str, str], ...] = ()

    def take(self, pid: int) -> "Group":
        """Move a process and its future children into the group. Return the group, without controllers on failure."""
        try:
            for folder in self.folders:
                folder.joinpath("cgroup.procs").write_text(str(pid))
        except OSError as error:
            self.close()
            lost = tuple(
                (name, f"a process could not be put in: {error.strerror}")
                for name, _version in self.active_controllers
            )
            return Group(missing=self.missing + lost)
        return self

    def close(self) -> None:
        """Remove the group. Its processes were killed, but may need a moment to exit."""
        patience = time.monotonic() + _PATIENCE_S
        for folder in self.folders:
            while not _remove(folder) and time.monotonic() < patience:
                time.sleep(0.01)


@dataclass(frozen=True, slots=True)
class CgroupTree:
    """The control groups as a process sees them. Only tests use another root or user."""

    root: Path = Path("/")
    user: int | None = None

    def read(self, path: str) -> str:
        """Return a file's text, or "" if it cannot be read."""
        with contextlib.suppress(OSError):
            return (self.root / path).read_text()
        return ""

    def is_ours(self, folder: Path, *, is_all: bool) -> bool:
        """Return whether groups may be created in a folder: it is the visible root, delegated, or owned by the user."""
        if not os.access(folder, os.W_OK) or not os.access(folder / "cgroup.procs", os.W_OK):
            return False
        user = os.geteuid() if self.user is None else self.user
        if is_all or folder.stat().st_uid == user != 0:
            return True
        for name in (
            "user.delegate",
            "trusted.delegate",
        ):  # how a group manager marks a group as delegated
            with contextlib.suppress(OSError):
                if os.getxattr(folder, name) == b"1":
                    return True
        return False


HERE: Final = CgroupTree()


def make(share: Share, tree: CgroupTree = HERE) -> Group:
    """Create a group with this share, as far as possible. Remove groups of dead hosts first."""
    name = f"{_PREFIX}{os.getpid()}-{_start_time(os.getpid())}-{next(_NUMBERS)}"
    folders: list[Path] = []
    versions: dict[str, Version] = {}
    missing = dict.fromkeys(CONTROLLERS, "no control group here was delegated to this process")
    for place in find(tree):
        sweep(place.folder)
        folder = place.folder / name
        try:
            folder.mkdir()
            for controller in place.controllers:
                _limit(folder, _SETTINGS[place.version, controller](share))
        except OSError as error:
            _remove(folder)
            missing |= dict.fromkeys(place.controllers, f"{error.strerror}: {error.filename}")
            continue
        folders.append(folder)
        versions |= dict.fromkeys(place.controllers, place.version)
    unavailable = tuple(
        (controller, why) for controller, why in missing.items() if controller not in versions
    )
    return Group(tuple(folders), tuple(versions.items()), unavailable)


_SETTINGS: Final[dict[tuple[Version, str], Callable[[Share], Settings]]] = {
    ("v1", "memory"): lambda share: (
        ("memory.limit_in_bytes", str(share.memory), True),
        ("memory.memsw.limit_in_bytes", str(share.memory), False),
        ("memory.swappiness", "0", False),
    ),
    ("v2", "memory"): lambda share: (
        ("memory.max", str(share.memory), True),
        ("memory.swap.max", "0", False),
    ),
    ("v1", "pids"): lambda share: (("pids.max", str(share.pids), True),),
    ("v2", "pids"): lambda share: (("pids.max", str(share.pids), True),),
    ("v1", "cpu"): lambda share: (
        ("cpu.cfs_period_us", str(_PERIOD_US), True),
        ("cpu.cfs_quota_us", str(int(share.cpus * _PERIOD_US)), True),
    ),
    ("v2", "cpu"): lambda share: (
        ("cpu.max", f"{int(share.cpus * _PERIOD_US)} {_PERIOD_US}", True),
    ),
}


def _limit(folder: Path, settings: Settings) -> None:
    for file, text, is_needed in settings:
        if is_needed or folder.joinpath(file).exists():
            folder.joinpath(file).write_text(text)


def find(tree: CgroupTree = HERE) -> Iterator[CgroupFolder]:
    """Yield the folders in which this process can create groups."""
    mounts = dict(_mounts(tree.read("proc/self/mountinfo")))
    folders: dict[Path, list[str]] = {}
    for line in tree.read("proc/self/cgroup").splitlines():
        number, names, path = line.split(":", 2)
        if ".." in Path(path).parts:  # outside of our namespace
            continue
        for name in [""] if number == "0" else mounts.keys() & CONTROLLERS & set(names.split(",")):
            folder = tree.root / mounts.get(name, "nowhere").lstrip("/") / path.lstrip("/")
            if not name:
                yield from _unified_groups(folder, path, tree)
            elif tree.is_ours(folder, is_all=path == "/"):
                folders.setdefault(folder, []).append(name)
    yield from (CgroupFolder("v1", folder, tuple(names)) for folder, names in folders.items())


def _mounts(mountinfo: str) -> Iterator[tuple[str, str]]:
    """Yield pairs of a controller and the mount point of its hierarchy; "" means version 2."""
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        kind, _source, options = (*after.split(), "", "", "")[:3]
        point = _ESCAPED.sub(lambda match: chr(int(match[1], 8)), before.split()[4])
        if kind == "cgroup2":
            yield "", point
        if kind == "cgroup":
            yield from ((name, point) for name in options.split(",") if name in CONTROLLERS)


def _unified_groups(folder: Path, own: str, tree: CgroupTree) -> Iterator[CgroupFolder]:
    """Yield the nearest usable group that passes on controllers, without leaving a group that has limits."""
    for _depth in Path(own).parts:
        if tree.is_ours(folder, is_all=own == "/") and (enabled := _passed_on(folder)):
            yield CgroupFolder("v2", folder, enabled)
            return
        if any(_words(folder / f"{name}.max") - {"max", str(_PERIOD_US)} for name in CONTROLLERS):
            return
        folder = folder.parent


def _passed_on(folder: Path) -> tuple[str, ...]:
    """Enable the controllers for groups created here, and return those that are enabled."""
    available = _words(folder / "cgroup.controllers")
    for controller in (
        name
        for name in CONTROLLERS
        if name in available - _words(folder / "cgroup.subtree_control")
    ):
        with contextlib.suppress(OSError):  # fails if the group has processes
            folder.joinpath("cgroup.subtree_control").write_text(f"+{controller}")
    return tuple(name for name in CONTROLLERS if name in _words(folder / "cgroup.subtree_control"))


def _words(path: Path) -> set[str]:
    try:
        return set(path.read_text().split())
    except OSError:
        return set()


def sweep(folder: Path) -> None:
    """Remove the groups of dead hosts. The kernel keeps a group that has processes."""
    for stale_group in folder.glob(f"{_PREFIX}*"):
        pid, _, started = stale_group.name.removeprefix(_PREFIX).rpartition("-")[0].partition("-")
        if pid.isdecimal() and _start_time(int(pid)) != started:
            _remove(stale_group)


def _start_time(pid: int) -> str:
    """Return the start time of a process in kernel ticks; together with its id, it identifies the process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def _remove(folder: Path) -> bool:
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def share_of(memory: int, slots: int, threads: int) -> Share:
    """Return a zygote's share: three quarters of memory (at least that of one call) and 90 percent of the CPUs."""
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Share(max(memory, whole * 3 // 4), threads + slots, 0.9 * (os.cpu_count() or 1))


def described(group: Group) -> dict[str, str]:
    """Return controller → its enforcement: a group, or only the limits of each worker with the reason."""
    descriptions = {name: f"cgroup {version}" for name, version in group.active_controllers}
    descriptions |= {name: f"limits of each worker: {why}" for name, why in group.missing}
    return {name: descriptions[name] for name in CONTROLLERS if name in descriptions}
