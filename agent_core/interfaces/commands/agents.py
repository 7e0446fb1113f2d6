"""`toolwright agents`: list the agents of a workspace; export one, or import one."""

import sys
from pathlib import Path
from typing import Any

import click

from agent_core.base.errors import UsageError

from ..scene import CliContext, scene
from ..spans import line


@click.group()
def agents() -> None:
    """List, show and delete agents; export or import one as a file."""


@agents.command("list")
@scene
def list_(scene: CliContext) -> None:
    """List the agents. Shows how much each has said and remembers."""
    from ..agents import agents_listing, listing_lines
    from ..state import with_state

    data = with_state(scene, agents_listing)
    scene.result(data, listing_lines(data))
    if not data["agents"]:
        scene.hint("There is none yet. Next: toolwright run")


@agents.command()
@click.argument("name")
@scene
def show(scene: CliContext, name: str) -> None:
    """Show one agent. Includes its settings, blocks, sections and sources, with counts of each."""
    from ..agents import agent_facts, facts_lines
    from ..state import with_state

    data = with_state(scene, lambda state: agent_facts(state, name))
    scene.result(data, facts_lines(data))


@agents.command()
@click.argument("name")
@click.option("-y", "--yes", "is_sure", is_flag=True, help="Do not ask.")
@scene
def delete(scene: CliContext, name: str, is_sure: bool) -> int:  # noqa: FBT001  (click hands it in)
    """Delete an agent completely. Removes its conversation and its memory; what it shares with others stays."""
    from ..state import WorkspaceState, with_state

    async def deleted(state: WorkspaceState) -> bool:
        await state.moves.whole(name)
        if not is_sure and not _agrees(name):
            return False
        with state.alone(name):
            await state.moves.delete(name)
        return True

    if not with_state(scene, deleted):
        scene.talk("Nothing was deleted.")
        return 1
    scene.result({"deleted": name}, [line(("ok", "✓ "), "deleted ", ("name", name))])
    return 0


@agents.command()
@click.argument("name")
@click.argument("file", default="-", metavar="[FILE]")
@scene
def export(scene: CliContext, name: str, file: str) -> None:
    """Export an agent as one JSON document. Writes to FILE, which must not exist, or to standard output."""
    from ..agents import write_new
    from ..state import with_state

    text = with_state(scene, lambda state: state.moves.export(name))
    if file == "-":
        sys.stdout.write(text)
        return
    write_new(file, text)
    summary = line(("ok", "✓ "), ("name", name), f" is in {file}")
    scene.result({"agent": name, "file": file, "bytes": len(text.encode())}, [summary])


@agents.command("import")
@click.argument("file", metavar="FILE")
@click.option("--as", "name", default="", metavar="NAME", help="The name of the imported agent.")
@click.option("--only", default="", metavar="NAME", help="Import only this agent, if the file has several.")
@click.option("--share", is_flag=True, help="Share the blocks that already exist here, instead of copying them.")
@click.option("--dry-run", is_flag=True, help="Report what would be imported, and write nothing.")
@scene
def import_(scene: CliContext, file: str, **options: Any) -> None:  # Any: the options above
    """Create an agent from a file. Accepts files from `agents export`, MemGPT's save_to_json_file, or Letta (.af).

    Nothing in the file is run, and no agent is overwritten. Use - for standard input. The report says how each part was
    imported, and what was left out.
    """
    from agent_core.workspace.portable import AgentReport, ImportOptions, read_file

    from ..agents import report_lines
    from ..state import WorkspaceState, with_state

    text = read_file(file)
    request = ImportOptions(file_name=Path(file).stem, **options)

    async def took(state: WorkspaceState) -> list[AgentReport]:
        return await state.moves.take_in(text, request)

    reports = with_state(scene, took)
    lines = [row for report in reports for row in report_lines(report, is_tried=request.dry_run)]
    scene.result({"agents": [report.to_json() for report in reports], "dry_run": request.dry_run}, lines)
    if reports and not request.dry_run:
        scene.hint(f"Next: toolwright run --agent {reports[0].name}")


def _agrees(name: str) -> bool:
    from ..question import agreed

    if not sys.stdin.isatty():
        raise UsageError("There is no terminal for the question.", fix="Give -y to delete without asking.")
    return agreed(f"Delete {name} with all that it remembers?")
