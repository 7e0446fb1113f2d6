"""`knapper helpers`: specialized agents that other agents call as functions."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_core.base.errors import UsageError

from ..render.verdicts import problem_lines
from ..styled_lines import Span, line
from .verb import Door, Opens, Reason, Result, verb

if TYPE_CHECKING:  # `knapper --help` must not load a workspace
    from agent_core.workspace.helper_changes import HelperVerdict

_file = click.option(
    "--file", "file", metavar="FILE", type=click.Path(allow_dash=True), help="The file; - reads standard input."
)


@click.group()
def helpers() -> None:
    """List, show, check, create, edit and delete helpers; propose new ones."""


@verb(helpers, opens=Opens.READABLE, scopes=("read",))
async def list_(door: Door) -> Result:
    """List the helpers, and the files that were rejected."""
    from ..render.agent_view import helpers_document, list_lines

    data, problems = await helpers_document(door.workspace), door.workspace.helpers.problems
    is_empty = not data["helpers"] and not problems
    hint = "There is no helper yet. Next: knapper helpers create NAME --file FILE" if is_empty else ""
    return Result(data, [*list_lines(data["helpers"]), *problem_lines(problems)], hint)


@verb(helpers, opens=Opens.READABLE, scopes=("read",))
async def show(door: Door, name: str) -> Result:
    """Show a helper: its schema, functions, budget, file, and its last runs."""
    from ..render.agent_view import helper_document, helper_facts_lines, source_lines

    data = await helper_document(door.workspace, name)
    return Result(data, [*helper_facts_lines(data), *source_lines(data["text"])])


@verb(helpers)
@click.argument("name", default="", metavar="[NAME|FILE]")
async def check(door: Door, name: str) -> Result:
    """Judge a helper, or the file of one, without changing anything. Without NAME, judge all."""
    library = door.workspace.helpers
    await library.refresh(is_told=False)
    if not name:
        problems = [problem.to_json() for problem in library.problems]
        count = len(library.helpers)
        mark: Span = ("dim", "  ") if problems else ("ok", "✓ ")
        good = [line(mark, "1 helper is in force" if count == 1 else f"{count} helpers are in force")]
        return Result({"problems": problems}, [*problem_lines(library.problems), *good], code=1 if problems else 0)
    is_file = name.endswith(".toml") or name == "-"
    text = door.read(name) if is_file else library.text(name)
    verdict = await door.workspace.helper_changes.check(Path(name).stem if is_file else name, text)
    return _verdict_result(verdict, "is a good helper")


@verb(helpers, opens=Opens.ASKING, scopes=("edit",))
@_file
async def create(door: Door, name: str, *, file: str | None, reason: Reason) -> Result:
    """Create a helper from a file, if it passes its gate."""
    if file is None:
        raise UsageError("A helper is made from a file.", fix=f"Next: knapper helpers create {name} --file FILE")
    verdict = await door.workspace.helper_changes.create(name, door.read(file), door.workspace.by_user(reason))
    return _verdict_result(verdict, "was created")


@verb(helpers, opens=Opens.ASKING, scopes=("edit",))
@_file
async def edit(door: Door, name: str, *, file: str | None, reason: Reason) -> Result:
    """Replace the file of a helper, if the new one passes its gate."""
    if file is None:
        path = f"helpers/{name}.toml"
        raise UsageError("The new text comes from a file.", fix=f"Give it with --file FILE, or edit {path} itself.")
    verdict = await door.workspace.helper_changes.replace(name, door.read(file), door.workspace.by_user(reason))
    return _verdict_result(verdict, "was changed")


@verb(helpers, opens=Opens.ASKING, scopes=("edit",))
async def delete(door: Door, name: str, *, reason: Reason) -> Result:
    """Delete a helper that no other helper names. Its history is kept."""
    verdict = await door.workspace.helper_changes.delete(name, door.workspace.by_user(reason))
    return _verdict_result(verdict, "was deleted", f"To undo: knapper helpers rollback {name}")


@verb(helpers, opens=Opens.READABLE, scopes=("read",))
async def history(door: Door, name: str) -> Result:
    """Show the versions of a helper: when, by whom and why, those of a deleted one too."""
    from ..render.agent_view import history_lines

    await door.workspace.helpers.refresh(is_told=False)
    versions = await door.workspace.helpers.history(name)
    return Result({"name": name, "versions": versions}, history_lines(versions))


@verb(helpers, opens=Opens.ASKING, scopes=("edit",))
async def rollback(door: Door, name: str, version: str = "", *, reason: Reason) -> Result:
    """Restore an earlier version of a helper, or a deleted one; by default, one version further back each time."""
    verdict = await door.workspace.helper_changes.rollback(name, version, door.workspace.by_user(reason))
    return _verdict_result(verdict, "was restored")


@verb(helpers, scopes=("read",))
async def propose(door: Door) -> Result:
    """Draft a helper for each set of functions that recorded turns used together, with the figures why."""
    from ..render.agent_view import proposal_lines

    data = await door.workspace.helper_proposals()
    least = "in three turns, and in half of the turns of the less used one"
    hint = "" if data else f"No functions were used together often enough: {least}."
    return Result({"proposals": data}, proposal_lines(data), hint)


def _verdict_result(verdict: "HelperVerdict", done: str, hint: str = "") -> Result:
    from ..render.agent_view import verdict_lines

    return Result(verdict, verdict_lines(verdict, done), hint if verdict.admitted else "", 0 if verdict.admitted else 1)
