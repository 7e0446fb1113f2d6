"""The store of a workspace, according to its settings: a file in its folder, or a database; and the state in it.

The settings file travels with the folder and may come from someone else. If only that file names the database, the
user must confirm it before conversations are stored there.

A workspace on a read-only disk is opened as a temporary copy, for commands that change nothing.
"""

import os
import re
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from agent_core.access.grants.record import is_confirmed, shown
from agent_core.base import machine
from agent_core.base.clock import Clock
from agent_core.base.errors import StorageError
from agent_core.base.late import LateModule
from agent_core.base.plain_files import LARGEST_FILE, read_plain
from agent_core.base.records import dataclass
from agent_core.base.settings import FILE_NAME, Settings, load, storage_of_file
from agent_core.storage import (
    STATE,
    STATE_FILE,
    Store,
    open_store,
    prepare_state_dir,
    set_aside,
    workspace_id,
)

from .scaffold import existing

if TYPE_CHECKING:  # slow to import
    from . import portable
    from .portable import Moves
else:
    portable = LateModule("agent_core.workspace.portable")

CONFIRM: Final = "knapper storage confirm"


class UnconfirmedDatabase(StorageError):
    """An error for a database that only the workspace's file names; nothing is stored there."""

    code = "unconfirmed-database"

    def __init__(self, url: str) -> None:
        place = shown(_without_password(url))
        message = (
            f"{FILE_NAME} names the database {place}, which you did not confirm here, so nothing "
            "is sent to it. If you say yes, conversations and memory are kept there."
        )
        super().__init__(
            message, fix=f"If you trust it: {CONFIRM} (or export KNAPPER_STORAGE_URL=…)"
        )


def _without_password(url: str) -> str:
    """Return an address without its password. The host ends where a database ends it, so that no other is shown."""
    begin = url.find("://") + 3 if "://" in url else 0
    authority = re.split("[/?#]", url[begin:], maxsplit=1)[0]
    user, at, host = authority.rpartition("@")
    return f"{url[:begin]}{user.partition(':')[0]}{at}{host}{url[begin + len(authority) :]}"


def open_state(root: Path, settings: Settings, clock: Clock | None = None) -> Store:
    """Open the store of a workspace, whose times are those of the `clock`, by default this machine's.

    Raises:
        StorageError: the store cannot be used, or the user has not confirmed it.
        WorkspaceError: the state folder cannot be used.
    """
    folder = prepare_state_dir(root)
    named = storage_of_file(settings)
    if named is not None and not is_confirmed(*named):
        raise UnconfirmedDatabase(named[1])
    if settings.storage.url is None:
        return open_store(folder / STATE_FILE, clock=clock or Clock())
    return open_store(settings.storage.url, clock=clock or Clock(), workspace=workspace_id(folder))


_FUNCTIONS = "functions"


def is_read_only(root: Path) -> bool:
    """Check whether a workspace's state cannot be written, because of its disk, permissions or owner."""
    state = root / STATE
    if state.is_symlink() or not state.exists():
        return not os.access(root, os.W_OK)
    return not _is_own(state) or not all(
        os.access(path, os.W_OK) for path in (state, *state.glob(STATE_FILE))
    )


@contextmanager
def reading_copy(root: Path) -> Iterator[Path]:
    """Yield a temporary copy of a workspace's functions, settings and, if the user owns it, state; then delete it."""
    paths = [root / FILE_NAME]
    if not (root / _FUNCTIONS).is_symlink():
        paths += (
            Path(folder, name) for folder, _, names in os.walk(root / _FUNCTIONS) for name in names
        )
    if _is_own(root / STATE):
        paths += (
            path for path in (root / STATE).glob(f"{STATE_FILE}*") if not path.name.endswith("-shm")
        )
    with TemporaryDirectory(prefix="knapper-") as temporary:
        copy = Path(temporary)
        for path in paths:
            place = copy / path.relative_to(root)
            place.parent.mkdir(parents=True, exist_ok=True)
            with suppress(OSError):  # a link or a pipe, which the workspace does not read either
                place.write_bytes(read_plain(path, LARGEST_FILE))
        if (copy / STATE).is_dir():
            set_aside(copy / STATE / STATE_FILE, Clock())  # in the copy
        yield copy


def _is_own(path: Path) -> bool:
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == machine.user_id()


@dataclass(frozen=True, slots=True)
class WorkspaceState:
    """The store of a workspace, and the operations that move agents in and out of it."""

    store: Store
    moves: "Moves"
    root: Path
    folder: Path
    settings: Settings

    @property
    def agent(self) -> str:
        """The default agent, used where none is named."""
        return self.settings.agent

    def alone(self, agent: str) -> AbstractAsyncContextManager[None]:
        """Hold an agent with all its conversations exclusively while the block runs.

        Raises:
            AgentBusy: a process is running the agent.
        """
        return self.store.hold_agent(self.folder, agent)


@asynccontextmanager
async def state_of(store: Store, root: Path, settings: Settings) -> AsyncIterator[WorkspaceState]:
    """Provide the state of a workspace over an open connection to its store."""
    async with portable.opened_moves(store, root, settings) as moves:
        yield WorkspaceState(store, moves, root, prepare_state_dir(root), settings)


@asynccontextmanager
async def opened_state(root: Path) -> AsyncIterator[WorkspaceState]:
    """Open the state of a workspace, without loading functions or agents.

    Raises:
        NoWorkspace: there is no workspace; commands that only read do not create one.
    """
    root = existing(root)
    settings = load(root)
    store = open_state(root, settings)
    try:
        async with state_of(store, root, settings) as state:
            yield state
    finally:
        await store.close()
