"""The warm process that workers are forked from, which never runs function code, and the start of a worker.

The host executes it with a minimal environment and one descriptor. It enters the namespaces, builds the small root,
gives up all privileges, imports the listed packages, and then takes two orders: fork a worker; reap a dead one and
empty its scratch folder, which untrusted code has filled. It ends with the host. A worker is confined before it gets
the first byte of a job. If one of the layers fails, it exits with the status `NOT_CONFINED`, before it sent `ready`.
"""

import _socket
import _thread
import contextlib
import fcntl
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import stat
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final, NoReturn

from ..access import AccessRefused
from ..confine import landlock, limits, namespaces, opened_grants, seccomp
from ..confine.plan import Rlimits, ZygotePlan
from ..confine.seccomp import Filter
from ..inside import debugger, finder, programs
from ..inside.channel import Channel
from ..inside.failure import attempt
from ..inside.jobs import TIMES, perform, rehearse, serve_attempts


def wipe(folder: Path) -> None:
    """Remove everything below the folder. Raise OSError if that fails."""
    fresh = (name for number in count() if not (name := folder / f".pulled-{number}").exists())
    while entries := list(folder.iterdir()):
        for entry in entries:
            if stat.S_ISDIR(entry.lstat().st_mode):
                _pull_up(entry, fresh)
            else:
                entry.unlink()


def _pull_up(nested: Path, fresh: Iterator[Path]) -> None:
    _open_up(nested)
    for child in list(nested.iterdir()):
        if stat.S_ISDIR(child.lstat().st_mode):
            _open_up(child)  # moving a folder writes its `..`
            child.rename(next(fresh))
        else:
            child.unlink()
    nested.rmdir()


def _open_up(folder: Path) -> None:
    """Give the owner all rights, if they are missing. A zygote with packages may not chmod, and need not."""
    if folder.lstat().st_mode & stat.S_IRWXU != stat.S_IRWXU:
        folder.chmod(0o700)


_MAX_ORDER = 1 << 18
_FIRST_KEPT = 64
_MAX_REASON = 2000
# Forking copies one thread, and each thread of a numeric library reserves memory.
_ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"
)
_THREAD_STACK = 1 << 20  # the default of 8 MiB counts against a worker's memory limit


def main(control_fd: int) -> None:
    """Apply the plan, then serve until the host closes its end."""
    control = socket.socket(fileno=control_fd)
    plan = ZygotePlan.from_json(json.loads(control.recv(_MAX_ORDER)))
    zygote = WarmProcess(control, plan)
    if "namespaces" in plan.layers:
        zygote.attempt("namespaces", namespaces.unshare)
    if plan.has_outer:
        _enter_group(control)  # a process namespace applies only to children
    zygote.prepare()
    zygote.serve()


