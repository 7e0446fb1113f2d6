"""The self-test at start: does a real worker hold? Canaries that try, and what the kernel says of the worker.

No flag of the platform is believed: each canary is an attempt whose success the host would see.
"""

import asyncio
import socket
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .conversation import Conversation
from .errors import ProtocolError
from .policy import Limits
from .pool import Pool, kernel_limits
from .protocol import Frame as Message
from .protocol import pack

_LIMITS = Limits(wall_s=10.0)
_CONTENT = "canary"


@dataclass(frozen=True, slots=True)
class Report:
    """What got out (`escaped`), what does not work inside (`broken`); both empty where all is well."""

    escaped: tuple[str, ...]
    broken: tuple[str, ...]

    @property
    def is_good(self) -> bool:
        """Whether function code may run."""
        return not self.escaped and not self.broken


async def examine(pool: Pool) -> Report:
    """Let the canaries fly in one worker of this pool."""
    with (
        tempfile.TemporaryDirectory(prefix="toolwright-canary-") as folder,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        _lay_out(Path(folder))
        job: Message = {"kind": "canaries", "folder": folder, "port": server.getsockname()[1]}
        said, told = await _fly(pool, job)
        seen = _seen_outside(Path(folder), server)
    return _report(said, told, seen)


def _lay_out(folder: Path) -> None:
    folder.chmod(0o755)
    folder.joinpath("secret").write_text(_CONTENT)
    folder.joinpath("secret").chmod(0o644)


async def _fly(pool: Pool, job: Message) -> tuple[list[str], Message | None]:
    worker = await pool.take(kernel_limits(_LIMITS))
    talk = Conversation(worker, _LIMITS)
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
    """Which of the kernel's own flags on the worker are not as they must be."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    # Not CapBnd: an ordinary user cannot empty it, and with no new privileges nothing is ever got from it.
    wanted = {"NoNewPrivs": "1", "Seccomp": "2"} | dict.fromkeys(("CapEff", "CapPrm", "CapInh", "CapAmb"), "0" * 16)
    return [f"kernel:{name}" for name, value in wanted.items() if status.get(name, "").strip() != value]


def _seen_outside(folder: Path, server: socket.socket) -> list[str]:
    """What the attempts left behind, whatever the worker says."""
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


def _report(said: list[str], told: Message | None, seen: list[str]) -> Report:
    match told:
        case {"kind": "canaries", "escaped": list(escaped), "broken": list(broken), "python": str(python)}:
            other = [] if python == sys.version else ["the same interpreter"]
            return Report(tuple(dict.fromkeys([*said, *seen, *escaped])), (*broken, *other))
        case {"kind": "raised", "message": str(message)}:
            return Report((*said, *seen), (f"canaries: {message}",))
        case _:
            return Report((*said, *seen), ("a worker that answers",))
