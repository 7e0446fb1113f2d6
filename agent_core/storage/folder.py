"""The folder `.knapper/`: private to this user, ignored by git, with one lock per agent.

The kernel releases a lock when its process ends for any reason. The lock file stays: it contains the owner's process
id, for the message to a second process, and its modification time is when the owner started.
"""

import asyncio
import errno
import os
import secrets
import shlex
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from io import FileIO
from pathlib import Path

from agent_core.base import folders, machine
from agent_core.base.errors import AgentBusy, WorkspaceError
from agent_core.base.plain_files import add_to, open_plain, read_plain
from agent_core.base.workspace_folder import STATE

from .names import line_named

STATE_FILE = "state.db"
BELL = "bell"  # a file next to the locks of agents
_ID_FILE = "workspace.id"
_ID_BYTES = 100


def prepare_state_dir(root: Path) -> Path:
    """Return the state folder of a workspace, created if missing.

    Raises:
        WorkspaceError: it cannot be created, or belongs to someone else.
    """
    folder = root / STATE
    try:
        _check_entries(folder)
        folder.mkdir(mode=0o700, exist_ok=True)
        folder.chmod(0o700)
        with suppress(FileExistsError), (folder / ".gitignore").open("x", encoding="utf-8") as file:
            file.write("*\n")
    except OSError as error:
        raise WorkspaceError(
            f"The state folder `{folder}` cannot be made: {error.strerror}.",
            fix="Use a folder that you may write to.",
        ) from error
    return folder


def own_folder(state: Path, *names: str, mode: int = 0o700) -> Path:
    """Return a folder below the state folder, created if missing: everything of this program there is made by this.

    The workspace may come from someone else, whose links must not lead what is written there elsewhere.

    Raises:
        OSError: it cannot be created, or it or a folder on the way to it is a link or not a folder.
    """
    place = state
    folder_fd = -1
    try:
        folder_fd = folders.hold(state, follows=False)
        for name in names:
            place /= name
            with suppress(FileExistsError):
                folders.make(name, folder_fd, mode)
            below = folders.hold_below(name, folder_fd)
            os.close(folder_fd)
            folder_fd = below
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise NotADirectoryError(
                errno.ENOTDIR, "it is a link, or not a folder", str(place)
            ) from error
        raise
    finally:
        if folder_fd >= 0:
            os.close(folder_fd)
    return place


def ring(state: Path) -> None:
    """Wake the runners of all processes at a workspace, after writing something that they must notice."""
    with suppress(OSError):
        add_to(own_folder(state, "agents") / BELL, b"")


def workspace_id(folder: Path) -> str:
    """Return the id of the workspace with this state folder; the first call creates it.

    Raises:
        OSError: it can be neither read nor created.
    """
    path = folder / _ID_FILE
    with suppress(FileExistsError), path.open("x", encoding="ascii") as file:
        file.write(secrets.token_hex(16))
    return read_plain(path, _ID_BYTES).decode("ascii", "replace")


def _check_entries(folder: Path) -> None:
    """Reject links in the folder: a workspace may come from someone else, and data must not be written outside it.

    A second name of the state is such a link, too; other files are checked as they are opened (`open_plain`).

    Also reject another owner, who could read it and change it during use; this applies to root, too.
    """
    entries = (
        [folder] if folder.is_symlink() or not folder.is_dir() else [folder, *folder.iterdir()]
    )
    for path in entries:
        try:
            status = path.lstat()
        except FileNotFoundError:  # not created yet, or just removed by another process
            continue
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            raise WorkspaceError(
                f"`{path}` is a link, or not a plain file, so nothing is written through it.",
                fix="Remove it if you did not put it there; to keep state elsewhere, move the whole workspace.",
            )
        if (
            status.st_nlink > 1
            and stat.S_ISREG(status.st_mode)
            and path.name.startswith(STATE_FILE)
        ):
            own = shlex.quote(str(path))
            raise WorkspaceError(
                f"`{path}` is the same file as another one (a hard link), so it is not written to: the other may be "
                "anyone's, and SQLite damages a database that is opened by two names.",
                fix=f"If the state is yours, make it a file of its own: cp -p {own} {own}.own && mv {own}.own {own}",
            )
        if status.st_uid != (user := machine.user_id()) and (
            path == folder or path.name.startswith(STATE_FILE)
        ):
            raise WorkspaceError(
                f"`{path}` belongs to {machine.user_name(status.st_uid)}, and you are {machine.user_name(user)}, "
                "so it is not used.",
                fix=f"Work as its owner, or make it yours: chown -R {user} {shlex.quote(str(folder))}",
            )


