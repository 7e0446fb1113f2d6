"""`toolwright functions grant, revoke, grants`: what functions may reach, managed by the user."""

import shutil
import sys
from collections.abc import Callable
from typing import Any

import click

from agent_core.access.grants import Question
from agent_core.base.errors import UsageError

from ..asked import pages
from ..granted import given_lines, grants_lines, revoked_lines
from ..scene import CliContext, scene
from ..status_line import StatusLine
from ..verdicts import verdict_lines
from ..wrap import screen_columns

_ITEMS = (
    ("--network", "network", "HOST", "A host: api.example.org, localhost:8000 or *.example.org."),
    ("--read", "read", "PATH", "A file or folder to read: in the workspace, or absolute."),
    ("--write", "write", "PATH", "A file or folder to read and write."),
    ("--secret", "secrets", "NAME", "A secret, by name."),
    ("--package", "packages", "REQ", "A package: requests or requests>=2.31."),
    ("--block", "memory", "LABEL", "A block of memory."),
    ("--call", "functions", "NAME", "Another function that has grants of its own."),
)


def _kinds(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that name what is granted."""
    command = click.option("--stateful", is_flag=True, help="Keep one worker between calls.")(command)
    command = click.option("--memory", "memory_mib", type=int, metavar="MIB", help="More memory than the default.")(
        command
    )
    command = click.option("--seconds", type=float, metavar="S", help="More time than the default.")(command)
    for flag, kind, shown, text in reversed(_ITEMS):
        command = click.option(flag, kind, multiple=True, metavar=shown, help=text)(command)
    return command


@click.command()
@click.argument("name")
@_kinds
@click.option("-y", "--yes", "is_sure", is_flag=True, help="Do not ask.")
@scene
def grant(scene: CliContext, name: str, is_sure: bool, **options: Any) -> int:  # noqa: FBT001  (click hands it in)
    """Grant a function more access. Without options: all that it, or its rejected candidate, still needs."""
    from agent_core.functions.service.judgment import Judgment
    from agent_core.functions.service.plan import Given
    from agent_core.workspace.workspace import Workspace

    from ..opened import with_workspace

    async def granted(workspace: Workspace) -> Given | Judgment | None:
        shop = workspace.workshop
        shop.granting.packing.environment.tell = status.show
        question = await shop.grants.question(name, shop.grants.wanted(options))
        if not question.missing:
            raise UsageError(f"`{name}` has all of it already.", fix="See: toolwright functions grants")
        if not is_sure and not _agrees(question):
            return None
        return await shop.grants.grant(name, question.missing, version=question.version)

    with StatusLine() as status:
        result = with_workspace(scene, granted)
    if result is None:
        scene.talk("Nothing was granted.")
        return 1
    scene.result(result, given_lines(result) if isinstance(result, Given) else verdict_lines(result))
    return 0 if isinstance(result, Given) or result.admitted else 1


@click.command()
@click.argument("name")
@_kinds
@click.option("--all", "is_all", is_flag=True, help="All grants of the function.")
@scene
def revoke(scene: CliContext, name: str, is_all: bool, **options: Any) -> None:  # noqa: FBT001  (click hands it in)
    """Revoke grants of a function: those that are named, or --all."""
    from agent_core.functions.service.grant_commands import Revoked
    from agent_core.workspace.workspace import Workspace

    from ..opened import with_workspace

    async def revoked(workspace: Workspace) -> Revoked:
        shop = workspace.workshop
        selection = shop.grants.wanted(options)
        if is_all == bool(selection):
            raise UsageError(
                "Name the grants to revoke, or use --all.", fix=f"Such as: toolwright functions revoke {name} --all"
            )
        return await shop.grants.revoke(name, None if is_all else selection)

    result = with_workspace(scene, revoked)
    scene.result(result, revoked_lines(result))


@click.command()
@click.argument("name", default="")
@scene
def grants(scene: CliContext, name: str) -> int:
    """Show what functions may reach. Also shows how much of functions/grants.toml is in force for you."""
    from ..opened import with_workshop

    data = with_workshop(scene, lambda shop: shop.grants.listing(name))
    scene.result(data, grants_lines(data))
    if not data.grants and not data.problems:
        scene.hint("No function has a grant. Next: toolwright functions grant NAME")
    return 1 if data.problems else 0


def _agrees(question: Question) -> bool:
    from ..question import agreed, ask, say

    if not sys.stdin.isatty():
        raise UsageError("There is no terminal for the question.", fix="Look at what it would get, then give -y.")
    for page, is_last in pages(question, screen_columns(), max(shutil.get_terminal_size().lines - 2, 8)):
        say(page)
        if not is_last and ask("This is not all of it. Enter shows more; anything else grants nothing.") != "":
            return False
    return agreed("Grant it?")


COMMANDS = (grant, revoke, grants)
