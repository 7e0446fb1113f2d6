"""The store of a workspace, according to its settings: a file in its folder, or a database.

The settings file travels with the folder and may come from someone else. If only that file names the database, the
user must confirm it before conversations are stored there.
"""

import re
from pathlib import Path
from typing import Final

from agent_core.access.grants.addresses import is_confirmed, shown
from agent_core.base.clock import Clock
from agent_core.base.errors import StorageError
from agent_core.base.settings import FILE_NAME, Settings, storage_of_file
from agent_core.storage import STATE_FILE, Store, open_store, prepare_state_dir, workspace_id

_PASSWORD: Final = re.compile(r"(?<=[^/]):[^/@]*(?=@)")
CONFIRM: Final = "knapper storage confirm"


class UnconfirmedDatabase(StorageError):
    """An error for a database that only the workspace's file names; nothing is stored there."""

    code = "unconfirmed-database"

    def __init__(self, url: str) -> None:
        place = shown(_PASSWORD.sub("", url))
        message = (
            f"{FILE_NAME} names the database {place}, which you did not confirm here, so nothing "
            "is sent to it. If you say yes, conversations and memory are kept there."
        )
        super().__init__(message, fix=f"If you trust it: {CONFIRM} (or export KNAPPER_STORAGE_URL=…)")


def open_state(root: Path, settings: Settings) -> Store:
    """Open the store of a workspace.

    Raises:
        StorageError: the store cannot be used, or the user has not confirmed it.
        WorkspaceError: the state folder cannot be used.
    """
    folder = prepare_state_dir(root)
    named = storage_of_file(settings)
    if named is not None and not is_confirmed(*named):
        raise UnconfirmedDatabase(named[1])
    keep = settings.standing.keep_calls
    if settings.storage.url is None:
        return open_store(folder / STATE_FILE, clock=Clock(), keep_calls=keep)
    return open_store(settings.storage.url, clock=Clock(), keep_calls=keep, workspace=workspace_id(folder))
