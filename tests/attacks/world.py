"""A small world to attack and to inspect afterwards; standard library only, for any user's Python."""

import io
import os
import pty
import resource
import secrets
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

from sandbox import Outcome, Raised, RequestRefused, Returned
from sandbox.processes.pool import Pool
from tests.attacks.outside import looked, stands

REPOSITORY: Final = Path(__file__).resolve().parents[2]
VARIABLE: Final = "ARENA_SECRET"
SECRET: Final = os.environ.setdefault(VARIABLE, f"secret-{secrets.token_hex(16)}")
MOST_OUTPUT: Final = 20_000
MOST_RESULT: Final = 1 << 20
_HOST_NAME: Final = socket.gethostname()
_CACHE: Final = REPOSITORY / "sandbox" / "__pycache__" / "written_by_an_attempt.pyc"
_IMPORTED: Final = (
    REPOSITORY / "sandbox" / "written_by_an_attempt.py",
    _CACHE,
    Path(os.__file__).with_name("knapper_was_here.py"),
)


@dataclass(slots=True)
class World:
    """What can be attacked, its initial state, and what the host was asked to inspect in the meantime."""

    told: dict[str, Any]
    victim: "subprocess.Popen[bytes]"
    listeners: list[socket.socket]
    terminal: int
    pool: Pool | None
    starts: bool  # whether to look for its child processes
    before: Any = None
    shown: list[str] = field(default_factory=list)

    async def ask(self, name: str, arguments: dict[str, Any], /) -> dict[str, bool] | None:
        """Handle an attempt's request: the attempt may have itself inspected from outside.

        For a file it only repeats the kernel's answer: the layers must enforce the rest.
        """
        if name == "progress":
            return None
        if name.startswith("file_"):
            return {"real": True}
        if name != "call":
            raise RequestRefused(f"nobody was granted {name} here")
        wanted = arguments.get("arguments") or {}
        if arguments.get("function") == "touch":
            _touch(self.told["open_secret"])
        elif arguments.get("function") == "look" and looked(str(wanted["at"]), str(wanted["has"])):
            self.shown.append(f"{wanted['at']} has {wanted['has']}")
        return None

    def breaches(self, outcome: Outcome) -> dict[str, str]:
        """Return everything that an attempt reached, by kind, whatever its answer claims."""
        return {kind: text for kind, text in self._found(outcome) if text}

    def _found(self, outcome: Outcome) -> Iterator[tuple[str, str]]:
        value = repr(outcome.value) if isinstance(outcome, Returned) else ""
        told = outcome.failure.message if isinstance(outcome, Raised) else ""
        yield "secret", "a secret came back" if SECRET in repr(outcome) else ""
        yield "said", "it says that it worked" if self.told["mark"] in value else ""
        yield "changed", _difference(self.before, self.look())
        yield (
            "heard",
            "; ".join(str(one.getsockname()) for one in self.listeners if _heard(one))
            or self._typed(),
        )
        yield "dead", self._dead()
        yield (
            "process",
            "it stands beside the worker" if self.starts and stands(self.told["name"]) else "",
        )
        yield "worker", "; ".join(self.shown)
        many = (
            len(getattr(outcome, "output", "")) > MOST_OUTPUT + 100
            or max(len(value), len(told)) > 2 * MOST_RESULT
        )
        yield "amount", "it came through" if many else ""
        yield "claims", "less than no memory" if (getattr(outcome, "memory", None) or 0) < 0 else ""

    def _dead(self) -> str:
        if self.victim.poll() is not None:
            return "the victim is dead"
        if signalled:
            return "the host was signalled"
        return (
            "the warm process is gone"
            if self.pool is not None and self.pool.zygote is not None and self.pool.zygote.ended
            else ""
        )

    def _typed(self) -> str:
        with suppress(BlockingIOError):
            return repr(os.read(self.terminal, 100))
        return ""

    def look(self) -> dict[str, Any]:
        """Return names, contents, modes, owners and times, and the system's state of the victim and the machine."""
        folder = Path(self.told["folder"])
        seen = {
            str(path): _facts(path)
            for path in [folder, *folder.rglob("*"), *_IMPORTED]
            if path.exists()
        }
        return seen | {"name": socket.gethostname(), "victim": _standing_of(self.victim.pid)}


