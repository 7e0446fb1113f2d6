"""`toolwright sources`: the documents that the user gives an agent."""

from typing import Any

import click

from ..scene import CliContext, scene
from ..spans import line

_agent = click.option("--agent", metavar="NAME", help="The agent; by default, the workspace's.")


@click.group()
def sources() -> None:
    """Give an agent files, folders and pages to know; answers can cite them."""


@sources.command()
@click.argument("place", metavar="PATH|URL|-")
@click.option(
    "--name",
    metavar="NAME",
    help="The name to cite it by; by default, its path or URL. An existing source of that name is replaced.",
)
@_agent
@scene
def add(scene: CliContext, place: str, name: str | None, agent: str | None) -> int:
    """Read a source into archival memory. A file, a folder's files, a page, or - for standard input.

    Text, Markdown, HTML, PDF, source code, CSV and JSON are split along their structure. A text that is already stored
    is not stored again; an interrupted source is resumed. A URL is fetched from public addresses, and from this machine
    only if the URL itself names it (localhost, 127.0.0.1).
    """
    from ..attached import SourceProgressBar, report_json, report_lines
    from ..opened import with_workspace

    async def added(workspace: Any) -> Any:
        with SourceProgressBar() as bar:
            return await (await workspace.sources(agent)).add(place, bar.hear, name)

    try:
        reports = with_workspace(scene, added)
    except KeyboardInterrupt:
        scene.hint("The same command resumes it.")
        raise
    scene.result({"sources": [report_json(report) for report in reports]}, report_lines(reports))
    return 0 if any(report.outcome != "refused" for report in reports) else 1


@sources.command("list")
@_agent
@scene
def list_(scene: CliContext, agent: str | None) -> None:
    """List the sources. Shows their kind, their hash, and how much of each is stored."""
    from ..attached import source_json, source_lines
    from ..opened import with_workspace

    async def listed(workspace: Any) -> Any:
        return await (await workspace.sources(agent)).list()

    rows = with_workspace(scene, listed)
    scene.result({"sources": [source_json(row) for row in rows]}, source_lines(rows))
    if not rows:
        scene.hint("There is none yet. Next: toolwright sources add PATH")


@sources.command()
@click.argument("source")
@_agent
@scene
def remove(scene: CliContext, source: str, agent: str | None) -> None:
    """Remove a source with its passages. By its name, the beginning of its hash, or the folder it came with."""
    from ..attached import source_json
    from ..opened import with_workspace

    async def removed(workspace: Any) -> Any:
        return await (await workspace.sources(agent)).remove(source)

    rows = with_workspace(scene, removed)
    lines = [line(("ok", "✓ "), "forgot ", ("name", row.name), f" ({row.done:,})") for row in rows]
    scene.result({"removed": [source_json(row) for row in rows]}, lines)
