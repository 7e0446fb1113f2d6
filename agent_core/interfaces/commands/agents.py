"""`toolwright agents`: who there is in a workspace; one whole out of it, or into it."""

import sys
from pathlib import Path
from typing import Any

import click

from agent_core.errors import UsageError

from ..scene import Scene, scene
from ..spans import line


@click.group()
def agents() -> None:
    """List, show and delete agents; move one whole, as a file."""


@agents.command("list")
@scene
def list_(scene: Scene) -> None:
    """List the agents. With how much each has said and remembers."""
    from ..agents import agents_listing, listing_lines
    from ..state import with_state

    found = with_state(scene, agents_listing)
    scene.result(found, listing_lines(found))
    if not found["agents"]:
        scene.hint("There is none yet. Next: toolwright run")


@agents.command()
@click.argument("name")
@scene
def show(scene: Scene, name: str) -> None:
    """Show one agent. Its settings, blocks, sections, sources, and how much there is of each."""
    from ..agents import agent_facts, facts_lines
    from ..state import with_state

    found = with_state(scene, lambda state: agent_facts(state, name))
    scene.result(found, facts_lines(found))


@agents.command()
@click.argument("name")
@click.option("-y", "--yes", "is_sure", is_flag=True, help="Do not ask.")
@scene
def delete(scene: Scene, name: str, is_sure: bool) -> int:  # noqa: FBT001  (click hands it in)
    """Delete an agent whole. Its conversation and its memory; what others share stays."""
    from ..state import State, with_state

    async def deleted(state: State) -> bool:
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
def export(scene: Scene, name: str, file: str) -> None:
    """Write an agent whole, as one JSON document. To FILE, which must not be there, or to standard output."""
    from ..agents import write_new
    from ..state import with_state

    text = with_state(scene, lambda state: state.moves.export(name))
    if file == "-":
        sys.stdout.write(text)
        return
    write_new(file, text)
    told = line(("ok", "✓ "), ("name", name), f" is in {file}")
    scene.result({"agent": name, "file": file, "bytes": len(text.encode())}, [told])


@agents.command("import")
@click.argument("file", metavar="FILE")
@click.option("--as", "name", default="", metavar="NAME", help="The name that it gets here.")
@click.option("--only", default="", metavar="NAME", help="Of several agents in the file, this one.")
@click.option("--share", is_flag=True, help="Have shared blocks that are here already together, instead of copies.")
@click.option("--dry-run", is_flag=True, help="Say what would come, and write nothing.")
@scene
def import_(scene: Scene, file: str, **given: Any) -> None:  # Any: the options above
    """Make an agent of a file. One of `agents export`, of MemGPT's save_to_json_file, or of Letta's (.af).

    Nothing in the file is run, and no agent is written over. - reads standard input. What was taken in as what, and
    what was left out, is told.
    """
    from agent_core.portable import Report, Taken, read_file

    from ..agents import report_lines
    from ..state import State, with_state

    text = sys.stdin.read() if file == "-" else read_file(Path(file))
    taken = Taken(file_name=Path(file).stem, **given)

    async def took(state: State) -> list[Report]:
        return await state.moves.take_in(text, taken)

    reports = with_state(scene, took)
    lines = [each for report in reports for each in report_lines(report, is_tried=taken.dry_run)]
    scene.result({"agents": [report.to_json() for report in reports], "dry_run": taken.dry_run}, lines)
    if reports and not taken.dry_run:
        scene.hint(f"Next: toolwright run --agent {reports[0].name}")


def _agrees(name: str) -> bool:
    from ..question import agreed

    if not sys.stdin.isatty():
        raise UsageError("There is no terminal to ask at.", mend="Give -y to delete without asking.")
    return agreed(f"Delete {name} with all that it remembers?")
