"""The folder `.toolwright/`: made so that nobody else reads it and git ignores it, with a lock per agent.

The kernel lets a lock go when its process ends, however it ends; the file stays and holds
the owner's number for the message to a second process; its time is when the owner began.
"""

import fcntl
import os
import re
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType

from ..errors import AgentBusy, UsageError, WorkspaceError

NAME = ".toolwright"
AGENT = re.compile(r"[A-Za-z0-9_-]{1,64}")


def prepare_state_dir(root: Path) -> Path:
    """The state folder of a workspace, made where it is missing.

    Raises:
        WorkspaceError: it cannot be made.
    """
    folder = root / NAME
    try:
        _refuse_links(folder)
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.stat().st_uid == os.geteuid():
            folder.chmod(0o700)
        with suppress(FileExistsError), (folder / ".gitignore").open("x", encoding="utf-8") as file:
            file.write("*\n")
    except OSError as error:
        raise WorkspaceError(
            f"The state folder `{folder}` cannot be made: {error.strerror}.",
            mend="Use a folder that you may write to.",
        ) from error
    return folder


def _refuse_links(folder: Path) -> None:
    """A workspace may come from somebody else: what is written here must not land in a file that a link names."""
    found = [folder] if folder.is_symlink() or not folder.is_dir() else [folder, *folder.iterdir()]
    for path in found:
        if path.is_symlink() or (path.exists() and not (path.is_file() or path.is_dir())):
            raise WorkspaceError(
                f"`{path}` is a link, or no plain file, so nothing is written through it.",
                mend="Remove it if you did not put it there; to keep state elsewhere, move the whole workspace.",
            )


class AgentLock:
    """The right to run an agent, held until it is closed or the process ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def close(self) -> None:
        """Let it go; a second time does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> "AgentLock":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def lock_agent(state_dir: Path, agent: str) -> AgentLock:
    """The lock of an agent.

    Raises:
        AgentBusy: another process holds it; the message names the process.
        UsageError: the name cannot be an agent's.
        WorkspaceError: the lock file cannot be made.
    """
    if not AGENT.fullmatch(agent):
        raise UsageError(f"`{agent}` cannot be an agent's name.", mend="Use up to 64 letters, digits, `_` and `-`.")
    path = state_dir / "agents" / f"{agent}.lock"
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        mend = "Remove it if it is a link." if path.is_symlink() else ""
        raise WorkspaceError(f"The lock `{path}` cannot be made: {error.strerror}.", mend=mend) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        busy = _busy(agent, descriptor)
        os.close(descriptor)
        raise busy from error
    os.truncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode())
    return AgentLock(descriptor)


def _busy(agent: str, descriptor: int) -> AgentBusy:
    process = os.read(descriptor, 32).decode(errors="replace").strip()
    since = datetime.fromtimestamp(os.fstat(descriptor).st_mtime).astimezone()  # when it wrote its number
    # It may have the lock and not have written its number yet.
    owner = f"process {process} (since {since:%Y-%m-%d %H:%M:%S})" if process.isdecimal() else "another process"
    return AgentBusy(
        f"Agent `{agent}` is in use by {owner}.",
        mend="Use `--agent NAME` for a second conversation, or end that process.",
    )
