"""The context of a command, and its output: results on standard output, messages on standard error."""

import functools
import gc
import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from agent_core.base.errors import UsageError
from agent_core.base.json_form import to_json
from agent_core.base.old_name import move_home, move_workspace
from agent_core.base.own_installation import add_extra
from agent_core.base.untrusted import in_json
from agent_core.base.workspace_folder import current_workspace

from .debug_log import start_debugging
from .spans import Line, line
from .wrap import write

workspace_option = click.option(
    "--workspace",
    "-C",
    "root",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The workspace; by default, the one here or above.",
)


@dataclass(frozen=True, slots=True)
class CliContext:
    """The workspace of a command, and the form of its output."""

    root: Path
    as_json: bool
    server: str = ""
    """The address of the server that has the workspace, if it is elsewhere."""
    token: str = field(default="", repr=False)

    def result(self, result: object, lines: Iterable[Line]) -> None:
        """Print the result: its JSON for scripts, the lines for people."""
        if self.as_json:
            print_json(result)
        else:
            write(lines, sys.stdout)

    def tell(self, *sentences: str) -> None:
        """Show the user something that is not the result."""
        write([line(("dim", sentence)) for sentence in sentences], sys.stderr)

    def hint(self, sentence: str) -> None:
        """Suggest the next command. Scripts do not get it."""
        if not self.as_json:
            self.tell(sentence)


@contextmanager
def loading() -> Iterator[None]:
    """Look for no garbage while modules are imported: they leave none, and looking costs a tenth of the way."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # what is loaded stays
        gc.enable()


Command = Callable[..., int | None]


def workspace_command(
    command: Command, taken: Collection[str] = (), *, over_server: bool = False, searches: bool = True
) -> Command:
    """Give a command `--json`, `--workspace` and `--debug`, unless the name is `taken`, and its Scene as the first
    argument. With `over_server` it can do its work where a server has the workspace; one that `searches` works in the
    nearest workspace, another one in the current folder.
    """
    has_debug = "--debug" not in taken
    debug: Callable[[Command], Command] = click.option(
        "--debug", is_flag=True, help="Show what goes over the wire, and tracebacks."
    )

    @(debug if has_debug else _as_it_is)
    @click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output.")
    @workspace_option
    @functools.wraps(command)
    def prepared(as_json: bool, root: Path | None, **options: Any) -> int | None:  # noqa: FBT001  (click hands it in)
        above = click.get_current_context().find_root().params
        if (has_debug and options.pop("debug")) or above.get("debug"):
            start_debugging()
        server, token = above.get("server") or "", above.get("token") or ""
        if server and not over_server:
            name = click.get_current_context().command_path
            raise UsageError(f"`{name}` does not work over a server.", fix="Run it where the workspace is.")
        root, as_json = root or above.get("root"), as_json or bool(above.get("as_json"))
        if not server:
            root = root or (current_workspace() if searches else None)
            if root is not None:
                move_workspace(root)
            move_home()
        return command(CliContext(root or Path(), as_json, server, token), **options)

    return prepared


def _as_it_is(command: Command) -> Command:
    return command


def print_json(result: object) -> None:
    """Print the published JSON of a result on one line of standard output."""
    sys.stdout.write(in_json(json.dumps(to_json(result), ensure_ascii=not _takes_unicode(), default=str)) + "\n")
    sys.stdout.flush()


def _takes_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def must_have(extra: str, *modules: str) -> None:
    """Do nothing if these modules are installed.

    Raises:
        UsageError: one is missing; the fix names the extra that has it.
    """
    missing = [name for name in modules if not _is_there(name)]
    if missing:
        packages = "package" if len(missing) == 1 else "packages"
        raise UsageError(f"This needs the {packages} {' and '.join(missing)}.", fix=f"Type: {add_extra(extra)}")


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even its parent is
        return False
