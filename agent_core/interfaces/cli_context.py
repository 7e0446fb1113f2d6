"""The context of a command: its output, its debug log, shell completion of names, and what becomes of errors.

Results go to standard output, messages to standard error. An expected error is reported as its message and a suggested
fix, an unexpected one as a short message and the name of the file with the traceback.
"""

import functools
import gc
import json
import logging
import os
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from agent_core.base import machine
from agent_core.base.errors import KnapperError, UsageError
from agent_core.base.own_installation import add_extra
from agent_core.base.plain_files import read_plain
from agent_core.base.records import dataclass, field, to_json
from agent_core.base.untrusted import in_json, one_line, visible
from agent_core.base.user_folders import NoHome
from agent_core.base.workspace_folder import current_workspace
from sandbox.wire.lines import bare_lines
from sandbox.wire.strict_json import Malformed, read_toml

from .styled_lines import Line, line, write


class _WorkspacePath(click.Path):
    """A folder; an empty text, such as of a variable that is not set, is not the current one."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:  # Any: as in click
        if not str(value):
            self.fail("The name of a folder is empty.", param, ctx)
        return super().convert(value, param, ctx)


workspace_option = click.option(
    "--workspace",
    "-C",
    "root",
    type=_WorkspacePath(path_type=Path),
    metavar="DIR",
    help="The workspace; by default, the one here or above.",
)


@dataclass(frozen=True, slots=True)
class CliContext:
    """The workspace of a command and the format of its output."""

    root: Path
    as_json: bool
    server: str = ""
    """The address of the server that has the workspace; empty if the workspace is local."""
    token: str = field(default="", repr=False)

    @property
    def folder(self) -> Path:
        """The folder of the workspace, which must exist."""
        from agent_core.workspace.scaffold import existing  # noqa: PLC0415  (slow to import)

        return existing(self.root)

    def result(self, result: object, lines: Iterable[Line]) -> None:
        """Print the result: JSON for scripts, lines for people."""
        if self.as_json:
            print_json(result)
        else:
            write(lines, sys.stdout)

    def tell(self, *sentences: str) -> None:
        """Show the user messages that are not part of the result."""
        write([line(("dim", sentence)) for sentence in sentences], sys.stderr)

    def hint(self, sentence: str) -> None:
        """Suggest the next command to people; scripts do not get it."""
        if not self.as_json:
            self.tell(sentence)


@contextmanager
def loading() -> Iterator[None]:
    """Pause garbage collection during imports: they leave no garbage, and collection costs a tenth of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # loaded modules stay in memory
        gc.enable()


Command = Callable[..., int | None]


def workspace_command(
    command: Command,
    taken: Collection[str] = (),
    *,
    over_server: bool = False,
    searches: bool = True,
) -> Command:
    """Add `--json`, `--workspace` and `--debug` to a command, unless the name is `taken`, and pass its `CliContext` as
    the first argument. With `over_server`, the command can run on a server that has the workspace. If it `searches`, it
    uses the nearest workspace, otherwise the current folder.
    """
    has_debug = "--debug" not in taken
    about = "Show what goes over the wire, and tracebacks."
    debug: Callable[[Command], Command] = (
        click.option("--debug", is_flag=True, help=about) if has_debug else lambda command: command
    )

    @debug
    @click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output.")
    @workspace_option
    @functools.wraps(command)
    def prepared(as_json: bool, root: Path | None, **options: Any) -> int | None:  # noqa: FBT001  (click passes it)
        current = click.get_current_context()
        above: dict[str, Any] = {}  # Any: as in click
        group = current.parent
        while (
            group is not None
        ):  # an option that was not given does not hide one that was given further out
            given = {
                name: value
                for name, value in group.params.items()
                if value is not None and value is not False
            }
            above, group = given | above, group.parent
        if (has_debug and options.pop("debug")) or above.get("debug"):
            start_debugging()
        root, as_json = root or above.get("root"), as_json or bool(above.get("as_json"))
        server, token = above.get("server"), above.get("token") or ""
        if server == "" or (server is None and token) or (server and root):
            raise UsageError(
                "--server needs an address; --token needs --server, and -C excludes it."
            )
        if server and not over_server:
            name = current.command_path
            raise UsageError(
                f"`{name}` does not work over a server.", fix="Run it where the workspace is."
            )
        if not server:
            root = root or (current_workspace() if searches else None)
        return command(CliContext(root or Path(), as_json, server or "", token), **options)

    return prepared


