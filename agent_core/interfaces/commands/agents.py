"""`toolwright agents`: list the agents of a workspace; export one, or import one."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import click

from agent_core.base.errors import UsageError

from ..spans import line
from . import agent_work
from .verb import Door, Opens, Result, verb


@click.group()
def agents() -> None:
    """List, show and delete agents; export or import one as a file; run those that work together, and steer them."""


@verb("list", opens=Opens.NOTHING)
async def list_(door: Door) -> Result:
    """List the agents. Shows how much each has said and remembers."""
    from ..render.agent_view import agents_listing, listing_lines

    async with door.state() as state:
        data = await agents_listing(state)
    hint = "" if data["agents"] else "There is none yet. Next: toolwright run"
    return Result(data, listing_lines(data, door.agent_name), hint)


@verb(opens=Opens.NOTHING)
@click.argument("name")
async def show(door: Door, name: str) -> Result:
    """Show one agent. Includes its settings, blocks, sections and sources, with counts of each."""
    from ..render.agent_view import agent_facts, facts_lines

    async with door.state() as state:
        data = await agent_facts(state, name)
    return Result(data, facts_lines(data))


@verb(opens=Opens.NOTHING)
@click.argument("name")
@click.option("-y", "--yes", "is_sure", is_flag=True, help="Do not ask.")
async def delete(door: Door, name: str, is_sure: bool) -> Result:  # noqa: FBT001  (click hands it in)
    """Delete an agent completely. Removes its conversation and its memory; what it shares with others stays."""
    async with door.state() as state:
        await state.moves.whole(name)
        if not is_sure and not _agrees(name):
            return Result(None, aside=[line(("dim", "Nothing was deleted."))], code=1)
        with state.alone(name):
            await state.moves.delete(name)
    return Result({"deleted": name}, [line(("ok", "✓ "), "deleted ", ("name", name))])


@verb(opens=Opens.NOTHING)
@click.argument("name")
@click.argument("file", default="-", metavar="[FILE]")
async def export(door: Door, name: str, file: str) -> Result:
    """Export an agent as one JSON document. Writes to FILE, which must not exist, or to standard output."""
    from agent_core.workspace.portable import write_file

    async with door.state() as state:
        text = await state.moves.export(name)
    if file == "-":
        sys.stdout.write(text)
        return Result(None)
    await asyncio.to_thread(write_file, file, text)
    summary = line(("ok", "✓ "), ("name", name), f" is in {file}")
    return Result({"agent": name, "file": file, "bytes": len(text.encode())}, [summary])


@verb("import", opens=Opens.NOTHING)
@click.argument("file", metavar="FILE")
@click.option("--as", "name", default="", metavar="NAME", help="The name of the imported agent.")
@click.option("--only", default="", metavar="NAME", help="Import only this agent, if the file has several.")
@click.option("--share", is_flag=True, help="Share the blocks that already exist here, instead of copying them.")
@click.option("--dry-run", is_flag=True, help="Report what would be imported, and write nothing.")
async def import_(door: Door, file: str, **options: Any) -> Result:  # Any: the options above
    """Create an agent from a file. Accepts files from `agents export`, MemGPT's save_to_json_file, or Letta (.af).

    Nothing in the file is run, and no agent is overwritten. Use - for standard input. The report says how each part was
    imported, and what was left out.
    """
    from agent_core.workspace.portable import ImportOptions, read_file

    from ..render.agent_view import report_lines

    text = read_file(file)
    request = ImportOptions(file_name=Path(file).stem, **options)
    async with door.state() as state:
        reports = await state.moves.take_in(text, request)
    lines = [row for report in reports for row in report_lines(report, is_tried=request.dry_run)]
    hint = f"Next: toolwright run --agent {reports[0].name}" if reports and not request.dry_run else ""
    return Result({"agents": [report.to_json() for report in reports], "dry_run": request.dry_run}, lines, hint)


def _agrees(name: str) -> bool:
    from ..question import agreed

    if not sys.stdin.isatty():
        raise UsageError("There is no terminal for the question.", fix="Give -y to delete without asking.")
    return agreed(f"Delete {name} with all that it remembers?")


for _command in (list_, show, delete, export, import_, *agent_work.COMMANDS):
    agents.add_command(_command)
