"""The local models: those that this version knows, and their weights on this machine."""

import asyncio
from collections.abc import Callable
from typing import Any

from agent_core.base.errors import UsageError
from agent_core.model.discover import LOCAL, LOCAL_PREFIX
from agent_core.model.local import weights
from agent_core.model.local.weights import DownloadProgress, fetch_weights, remove


def list_models() -> list[dict[str, Any]]:
    """Return the local models that this version knows, and whether each is installed."""
    rows = []
    for entry in weights.available():
        file = weights.path(entry.name)
        rows.append(
            {
                "name": f"{weights.PREFIX}{entry.name}",
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


def installed_models() -> list[str]:
    """Return the names of the local models with weights on this machine, recommended ones first."""
    return [entry.name for entry in weights.available() if weights.path(entry.name) is not None]


def best_installed() -> str | None:
    """Return the name of the first of these models, or None."""
    return next(iter(installed_models()), None)


def is_missing(name: str) -> bool:
    """Check whether a name is that of a local model without weights on this machine.

    Raises:
        UsageError: there is no such local model.
    """
    return (name == LOCAL or name.startswith(LOCAL_PREFIX)) and weights.path(name) is None


async def fetch_model(
    name: str, source: str | None, on_bytes: Callable[[int, int | None, str], None]
) -> dict[str, Any]:
    """Download a local model's weights and verify their pinned hash; return their name, path and size in bytes."""
    loop = asyncio.get_running_loop()

    def tell(progress: DownloadProgress) -> None:
        loop.call_soon_threadsafe(on_bytes, progress.done, progress.total, progress.note)

    entry = weights.named(name)
    path = await fetch_weights(entry, source, tell)
    return {
        "name": f"{weights.PREFIX}{entry.name}",
        "path": str(path),
        "bytes": path.stat().st_size,
    }


def remove_model(name: str) -> dict[str, Any]:
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
        "name": f"{weights.PREFIX}{entry.name}",
        "removed": removed,
        "bytes": sum(removed_files.values()),
    }