def print_json(result: object) -> None:
    """Print the published JSON form of a result as one line on standard output."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    sys.stdout.write(
        in_json(json.dumps(to_json(result), ensure_ascii=encoding != "utf8", default=str)) + "\n"
    )
    sys.stdout.flush()


def with_scheme(_context: click.Context, _option: click.Parameter, url: str | None) -> str | None:
    """Complete the address that an option gives, as the first menu does: a host and a port need no scheme."""
    from agent_core.base.network_variables import whole_address  # noqa: PLC0415  (loads ssl, which `--help` needs not)

    return whole_address(url) or url if url else url


def must_have(extra: str, *modules: str) -> None:
    """Check that these modules are installed.

    Raises:
        UsageError: a module is missing; the fix names the extra that installs it.
    """
    missing = [name for name in modules if not _is_there(name)]
    if missing:
        packages = "package" if len(missing) == 1 else "packages"
        raise UsageError(
            f"This needs the {packages} {' and '.join(missing)}.", fix=f"Type: {add_extra(extra)}"
        )


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # its parent package is not installed either
        return False


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


# Shell completion of function, agent and model names, read from the workspace's files. Tab must not wait: nothing is
# run, opened or requested over a network, and the number of files read is limited.

_MOST_FILES: Final = 500
_MOST_BYTES: Final = 1 << 20
_MOST_NAMES: Final = 2_000
_LONGEST_NAME: Final = 200
_DEFINED: Final = re.compile(r"(?m)^(?:async )?def ([a-z]\w*)\(")


class _Name(click.types.StringParamType):
    """A parameter type for a name that the shell can complete."""

    def __init__(self, names: Callable[[Path], Iterable[str]]) -> None:
        self._names = names

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name; a longer text than any name is refused before it is looked up or shown."""
        if len(value) > _LONGEST_NAME:
            self.fail(
                f"A name has at most {_LONGEST_NAME} characters, this has {len(value):,}.",
                param,
                ctx,
            )
        return str(super().convert(value, param, ctx))

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the names that begin with the incomplete text."""
        given = ""
        parent: click.Context | None = ctx
        while parent is not None and not given:
            given, parent = parent.params.get("root") or "", parent.parent
        here = Path(given or ".").absolute()
        root = next(
            (folder for folder in (here, *here.parents) if (folder / "knapper.toml").is_file()),
            here,
        )
        names = islice(self._names(root), _MOST_NAMES)
        return [
            CompletionItem(name)
            for name in sorted({name for name in names if name.startswith(incomplete)})
        ]


def _file_text(path: Path) -> str:
    try:
        return read_plain(path, _MOST_BYTES).decode("utf-8", "replace")
    except OSError:  # no error messages during completion; the command itself will report it
        return ""


def _functions(root: Path) -> Iterator[str]:
    for path in islice((root / "functions").rglob("*.py"), _MOST_FILES):
        yield from _DEFINED.findall(_file_text(path))


def _agents(root: Path) -> Iterator[str]:
    for folder in ("agents", "groups"):
        yield from (path.stem for path in islice((root / folder).glob("*.toml"), _MOST_FILES))


def _models(root: Path) -> Iterator[str]:
    from agent_core.model.beside import names_here  # noqa: PLC0415 - slow to import

    yield "tour"
    with suppress(NoHome):
        yield from names_here()
    with suppress(Malformed):
        models = read_toml(_file_text(root / "knapper.toml")).get("models")
        yield from models if isinstance(models, dict) else ()


FUNCTION: Final = _Name(_functions)
AGENT: Final = _Name(_agents)
MODEL: Final = _Name(_models)


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