signalled: list[int] = []


def _touch(path: str) -> None:
    Path(path).read_text()


def _facts(path: Path) -> tuple[Any, ...]:
    facts = path.lstat()
    content = path.read_bytes() if path.is_file() else b""
    attributes = [os.getxattr(path, name) for name in os.listxattr(path)] if path.is_file() else []
    marks = (
        facts.st_mode,
        facts.st_uid,
        facts.st_gid,
        facts.st_nlink,
        facts.st_mtime_ns,
        attributes,
    )
    return (content, *marks)


def _standing_of(pid: int) -> tuple[Any, ...]:
    with suppress(OSError):
        limits = resource.prlimit(pid, resource.RLIMIT_CPU)
        first = Path(f"/proc/{pid}/oom_score_adj").read_text()
        return (
            limits,
            first,
            os.getpriority(os.PRIO_PROCESS, pid),
            sorted(os.sched_getaffinity(pid)),
        )
    return ()


def _difference(before: dict[str, Any], after: dict[str, Any]) -> str:
    different = sorted(
        key for key in before.keys() | after.keys() if before.get(key) != after.get(key)
    )
    return ", ".join(key for key in different if not (key == "victim" and not after[key]))


def _heard(listener: socket.socket) -> bool:
    try:
        if listener.type == socket.SOCK_STREAM:
            listener.accept()[0].close()
        else:
            listener.recv(100)
    except BlockingIOError:
        return False
    return True


@contextmanager
def world(level: str, pool: Pool | None, *, starts: bool = True) -> Iterator[World]:
    """Yield a folder with secrets, a victim process, listeners of every family, and a terminal."""
    mark = f"mark-{secrets.token_hex(8)}"
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(
                tempfile.TemporaryDirectory(prefix="arena-", ignore_cleanup_errors=True)
            )
        )
        _lay_out(folder)
        held = stack.enter_context((folder / "secret").open("rb"))
        master, slave = pty.openpty()
        stack.callback(os.close, master)
        stack.callback(os.close, slave)
        os.set_blocking(master, False)
        victim = _victim(folder, held.fileno(), stack)
        listeners, addresses = _listen(folder, mark)
        for listener in listeners:
            stack.enter_context(listener)
        made = {
            "victim": victim.pid,
            "victims_descriptor": held.fileno(),
            "address": _address(victim.pid),
        }
        told = _paths(folder) | made | addresses
        told |= {
            "mark": mark,
            "level": level,
            "name": f"atk-{mark[-10:]}",
            "terminal": os.ttyname(slave),
        }
        os.chmod(os.ttyname(slave), 0o666)  # noqa: PTH101
        there = World(told, victim, listeners, master, pool, starts)
        there.before = there.look()
        signalled.clear()
        yield there


def _paths(folder: Path) -> dict[str, Any]:
    names = {"secret", "open_secret", "writable", "database", "link"}
    site = next((path for path in sys.path if Path(path, "pytest").is_dir()), str(REPOSITORY))
    return {name: f"{folder}/{name}" for name in names} | {
        "folder": str(folder),
        "open_folder": f"{folder}/open",
        "library": f"{folder}/own.so",
        "repository": str(REPOSITORY),
        "packages": site,
        "package": "pytest" if site != str(REPOSITORY) else "meta_functions",
        "host": os.getpid(),
        "host_name": _HOST_NAME,
        "machine": next(
            (path for path in ("/etc/machine-id", "/etc/hostname") if Path(path).exists()),
            "/etc/passwd",
        ),
        "home": str(next(Path.home().iterdir(), Path.home()))
        if os.access(Path.home(), os.R_OK)
        else "/etc/passwd",
        "cgroup": _group(),
        "forged": "forged",
        "granted": ".",  # where an attempt may write
        "stays_s": 0.6,  # how long its child lives, so that it can be observed
        "neighbours": [],
    }