class WarmProcess:
    """The state of the warm process: the prepared layers, and the slot of each worker."""

    def __init__(self, control: socket.socket, plan: ZygotePlan) -> None:
        self._control = control
        self._plan = plan
        self._held: dict[str, str] = {}  # layer → "", or the reason if it failed
        self._slot_of: dict[int, int] = {}
        self._free = list(range(plan.slots))
        self._union: int | None = None  # Landlock rules for all slots together

    def attempt(self, layer: str, act: Any, *arguments: Any) -> Any:  # any step of applying a layer
        """Do one step of applying a layer. If it fails, notify the host and exit, unless the plan is tolerant."""
        try:
            result = act(*arguments)
        except OSError as error:
            self._held[layer] = reason = ": ".join(
                filter(None, (error.filename, error.strerror))
            ) or str(error)
            if not self._plan.tolerant:
                self._fail(layer, reason)
            return None
        self._held.setdefault(layer, "")
        return result

    def prepare(self) -> None:
        """Do the one-time preparation, in the order that the kernel requires."""
        try:
            with opened_grants.opened(self._plan.access, self._plan.guarded) as grants:
                self._confine(grants)
        except AccessRefused as refusal:
            self._fail("access", str(refusal))
        self._null = os.open(os.devnull, os.O_RDWR)
        finder.install_packages(self._plan.packages, self._plan.access.folders)
        self._import_ahead()
        sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")  # type: ignore[union-attr] # a TextIOWrapper here
        for name in os.environ.keys() - {"TZ"}:
            del os.environ[name]
        _thread.stack_size(_THREAD_STACK)
        for name in self._plan.preload:
            with contextlib.suppress(
                ImportError
            ):  # a module that this interpreter was built without
                importlib.import_module(name)
        for _time in range(TIMES):
            rehearse(Channel(-1, _thread.allocate_lock()))
        gc.collect()
        gc.disable()
        gc.freeze()
        if self._plan.access.packages and not self._plan.access.preload:
            os.environ.update(_ONE_THREAD)  # for the workers, which import them
        self._tell({"kind": "hello", "held": self._held, "python": sys.version})

    def _confine(self, grants: Sequence[opened_grants.OpenedGrant]) -> None:
        plan = self._plan
        root = Path(plan.scratch_folder)
        if "namespaces" in plan.layers and not self._held["namespaces"]:
            self.attempt("namespaces", namespaces.enter_root, plan, grants)
            root = Path(namespaces.SCRATCH)
        user, group = plan.owner or (plan.user, plan.user)
        if not root.exists():  # a private root already has the slots, each a separate file system
            root.mkdir(mode=0o711)
        self._slots = [root / str(number) for number in range(plan.slots)]
        for slot in self._slots:  # owned by the workers' user and closed to others
            slot.mkdir(exist_ok=True)
            slot.chmod(0o700)
            if user is not None:
                os.chown(slot, user, user)
        if "privileges" in plan.layers:
            self.attempt("privileges", limits.drop_privileges, user, group)
        if plan.has_outer:  # otherwise the parent is a thread of the host, which may end earlier
            limits.end_with_parent()  # after the change of user, which would reset it
        _require_rights(grants)
        self._rules = self._make_rules(grants)
        self._filter = self._make_filter()

    def _fail(self, layer: str, reason: str) -> NoReturn:
        self._tell({"kind": "failed", "layer": layer, "reason": reason})
        os._exit(1)

    def _import_ahead(self) -> None:
        """Preload the granted packages, in a process that is confined like its workers."""
        access = self._plan.access
        if not access.preload:
            return
        self._confine_imports()
        os.environ.update(_ONE_THREAD, HOME=str(self._slots[0]), TMPDIR=str(self._slots[0]))
        for name in access.preload:
            failure = attempt(partial(importlib.import_module, name))
            if isinstance(failure, BaseException):
                self._fail(
                    "packages",
                    f"{name} cannot be imported: {type(failure).__name__}: {failure}"[:_MAX_REASON],
                )
        wipe(self._slots[0])

    def _confine_imports(self) -> None:
        """Apply the confinement for packages. From now on, the host decides about forks and can pause this process."""
        ceiling = self._plan.ceiling
        if ceiling is not None and "limits" in self._plan.layers:
            room = _FIRST_KEPT + len(self._slots) + ceiling.open_files
            limits.restrict_ahead(replace(ceiling, open_files=room), own_user=self._has_own_user)
        if self._union is not None:
            self.attempt("landlock", landlock.restrict, self._union)
        if self._filter is not None:
            listener = self.attempt(
                "seccomp", seccomp.Filter(seccomp.build_ahead()).restrict_and_listen
            )
            # Send the host the descriptors to decide about forks, before a package is loaded that could use them.
            itself = os.pidfd_open(os.getpid())
            self._tell({"kind": "guarded"}, listener, itself)
            os.close(listener)
            os.close(itself)

    @property
    def _has_own_user(self) -> bool:
        """True if no process of the human runs as the same user."""
        plan = self._plan
        return plan.owner is None and (plan.user is not None or self._held.get("namespaces") == "")

    def _make_rules(self, grants: Sequence[opened_grants.OpenedGrant]) -> list[int | None]:
        if "landlock" not in self._plan.layers:
            return [None] * len(self._slots)
        readable = [path for path in self._plan.readable if Path(path).exists()]
        slots = [str(slot) for slot in self._slots]
        rulesets = [self._ruleset(readable, [slot], grants) for slot in slots]
        if self._plan.access.preload:
            self._union = self._ruleset(readable, slots, grants)
        return rulesets

    def _ruleset(
        self, readable: list[str], slots: list[str], grants: Sequence[opened_grants.OpenedGrant]
    ) -> int | None:
        listed = [folder for folder in self._plan.access.folders if Path(folder).is_dir()]
        if self._plan.access.home and self._held.get("namespaces") == "":
            listed.append(self._plan.access.home)  # a private root shows only granted files
        rules = self.attempt(
            "landlock", landlock.ruleset, readable, [*slots, os.devnull], grants, listed
        )
        if rules is None:
            return None
        moved = fcntl.fcntl(
            rules, fcntl.F_DUPFD_CLOEXEC, _FIRST_KEPT
        )  # no worker needs that number
        os.close(rules)
        return moved

    def _make_filter(self) -> seccomp.Filter | None:
        if "seccomp" not in self._plan.layers:
            return None
        own_root = self._held.get("namespaces") == ""
        self._held["seccomp"] = ""
        return seccomp.Filter(seccomp.build(executable_files=own_root))

    def serve(self) -> None:
        """Execute orders until the host closes its end. Then exit, which ends all workers."""
        while order := self._control.recv(_MAX_ORDER):
            message = json.loads(order)
            if message["kind"] == "fork":
                self._fork(Rlimits(**message["limits"]), ahead=message["ahead"])
            else:
                self._reap(message["pid"])
        os._exit(0)

    def _fork(self, rlimits: Rlimits, *, ahead: bool) -> None:
        if not self._free:
            self._tell({"kind": "full"})
            return
        slot = self._free.pop()
        ours, theirs = _socket.socketpair()  # low-level: every page touched after a fork is copied
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            ends = Ends(theirs.fileno(), write_end, self._null, self._rules[slot])
            plan, folder = self._plan, self._slots[slot]
            own_user, home = self._has_own_user, plan.access.home
            confinement = Confinement(
                folder, rlimits, self._filter, plan.layers, own_user, home, plan.covers
            )
            run_worker(ends, confinement, ahead=ahead)
        self._slot_of[pid] = slot
        pidfd = os.pidfd_open(pid)
        self._tell({"kind": "forked", "pid": pid}, ours.fileno(), read_end, pidfd)
        ours.close()
        theirs.close()
        for descriptor in (read_end, write_end, pidfd):
            os.close(descriptor)

    def _reap(self, pid: int) -> None:
        """Reap a worker that the host has killed. Reuse its slot only if its scratch folder could be emptied."""
        _pid, status, spent = os.wait4(pid, 0)
        slot = self._slot_of.pop(pid)
        try:
            wipe(self._slots[slot])
            self._free.append(slot)
        except OSError:
            self._slots[slot] = Path("/")
        usage = {"cpu_s": spent.ru_utime + spent.ru_stime, "memory": spent.ru_maxrss << 10}
        self._tell({"kind": "reaped", "status": os.waitstatus_to_exitcode(status), **usage})

    def _tell(self, message: dict[str, Any], *descriptors: int) -> None:  # JSON
        carried = [
            (
                socket.SOL_SOCKET,
                socket.SCM_RIGHTS,
                struct.pack(f"{len(descriptors)}i", *descriptors),
            )
        ]
        self._control.sendmsg([json.dumps(message).encode()], carried if descriptors else [])


