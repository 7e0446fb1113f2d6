"""`knapper` in its own process, as `python -m knapper` starts it, but forked from one that has imported it.

Tests of a cold start run `KNAPPER`; hundreds of those here would cost a second each.
"""

import gc
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from fcntl import ioctl
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryFile
from termios import TIOCSCTTY
from typing import IO

from agent_core.model.dialect import quirks
from agent_core.runtime.host_functions import parameters
from agent_core.storage.sqlite.connection import blank
from knapper.__main__ import main
from tests.kit.levels import FORCED, IS_PORTABLE, lend
from tests.kit.waiting import patience_s

_REPOSITORY = Path(__file__).resolve().parents[2]
FORKING = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload(
    [
        __name__,
        "knapper.shell.cli",
        "knapper.shell.commands.run",
        "knapper.prompt.terminal",
        "knapper.prompt.plain",
        "knapper.prompt.app",
        "knapper.shell.shell_door",
        "agent_core.model.client",
        "meta_functions.functions",
        "meta_functions.memory",
        "meta_functions.talk",
        "tests.crash.storage_work",
        # Imported by those on demand:
        "agent_core.access.packages.environment",
        "agent_core.functions.service.changes",
        "agent_core.functions.service.file_checks",
        "agent_core.functions.service.memgpt_functions",
        "knapper.shell.commands.setup",
        "agent_core.workspace.portable.moves",
        "dateparser.date",
        "encodings.ascii",
        "pydantic_settings",
        "rich._unicode_data.unicode17-0-0",
        "agent_core.functions.gate.gate",
        "agent_core.functions.sandbox_client",
        "agent_core.functions.service.call_service",
        "agent_core.functions.service.grant_service",
        "agent_core.functions.service.version_history",
        "agent_core.registry.watch",
        "agent_core.workspace.agent_factory",
        "agent_core.workspace.model_opener",
        "agent_core.workspace.portable.document",
        "anyio._backends._asyncio",
        "httpcore2",
        "numpy",
        "prompt_toolkit.input.vt100",
        "stringprep",
        "tomllib",
        "tests.kit.warm",  # the last one
    ]
)
# Computed once by a program, when it first creates and opens a workspace:
blank()
parameters()
quirks()


class Program:
    """The command line running in a process, with the standard streams given to it."""

    def __init__(
        self,
        arguments: Sequence[str],
        streams: Sequence[int],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        first: str = "",
    ) -> None:
        """`first` is code that runs before the program begins."""
        ends = [Connection(os.dup(stream)) for stream in streams]
        given = (list(arguments), ends, str(cwd), dict(environment), first)
        self._process = FORKING.Process(target=_become, args=given)
        self._process.start()
        for end in ends:
            end.close()

    @property
    def pid(self) -> int:
        return self._process.pid or 0

    def poll(self) -> int | None:
        """Return the exit code if the process has ended."""
        return self._process.exitcode

    def wait(self, timeout_s: float | None = None) -> int:
        """Wait for the process to end and return its exit code."""
        self._process.join(timeout_s)
        if (code := self.poll()) is None:
            raise subprocess.TimeoutExpired("knapper", timeout_s or 0)
        return code

    def kill(self) -> None:
        self._process.kill()


def python(
    program: Path | str,
    *arguments: str,
    cwd: Path,
    given: str | bytes = "",
    environment: Mapping[str, str] | None = None,
    first: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run a file, or a module by name, to its end as the main program, in a process that has imported the library."""
    run, more = (
        ("run_path", "") if isinstance(program, Path) else ("run_module", ", alter_sys=True")
    )
    call = f"runpy.{run}({str(program)!r}, run_name='__main__'{more})"
    code = f"{first}\nimport runpy, sys\nsys.argv[0] = {str(program)!r}\n{call}\nsys.exit()"
    return knapper(*arguments, cwd=cwd, given=given, environment=environment, first=code)


def knapper(
    *arguments: str,
    cwd: Path,
    given: str | bytes = "",
    environment: Mapping[str, str] | None = None,
    first: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run the program to its end without a terminal; `first` is code that runs before it begins."""
    with TemporaryFile() as typed, TemporaryFile() as out, TemporaryFile() as err:
        typed.write(given.encode() if isinstance(given, str) else given)
        typed.seek(0)
        streams = [file.fileno() for file in (typed, out, err)]
        program = Program(
            arguments, streams, cwd=cwd, environment=surroundings(environment or {}), first=first
        )
        most_s = 3 * patience_s()  # a whole program, which may judge many functions
        try:
            code = program.wait(most_s)
        except subprocess.TimeoutExpired:
            message = f"waited {most_s:.0f} s for the end of knapper {' '.join(arguments)}"
            raise AssertionError(f"{message}; it printed:\n{_text(out)}{_text(err)}") from None
        finally:
            program.kill()
        return subprocess.CompletedProcess(["knapper", *arguments], code, _text(out), _text(err))


def children(named: bytes = b"") -> set[int]:
    """Return the processes that this one has started and that still run, those with these bytes in their command."""
    found = set()
    for place in Path("/proc").glob("[0-9]*"):  # not every kernel lists a process's children
        with suppress(OSError):
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and named in (place / "cmdline").read_bytes():
                found.add(int(place.name))
    return found


def surroundings(given: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a program: the given variables, and as little as possible of ours."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    around = {**kept, "PYTHONPATH": str(_REPOSITORY), **given}
    if IS_PORTABLE:
        lend(
            Path(
                around.get("XDG_DATA_HOME")
                or Path(around.get("HOME", "~"), ".local/share").expanduser()
            )
        )
        around.setdefault("KNAPPER_SANDBOX_LEVEL", FORCED)
    return around


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


def _become(
    arguments: list[str], ends: list[Connection], cwd: str, environment: dict[str, str], first: str
) -> None:
    """Do in the child what the kernel and the interpreter do before a program's first line."""
    gc.freeze()  # garbage collection of the server's objects would copy them all
    os.setsid()
    for number, end in enumerate(ends):
        os.dup2(end.fileno(), number)
        end.close()
    if os.isatty(0):
        ioctl(0, TIOCSCTTY, 0)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv = ["knapper", *arguments]
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", closefd=False)  # type: ignore[misc]  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(  # type: ignore[misc]  # noqa: SIM115
        2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False
    )
    exec(first, {})
    main()
