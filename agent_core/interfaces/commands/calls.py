"""`toolwright calls`: recorded function calls, and replays of them."""

from typing import Any

import click

from agent_core.base.errors import UsageError

from ..scene import CliContext, scene


@click.group()
def calls() -> None:
    """List, show and replay recorded calls of functions."""


@calls.command("list")
@click.argument("function", default="")
@click.option("--failed", is_flag=True, help="Only calls that raised or were ended.")
@scene
def list_(scene: CliContext, function: str, failed: bool) -> None:  # noqa: FBT001  (click hands it in)
    """List the calls that can be replayed, newest first."""
    from ..opened import with_workshop
    from ..replayed import calls_lines

    records = with_workshop(scene, lambda shop: shop.replays.calls(function, failed=failed))
    scene.result(records, calls_lines(records))
    if not records:
        scene.hint("No such call is recorded.")


@calls.command()
@click.argument("call", metavar="ID", type=click.IntRange(1))
@scene
def show(scene: CliContext, call: int) -> None:
    """Show a call: its arguments, what it got through `self`, and its outcome."""
    from ..opened import with_workshop
    from ..replayed import call_lines

    record = with_workshop(scene, lambda shop: shop.replays.show(call))
    scene.result(record, call_lines(record))


@calls.command()
@click.argument("call", metavar="ID", type=click.IntRange(1))
@click.option(
    "--version",
    metavar="V",
    default="",
    help="The version to run: `now`, or one from `functions history`. By default, that of the recorded call.",
)
@click.option("--debug", "is_debugged", is_flag=True, help="Stop where it raised, or at its first line.")
@scene
def replay(scene: CliContext, call: int, version: str, is_debugged: bool) -> int:  # noqa: FBT001  (click hands it in)
    """Replay a call with the original arguments, time zone, random seed and fetches.

    The exit code is 1 if the outcome differs.
    """
    from ..opened import with_workspace
    from ..question_of_grants import is_attended
    from ..replayed import replay_lines
    from ..replaying import human_at_terminal, replayed

    if is_debugged and (scene.as_json or not is_attended()):
        raise UsageError("There is no terminal for the debugger.", fix="Omit --debug, or run it at a terminal.")

    async def replay_call(workspace: Any) -> dict[str, Any]:
        return await replayed(workspace, call, version, is_debugged=is_debugged)

    result = with_workspace(scene, replay_call, debugger=human_at_terminal() if is_debugged else None)
    scene.result(result, replay_lines(result))
    return 0 if result["same"] or result["quit"] else 1
