"""The one place where an error becomes what a human or a script reads, and an exit code.

A foreseen error is its message and what to do next. An unforeseen one is a short message and the
name of a file that holds the traceback: this is the interface's top edge.
"""

import os
import sys
import tempfile
import time
import traceback
from pathlib import Path

from agent_core.errors import ToolwrightError, UsageError

from .scene import print_json
from .spans import Line, line, write
from .wrap import fitted

REFUSED, USAGE = 1, 2


def fault_lines(message: str, mend: str = "") -> list[Line]:
    """What went wrong, and what to do next."""
    first, *others = message.splitlines() or [""]
    lines = [line(("bad", "✗ "), first), *(line("  ", other) for other in others)]
    return [*lines, *(line("  ", ("strong", each)) for each in mend.splitlines())]


def report(error: ToolwrightError, *, as_json: bool) -> int:
    """Tell about a foreseen error; returns the exit code."""
    tell(error.code, error.message, error.mend, as_json=as_json)
    return USAGE if isinstance(error, UsageError) else REFUSED


def report_crash(error: BaseException, root: Path, *, as_json: bool) -> int:
    """Keep the traceback of an unforeseen error in a file, and tell where."""
    kept = _keep(error, root)
    message = f"Toolwright failed: {type(error).__name__}: {error}".rstrip(": ")
    mend = f"The traceback is in {kept}; please report it. What was said is on disk."
    tell("internal", f"{message}.", mend, as_json=as_json)
    return REFUSED


def tell(code: str, message: str, mend: str, *, as_json: bool) -> None:
    """Print one failure: on standard error for people, as a document for scripts."""
    if as_json:
        print_json({"error": {"code": code, "message": message, "mend": mend or None}})
    else:
        write(fitted(fault_lines(message, mend), sys.stderr), sys.stderr)


def innermost(error: BaseException) -> BaseException:
    """The one error inside groups of one, which task groups wrap around what failed in them."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _keep(error: BaseException, root: Path) -> Path:
    text = "".join(traceback.format_exception(error))
    name = f"crash-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    state = root / ".toolwright"
    folder = state if os.access(state, os.W_OK) else Path(tempfile.gettempdir())
    handle = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
    return folder / name
