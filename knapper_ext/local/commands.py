"""`knapper models`, and the preparation of a model: its weights are fetched, and the fixed part of its prompt is read.

Every request begins with that part, so reading it once fills the engine's cache for the first message.
"""

import asyncio
from tempfile import TemporaryDirectory
from typing import Any

import click

import agent_core
from agent_core.base.errors import KnapperError, UsageError
from agent_core.base.settings import ModelSettings, Settings
from agent_core.operations.command_context import CliContext, workspace_command
from agent_core.views.styled_lines import columns, line
from knapper.terminal.dialog import agreed, say
from knapper.terminal.progress import Download, StatusLine

from .models import fetch_model, list_models, remove_model
from .weights import PREFIX, Weights, file_of, has_engine


@click.group()
def models() -> None:
    """List the local models, fetch or remove one, or show where it is stored."""


@models.command("list")
@workspace_command
def list_(context: CliContext) -> None:
    """List the models that can run on this machine, and which are installed."""
    local_models = list_models()
    rows = []
    for model in local_models:
        size = f"{model['bytes'] / 1e9:.2f} GB"
        place = "here" if model["here"] else "not here"
        rows.append([model["name"], size, model["licence"], place])
    context.result({"models": local_models}, columns(rows, ("name", "", "dim", "dim")))
    if not any(model["here"] for model in local_models):
        context.hint(f"Next: knapper models get {local_models[0]['name']}")


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
    fetched = fetch(name, source)
    context.result(fetched, [line(("ok", "✓ "), str(fetched["path"]))])
    context.hint(f"Next: knapper run --model {fetched['name']}")


@models.command()
@click.argument("name")
@workspace_command
def path(context: CliContext, name: str) -> None:
    """Print the path of a model's file."""
    by_name = {model["name"]: model for model in list_models()}
    model = by_name.get(f"{PREFIX}{name.removeprefix(PREFIX)}")
    if model is None:
        raise UsageError(
            f"There is no local model `{name}`.", fix=f"Known are: {', '.join(by_name)}."
        )
    if not model["here"]:
        raise UsageError(f"`{name}` is not here.", fix=f"knapper models get {name}")
    context.result({"name": name, "path": model["path"]}, [line(model["path"])])


@models.command()
@click.argument("name")
@workspace_command
def remove(context: CliContext, name: str) -> None:
    """Delete a fetched model from this machine, including the rest of a broken download."""
    removed = remove_model(name)
    freed = f"{removed['bytes'] / 1e6:.0f} MB were freed"
    context.result(removed, [line(("ok", "✓ "), f"{removed['name']} is removed: {freed}.")])
    context.hint(f"To download it again: knapper models get {removed['name'].removeprefix(PREFIX)}")


def agree(weights: Weights) -> None:
    """Ask the user before weights are downloaded that are not here.

    Raises:
        UsageError: the answer was no.
    """
    if file_of(weights) is None and not agreed(f"Download {weights.size / 1e9:.1f} GB now?"):
        raise UsageError("Nothing was downloaded.")


def fetch(name: str, source: str | None = None) -> dict[str, Any]:  # Any: JSON
    """Download the weights, show the progress, and prefill the cache. Return what was downloaded.

    Raises:
        ModelError: the weights cannot be downloaded; the message says why and what is kept.
    """
    try:
        with Download() as download:
            fetched = asyncio.run(fetch_model(name, source, download.hear))
    except KeyboardInterrupt:
        say([line(("dim", "The partial download is kept; the same command resumes it."))])
        raise
    prepare(str(fetched["name"]))
    return fetched


def prepare(name: str) -> None:
    """Prefill the cache and show the progress. A problem is not an error, because the first request fills it too."""
    if not has_engine():
        return
    about = "The model reads the fixed part of its prompt, and stores it: up to a minute, once."
    say([line(("dim", about))])
    try:
        with StatusLine() as bar:
            asyncio.run(_prepare(name, bar))
    except KnapperError as error:
        say([line(("warn", "! "), f"The first request will do that: {error.message}")])
    except KeyboardInterrupt:
        say([line(), line(("warn", "Interrupted: the first request will do that."))])


async def _prepare(name: str, status: StatusLine) -> None:
    settings = Settings(model=ModelSettings(name=f"{PREFIX}{name.removeprefix(PREFIX)}"))
    with TemporaryDirectory(prefix="knapper-") as folder:
        async with agent_core.Workspace.open(folder, settings=settings) as workspace:
            agent = await workspace.agent()
            status.count(0, 1, "loading the model")
            await agent.model_session.prepare(
                agent.snapshot(),
                lambda done, total: status.count(
                    done, total, "reading the fixed part of the prompt"
                ),
            )
