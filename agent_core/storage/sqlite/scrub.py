"""A state file written anew after forgetting, so that nothing of what was forgotten is left in it.

A deleted row leaves its bytes in the file until something else needs the place. So what is deleted is overwritten, the
file is vacuumed and its log emptied. A mark next to the file says that this is under way: if the program ends in
between, the next opening does it.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

import apsw

from .connection import bounded

SCRUB: Final = ".scrub"
_SCRUB_S: Final = 3_600.0


def scrub(db: apsw.Connection, path: Path) -> None:
    """Write the file anew, so that nothing is left in it of rows that are gone, and empty its log.

    Readers are waited for, `BUSY_MS` at most: while one reads an earlier state, the log keeps what was forgotten.

    Raises:
        apsw.BusyError: one goes on reading, or writing; the mark stays.
    """
    with bounded(db, _SCRUB_S):
        list(db.execute("vacuum"))
        # A reader is reported in this row, not by an error.
        ((is_busy, _, _),) = db.execute("pragma wal_checkpoint(truncate)")
    if is_busy:
        raise apsw.BusyError("the log is read")
    Path(f"{path}{SCRUB}").unlink(missing_ok=True)


def scrub_if_due(db: apsw.Connection, path: Path) -> None:
    """Scrub a file if that was begun and not ended; one that others use is scrubbed another time."""
    if Path(f"{path}{SCRUB}").exists():
        with suppress(apsw.BusyError, apsw.LockedError):
            scrub(db, path)
