"""The differences between operating systems, with substitutes for missing features.

The parts for Windows and macOS are written from the documentation of Python and of these systems, are type-checked for
them, and have **never been run** there. `tests/cli` tests Linux without these modules.

On Windows, Python cannot read a file's owner or mode: files in this user's profile count as this user's. A link that
replaces a file is not rejected there. Locks cover one byte far beyond the end of the file and are always exclusive, and
a folder is locked through a file in it.
"""

import asyncio
import os
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

if sys.platform == "win32":
    import msvcrt

    CLOEXEC: Final = os.O_NOINHERIT | os.O_BINARY
    DIRECTORY: Final = 0
    NOCTTY: Final = 0
    NOFOLLOW: Final = 0
    NONBLOCK: Final = 0
    KILLED: Final = signal.SIGTERM
    HANGS_UP: Final = signal.SIGBREAK  # also sent when a console is closed
else:
    import select

    try:
        import fcntl
        import pwd
        import resource
        import termios
    except (
        ImportError
    ):  # an unknown system: no locks, no resource limits, and no reading ahead from a terminal
        HAS_POSIX = False
    else:
        HAS_POSIX = True

    CLOEXEC: Final = os.O_CLOEXEC
    DIRECTORY: Final = os.O_DIRECTORY
    NOCTTY: Final = os.O_NOCTTY
    NOFOLLOW: Final = os.O_NOFOLLOW
    NONBLOCK: Final = os.O_NONBLOCK
    KILLED: Final = signal.SIGKILL
    HANGS_UP: Final = signal.SIGHUP

LOOKING: Final = os.O_RDONLY | NOFOLLOW | NONBLOCK | CLOEXEC
"""Flags for opening an unknown file for reading: links are not followed and pipes do not block."""
MAKING: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NOFOLLOW | CLOEXEC
TRY_AGAIN: Final = 75
"""The exit status that asks a supervisor to restart the process."""
_FAR: Final = 1 << 40  # beyond the locked files' data
_PAUSE_S: Final = 0.05
_LOCK_FILE: Final = ".lock"
_modes: Final = (
    threading.Lock()
)  # held while a terminal's modes change: each change writes back all of them
_OPEN_FILES: Final = Path("/proc/self/fd")
_SOCKETS: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENS: Final = "0A"
_PEER: Final = struct.Struct("3i")  # process, user, group
# The local addresses at which a connection to 127.0.0.1 arrives: 127.0.0.1, any address, and both in a dual-stack
# socket.
_ADDRESSES: Final = frozenset(
    {"0100007F", "00000000", "0" * 32, "0" * 16 + "FFFF0000" + "0100007F"}
)


def open_folder(folder: Path) -> int:
    """Return a descriptor for locking the folder. Raise OSError if it is missing, or a link."""
    if sys.platform == "win32":
        return os.open(folder / _LOCK_FILE, os.O_RDWR | os.O_CREAT | CLOEXEC, 0o600)
    else:  # noqa: RET505 - a type checker for the other system reads this branch, or does not
        return os.open(folder, os.O_RDONLY | DIRECTORY | CLOEXEC | NOFOLLOW)


def lock(descriptor: int, *, shared: bool = False) -> None:
    """Lock an open file or folder until it is closed, waiting as long as necessary."""
    if sys.platform == "win32":
        while not try_lock(descriptor):
            time.sleep(_PAUSE_S)
    elif HAS_POSIX:
        fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder while the block runs."""
    descriptor = open_folder(folder)
    try:
        lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file or folder until it is closed, or return False if another process has locked it."""
    if sys.platform == "win32":
        here = os.lseek(descriptor, 0, os.SEEK_CUR)
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        finally:
            os.lseek(descriptor, here, os.SEEK_SET)
    elif HAS_POSIX:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def lock_holder(*paths: Path) -> str:
    """Return a process that has locked one of these files, from Linux's list of locks; "" if there is none.

    The files are not opened for this: closing one again would drop the locks of this process on it.
    """
    if sys.platform != "linux":
        return ""
    try:
        held = [path.stat() for path in paths if path.exists()]
        lines = [line.split() for line in Path("/proc/locks").read_text("ascii").split("\n")]
    except OSError:
        return ""
    files = {
        f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}" for file in held
    }
    return next((line[4] for line in lines if len(line) > 5 and line[5] in files), "")


