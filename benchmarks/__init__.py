"""Benchmarks: `python -m benchmarks.NAME` prints a table; none of them ship."""

import atexit
import os
import select
import sys
from types import TracebackType


def _end_quietly(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print no traceback if the reader of the table has gone away, as `| head` does."""
    group = error if isinstance(error, BaseExceptionGroup) else BaseExceptionGroup("", [error])
    if group.split(BrokenPipeError)[1] is None and _is_unread():
        return
    sys.__excepthook__(kind, error, trace)


def _is_unread() -> bool:
    """Check whether the reader of the output has gone; if so, discard all further output."""
    poll = select.poll()
    poll.register(sys.stdout, select.POLLOUT)
    is_unread = any(event & select.POLLERR for _, event in poll.poll(0))
    if is_unread:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return is_unread


if sys.argv[0] == "-m":
    sys.excepthook = _end_quietly
    atexit.register(_is_unread)
