"""`toolwright init`: create a workspace."""

from pathlib import Path

import click

from ..scene import CliContext, scene
from ..spans import line


@click.command()
@click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path), required=False)
@scene
def init(scene: CliContext, folder: Path | None) -> None:
    """Create a workspace. It gets functions/ with five starters, and toolwright.toml; nothing is overwritten."""
    from agent_core.workspace.workspace import Workspace

    root = folder or scene.root
    names = Workspace.create(root)
    lines = [line(("ok", "+ "), name) for name in names] or [line(("dim", "Everything exists already."))]
    enter = "" if root.resolve() == Path.cwd() else f"cd {root} && "
    scene.result({"workspace": str(root), "made": names}, lines)
    scene.hint(f"Next: {enter}toolwright run")
