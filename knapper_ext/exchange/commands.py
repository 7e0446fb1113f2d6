"""`knapper functions import` and `export`: libraries of others, and packages that work without this program."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_core.base.late import LateModule
from agent_core.operations.command_context import CliContext, workspace_command
from agent_core.operations.completed_names import FUNCTION
from agent_core.operations.verb import Door, verb
from agent_core.views.result import Result
from agent_core.views.styled_lines import line, write

if TYPE_CHECKING:  # the commands start without the service
    from agent_core.functions.service import FunctionService

    from . import lines
    from .library import ImportedFunction, ImportReport
else:
    lines = LateModule("knapper_ext.exchange.lines")

_POLICIES = ("agent", "human", "import")


@verb()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.argument("names", nargs=-1, type=FUNCTION)
@click.option("--package", default="", help="The package's name; by default, the folder's.")
async def export(door: Door, folder: Path, names: tuple[str, ...], package: str) -> Result:
    """Write a package that works without Knapper: all functions, or NAMES and what they need, with their tests."""
    from .export import ExportRequest, export_functions

    report = await export_functions(door.functions, ExportRequest(folder, names, package))
    place = shlex.quote(str(folder) if folder.is_absolute() else f"./{folder}")
    use = f'python -c "from {report.package} import {report.first}"'
    tests = f"Its tests: cd {place} && python -m unittest"
    next_command = line(("dim", f"Next: pip install {place} && {use}"))
    return Result(report, lines.export_lines(report), tests, aside=[next_command])


@click.command("import")
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--wrap",
    "names",
    multiple=True,
    metavar="MODULE.NAME",
    help="A function of the package PATH: grant it.",
)
@click.option("--policy", type=click.Choice(_POLICIES), default="import", show_default=True)
@click.option(
    "--module-prefix",
    "prefix",
    default="",
    help="Put the modules below this package, such as `helpers`.",
)
@click.option("--reader", is_flag=True, help="Ask the reader (gate.reader) about each description.")
@click.option("--dry-run", is_flag=True, help="Report what would be added, and write nothing.")
@click.option(
    "-y", "--yes", "is_sure", is_flag=True, help="Do not ask before a package is installed."
)
@workspace_command
def import_(context: CliContext, path: Path, **options: Any) -> int:  # Any: the options above
    """Import a library: a .py file, a folder, a .zip or .tar(.gz), or a .jsonl with one candidate per line.

    Each function is judged with its dependencies. Nothing that exists is overwritten, and functions that were imported
    before are skipped. The exit code is 1 if something is rejected.

    With --wrap, PATH is a package of the index, such as "python-slugify>=8", which is not copied: it is installed and
    granted, and the functions that are named get thin wrappers.
    """
    from knapper.shell.shell_door import with_workspace
    from knapper.terminal.deciding import agrees
    from knapper.terminal.progress import ProgressBar

    from .library import ImportRequest, import_library
    from .package_wrappers import wrap

    request = ImportRequest(
        path, options["policy"], options["prefix"], options["dry_run"], is_read=options["reader"]
    )
    with ProgressBar(None) as progress:

        def tell(function: "ImportedFunction") -> None:
            progress.clear()
            if not context.as_json:
                write(lines.function_lines(function, is_tried=request.dry_run), sys.stdout)
            progress.take(refused=function.outcome == "refused")

        async def take(functions: "FunctionService") -> "ImportReport | None":
            if not options["names"]:
                return await import_library(functions, request, tell, progress.expect)
            return await wrap(
                functions, request, options["names"], None if options["is_sure"] else agrees, tell
            )

        report = with_workspace(context, lambda workspace: take(workspace.functions))
    if report is None:
        context.tell("Nothing was granted.")
        return 1
    context.result(report, lines.summary_lines(report))
    if report.dry_run and not report.has_failed:
        context.hint("Nothing was written. Next: the same command without --dry-run")
    return 1 if report.has_failed else 0
