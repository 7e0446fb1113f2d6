"""The self-test at start, which checks that a real worker holds: canaries, and the kernel's view of the worker.

No flag of the platform is believed: each canary is an attempt, and the host would see its success.
"""

import asyncio
import socket
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .conversation import WorkerConversation
from .errors import ProtocolError
from .policy import Limits
from .pool import Pool, kernel_limits
from .protocol import Frame as Message
from .protocol import pack

_LIMITS = Limits(wall_s=10.0)
_CONTENT = "canary"


@dataclass(frozen=True, slots=True)
class SelfTestReport:
    """The result of a self-test: what got out (`escaped`) and what does not work (`broken`), both empty if good."""

    escaped: tuple[str, ...]
    broken: tuple[str, ...]

    @property
    def is_good(self) -> bool:
        """Whether function code may run."""
        return not self.escaped and not self.broken


async def examine(pool: Pool) -> SelfTestReport:
    """Run the canaries in one worker of this pool."""
    with (
        tempfile.TemporaryDirectory(prefix="toolwright-canary-") as folder,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        _lay_out(Path(folder))
        job: Message = {"kind": "canaries", "folder": folder, "port": server.getsockname()[1]}
        kernel_flags, reply = await _fly(pool, job)
        seen = _seen_outside(Path(folder), server)
    return _report(kernel_flags, reply, seen)


def _lay_out(folder: Path) -> None:
    folder.chmod(0o755)
    folder.joinpath("secret").write_text(_CONTENT)
    folder.joinpath("secret").chmod(0o644)


async def _fly(pool: Pool, job: Message) -> tuple[list[str], Message | None]:
    worker = await pool.take(kernel_limits(_LIMITS))
    talk = WorkerConversation(worker, _LIMITS)
    try:
        async with asyncio.timeout(_LIMITS.wall_s):
            if not await talk.ready():
                return ["confinement"], None
            return _status_of(worker.sight.pid), await talk.hold(pack(job), _nothing)
    except (TimeoutError, ProtocolError):
        return [], None
    finally:
        pool.give_back(worker)


async def _nothing(_frame: Message) -> Message:
    return {"kind": "absent"}


def _status_of(pid: int) -> list[str]:
    """Return the kernel's flags on the worker that are not as they must be."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    # Not CapBnd: an ordinary user cannot empty it, and with no new privileges nothing is ever got from it.
    expected = {"NoNewPrivs": "1", "Seccomp": "2"} | dict.fromkeys(("CapEff", "CapPrm", "CapInh", "CapAmb"), "0" * 16)
    return [f"kernel:{name}" for name, value in expected.items() if status.get(name, "").strip() != value]


def _seen_outside(folder: Path, server: socket.socket) -> list[str]:
    """Return what the attempts left behind, whatever the worker says."""
    seen = []
    if {entry.name for entry in folder.iterdir()} != {"secret"}:
        seen.append("write")
    if folder.joinpath("secret").read_text() != _CONTENT or folder.joinpath("secret").stat().st_mode & 0o777 != 0o644:
        seen.append("change")
    server.setblocking(False)
    try:
        server.accept()[0].close()
        seen.append("connect")
    except BlockingIOError:
        pass
    return seen


def _report(kernel_flags: list[str], reply: Message | None, seen: list[str]) -> SelfTestReport:
    match reply:
        case {"kind": "canaries", "escaped": list(escaped), "broken": list(broken), "python": str(python)}:
            mismatches = [] if python == sys.version else ["the same interpreter"]
            return SelfTestReport(tuple(dict.fromkeys([*kernel_flags, *seen, *escaped])), (*broken, *mismatches))
        case {"kind": "raised", "message": str(message)}:
            return SelfTestReport((*kernel_flags, *seen), (f"canaries: {message}",))
        case _:
            return SelfTestReport((*kernel_flags, *seen), ("a worker that answers",))
