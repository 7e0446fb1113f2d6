"""Errors as people read them, the log that `--debug` turns on, and the files that keep the traceback of a crash.

An expected error is shown as its message and a suggested fix, an unexpected one as a short message and the name of the
file with the traceback.
"""

import logging
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path

from agent_core.base import machine
from agent_core.base.errors import KnapperError, UsageError
from agent_core.base.untrusted import one_line, visible
from sandbox.wire.lines import bare_lines

from .result import print_json
from .styled_lines import Line, line, write

REFUSED, USAGE = 1, 2
_MOST_KEPT = 20

_OPTIONS = {
    "the settings `model.base_url` and `model.name`": "--base-url URL --model NAME",
    "the setting `model.base_url`": "--base-url URL",
    "the setting `model.name`": "--model NAME",
    "`verify=False` of the agent": "--no-verify",
    "another of its conversations": (
        "`--conversation new` for another one, `run --once` for one question"
    ),
}


def with_options(fix: str) -> str:
    """Return a fix phrased for the command line, which has options for what programs and files set."""
    for setting, option in _OPTIONS.items():
        fix = fix.replace(setting, option)
    return fix


def fault_lines(message: str, fix: str = "") -> list[Line]:
    """Return lines with the error message and the suggested fix."""
    first, *others = bare_lines(message) or [""]
    lines = [line(("bad", "✗ "), first), *(line("  ", text) for text in others)]
    return [*lines, *(line("  ", ("strong", text)) for text in bare_lines(with_options(fix)))]


def turn_fault(agent: str, error: KnapperError) -> Line:
    """Return a line that says why an agent's turn ended or, without an agent, why no turn can begin."""
    return line(("bad", f"{agent or 'Cannot start a turn'}: {with_options(str(error))}"))


def report(error: KnapperError, *, as_json: bool) -> int:
    """Report an expected error and return the exit code."""
    traced(error)
    tell(error.code, error.message, error.fix, as_json=as_json)
    return USAGE if isinstance(error, UsageError) else REFUSED


def report_crash(error: BaseException, root: Path, *, as_json: bool) -> int:
    """Write the traceback of an unexpected error to a file, report its path, and return the exit code."""
    fix = f"{keep_traceback(error, root)} What was said is on disk."
    tell("internal", _crash_message(error), fix, as_json=as_json)
    return REFUSED


def crash_line(error: BaseException, root: Path) -> Line:
    """Write the traceback of an unexpected error to a file and return a one-line report, when the program continues."""
    told = f"{_crash_message(error)} {keep_traceback(error, root)} "
    return line(("bad", "✗ "), told, ("strong", "Continue, or type /retry."))


def tell(code: str, message: str, fix: str, *, as_json: bool) -> None:
    """Print one failure: as text on standard error for people, as JSON for scripts."""
    if as_json:
        print_json({"error": {"code": code, "message": message, "fix": with_options(fix) or None}})
    else:
        write(fault_lines(message, fix), sys.stderr)


def innermost(error: BaseException) -> BaseException:
    """Return the single error inside nested one-element exception groups, as task groups create them."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _crash_message(error: BaseException) -> str:
    message = f"Knapper failed: {type(error).__name__}: {one_line(_mask(str(error)), 400)}".rstrip(
        ": "
    )
    return f"{message}."


def keep_traceback(error: BaseException, root: Path) -> str:
    """Write the traceback of an unexpected error to a file and return a sentence with its path.

    The state folder keeps the newest ones, because a server may write many.
    """
    traced(error)
    try:
        text = _mask("".join(traceback.format_exception(error)))
        state = root / ".knapper"
        is_usable = os.access(state, os.W_OK) and not state.is_symlink()
        folder = state if is_usable else Path(tempfile.gettempdir())  # an OSError if there is none
        handle, path = tempfile.mkstemp(
            ".log", f"crash-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-", folder
        )
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        for old in sorted(state.glob("crash-*.log"))[:-_MOST_KEPT] if is_usable else ():
            old.unlink(missing_ok=True)
    except OSError as failure:
        return f"The traceback could not be kept: {failure.strerror}."
    return f"The traceback is in {path}; please report it."


def _mask(text: str) -> str:
    from agent_core.access.secrets import REVEALED  # noqa: PLC0415  (only needed after an error)

    return REVEALED.clean(text)


# `--debug`: network traffic and the tracebacks of errors, on standard error or in a file.

LOG = logging.getLogger("agent_core")
"""The program's own log; silent unless the user enables it."""


class _Masked(logging.Formatter):
    """A log format without secrets or terminal control characters."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text."""
        from agent_core.access.secrets import REVEALED  # noqa: PLC0415  (slow to import; only needed for debugging)

        return visible(REVEALED.clean(super().format(record)))


def start_debugging() -> None:
    """Start logging to standard error."""
    _log_to(logging.StreamHandler())


def debug_file(root: Path) -> Path | None:
    """If logging is on, send it to a file from now on, because the prompt uses the screen. Return the file."""
    if not LOG.isEnabledFor(logging.DEBUG):
        return None
    state = root / ".knapper"
    folder = (
        state
        if state.is_dir() and not state.is_symlink()
        else Path(tempfile.mkdtemp(prefix="knapper-"))
    )
    path = folder / "debug.log"
    path.unlink(missing_ok=True)
    os.close(os.open(path, machine.MAKING, 0o600))
    _log_to(logging.FileHandler(path, encoding="utf-8", errors="backslashreplace"))
    return path


def traced(error: BaseException) -> None:
    """Log the traceback of an error that is shown to the user as a message."""
    LOG.debug("%s", error, exc_info=error)


def _log_to(handler: logging.Handler) -> None:
    handler.setFormatter(_Masked("%(asctime)s %(message)s"))
    LOG.handlers[:] = [handler]
    LOG.setLevel(logging.DEBUG)
    LOG.propagate = False
