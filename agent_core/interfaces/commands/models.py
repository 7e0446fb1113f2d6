"""`toolwright models`: the local models: which there are, fetching and removing one, and where it lies."""

import asyncio
from typing import Any

import click

from agent_core.errors import UsageError

from ..columns import columns
from ..download import Download
from ..scene import Scene, scene
from ..spans import Line, line


@click.group()
def models() -> None:
    """List the local models, fetch or remove one, or say where it lies."""


@models.command("list")
@scene
def list_(scene: Scene) -> None:
    """The models that can run on this machine, and which are here."""
    from agent_core.offline import list_models

    found = list_models()
    scene.result({"models": found}, _table(found))
    if not any(_is_here(model) for model in found):
        scene.hint(f"Next: toolwright models get {found[0]['name']}" if found else "There are none.")


@models.command()
@click.argument("name")
@click.option("--from", "source", metavar="FILE|FOLDER|URL", help="Where to take it from, if not the usual sources.")
@scene
def get(scene: Scene, name: str, source: str | None) -> None:
    """Fetch a model; a broken download goes on where it stopped, and the file is checked before it is used."""
    from agent_core.offline import fetch_model

    from ..prepare import prepare

    try:
        with Download() as download:
            fetched = asyncio.run(fetch_model(name, source, download.hear))
    except KeyboardInterrupt:
        scene.hint("What came is kept: the same command goes on there.")
        raise
    prepare(name)
    scene.result(fetched, [line(("ok", "✓ "), str(fetched.get("path", name)))])
    scene.hint(f"Next: toolwright run --model local/{name.removeprefix('local/')}")


@models.command()
@click.argument("name")
@scene
def path(scene: Scene, name: str) -> None:
    """Where the file of a model lies."""
    from agent_core.offline import list_models

    known = {str(model["name"]): model for model in list_models()}
    model = known.get(name.removeprefix("local/")) or known.get(f"local/{name.removeprefix('local/')}")
    if model is None:
        raise UsageError(f"There is no local model `{name}`.", mend=f"Known are: {', '.join(known)}.")
    if not _is_here(model):
        raise UsageError(f"`{name}` is not here.", mend=f"toolwright models get {name}")
    scene.result({"name": name, "path": model["path"]}, [line(str(model["path"]))])


@models.command()
@click.argument("name")
@scene
def remove(scene: Scene, name: str) -> None:
    """Delete a fetched model from this machine, with what a broken download left of it."""
    from agent_core.offline import remove_model

    removed = remove_model(name)
    freed = f"{removed['bytes'] / 1e6:.0f} MB are free again"
    scene.result(removed, [line(("ok", "✓ "), f"{removed['name']} is removed: {freed}.")])
    scene.hint(f"To have it again: toolwright models get {removed['name'].removeprefix('local/')}")


def _is_here(model: dict[str, Any]) -> bool:
    return bool(model.get("here", model.get("path")))


def _table(found: list[dict[str, Any]]) -> list[Line]:
    rows = [
        [
            str(model["name"]),
            f"{float(model.get('bytes') or 0) / 1e9:.2f} GB",
            str(model.get("licence", "")),
            "here" if _is_here(model) else "not here",
        ]
        for model in found
    ]
    return columns(rows, ("name", "", "dim", "dim"))
