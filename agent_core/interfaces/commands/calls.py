"""`knapper calls`: recorded function calls, and replays of them."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from ..render.verdicts import call_lines, calls_lines, replay_lines
from .verb import CallNumber, Door, FunctionName, Opens, Result, verb


@click.group()
def calls() -> None:
    """List, show and replay recorded calls of functions."""


@verb(calls, opens=Opens.READABLE, scopes=("read",))
@click.option("--failed", is_flag=True, help="Only calls that raised an error or were stopped.")
async def list_(door: Door, function: FunctionName = "", *, failed: bool) -> Result:
    """List the calls that can be replayed, newest first."""
    records = await door.functions.replays.of(door.owners).calls(function, failed=failed)
    return Result(records, calls_lines(records), "" if records else "No such call is recorded.")


@verb(calls, opens=Opens.READABLE, scopes=("read",))
async def show(door: Door, call: CallNumber) -> Result:
    """Show a call: its arguments, what it got through `self`, and its outcome."""
    record = await door.functions.replays.of(door.owners).show(call)
    return Result(record, call_lines(record))


@verb(calls, scopes=("edit",))
@click.option(
    "--version",
    metavar="V",
    default="",
    help="The version to run: `now`, or one from `functions history`. By default, that of the recorded call.",
)
@click.option("--debug", "is_debugged", is_flag=True, help="Stop where it raised, or at its first line.")
async def replay(door: Door, call: CallNumber, *, version: str, is_debugged: bool) -> Result:
    """Replay a call with the original arguments, time zone, random seed and fetches.

    The exit code is 1 if the outcome differs.
    """
    replays = door.functions.replays.of(door.owners)
    if not is_debugged:
        result = await replays.replay(call, version)
    else:
        debugger, then = door.debugger(), await replays.show(call)
        if then.outcome.outcome == "raised":
            result = await replays.replay(call, version, looks_back=True, debugger=debugger)
        else:
            with stopping_first(door, then.call.function):
                result = await replays.replay(call, version, debugger=debugger)
    return Result(result, replay_lines(result), code=0 if result.same or result.quit else 1)


@contextmanager
def stopping_first(door: Door, function: str) -> Iterator[None]:
    """Make a function stop at its first line while the block runs. Keep a breakpoint that the user has there.

    Raises:
        UsageError: there is no such function.
    """
    from agent_core.functions.debug import Breakpoint

    breakpoints, snapshot = door.workspace.debugging.breakpoints, door.functions.registry.snapshot()
    before = {entry.breakpoint.id for entry in breakpoints.placed(snapshot)}
    placed = breakpoints.arm(Breakpoint(0, function, "", 0, once=True), 0, snapshot)
    try:
        yield
    finally:
        if placed.breakpoint.id not in before:
            breakpoints.clear(id=placed.breakpoint.id)
