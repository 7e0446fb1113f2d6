"""The context of a command: its output, its debug log, shell completion of names, and what becomes of errors.

Results go to standard output, messages to standard error. An expected error is reported as its message and a suggested
fix, an unexpected one as a short message and the name of the file with the traceback.
"""

import functools
import gc
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from agent_core.base.errors import UsageError
from agent_core.base.own_installation import add_extra
from agent_core.base.records import dataclass, field
from agent_core.base.workspace_folder import current_workspace
from agent_core.views.faults import start_debugging
from agent_core.views.result import print_json
from agent_core.views.styled_lines import Line, line, write


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