def is_stopped(process: int) -> bool:
    """Return whether a process is suspended, as by SIGSTOP or Ctrl-Z; False where only Linux could say."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text("utf-8", "replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[:1] == ["T"]


def has_terminal() -> bool:
    """Return whether this process has a terminal, from which it was begun: one of cron or of a service has none."""
    if sys.platform == "win32":
        return True
    else:  # noqa: RET505 - as above
        try:
            os.close(os.open(os.ctermid(), os.O_RDONLY | NOCTTY | CLOEXEC))
        except OSError:
            return False
        return True


def run_folders() -> list[Path]:
    """Return the folders for this user's local sockets, which may be missing; none on Windows.

    A program of cron has another environment than one at a terminal, so there are several; the first is preferred.
    """
    if sys.platform == "win32":
        return []
    else:  # noqa: RET505 - as above
        user = os.geteuid()
        bases = [os.environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{user}", "/tmp"]  # noqa: S108
        return [Path(base) / f"knapper-{user}" for base in dict.fromkeys(bases) if base]


Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def serve_locally(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]], path: Path
) -> asyncio.AbstractServer:
    """Serve a socket at a path that only this user may use.

    Raises:
        OSError: it cannot be bound; on Windows always.
    """
    if sys.platform == "win32":
        raise OSError("There are no local sockets.")
    else:  # noqa: RET506 - as above
        server = await asyncio.start_unix_server(serve, path)
        os.chmod(path, 0o600)  # noqa: PTH101
        return server


async def connect_locally(path: Path, limit: int) -> Streams:
    """Connect to such a socket; `limit` is the length of a line in bytes.

    Raises:
        OSError: nobody serves it; on Windows always.
    """
    if sys.platform == "win32":
        raise OSError("There are no local sockets.")
    else:  # noqa: RET506 - as above
        end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            end.setblocking(False)
            # At once, or not at all: asyncio takes the full queue of a stopped process for a connection.
            end.connect(os.fsencode(path))
            return await asyncio.open_unix_connection(sock=end, limit=limit)
        except BaseException:
            end.close()
            raise


def is_own_peer(writer: asyncio.StreamWriter) -> bool:
    """Return whether the process at the other end of a local socket is of this user; True if the system cannot say."""
    if sys.platform != "linux":
        return True
    else:  # noqa: RET505 - as above
        end = writer.get_extra_info("socket")
        data = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        return bool(_PEER.unpack(data)[1] == os.geteuid())


def user_id() -> int:
    """Return the user id of this process, comparable with `st_uid`; 0 on Windows, as for every file there."""
    if sys.platform == "win32":
        return 0
    else:  # noqa: RET505 - as above
        return os.geteuid()


def user_name(user: int) -> str:
    """Return a user's name and number, or only the number."""
    if sys.platform != "win32" and HAS_POSIX:
        try:
            return f"{pwd.getpwuid(user).pw_name} ({user})"
        except KeyError:
            pass
    return f"user {user}"


def is_own_port(port: int) -> bool:
    """Return whether every listener on a port of 127.0.0.1 belongs to this user or to root; False if unknown."""
    try:
        rows = [
            row.split()
            for table in _SOCKETS
            if table.exists()
            for row in table.read_text("ascii").splitlines()[1:]
        ]
        places = ((row[1].partition(":"), int(row[7])) for row in rows if row[3] == _LISTENS)
        owners = {
            owner
            for (at, _, number), owner in places
            if at in _ADDRESSES and int(number, 16) == port
        }
    except (OSError, ValueError, IndexError):
        return False
    return bool(owners) and owners <= {user_id(), 0}


def grants_others(status: os.stat_result, rights: int) -> bool:
    """Return whether a file's mode gives others one of these rights; on Windows False: the profile's ACL decides."""
    return sys.platform != "win32" and bool(status.st_mode & rights)


def change_mode(descriptor: int, mode: int) -> None:
    """Set the mode of an open file; no effect on Windows."""
    if sys.platform != "win32":
        os.fchmod(descriptor, mode)


def reopen(descriptor: int, path: str, flags: int) -> int:
    """Return another descriptor, opened with these flags, of the same file.

    Raises:
        OSError: it cannot be opened, or another file has taken its path where only the path leads to it.
    """
    if _OPEN_FILES.is_dir():
        return os.open(f"{_OPEN_FILES}/{descriptor}", flags)
    opened = os.open(path, (flags | NOFOLLOW) & ~os.O_TRUNC)
    if not os.path.samestat(os.fstat(opened), os.fstat(descriptor)):
        os.close(opened)
        raise FileNotFoundError(f"{path} was replaced")
    if flags & os.O_TRUNC:
        os.ftruncate(opened, 0)
    return opened


def read_at(descriptor: int, size: int, place: int) -> bytes:
    """Return up to `size` bytes of an open file from a position; on Windows not safe with other threads."""
    if sys.platform == "win32":
        os.lseek(descriptor, place, os.SEEK_SET)
        return os.read(descriptor, size)
    else:  # noqa: RET505 - as above
        return os.pread(descriptor, size, place)


def write_at(descriptor: int, data: bytes, place: int) -> int:
    """Write at a position of an open file and return the number of bytes; on Windows as for `read_at`."""
    if sys.platform == "win32":
        os.lseek(descriptor, place, os.SEEK_SET)
        return os.write(descriptor, data)
    else:  # noqa: RET505 - as above
        return os.pwrite(descriptor, data, place)


def bound(memory: int, files: int) -> None:
    """Limit this process: bytes of memory, number of open files, and no writing of files. No effect on Windows.

    macOS has no limit on address space: limits that it rejects are skipped.
    """
    if sys.platform != "win32" and HAS_POSIX:
        for kind, limit in (
            (resource.RLIMIT_AS, memory),
            (resource.RLIMIT_FSIZE, 0),
            (resource.RLIMIT_NOFILE, files),
            (resource.RLIMIT_CORE, 0),
        ):
            try:
                resource.setrlimit(kind, (limit, limit))
            except (OSError, ValueError):
                if sys.platform == "linux":
                    raise


