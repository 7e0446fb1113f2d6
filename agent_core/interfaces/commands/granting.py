"""`knapper functions grant`, `revoke` and `grants`: what functions may reach, managed by the user."""

import shutil
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from agent_core.base.errors import UsageError

from ..spans import line
from ..wrap import screen_columns
from .history import judged
from .verb import Door, Opens, Result, verb

if TYPE_CHECKING:  # for annotations: the commands start without the service
    from agent_core.access.grants import Grants, Question
    from agent_core.functions.service import FunctionService

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


@verb()
@click.argument("name")
@_kinds
@click.option("-y", "--yes", "is_sure", is_flag=True, help="Do not ask.")
async def grant(door: Door, name: str, is_sure: bool, **options: Any) -> Result:  # noqa: FBT001  (click hands it in)
    """Grant a function more access. Without options: all that it, or its rejected candidate, still needs."""
    from agent_core.functions.service.plan import Given

    from ..render.grant_question import given_lines

    grants = door.shop.grants
    question = await grants.question(name, grants.wanted(options))
    if not question.missing:
        raise UsageError(f"`{name}` has all of it already.", fix="See: knapper functions grants")
    if not is_sure and not _agrees(question):
        return Result(None, aside=[line(("dim", "Nothing was granted."))], code=1)
    result = await grants.grant(name, question.missing, version=question.version)
    if isinstance(result, Given):
        return Result(result, given_lines(result))
    return judged(door, result)


@verb()
@click.argument("name")
@_kinds
@click.option("--all", "is_all", is_flag=True, help="All grants of the function.")
async def revoke(door: Door, name: str, is_all: bool, **options: Any) -> Result:  # noqa: FBT001  (click hands it in)
    """Revoke grants of a function: those that are named, or --all."""
    selection = door.shop.grants.wanted(options)
    if is_all == bool(selection):
        raise UsageError(
            "Name the grants to revoke, or use --all.", fix=f"Such as: knapper functions revoke {name} --all"
        )
    return await revoked(door.shop, name, None if is_all else selection)


@verb("grants", opens=Opens.READABLE)
@click.argument("name", default="")
async def list_grants(door: Door, name: str) -> Result:
    """Show what functions may reach. Also shows how much of functions/grants.toml is in force for you."""
    from agent_core.functions.service.function_facts import unknown_function

    from ..render.grant_question import grants_lines

    data = await door.shop.grants.listing(name)
    if name and not data.grants and name not in (names := door.shop.names()):
        raise unknown_function(name, names)
    none = f"{name or 'No function'} has {'no' if name else 'a'} grant. "
    none += "You are asked when one is needed." if door.at_prompt else "Next: knapper functions grant NAME"
    return Result(data, grants_lines(data), "" if data.grants or data.problems else none, 1 if data.problems else 0)


async def revoked(functions: "FunctionService", name: str, selection: "Grants | None") -> Result:
    """Revoke some grants of a function, or with None all."""
    from ..render.grant_question import revoked_lines

    result = await functions.grants.revoke(name, selection)
    return Result(result, revoked_lines(result))


def _agrees(question: "Question") -> bool:
    from ..question import agreed, ask, say
    from ..render.grant_question import pages

    if not sys.stdin.isatty():
        raise UsageError("There is no terminal for the question.", fix="Look at what it would get, then give -y.")
    for page, is_last in pages(question, screen_columns(), max(shutil.get_terminal_size().lines - 2, 8)):
        say(page)
        if not is_last and ask("This is not all of it. Enter shows more; anything else grants nothing.") != "":
            return False
    return agreed("Grant it?")


COMMANDS = (grant, revoke, list_grants)
