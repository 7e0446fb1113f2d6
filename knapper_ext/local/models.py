"""The local models: listed, fetched and removed."""

import asyncio
from collections.abc import Callable
from typing import Any

from agent_core.base.errors import UsageError

from . import weights
from .weights import PREFIX, DownloadProgress, fetch_weights, remove


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