def _group() -> str:
    """Return the process list of the top-level cgroup: groups below come and go."""
    tops = (
        Path("/sys/fs/cgroup", kind, "cgroup.procs")
        for kind in ("", "pids", "unified", "memory", "cpu")
    )
    return str(next((path for path in tops if path.exists()), "/sys/fs/cgroup/cgroup.procs"))


def _lay_out(folder: Path) -> None:
    folder.chmod(0o755)
    for name, mode in (("secret", 0o600), ("open_secret", 0o644), ("writable", 0o666)):
        (folder / name).write_text(SECRET)
        (folder / name).chmod(mode)
    (folder / "outside.py").write_text(f"SECRET = {SECRET!r}")
    (folder / "outside.zip").write_bytes(_archive())
    (folder / "database").write_bytes(_database())
    (folder / "own.so").write_bytes(_library())
    (folder / "link").symlink_to("secret")
    (folder / "open").mkdir()
    for name, mode in (("database", 0o666), ("open", 0o777)):
        (folder / name).chmod(mode)


@cache
def _archive() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("packed.py", f"SECRET = {SECRET!r}")
    return buffer.getvalue()


@cache
def _database() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "database")
        connection = sqlite3.connect(path)
        connection.execute("create table secrets (text)")
        connection.execute("insert into secrets values (?)", (SECRET,))
        connection.commit()
        connection.close()
        return path.read_bytes()


@cache
def _library() -> bytes:
    found = [Path(each, "libz.so.1") for each in ("/lib/x86_64-linux-gnu", "/usr/lib64", "/lib64")]
    return next((path.read_bytes() for path in found if path.exists()), b"")


def _victim(folder: Path, descriptor: int, stack: ExitStack) -> "subprocess.Popen[bytes]":
    victim = subprocess.Popen(
        ["/bin/sleep", "600"], env={VARIABLE: SECRET}, cwd=folder, pass_fds=[descriptor]
    )

    def end() -> None:
        victim.kill()
        victim.wait()

    stack.callback(end)
    return victim


def _address(pid: int) -> int:
    """Return an address in the victim's memory."""
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
        return next(
            (int(line.split("-")[0], 16) for line in lines if "[heap]" in line or " rw" in line),
            4096,
        )
    return 4096


def _listen(folder: Path, mark: str) -> tuple[list[socket.socket], dict[str, Any]]:
    tcp = socket.create_server(("127.0.0.1", 0))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("127.0.0.1", 0))
    path, datagram, abstract = (socket.socket(socket.AF_UNIX, kind) for kind in (1, 2, 1))
    for listener, address in (
        (path, f"{folder}/s"),
        (datagram, f"{folder}/d"),
        (abstract, f"\0{mark}"),
    ):
        listener.bind(address)
    for listener in (path, abstract):
        listener.listen()
    for address in ("s", "d"):
        (folder / address).chmod(0o777)
    told = {"tcp": tcp.getsockname()[1], "tcp6": 1, "udp": udp.getsockname()[1], "abstract": mark}
    listeners = [tcp, udp, path, datagram, abstract]
    with suppress(OSError):  # a machine without IPv6
        newer = socket.create_server(("::1", 0), family=socket.AF_INET6)
        listeners.append(newer)
        told["tcp6"] = newer.getsockname()[1]
    for listener in listeners:
        listener.setblocking(False)
    return listeners, told | {"unix": f"{folder}/s", "unix_datagram": f"{folder}/d"}


def heed_signals() -> None:
    """Record when an attempt signals this process."""
    signal.signal(signal.SIGUSR1, lambda number, _frame: signalled.append(number))
