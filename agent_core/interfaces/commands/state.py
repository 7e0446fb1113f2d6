"""`toolwright state`: adopt a state file that came with a folder."""

import click

from ..scene import CliContext, scene
from ..spans import line


@click.group(hidden=True)  # the message that it follows from names it
def state() -> None:
    """Adopt a state file that was put aside."""


@state.command()
@click.argument("file")
@scene
def adopt(scene: CliContext, file: str) -> None:
    """Adopt FILE, which was set aside in .toolwright/ because it did not carry your seal.

    Only do so if you trust whoever made it: its conversations, memory and recorded calls become yours.
    """
    from agent_core.base.clock import Clock
    from agent_core.storage import STATE_FILE, prepare_state_dir
    from agent_core.storage import adopt as take_over
    from agent_core.workspace.workspace import Workspace

    folder = prepare_state_dir(Workspace.find(scene.root))
    replaced = take_over(folder / STATE_FILE, file, Clock())
    note = f"; the previous one is kept as {replaced}" if replaced else ""
    scene.result({"adopted": file, "replaced": replaced}, [line(("ok", "✓ "), f"{file} is your state now{note}")])
