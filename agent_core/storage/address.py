"""The addresses of stores, and the only way to open one.

To add a database, write a subclass of `Store` with its own session, and add a scheme here; the contract tests in
`tests/storage/` run against any store.
"""

from importlib.util import find_spec
from pathlib import Path

from agent_core.base.errors import StorageError
from agent_core.base.own_installation import add_extra

from .sqlite import SqliteStore
from .store import Store
from .subject import StoreClock


def open_store(
    url: str | Path,
    *,
    clock: StoreClock,
    workspace: str = "",
    must_exist: bool = False,
) -> Store:
    """Open the store at this address, a new one if there is none, unless the file of one `must_exist`.

    The address is `sqlite:///PATH`, the path of its file alone, or `postgresql://USER@HOST/DATABASE` in libpq's format.
    A database belongs to the first `workspace` id that opens it.

    Raises:
        StorageError: the scheme is unknown, the store cannot be opened, or a newer program created it.
    """
    scheme, separator, place = ("", "", "") if isinstance(url, Path) else url.partition("://")
    if not separator:
        return _open_file(Path(url), clock, must_exist=must_exist)
    if scheme in ("postgresql", "postgres"):
        if find_spec("psycopg") is None:
            message = "A store in PostgreSQL needs the package psycopg, which is not installed."
            raise StorageError(message, fix=f"Type: {add_extra('postgres')}")
        from .postgres import PostgresStore  # noqa: PLC0415 an extra

        return PostgresStore.open(str(url), clock, workspace)
    if scheme != "sqlite" or not place.startswith("/") or place == "/":
        fix = "Use sqlite:///PATH, or the path of a file, or postgresql://USER@HOST/DATABASE."
        raise StorageError(f"No store can be opened at `{url}`.", fix=fix)
    return _open_file(Path(place[1:]), clock, must_exist=must_exist)


def _open_file(path: Path, clock: StoreClock, *, must_exist: bool) -> Store:
    if must_exist and not path.exists():
        raise StorageError(
            f"There is no state at {path}.", fix="Name the file of one, such as .knapper/state.db."
        )
    return SqliteStore.open(path, clock)
