"""`toolwright sources`: the documents that the user gives an agent."""

import click

from ..spans import line
from .verb import Door, Result, verb

_agent = click.option("--agent", default="", metavar="NAME", help="The agent; by default, the workspace's.")


@click.group()
def sources() -> None:
    """Give an agent files, folders and pages to know; answers can cite them."""


@verb()
@click.argument("place", metavar="PATH|URL|-")
@click.option(
    "--name",
    metavar="NAME",
    help="The name to cite it by; by default, its path or URL. An existing source of that name is replaced.",
)
@_agent
async def add(door: Door, place: str, name: str | None, agent: str) -> Result:
    """Read a source into archival memory. A file, a folder's files, a page, or - for standard input.

    Text, Markdown, HTML, PDF, source code, CSV and JSON are split along their structure. A text that is already stored
    is not stored again; an interrupted source is resumed. A URL is fetched from public addresses, and from this machine
    only if the URL itself names it (localhost, 127.0.0.1).
    """
    from ..render.source_reports import report_json, report_lines

    with door.source_progress() as hear:
        reports = await (await door.sources(agent)).add(place, hear, name)
    code = 0 if any(report.outcome != "refused" for report in reports) else 1
    return Result({"sources": [report_json(report) for report in reports]}, report_lines(reports), code=code)


@verb("list")
@_agent
async def list_(door: Door, agent: str) -> Result:
    """List the sources. Shows their kind, their hash, and how much of each is stored."""
    from ..render.source_reports import source_json, source_lines

    rows = await (await door.sources(agent)).list()
    hint = "" if rows else "There is none yet. Next: toolwright sources add PATH"
    return Result({"sources": [source_json(row) for row in rows]}, source_lines(rows), hint)


@verb()
@click.argument("source")
@_agent
async def remove(door: Door, source: str, agent: str) -> Result:
    """Remove a source with its passages. By its name, the beginning of its hash, or the folder it came with."""
    from ..render.source_reports import source_json

    rows = await (await door.sources(agent)).remove(source)
    lines = [line(("ok", "✓ "), "forgot ", ("name", row.name), f" ({row.done:,})") for row in rows]
    return Result({"removed": [source_json(row) for row in rows]}, lines)


for _command in (add, list_, remove):
    sources.add_command(_command)