def cores() -> int:
    """Return the number of processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def kill_group(process: int) -> None:
    """Kill a process that leads its own session, with the processes it started; on Windows only the process itself.

    Raises:
        ProcessLookupError: it has ended.
    """
    if sys.platform == "win32":
        os.kill(process, KILLED)
    else:
        os.killpg(process, KILLED)


def on_signal(number: signal.Signals, act: Callable[[], object]) -> None:
    """Call `act` in the running loop when a signal arrives, until `forget_signal`."""
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(number, act)
    except (
        NotImplementedError
    ):  # as on Windows, where the loop waits on completion ports, not descriptors
        signal.signal(number, lambda _number, _frame: loop.call_soon_threadsafe(act))


def forget_signal(number: signal.Signals) -> None:
    """Restore the default handling of a signal."""
    try:
        asyncio.get_running_loop().remove_signal_handler(number)
    except NotImplementedError:
        signal.signal(
            number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        )


def stopping() -> asyncio.Event:
    """Return an event that Ctrl-C and SIGTERM set. A second Ctrl-C ends the process as usual."""
    is_stopping = asyncio.Event()

    def stop() -> None:
        is_stopping.set()
        for name in (signal.SIGINT, signal.SIGTERM):
            forget_signal(name)

    for name in (signal.SIGINT, signal.SIGTERM):
        on_signal(name, stop)
    return is_stopping


def has_input(terminal: int, within_s: float = 0) -> bool:
    """Return whether terminal input waits to be read, or arrives within a time; on Windows, whether a key was pressed
    in the console.
    """
    if sys.platform == "win32":
        time.sleep(within_s)
        return msvcrt.kbhit()
    else:  # noqa: RET505 - as above
        return bool(select.select([terminal], [], [], within_s)[0])


def can_be_resumed() -> bool:
    """Tell whether this process has a shell that can resume it once it is suspended.

    The group of a session's leader has none. Linux then ignores the suspension; gVisor stops it for good.
    """
    if sys.platform == "win32":
        return False
    else:  # noqa: RET505 - as above
        return os.getsid(0) != os.getpgrp()


async def wait_for_input(terminal: int) -> None:
    """Wait until terminal input can be read: a line, or on Windows its first key."""
    loop, is_there = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(terminal, is_there.set)
    except (
        NotImplementedError
    ):  # as on Windows; looking again can be canceled, which a thread that reads cannot
        while not has_input(terminal):  # noqa: ASYNC110 - nothing sets an event
            await asyncio.sleep(_PAUSE_S)
        return
    try:
        await is_there.wait()
    finally:
        loop.remove_reader(terminal)


@contextmanager
def without_interrupt() -> Iterator[None]:
    """Ignore Ctrl-C meanwhile, where a terminal makes a signal of it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def without_echo(terminal: int) -> Iterator[None]:
    """Show nothing of what is typed meanwhile. What was typed before is discarded.

    (`getpass` shows it under gVisor, which does not know the call that does both at once.)
    """
    if sys.platform == "win32" or not HAS_POSIX:
        yield
    else:
        with _modes:
            before = termios.tcgetattr(terminal)
            hidden = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
            termios.tcsetattr(terminal, termios.TCSADRAIN, hidden)
        try:
            forget_typed(terminal)
            yield
        finally:
            with _modes:
                termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def forget_typed(terminal: int) -> None:
    """Discard unread terminal input, even half a line."""
    if sys.platform == "win32":
        read_typed(terminal)
    elif HAS_POSIX:
        try:
            termios.tcflush(terminal, termios.TCIFLUSH)
        except termios.error:  # gVisor has no such call
            read_typed(terminal)


def _read_at_once(terminal: int) -> bytes:
    typed = b""
    if sys.platform != "win32":  # which has no terminals of this kind
        before = termios.tcgetattr(terminal)
        at_once = [*before[:6], [*before[6]]]
        at_once[3] &= ~termios.ICANON
        at_once[6][termios.VMIN] = at_once[6][termios.VTIME] = 0
        try:  # for reads that never wait: gVisor ignores `VMIN`, and `terminal` itself is shared with a shell
            own = os.open(os.ttyname(terminal), os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError:  # a terminal from outside a container has no name here
            own = os.dup(terminal)
        try:
            termios.tcsetattr(terminal, termios.TCSANOW, at_once)
            while piece := os.read(own, 4096):
                typed += piece
        except BlockingIOError:  # nothing is left
            pass
        finally:
            termios.tcsetattr(terminal, termios.TCSANOW, before)
            os.close(own)
    return typed


def read_typed(terminal: int) -> bytes:
    """Read all pending terminal input, including half a line, which the terminal normally holds back."""
    if sys.platform == "win32":
        keys = ""
        while msvcrt.kbhit():
            keys += msvcrt.getwch()
        return keys.encode("utf-8", "replace")
    elif HAS_POSIX:  # noqa: RET505 - as above
        with _modes:
            return _read_at_once(terminal)
    return b""
