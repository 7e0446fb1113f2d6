"""Search for the strongest level that this machine can enforce; if there is none, an error that lists the choices.

Features that the platform claims are not trusted: a self-test runs canaries in a real worker and checks the kernel's
flags of that worker. Each canary is an attempt to escape, and the host would see its success.
"""

import asyncio
import os
import platform
import socket
import stat
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

from ..confine import mounts
from ..confine.calls import NEVER_RUN, TABLES
from ..confine.plan import LAYERS, ZygotePlan
from ..errors import ProtocolError, SandboxError, SandboxUnavailable
from ..policy import Limits
from ..wire.protocol import Frame as Message
from ..wire.protocol import pack
from .ends import WorkerPool
from .launch import LayerFailed, ZygoteEnded
from .pool import Pool, kernel_limits
from .sessions import WorkerConversation

_LIMITS = Limits(wall_s=10.0)
_CONTENT = "canary"
ANSWERS: Final = "worker that answers"  # what is broken if the self-test's worker ended


@dataclass(frozen=True, slots=True)
class SelfTestReport:
    """The result of a self-test: canaries that `escaped`, and features that are `broken`; both are empty if good."""

    escaped: tuple[str, ...]
    broken: tuple[str, ...]

    @property
    def is_good(self) -> bool:
        """True if function code may run."""
        return not self.escaped and not self.broken


