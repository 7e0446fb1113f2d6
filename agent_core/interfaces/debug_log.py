"""`--debug`: what goes over the wire, and the tracebacks of errors, on standard error or in a file."""

import logging
import tempfile
from pathlib import Path

from agent_core.base.untrusted import visible

LOG = logging.getLogger("agent_core")
"""The program's own log: silent, unless the user asked for it."""


class _Masked(logging.Formatter):
    """A format without secrets, and without characters that act on a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text."""
        from agent_core.access.secrets import DISCLOSED  # noqa: PLC0415  (only who debugs pays for it)

        return visible(DISCLOSED.clean(super().format(record)))


def start_debugging() -> None:
    """Log to standard error from now on."""
    _log_to(logging.StreamHandler())


def debug_file(root: Path) -> Path | None:
    """Log to a file from now on, if at all, since the prompt has the screen; return the file."""
    if not LOG.isEnabledFor(logging.DEBUG):
        return None
    state = root / ".knapper"
    folder = state if state.is_dir() and not state.is_symlink() else Path(tempfile.mkdtemp(prefix="knapper-"))
    path = folder / "debug.log"
    path.unlink(missing_ok=True)
    path.touch(0o600)
    _log_to(logging.FileHandler(path, encoding="utf-8", errors="backslashreplace"))
    return path


def traced(error: BaseException) -> None:
    """Log the traceback of an error that the user sees as a message."""
    LOG.debug("%s", error, exc_info=error)


def _log_to(handler: logging.Handler) -> None:
    handler.setFormatter(_Masked("%(asctime)s %(message)s"))
    LOG.handlers[:] = [handler]
    LOG.setLevel(logging.DEBUG)
    LOG.propagate = False
