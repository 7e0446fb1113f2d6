"""Databases that were not granted beforehand: `sqlite3.connect` reads a copy of what the user grants at the call."""

import errno
import functools
import io
import os
from pathlib import Path
from typing import Any

from .files import Opener


def _database(address: object) -> object:
    """Return the path in the address of a database."""
    if not isinstance(address, str) or not address.startswith("file:"):
        return address
    from urllib.parse import unquote  # noqa: PLC0415 - few workers need it

    return unquote(address.removeprefix("file:").partition("?")[0].partition("#")[0])


def connect(module: Any) -> None:  # sqlite3.dbapi2
    """Let `sqlite3.connect` read a copy of a database that the user grants at the call."""
    opener: Opener | None = getattr(io.open, "asks", None)
    if opener is None or hasattr(module.connect, "asks"):
        return
    real = module.connect

    @functools.wraps(real)
    def asking(database: Any, *arguments: Any, **more: Any) -> Any:  # as sqlite3 has it
        path = None if database == ":memory:" else opener.named(_database(database) if more.get("uri") else database)
        if path is None:
            return real(database, *arguments, **more)
        error: OSError | None = None
        if not opener.starts_elsewhere(path):
            try:
                return real(database, *arguments, **more)
            except module.OperationalError:
                error = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        copy = opener.copy(path, error)
        if copy is None:
            return real(database, *arguments, **more)
        quoted = copy.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        try:
            return real(f"file:{quoted}?mode=ro", *arguments, **{**more, "uri": True})
        except module.OperationalError:  # in a component no file is one to SQLite
            connection = real(":memory:", *arguments, **more)
            connection.deserialize(Path(copy).read_bytes())
            return connection

    asking.__dict__["asks"] = opener  # says that it is in place
    module.connect = asking
