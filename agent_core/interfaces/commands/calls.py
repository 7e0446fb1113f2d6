"""`toolwright calls`: recorded function calls, and replays of them."""

import click

from .verb import Door, Result, verb


@click.group()
def calls() -> None:
    """List, show and replay recorded calls of functions."""


@verb("list")
@click.argument("function", default="")
@click.option("--failed", is_flag=True, help="Only calls that raised or were ended.")
async def list_(door: Door, function: str, failed: bool) -> Result:  # noqa: FBT001  (click hands it in)
    """List the calls that can be replayed, newest first."""
    from ..replayed import calls_lines

    records = await door.shop.replays.calls(function, failed=failed)
    return Result(records, calls_lines(records), "" if records else "No such call is recorded.")


@verb()
@click.argument("call", metavar="ID", type=click.IntRange(1))
async def show(door: Door, call: int) -> Result:
    """Show a call: its arguments, what it got through `self`, and its outcome."""
    from ..replayed import call_lines

    record = await door.shop.replays.show(call)
    return Result(record, call_lines(record))


@verb()
@click.argument("call", metavar="ID", type=click.IntRange(1))
@click.option(
    "--version",
    metavar="V",
    default="",
    help="The version to run: `now`, or one from `functions history`. By default, that of the recorded call.",
)
@click.option("--debug", "is_debugged", is_flag=True, help="Stop where it raised, or at its first line.")
async def replay(door: Door, call: int, version: str, is_debugged: bool) -> Result:  # noqa: FBT001  (click hands it in)
    """Replay a call with the original arguments, time zone, random seed and fetches.

    Exit code 1: its outcome is another.
    """
    from ..replayed import replay_lines
    from ..replaying import replayed

    if is_debugged:
        door.open_debugger()
    result = await replayed(door.workspace, call, version, is_debugged=is_debugged)
    return Result(result, replay_lines(result), code=0 if result["same"] or result["quit"] else 1)


for _command in (list_, show, replay):
    calls.add_command(_command)
