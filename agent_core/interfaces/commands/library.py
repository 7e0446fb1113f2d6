"""`toolwright functions import` and `export`: import a library, export functions."""

import sys
from pathlib import Path
from typing import Any

import click

from ..cli_context import CliContext, scene
from ..progress import ProgressBar
from ..wrap import write
from .checking import POLICIES
from .verb import Door, Result, verb


@click.command("import")
@click.argument("path", type=click.Path(path_type=Path, exists=True))
@click.option("--policy", type=click.Choice(POLICIES), default="import", show_default=True)
@click.option("--module-prefix", "prefix", default="", help="Put the modules below this package, such as `helpers`.")
@click.option("--dry-run", is_flag=True, help="Report what would join, and write nothing.")
@scene
def import_(scene: CliContext, path: Path, **options: Any) -> int:  # Any: the options above
    """Import a library: a .py file, a folder, a .zip or .tar(.gz), or a .jsonl with one candidate per line.

    Each function is judged with its dependencies. Nothing that exists is overwritten, and functions that were imported
    before are skipped. The exit code is 1 if something is rejected.
    """
    from agent_core.functions.service import Taking
    from agent_core.functions.service.intake import ImportedFunction

    from ..render.import_report import function_lines, summary_lines
    from ..shell_door import with_workspace

    taking = Taking(path, options["policy"], options["prefix"], options["dry_run"])
    with ProgressBar(None, "judged") as progress:

        def tell(function: ImportedFunction) -> None:
            progress.clear()
            if not scene.as_json:
                write(function_lines(function, is_tried=taking.dry_run), sys.stdout)
            progress.count(refused=function.outcome == "refused")

        report = with_workspace(
            scene, lambda workspace: workspace.workshop.bulk.take_over(taking, tell, progress.expect)
        )
    scene.result(report, summary_lines(report))
    if report.dry_run and not report.summary["refused"]:
        scene.hint("Nothing was written. Next: the same command without --dry-run")
    return 1 if report.summary["refused"] else 0


@verb()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.argument("names", nargs=-1)
@click.option("--package", default="", help="The package's name; by default, the folder's.")
async def export(door: Door, folder: Path, names: tuple[str, ...], package: str) -> Result:
    """Write a package that works without Toolwright: all functions, or NAMES and what they need, with their tests."""
    from agent_core.functions.service import Handing

    from ..render.import_report import export_lines

    report = await door.shop.bulk.hand_out(Handing(folder, names, package))
    return Result(report, export_lines(report), f"Next: cd {folder} && python -m unittest")
