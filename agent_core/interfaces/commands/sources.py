"""`knapper sources`: the documents that the user gives an agent."""

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from ..render.source_reports import report_json, report_lines, source_json, source_lines
from ..spans import line
from .verb import Door, OfAgent, Opens, Result, SourcePlace, slash, verb

if TYPE_CHECKING:  # `knapper --help` must not load a workspace
    from agent_core.memory.source_catalog import Sources

_name = click.option(
    "--name",
    metavar="NAME",
    help="The name to cite it by; by default, its path or URL. An existing source of that name is replaced.",
)


@click.group()
def sources() -> None:
    """Give an agent files, folders and pages to know; answers can cite them."""


@slash(
    "attach PATH|URL",
    "Read it into archival memory. Ctrl-C stops; the same command continues.",
    page="the room Memory",
)
@verb(sources)
@_name
async def add(door: Door, place: SourcePlace, *, name: str | None, agent: OfAgent) -> Result:
    """Read a source into archival memory. A file, a folder's files, a page, or - for standard input.

    Text, Markdown, HTML, PDF, source code, CSV and JSON are split along their structure. A text that is already stored
    is not stored again; an interrupted source is resumed. A URL is fetched from public addresses, and from this machine
    only if the URL itself names it (localhost, 127.0.0.1).
    """
    return await _added(door, await door.sources(agent), place, name)


@verb(sources)
@_name
async def load(door: Door, place: SourcePlace, *, name: str | None) -> Result:
    """Load a source for all agents of the workspace. It is read and embedded once; `sources attach` gives it to one."""
    shown = await _added(door, door.workspace.loaded_sources(), place, name)
    names = [row["name"] for row in shown.document["sources"] if row["outcome"] != "refused"]
    folder = (name or place).rstrip("/")
    is_whole = len(names) > 1 and all(one.startswith(f"{folder}/") for one in names)
    source = shlex.quote(folder if is_whole else names[0]) if names else ""
    more = "" if is_whole or len(names) < 2 else ", and so on (all: knapper sources list --loaded)"
    return replace(shown, hint=f"Next: knapper sources attach {source}{more}" if names else shown.hint)


async def _added(door: Door, sources: "Sources", place: str, name: str | None) -> Result:
    with door.source_progress() as hear:
        reports = await sources.add(place, hear, name)
    code = 0 if any(report.outcome != "refused" for report in reports) else 1
    return Result({"sources": [report_json(report) for report in reports]}, report_lines(reports), code=code)


@verb(sources, scope="edit")
async def attach(door: Door, source: str, *, agent: OfAgent) -> Result:
    """Give an agent a loaded source. By its name, the beginning of its hash, or the folder it came with."""
    rows = await (await door.sources(agent)).attach(source)
    lines = [line(("ok", "✓ "), "attached ", ("name", row.name), f" ({row.done:,})") for row in rows]
    return Result({"attached": [source_json(row) for row in rows]}, lines)


@verb(sources, scope="edit")
async def detach(door: Door, source: str, *, agent: OfAgent) -> Result:
    """Take a source from an agent. What is loaded stays loaded; other agents keep it."""
    rows = await (await door.sources(agent)).remove(source)
    lines = [line(("ok", "✓ "), "detached ", ("name", row.name), f" ({row.done:,})") for row in rows]
    return Result({"detached": [source_json(row) for row in rows]}, lines)


@verb(sources, opens=Opens.READABLE, scope="read")
@click.option("--loaded", is_flag=True, help="Those that were loaded for all agents.")
async def list_(door: Door, *, agent: OfAgent, loaded: bool) -> Result:
    """List the sources. Shows their kind, their hash, and how much of each is stored."""
    rows = await (door.workspace.loaded_sources() if loaded else await door.sources(agent)).list()
    hint = "" if rows else "There is none yet. Next: knapper sources add PATH"
    has = {row.hash for row in rows}
    others = [] if loaded else [row for row in await door.workspace.loaded_sources().list() if row.hash not in has]
    if others:
        hint = f"{len(others):,} more can be attached: knapper sources list --loaded"
    return Result({"sources": [source_json(row) for row in rows]}, source_lines(rows), hint)


@verb(sources, scope="edit")
@click.option("--loaded", is_flag=True, help="Of those that were loaded for all agents; agents that have it keep it.")
async def remove(door: Door, source: str, *, agent: OfAgent, loaded: bool) -> Result:
    """Remove a source with its passages. By its name, the beginning of its hash, or the folder it came with."""
    rows = await (door.workspace.loaded_sources() if loaded else await door.sources(agent)).remove(source)
    lines = [line(("ok", "✓ "), "forgot ", ("name", row.name), f" ({row.done:,})") for row in rows]
    return Result({"removed": [source_json(row) for row in rows]}, lines)
