"""`toolwright init`: make a workspace."""

from pathlib import Path

import click

from ..scene import Scene, scene
from ..spans import line


@click.command()
@click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path), required=False)
@scene
def init(scene: Scene, folder: Path | None) -> None:
    """Make a workspace. It gets functions/ with five starters, and toolwright.toml; nothing is overwritten."""
    from agent_core.assemble import Workspace

    root = folder or scene.root
    made = Workspace.create(root)
    lines = [line(("ok", "+ "), name) for name in made] or [line(("dim", "Everything is there already."))]
    enter = "" if root.resolve() == Path.cwd() else f"cd {root} && "
    scene.result({"workspace": str(root), "made": made}, lines)
    scene.hint(f"Next: {enter}toolwright run")