def open_lock(path: Path) -> int:
    """Return the descriptor of a file to lock, created if missing.

    Raises:
        OSError: it cannot be created, or is a link, another name of a file, or not a regular file.
    """
    flags = os.O_RDWR | os.O_CREAT | machine.CLOEXEC | machine.NOFOLLOW | machine.NONBLOCK
    return open_plain(path, flags)


def check_hold(line: str) -> None:
    """Check that a text is what can be held: the line of a conversation, or AGENT/NAME of a gate, with or without NAME.

    Raises:
        UsageError: it is not.
    """
    line_named(line.removesuffix("/"))


def busy_agent(line: str, owner: str = "") -> AgentBusy:
    """Return the error for a conversation in use by `owner`, or by this process if `owner` is empty."""
    agent, _, id = line.partition("/")
    which = f" (conversation {id})" if id else ""
    if owner:
        return AgentBusy(
            f"A turn of `{agent}`{which} runs in {owner}.",
            fix="Try again when it has ended, or interrupt it.",
        )
    return AgentBusy(
        f"Agent `{agent}`{which} is in use by this process, which has opened it before.",
        fix="Use the one that is open, or close it first: `aclose`, or the end of its `async with`.",
    )


def lock_agent(state_dir: Path, line: str) -> FileIO:
    """Return the file whose lock is the right to run a conversation, held until it is closed or the process ends.

    Raises:
        AgentBusy: another process holds it; the message names the process.
        UsageError: the name is not valid for an agent.
        WorkspaceError: the lock file cannot be created.
    """
    check_hold(line)
    path = state_dir / "agents" / f"{line.replace('/', '.')}.lock"
    try:
        own_folder(state_dir, path.parent.name)
        descriptor = open_lock(path)
    except OSError as error:
        fix = (
            "Remove it if it is a link, or not a plain file."
            if path.is_symlink() or path.exists()
            else ""
        )
        raise WorkspaceError(
            f"The lock `{path}` cannot be made: {error.strerror}.", fix=fix
        ) from error
    if not machine.try_lock(descriptor):
        busy = _busy_with(descriptor, line)
        os.close(descriptor)
        raise busy
    with suppress(OSError):  # on a full disk, who waits is not told for whom
        os.truncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
    return FileIO(descriptor, "r+")


def _busy_with(descriptor: int, line: str) -> AgentBusy:
    """Return the error for a lock that another process holds, which has written its number when it began."""
    process = os.read(descriptor, 32).decode(errors="replace").strip()
    if not process.isdecimal():  # not yet
        return busy_agent(line, "another process")
    if process == str(os.getpid()):
        return busy_agent(line, "this process")
    since = datetime.fromtimestamp(os.fstat(descriptor).st_mtime).astimezone()
    owner = f"process {process} (since {since:%Y-%m-%d %H:%M:%S})"
    if not machine.is_stopped(int(process)):
        return busy_agent(line, owner)
    busy = busy_agent(line, f"{owner}, which is stopped")
    busy.fix = f"Let it go on: kill -CONT {process} (or fg, in its shell). If it is killed, this one goes on with it."
    busy.is_stopped = True
    return busy


class NoTurn(WorkspaceError):
    """Another process holds the lock, or the lock cannot be created. Nothing was changed."""

    code = "no-turn"


_WRITE_LOCK = "write.lock"
_PATIENCE_S = 10.0
_PAUSE_S = 0.01


@asynccontextmanager
async def only_writer(state: Path) -> AsyncIterator[None]:
    """Be the only process that changes the functions of a workspace, while the block runs.

    From the check of a file to its replacement, and on to the rows, no other process may write: otherwise the second
    writer would undo a change that the first has reported as done.

    Raises:
        NoTurn: another process holds the lock too long, or it cannot be created.
    """
    try:
        descriptor = open_lock(state / _WRITE_LOCK)
    except OSError as error:
        raise NoTurn(
            f"The lock `{state / _WRITE_LOCK}` cannot be made: {error.strerror}."
        ) from error
    try:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while not machine.try_lock(descriptor):  # noqa: ASYNC110 - the kernel tells no event of another process
                    await asyncio.sleep(_PAUSE_S)
        except TimeoutError as error:
            raise NoTurn(
                "Another process is changing functions and does not finish.", fix="Try again."
            ) from error
        yield
    finally:
        os.close(descriptor)