async def examine(pool: WorkerPool, *, is_process: bool = True) -> SelfTestReport:
    """Run the canaries in one worker of this pool; if the worker is a process, check its kernel flags, too."""
    with (
        tempfile.TemporaryDirectory(prefix="knapper-canary-") as folder,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        _lay_out(Path(folder))
        job: Message = {"kind": "canaries", "folder": folder, "port": server.getsockname()[1]}
        kernel_flags, reply = await _fly(pool, job, is_process=is_process)
        seen = _seen_outside(Path(folder), server)
    match reply:
        case {
            "kind": "canaries",
            "escaped": list(escaped),
            "broken": list(broken),
            "python": str(python),
        }:
            mismatches = [] if python == sys.version else ["the same interpreter"]
            return SelfTestReport(
                tuple(dict.fromkeys([*kernel_flags, *seen, *escaped])), (*broken, *mismatches)
            )
        case {"kind": "raised", "message": str(message)}:
            return SelfTestReport((*kernel_flags, *seen), (f"canaries: {message}",))
        case _:
            return SelfTestReport((*kernel_flags, *seen), (ANSWERS,))


def _lay_out(folder: Path) -> None:
    folder.chmod(0o755)
    folder.joinpath("secret").write_text(_CONTENT)
    folder.joinpath("secret").chmod(0o644)


async def _fly(
    pool: WorkerPool, message: Message, *, is_process: bool
) -> tuple[list[str], Message | None]:
    worker = await pool.take(kernel_limits(_LIMITS))
    conversation = WorkerConversation(worker, _LIMITS)
    try:
        async with asyncio.timeout(_LIMITS.wall_s):
            if not await conversation.ready():
                return [], None
            flags = _status_of(worker.sight.pid) if is_process else []
            return flags, await conversation.hold(pack(message), _nothing)
    except (TimeoutError, ProtocolError):
        return [], None
    finally:
        pool.give_back(worker)


async def _nothing(_message: Message) -> Message:
    return {"kind": "absent"}


def _status_of(pid: int) -> list[str]:
    """Return the kernel flags of the worker that have a wrong value."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    # Not CapBnd: an ordinary user cannot empty it, and with NoNewPrivs nothing can be gained from it.
    expected = {"NoNewPrivs": "1", "Seccomp": "2"} | dict.fromkeys(
        ("CapEff", "CapPrm", "CapInh", "CapAmb"), "0" * 16
    )
    return [
        f"kernel:{name}"
        for name, value in expected.items()
        if status.get(name, "").strip() != value
    ]


def _seen_outside(folder: Path, server: socket.socket) -> list[str]:
    """Return the escapes that left a trace outside, independent of the worker's report."""
    seen = []
    if {entry.name for entry in folder.iterdir()} != {"secret"}:
        seen.append("write")
    if (
        folder.joinpath("secret").read_text() != _CONTENT
        or folder.joinpath("secret").stat().st_mode & 0o777 != 0o644
    ):
        seen.append("change")
    server.setblocking(False)
    try:
        server.accept()[0].close()
        seen.append("connect")
    except BlockingIOError:
        pass
    return seen


Level: TypeAlias = str  # one of `LEVELS`, `none`, or a level beside this package

_WITHOUT: Final[dict[Level, str]] = {
    "apart": "landlock",
    "core": "namespaces",
}  # level → the missing wall
LEVELS: Final[tuple[Level, ...]] = ("full", "apart", "core")  # strongest first
CHOICES: Final = ("auto", *LEVELS)
_NOBODY_BASE: Final = (
    0x60000000  # user ids above belong to no account; each host process uses a different one
)
_NOBODY: Final = 65534
_CHOICES: Final = (
    "Function code does not run without it. Your choices: a Linux machine (x86-64) with Landlock and "
    "seccomp, also as WSL2, a container or a virtual machine; or KNAPPER_SANDBOX_UNSAFE=true, which "
    "runs function code with whatever layers hold, with your own rights."
)
_ADVICE: Final = {
    "win32": " (install WSL2 by `wsl --install`, and run knapper in it; WSL1 has no Linux kernel and does not work)",
    "darwin": " (use a Linux virtual machine or container)",
}
_UNTRIED: Final = "trial: the table of system calls for {} was never run before this, so the self-test alone decides"


@dataclass(frozen=True, slots=True)
class StartedLevel:
    """The result of the start: the level, its plan and first pool, and the missing layers with reasons."""

    level: Level
    plan: ZygotePlan
    pool: Pool
    layers: dict[str, bool]
    missing: tuple[str, ...]


async def find_ground(
    packages: dict[str, str],
    slots: int,
    scratch_folder: str,
    *,
    override: bool,
    choice: Level = "auto",
) -> StartedLevel:
    """Start the strongest (or the chosen) level that passes its self-test. Raise SandboxUnavailable if none does."""
    _require_platform(override=override)
    plan = plan_for(packages, slots, scratch_folder)
    missing = [_UNTRIED.format(machine)] if (machine := platform.machine()) in NEVER_RUN else []
    for level in () if override else _in_order():
        if choice not in ("auto", level):
            continue
        ground = await try_level(level, plan_at(level, plan), missing)
        if ground is not None:
            return ground
    if override:
        # The level `none`: with all layers that can be applied.
        plan = replace(without_root(plan), layers=LAYERS, tolerant=True)
        pool = Pool(plan)
        zygote = await pool.started()
        report = await examine(pool)
        layers = {layer: zygote.held.get(layer, "not on") == "" for layer in LAYERS}
        unheld = [f"{layer}: {reason}" for layer, reason in zygote.held.items() if reason]
        unheld += [f"the self-test's {name} escaped" for name in report.escaped]
        return StartedLevel("none", plan, pool, layers, tuple(unheld))
    reasons = tuple(dict.fromkeys(missing))
    raise SandboxUnavailable(
        f"The sandbox cannot be enforced here: {'; '.join(reasons)}. {_CHOICES}", reasons
    )


async def try_level(level: Level, plan: ZygotePlan, missing: list[str]) -> StartedLevel | None:
    """Start this level and return it, or add the reasons to `missing` and return None."""
    pool = Pool(plan)
    try:
        await pool.started()
        report = await examine(pool)
    except (LayerFailed, ZygoteEnded) as error:
        missing.append(str(error))
        await pool.aclose()
        return None
    if report.is_good:
        layers = {layer: layer != _WITHOUT.get(level) for layer in LAYERS}
        return StartedLevel(level, plan, pool, layers, tuple(dict.fromkeys(missing)))
    escaped = [f"the self-test's {name} escaped" for name in report.escaped]
    missing += [
        f"{level}: {text}" for text in (*escaped, *[f"no {name} inside" for name in report.broken])
    ]
    await pool.aclose()
    return None


def plan_for(packages: dict[str, str], slots: int, scratch_folder: str) -> ZygotePlan:
    """Return the plan of level `full`."""
    return ZygotePlan(
        readable=mounts.readable(packages),
        hidden=mounts.hidden(),
        packages=packages,
        preload=mounts.COMMON,
        layers=LAYERS,
        slots=slots,
        scratch=Limits().scratch,
        scratch_folder=scratch_folder,
        user=another_user(),
    )


def another_user() -> int | None:
    """Return a user id without an account, or that of `nobody`; None if not root, or if this system allows neither."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return None
    users = Path("/proc/self/uid_map")
    lines = [line.split() for line in users.read_text().splitlines()] if users.exists() else []
    mapped = [range(int(first), int(first) + int(count)) for first, _outside, count in lines]
    candidates = (_NOBODY_BASE + os.getpid(), _NOBODY)
    return next((user for user in candidates if any(user in span for span in mapped)), None)


def _in_order() -> tuple[Level, ...]:
    """Return the levels in the order to try them: with Landlock, a failure of `full` is due to namespaces."""
    from ..confine import landlock  # noqa: PLC0415 - Windows has no such library, and imports this module

    try:
        landlock.version()
    except OSError:
        return LEVELS
    return ("full", "core", "apart")


def plan_at(level: Level, plan: ZygotePlan) -> ZygotePlan:
    """Return the plan of level `full` adapted to another level."""
    if level == "apart":
        return replace(plan, layers=_but("landlock"), covers=True)
    return without_root(plan) if level == "core" else plan


def _but(layer: str) -> tuple[str, ...]:
    return tuple(other for other in LAYERS if other != layer)


def without_root(plan: ZygotePlan) -> ZygotePlan:
    """Return the plan without a private root. Later no page can become executable, so extension modules load first.

    So do the packages: types that only pydantic knows need it in modules that do not import it.
    """
    # `asyncio` loses track of the current task if its C half is imported first, which the alphabet would do.
    preload, library = (
        (*plan.preload, "asyncio", *mounts.extension_modules(), *plan.packages),
        mounts.library(),
    )
    open_to_all = all(
        folder.stat().st_mode & stat.S_IXOTH for folder in (library, *library.parents)
    )
    user = plan.user if open_to_all else None  # another user has to read the interpreter
    return replace(plan, layers=_but("namespaces"), user=user, preload=preload)


def _require_platform(*, override: bool) -> None:
    machine = platform.machine()
    if sys.platform != "linux" or machine not in TABLES:
        missing = (
            f"no sandbox for {sys.platform} on {machine} yet{_ADVICE.get(sys.platform, '')}",
        )
    elif not (hasattr(os, "fork") and Path("/proc/self").exists()):
        missing = ("no sandbox without /proc and forks",)
    else:
        return
    if override:
        raise SandboxError(
            f"{missing[0]}: not even its parent process runs here, so the override cannot help"
        )
    raise SandboxUnavailable(
        f"The sandbox cannot be enforced here: {missing[0]}. {_CHOICES}", missing
    )
