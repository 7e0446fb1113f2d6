"""Whose a server on this machine is: the owner of the sockets that listen where it is asked, as Linux tells it.

Ports above 1023 are free to every user of a machine, so that a server found there may be somebody else's.
"""

import os
from pathlib import Path
from typing import Final

_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENS: Final = "0A"
# Where a connection to 127.0.0.1 arrives: there, at every address, and at the same two of a socket for both families.
_ADDRESSES: Final = frozenset({"0100007F", "00000000", "0" * 32, "0" * 16 + "FFFF0000" + "0100007F"})


def is_of_this_user(port: int) -> bool:
    """Return whether all that listens on a port of 127.0.0.1 belongs to this user or to root; False if unknown."""
    owners = _owners(port)
    return bool(owners) and owners <= {os.getuid(), 0}


def _owners(port: int) -> frozenset[int]:
    try:
        rows = [row.split() for table in _TABLES if table.exists() for row in table.read_text("ascii").splitlines()[1:]]
        return frozenset(int(row[7]) for row in rows if row[3] == _LISTENS and _is_at(row[1], port))
    except (OSError, ValueError, IndexError):
        return frozenset()


def _is_at(place: str, port: int) -> bool:
    address, _, number = place.partition(":")
    return address in _ADDRESSES and int(number, 16) == port
