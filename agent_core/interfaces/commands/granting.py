"""`toolwright functions grant, revoke, grants`: what functions may reach, in a human's hand."""

import shutil
import sys
from collections.abc import Callable
from typing import Any

import click

from agent_core.errors import UsageError
from agent_core.grants import Grants, Question

from ..asked import pages
from ..granted import given_lines, grants_lines, revoked_lines
from ..scene import Scene, scene
from ..status_line import StatusLine
from ..verdicts import verdict_lines
from ..wrap import screen_columns

_ITEMS = (
    ("--network", "network", "HOST", "A host: api.example.org, localhost:8000 or *.example.org."),
    ("--read", "read", "PATH", "A file or folder to read: in the workspace, or absolute."),
    ("--write", "write", "PATH", "A file or folder to read and write."),
    ("--secret", "secrets", "NAME", "A secret by its name."),
    ("--package", "packages", "REQ", "A package: requests or requests>=2.31."),
    ("--block", "memory", "LABEL", "A block of memory."),
    ("--call", "functions", "NAME", "Another function that has grants of its own."),
)


def _kinds(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that name what is granted."""
    command = click.option("--stateful", is_flag=True, help="One worker of its own that is kept between calls.")(
        command
    )
    command = click.option("--memory", "memory_mib", type=int, metavar="MIB", help="Memory above the default.")(command)
    command = click.option("--seconds", type=float, metavar="S", help="Time above the default.")(command)
    for flag, kind, shown, text in reversed(_ITEMS):
        command = click.option(flag, kind, multiple=True, metavar=shown, help=text)(command)
    return command


@click.command()
@click.argument("name")
@_kinds
@click.option("-y", "--yes", "is_sure", is_flag=True, help="Do not ask.")
@scene
def grant(scene: Scene, name: str, is_sure: bool, **given: Any) -> int:  # noqa: FBT001  (click hands it in)
    """Let a function reach more. Without options: all that it, or its candidate that stands refused, lacks."""
    from ..opened import with_workspace

    async def granted(workspace: Any) -> dict[str, Any] | None:
        shop = workspace.workshop
        shop.granting.packing.environment.tell = status.show
        question = await shop.grants.question(name, shop.grants.wanted(given))
        if not question.missing:
            raise UsageError(f"`{name}` has all of it already.", mend="Look: toolwright functions grants")
        if not is_sure and not _agrees(question):
            return None
        found: dict[str, Any] = await shop.grants.grant(name, question.missing, version=question.version)
        return found

    with StatusLine() as status:
        found = with_workspace(scene, granted)
    if found is None:
        scene.talk("Nothing was granted.")
        return 1
    scene.result(found, given_lines(found) if "given" in found else verdict_lines(found))
    return 0 if found.get("admitted", True) else 1


@click.command()
@click.argument("name")
@_kinds
@click.option("--all", "is_all", is_flag=True, help="Everything that it has.")
@scene
def revoke(scene: Scene, name: str, is_all: bool, **given: Any) -> None:  # noqa: FBT001  (click hands it in)
    """Take grants from a function: those that are named, or --all."""
    from ..opened import with_workspace

    async def revoked(workspace: Any) -> dict[str, Any]:
        shop = workspace.workshop
        wanted: Grants = shop.grants.wanted(given)
        if is_all == bool(wanted):
            raise UsageError(
                "Name what to take, or say --all.", mend=f"Such as: toolwright functions revoke {name} --all"
            )
        found: dict[str, Any] = await shop.grants.revoke(name, None if is_all else wanted)
        return found

    found = with_workspace(scene, revoked)
    scene.result(found, revoked_lines(found))


@click.command()
@click.argument("name", default="")
@scene
def grants(scene: Scene, name: str) -> int:
    """Show what functions may reach. And how much of functions/grants.toml is in force for you."""
    from ..opened import with_workshop

    found = with_workshop(scene, lambda shop: shop.grants.listing(name))
    scene.result(found, grants_lines(found))
    if not found["grants"] and not found["problems"]:
        scene.hint("No function has a grant. Next: toolwright functions grant NAME")
    return 1 if found["problems"] else 0


def _agrees(question: Question) -> bool:
    from ..question import agreed, ask, say

    if not sys.stdin.isatty():
        raise UsageError("There is no terminal to ask at.", mend="Look at what it would get, then give -y.")
    for page, is_last in pages(question, screen_columns(), max(shutil.get_terminal_size().lines - 2, 8)):
        say(page)
        if not is_last and ask("This is not all of it. Enter shows more; anything else grants nothing.") != "":
            return False
    return agreed("Grant it?")


COMMANDS = (grant, revoke, grants)
