"""`knapper sources`: documents that the user gives to an agent."""

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from agent_core.base.clock import shown_time

from ..styled_lines import Line, columns, counted, line
from .verb import Door, OfAgent, Opens, Result, SourcePlace, slash, verb

if TYPE_CHECKING:
    from agent_core.memory.source_catalog import SourceReport, Sources
    from agent_core.storage import DocumentRow


_name = click.option(
    "--name",
    metavar="NAME",
    help="The name to cite it by; by default, its path or URL. An existing source of that name is replaced.",
)


@click.group()
def sources() -> None:
    """Give an agent files, folders and pages to know; answers can cite them."""


@slash(
    "attach PATH|URL", "Read it into archival memory. Ctrl-C stops; the same command continues.", page="the room Memory"
)
@verb(sources)
@_name
async def add(door: Door, place: SourcePlace, *, name: str | None, agent: OfAgent) -> Result:
    """Read a source into archival memory. A file, a folder's files, a page, or - for standard input.

    Text, Markdown, HTML, PDF, source code, CSV and JSON are split along their structure. A text that is already stored
    is not stored again; an interrupted source is resumed. A URL is fetched from public addresses, and from this machine
    only if the URL itself names it (localhost, 127.0.0.1).
    """
    return await _add(door, await door.sources(agent), place, name)


@verb(sources)
@_name
async def load(door: Door, place: SourcePlace, *, name: str | None) -> Result:
    """Load a source for all agents of the workspace. It is read and embedded once; `sources attach` gives it to one."""
    shown = await _add(door, door.workspace.loaded_sources(), place, name)
    names = [row["name"] for row in shown.document["sources"] if row["outcome"] != "refused"]
    folder = (name or place).rstrip("/")
    is_whole = len(names) > 1 and all(one.startswith(f"{folder}/") for one in names)
    source = shlex.quote(folder if is_whole else names[0]) if names else ""
    more = "" if is_whole or len(names) < 2 else ", and so on (all: knapper sources list --loaded)"
    return replace(shown, hint=f"Next: knapper sources attach {source}{more}" if names else shown.hint)


async def _add(door: Door, sources: "Sources", place: str, name: str | None) -> Result:
    with door.source_progress() as hear:
        reports = await sources.add(place, hear, name)
    code = 0 if any(report.outcome != "refused" for report in reports) else 1
    return Result({"sources": [report_json(report) for report in reports]}, report_lines(reports), code=code)


@verb(sources, scopes=("edit",))
async def attach(door: Door, source: str, *, agent: OfAgent) -> Result:
    """Give an agent a loaded source. By its name, the beginning of its hash, or the folder it came with."""
    rows = await (await door.sources(agent)).attach(source)
    lines = [line(("ok", "✓ "), "attached ", ("name", row.name), f" ({row.done:,})") for row in rows]
    return Result({"attached": [source_json(row) for row in rows]}, lines)


@verb(sources, scopes=("edit",))
async def detach(door: Door, source: str, *, agent: OfAgent) -> Result:
    """Take a source from an agent. What is loaded stays loaded; other agents keep it."""
    rows = await (await door.sources(agent)).remove(source)
    lines = [line(("ok", "✓ "), "detached ", ("name", row.name), f" ({row.done:,})") for row in rows]
    return Result({"detached": [source_json(row) for row in rows]}, lines)


@verb(sources, opens=Opens.READABLE, scopes=("read",))
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


@verb(sources, scopes=("edit",))
@click.option("--loaded", is_flag=True, help="Of those that were loaded for all agents; agents that have it keep it.")
async def remove(door: Door, source: str, *, agent: OfAgent, loaded: bool) -> Result:
    """Remove a source with its passages. By its name, the beginning of its hash, or the folder it came with."""
    rows = await (door.workspace.loaded_sources() if loaded else await door.sources(agent)).remove(source)
    lines = [line(("ok", "✓ "), "forgot ", ("name", row.name), f" ({row.done:,})") for row in rows]
    return Result({"removed": [source_json(row) for row in rows]}, lines)


# Sources as JSON and as lines: the results of adding them, and the list of an agent's sources.

_FILES = {"added": "added", "replaced": "replaced", "resumed": "resumed", "there": "there already"}
_NAMED = 5
Json = dict[str, Any]  # Any: JSON


def report_lines(reports: Sequence["SourceReport"]) -> list[Line]:
    """Return a line with the result for each source, or one line for a whole folder."""
    if len(reports) > 1 and reports[0].folder:
        folder, files = reports[0].folder, Counter(str(report.outcome) for report in reports)
        parts = [f"{files[outcome]:,} {words}" for outcome, words in _FILES.items() if files[outcome]]
        passages = sum(report.passages for report in reports if report.outcome != "there")
        refused = [
            report.name.removeprefix(f"{folder.rstrip('/')}/") for report in reports if report.outcome == "refused"
        ]
        names = ", ".join(refused[:_NAMED]) + (", …" if len(refused) > _NAMED else "")
        left_out = f"; left out {len(refused):,} without text to read: {names}" if refused else ""
        added = ", ".join(parts) or "none added"
        told = f": {len(reports):,} files, {added}; {counted(passages, 'passage')}{left_out}."
        is_any = len(refused) < len(reports)
        return [line(("ok", "✓ ") if is_any else ("bad", "✗ "), ("name", folder), told)]
    return [
        line(
            ("bad", "✗ ") if report.outcome == "refused" else ("ok", "✓ "),
            ("name", report.name),
            str(report)[len(report.name) :],
        )
        for report in reports
    ]


def report_json(report: "SourceReport") -> Json:
    """Return the result for a source as JSON."""
    return asdict(report)


def source_json(row: "DocumentRow") -> Json:
    """Return a source as JSON, with the number of stored `passages` and their `total`."""
    facts: Json = {"name": row.name, "kind": row.kind, "hash": row.hash, "at": row.at}
    return {**facts, "passages": row.done, "total": row.total, "complete": row.complete}


def source_lines(rows: Sequence["DocumentRow"]) -> list[Line]:
    """Return the sources as a table."""
    cells = []
    for row in rows:
        many = counted(row.done, "passage")
        if not row.complete:
            many = f"{row.done:,} of {row.total:,} passages; add it again to continue"
        cells.append((row.name, row.kind, row.hash[:8], shown_time(row.at), many))
    return columns(cells, ["name", "", "dim", "dim", "dim"])