def _require_rights(grants: Sequence[opened_grants.OpenedGrant]) -> None:
    """Check that the current user of this process has the granted rights.

    Raises:
        AccessRefused: a right is missing; the message names the owner of the file.
    """
    for grant in grants:
        mode = os.R_OK | (os.X_OK if grant.is_folder else 0) | (os.W_OK if grant.writable else 0)
        if not os.access(grant.path, mode, follow_symlinks=False):
            facts = os.fstat(grant.descriptor)
            action = "read and written" if grant.writable else "read"
            raise AccessRefused(
                f"{grant.path} cannot be {action} by user {os.geteuid()}, as whom functions run that reach it: "
                f"it belongs to user {facts.st_uid}, mode {stat.S_IMODE(facts.st_mode):o}"
            )


def _enter_group(control: socket.socket) -> None:
    """Fork and return only in the child, which leads a new process group. The parent kills the group at the end."""
    limits.adopt_orphans()
    gc.freeze()  # a collection in the child would copy all shared pages
    child = os.fork()
    with suppress(PermissionError):  # the child has done it already
        os.setpgid(child, child)
    if child == 0:
        return
    watched = select.poll()
    watched.register(control, 0)  # for a hang-up by the host, which is always reported
    watched.register(os.pidfd_open(child), select.POLLIN)
    watched.poll()
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            os.wait()
    os._exit(0)


