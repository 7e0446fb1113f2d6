"""The canaries of the self-test: trusted code that tries everything that function code must not be able to do."""

import _thread
import errno
import importlib
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from ..confine.calls import number
from ..wire.protocol import Frame

_ASKED = ("bpf", "io_uring_setup", "keyctl", "ptrace")
_NEW_USER = 0x10000000
_NO_REQUEST = 0x7FFFFFFF


def run_self_test(folder: str, port: int) -> Frame:
    """Run the canaries. Return the attempts that escaped, and the features that are broken."""
    secret = Path(folder, "secret")
    attempts: dict[str, Callable[[], object]] = {
        "read": secret.read_text,
        "write": lambda: Path(folder, "written").write_text("x"),
        "change": lambda: secret.write_text("x"),
        "chmod": lambda: secret.chmod(0o600),
        "connect": lambda: socket.create_connection(("127.0.0.1", port), 1),
        "fork": _fork,
        "exec": _exec,
        "signal": lambda: os.kill(os.getppid(), 0),
        "new code": _new_code,
        **{f"call {name}": _raw(name) for name in _ASKED},
        "unshare": _raw("unshare", _NEW_USER),
    }
    needs: dict[str, Callable[[], object]] = {
        "scratch": lambda: Path("probe").write_text("x"),
        "threads": lambda: _thread.start_new_thread(int, ()),
        "imports": lambda: [
            importlib.import_module(name) for name in ("decimal", "hashlib", "csv", "zoneinfo")
        ],
        "socketpair": _talk_to_itself,
    }
    escaped = [name for name, attempt in attempts.items() if _works(attempt)]
    broken = [name for name, need in needs.items() if not _works(need)]
    return {"kind": "canaries", "escaped": escaped, "broken": broken, "python": sys.version}


def _works(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except (OSError, ImportError, RuntimeError, AttributeError):  # refused, or not available at all
        return False
    return True


def _talk_to_itself() -> None:
    sender, receiver = socket.socketpair()
    sender.send(b"x")
    receiver.recv(1)


def _exec() -> None:
    try:
        os.execv("/no/such/program", ["program"])
    except FileNotFoundError:  # the kernel looked for it, so it would have run it
        return


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)


def _new_code() -> None:
    import mmap  # noqa: PLC0415 - a component has none

    mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)


def _raw(name: str, argument: int = _NO_REQUEST) -> Callable[[], object]:
    """Return a system call with harmless arguments; only a refusal of the call itself counts as confined."""

    def call() -> None:
        import ctypes  # noqa: PLC0415 - a component has none

        result = ctypes.CDLL(None, use_errno=True).syscall(number(name), argument, 0, 0, 0, 0)
        if result < 0 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
            raise OSError(ctypes.get_errno(), "refused")

    return call
