"""The store in a PostgreSQL database that several machines may share: addresses `postgresql://…`, in libpq's format."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from agent_core.base.errors import StorageError
from agent_core.base.own_installation import add_extra

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_core.storage import Store
    from agent_core.storage.address import OpenStore
    from agent_core.storage.subject import StoreClock


def _open(url: str, clock: "StoreClock", workspace: str) -> "Store":
    if find_spec("psycopg") is None:
        message = "A store in PostgreSQL needs the package psycopg, which is not installed."
        raise StorageError(message, fix=f"Type: {add_extra('postgres')}")
    from .store import PostgresStore  # noqa: PLC0415 an extra

    return PostgresStore.open(url, clock, workspace)


STORES: "Final[Mapping[str, OpenStore]]" = {"postgresql": _open, "postgres": _open}
