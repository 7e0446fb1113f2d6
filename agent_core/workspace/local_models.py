"""Commands that need no open workspace: the schemas in files, and the local models."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_core.base.errors import UsageError
from agent_core.base.problem import Place, Problem
from agent_core.model.discover import LOCAL, LOCAL_PREFIX
from agent_core.model.local import weights
from agent_core.model.local.fetch import DownloadProgress, fetch_weights, remove
from agent_core.registry.schema import read_module
from agent_core.registry.source import ModuleSource, hash_of

if TYPE_CHECKING:
    from agent_core.registry.function import Function

OnBytes = Callable[[int, int | None, str], None]


@dataclass(frozen=True, slots=True)
class Schemas:
    """The functions of some files, and the problems of the files."""

    functions: tuple["Function", ...]
    problems: tuple[Problem, ...]


def schema_of(paths: Iterable[Path]) -> Schemas:
    """Return the functions in some files, which are parsed as text; nothing is run."""
    functions: list[Function] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            problems.append(Problem("unreadable", f"{path} cannot be read: {error}", Place(path.as_posix())))
            continue
        reading = read_module(ModuleSource(path.stem, path.as_posix(), text, hash_of(text)))
        functions += reading.functions
        problems += reading.problems
    return Schemas(tuple(functions), tuple(problems))


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


async def fetch_model(name: str, source: str | None, on_bytes: OnBytes) -> dict[str, Any]:
    """Download a local model's weights and verify their pinned hash; return their name, path and size in bytes."""
    loop = asyncio.get_running_loop()

    def tell(progress: DownloadProgress) -> None:
        loop.call_soon_threadsafe(on_bytes, progress.done, progress.total, progress.note)

    entry = weights.named(name)
    path = await fetch_weights(entry, source, tell)
    return {"name": f"{weights.PREFIX}{entry.name}", "path": str(path), "bytes": path.stat().st_size}


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
        raise UsageError(f"Nothing of `{entry.name}` is here.", fix="To see what is here: knapper models list")
    removed = [str(file) for file in removed_files]
    return {"name": f"{weights.PREFIX}{entry.name}", "removed": removed, "bytes": sum(removed_files.values())}
