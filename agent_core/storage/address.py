"""The addresses of stores, and the only way to open one.

A database beside the core is a subclass of `Store` with its own session, in an extension that names its schemes; the
contract tests in `tests/storage/` run against any store.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from agent_core.base.errors import StorageError
from agent_core.base.extensions import STORES, offers, what_else

from .sqlite import SqliteStore
from .store import Store
from .subject import StoreClock

OpenStore: TypeAlias = Callable[[str, StoreClock, str], Store]  # by address, clock, workspace id


def open_store(
    url: str | Path,
    *,
    clock: StoreClock,
    workspace: str = "",
    must_exist: bool = False,
) -> Store:
    """Open the store at this address, a new one if there is none, unless the file of one `must_exist`.

    The address is `sqlite:///PATH`, the path of its file alone, or one whose scheme an extension knows. A database
    belongs to the first `workspace` id that opens it.

    Raises:
        StorageError: the scheme is unknown, the store cannot be opened, or a newer program created it.
    """
    scheme, separator, place = ("", "", "") if isinstance(url, Path) else url.partition("://")
    if not separator:
        return _open_file(Path(url), clock, must_exist=must_exist)
    if scheme == "sqlite" and place.startswith("/") and place != "/":
        return _open_file(Path(place[1:]), clock, must_exist=must_exist)
    stores: dict[str, OpenStore] = offers(STORES)
    if scheme not in stores:
        others = "".join(f", or {other}://…" for other in stores)
        fix = f"Use sqlite:///PATH, or the path of a file{others}. {what_else()}"
        raise StorageError(f"No store can be opened at `{url}`.", fix=fix)
    return stores[scheme](str(url), clock, workspace)


def _open_file(path: Path, clock: StoreClock, *, must_exist: bool) -> Store:
    if must_exist and not path.exists():
        raise StorageError(
            f"There is no state at {path}.", fix="Name the file of one, such as .knapper/state.db."
        )
    return SqliteStore.open(path, clock)
