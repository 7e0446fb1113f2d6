"""What needs no open workspace: the schemas of files, and the local models."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from .errors import UsageError
from .model.local import prefix, weights
from .model.local.fetch import Progress, fetch, remove
from .problem import Place, Problem
from .registry.schema import read_module
from .registry.source import Source, hash_of

OnBytes = Callable[[int, int | None, str], None]


def schema_of(paths: Iterable[Path]) -> dict[str, Any]:  # Any: JSON
    """The `schema` shape of some files: read as text, nothing is run."""
    functions: list[dict[str, Any]] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            problems.append(Problem("unreadable", f"{path} cannot be read: {error}", Place(path.as_posix())))
            continue
        reading = read_module(Source(path.stem, path.as_posix(), text, hash_of(text)))
        functions += [function.to_json() for function in reading.functions]
        problems += reading.problems
    return {"functions": functions, "problems": [problem.to_json() for problem in problems]}


def list_models() -> list[dict[str, Any]]:
    """The local models that this version knows, and which are here."""
    rows = []
    for each in weights.available():
        file = weights.path(each.name)
        rows.append(
            {
                "name": f"{weights.PREFIX}{each.name}",
                "title": each.title,
                "bytes": each.size,
                "licence": each.licence,
                "publisher": each.publisher,
                "url": each.url,
                "sha256": each.sha256,
                "path": str(file) if file else None,
                "here": file is not None,
            }
        )
    return rows


def installed_models() -> list[str]:
    """The names of the local models whose weights are here, the one to take first."""
    return [each.name for each in weights.available() if weights.path(each.name) is not None]


async def fetch_model(name: str, source: str | None, on_bytes: OnBytes) -> dict[str, Any]:
    """Fetch a local model's weights, checked against their pinned hash; where they lie."""
    loop = asyncio.get_running_loop()

    def tell(progress: Progress) -> None:
        loop.call_soon_threadsafe(on_bytes, progress.done, progress.total, progress.note)

    path = await fetch(name, source, tell)
    return {"name": name, "path": str(path), "bytes": path.stat().st_size}


def remove_model(name: str) -> dict[str, Any]:
    """Delete a local model's weights and what belongs to them; which files went, and their bytes.

    Raises:
        UsageError: there is no such model, or nothing of it is here.
        ModelError: another process fetches it.
        WorkspaceError: a file cannot be deleted.
    """
    known = weights.named(name)
    gone = remove(known) | prefix.remove(known)
    if not gone:
        raise UsageError(f"Nothing of `{known.name}` is here.", mend="toolwright models list says which are.")
    removed = [str(file) for file in gone]
    return {"name": f"{weights.PREFIX}{known.name}", "removed": removed, "bytes": sum(gone.values())}
