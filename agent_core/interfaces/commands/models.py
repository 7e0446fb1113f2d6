"""`knapper models`: list the local models, fetch or remove one, and show where it is stored."""

from typing import Any

import click

from agent_core.base.errors import UsageError

from ..cli_context import CliContext, workspace_command
from ..styled_lines import columns, line


@click.group()
def models() -> None:
    """List the local models, fetch or remove one, or show where it is stored."""


@models.command("list")
@workspace_command
def list_(context: CliContext) -> None:
    """List the models that can run on this machine, and which are installed."""
    from agent_core.workspace.local_models import list_models

    local_models = list_models()
    rows = [
        [
            str(model["name"]),
            f"{float(model.get('bytes') or 0) / 1e9:.2f} GB",
            str(model.get("licence", "")),
            "here" if _is_here(model) else "not here",
        ]
        for model in local_models
    ]
    context.result({"models": local_models}, columns(rows, ("name", "", "dim", "dim")))
    if not any(_is_here(model) for model in local_models):
        context.hint(f"Next: knapper models get {local_models[0]['name']}" if local_models else "There are none.")


@models.command()
@click.argument("name")
@click.option(
    "--from",
    "source",
    metavar="FILE|FOLDER|URL",
    help="A file, folder or address to use instead of the default sources.",
)
@workspace_command
def get(context: CliContext, name: str, source: str | None) -> None:
    """Fetch a model. A broken download resumes where it stopped; the file is checked before it is used."""
    from ..menu import fetch

    fetched = fetch(name, source)
    context.result(fetched, [line(("ok", "✓ "), str(fetched["path"]))])
    context.hint(f"Next: knapper run --model {fetched['name']}")


@models.command()
@click.argument("name")
@workspace_command
def path(context: CliContext, name: str) -> None:
    """Print the path of a model's file."""
    from agent_core.workspace.local_models import list_models

    by_name = {str(model["name"]): model for model in list_models()}
    model = by_name.get(name.removeprefix("local/")) or by_name.get(f"local/{name.removeprefix('local/')}")
    if model is None:
        raise UsageError(f"There is no local model `{name}`.", fix=f"Known are: {', '.join(by_name)}.")
    if not _is_here(model):
        raise UsageError(f"`{name}` is not here.", fix=f"knapper models get {name}")
    context.result({"name": name, "path": model["path"]}, [line(str(model["path"]))])


@models.command()
@click.argument("name")
@workspace_command
def remove(context: CliContext, name: str) -> None:
    """Delete a fetched model from this machine, including the rest of a broken download."""
    from agent_core.workspace.local_models import remove_model

    removed = remove_model(name)
    freed = f"{removed['bytes'] / 1e6:.0f} MB were freed"
    context.result(removed, [line(("ok", "✓ "), f"{removed['name']} is removed: {freed}.")])
    context.hint(f"To download it again: knapper models get {removed['name'].removeprefix('local/')}")


def _is_here(model: dict[str, Any]) -> bool:
    return bool(model.get("here", model.get("path")))
