"""A damaged state file is put aside whole, with its log, and never deleted.

Of several processes that find it damaged one puts it aside: the others see that it has changed.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import apsw

from .connection import Clock, connect
from .faults import DAMAGE

COMPANIONS = ("-shm", "-wal", "")  # the file itself last: a new one must never meet the old one's log


def open_or_replace(path: Path, clock: Clock) -> tuple[apsw.Connection, str | None]:
    """A good connection, and a sentence if a damaged file was put aside for it."""
    try:
        return connect(path), None
    except DAMAGE:
        return replace(path, clock, is_damaged=lambda: not _opens(path))


def replace(path: Path, clock: Clock, *, is_damaged: Callable[[], bool]) -> tuple[apsw.Connection, str]:
    """A connection to a new file; the old one is put aside if it still is the damaged one."""
    with _alone(path):
        if not is_damaged():
            return connect(path), (
                f"The state file `{path}` was put aside or taken away by another process, "
                "and the work goes on with the one that is there now."
            )
        aside = _put_aside(path, clock)
        return connect(path), (
            f"The state file `{path}` was damaged. It is kept as `{aside.name}`, and a new one was begun: "
            "earlier conversations are in the kept file; functions are loaded from their folder."
        )


def _opens(path: Path) -> bool:
    try:
        connect(path).close()
    except DAMAGE:
        return False
    return True


def _put_aside(path: Path, clock: Clock) -> Path:
    stamp = datetime.fromtimestamp(clock.now(), UTC).strftime("%Y%m%dT%H%M%SZ")
    base = path.with_name(f"{path.name}.corrupt-{stamp}")
    aside, number = base, 1
    while aside.exists():
        number += 1
        aside = base.with_name(f"{base.name}-{number}")
    for suffix in COMPANIONS:
        part = Path(f"{path}{suffix}")
        if part.exists():
            part.rename(f"{aside}{suffix}")
    return aside


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    descriptor = os.open(path.with_name(f"{path.name}.recovery"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