NOT_CONFINED: Final = 97
_CHANNEL, _RULES = 3, 4
_LINGER_S: Final = 0.2  # time for the host to measure the usage of this process before it exits
_LINGER: Final = time.sleep  # function code could replace `time.sleep`


@dataclass(frozen=True, slots=True)
class Ends:
    """The descriptors that a worker starts with."""

    channel: int
    output: int
    null: int
    rules: int | None


@dataclass(frozen=True, slots=True)
class Confinement:
    """The confinement layers, prepared by the zygote."""

    scratch: Path
    limits: Rlimits
    filter: Filter | None
    layers: tuple[str, ...]
    own_user: bool
    home: str = ""  # current folder, if not scratch
    covers: bool = False  # whether it hides the other scratch folders, for want of Landlock

    @property
    def seen_scratch(self) -> Path:
        """The path of the scratch folder inside the worker."""
        return Path(namespaces.SCRATCH) if self.covers else self.scratch


def run_worker(ends: Ends, confinement: Confinement, *, ahead: bool) -> NoReturn:
    """Confine this process, do its job, and exit. Never return into the zygote's code."""
    failure = attempt(lambda: _confine(ends, confinement))
    if isinstance(failure, BaseException):
        os.write(ends.output, f"{type(failure).__name__}: {failure}".encode())
        os._exit(NOT_CONFINED)
    attempt(lambda: _serve(confinement.seen_scratch, ahead=ahead))
    os._exit(0)


def _confine(ends: Ends, confinement: Confinement) -> None:
    zygote = os.getppid()
    if confinement.covers:
        namespaces.cover_scratch(confinement.scratch)
        limits.drop_privileges(None)
    limits.end_with_parent()  # after the change of user, which would reset it
    if os.getppid() != zygote or zygote == 0:
        raise OSError("the zygote has ended")
    # No other descriptor stays open.
    os.dup2(ends.null, 0)
    os.dup2(ends.output, 1)
    os.dup2(ends.output, 2)
    os.dup2(ends.channel, _CHANNEL)
    if ends.rules is not None:
        os.dup2(ends.rules, _RULES)
    os.closerange(_RULES + (ends.rules is not None), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    os.chdir(confinement.home or confinement.seen_scratch)
    os.environ["HOME"] = os.environ["TMPDIR"] = str(confinement.seen_scratch)
    debugger.stand_by()
    programs.stand_by()
    if "limits" in confinement.layers:
        limits.restrict(confinement.limits, own_user=confinement.own_user)
    if ends.rules is not None:
        landlock.restrict(_RULES)
        os.close(_RULES)
    if confinement.filter is not None:
        confinement.filter.restrict()


def _serve(scratch: Path, *, ahead: bool) -> None:
    gc.enable()
    channel = Channel(_CHANNEL, _thread.allocate_lock())
    if ahead:
        rehearse(channel)
    channel.say({"kind": "ready"})
    job = channel.hear()
    if job is None:
        return
    if job["kind"] == "attempts":
        serve_attempts(job, channel, scratch)
        return
    reply = perform(job, channel, scratch)
    attempt(sys.stdout.flush)
    attempt(sys.stderr.flush)
    os.close(1)
    os.close(2)
    channel.reply(reply, job.get("result"))
    channel.close()
    _LINGER(_LINGER_S)
