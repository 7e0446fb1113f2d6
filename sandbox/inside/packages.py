"""The packages outside the standard library that function code may import: the listed names, no others."""

import importlib.machinery
import sys
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any


class PackageFinder:
    """Finder of the listed top-level names in their folders, and of their metadata. Everything else is missing."""

    def __init__(self, folders: Mapping[str, str], listed: Sequence[str]) -> None:
        self._folders = folders
        self._listed = listed

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a listed top-level name. Names below it are found by its own path."""
        folder = self._folders.get(name)
        if folder is None or path is not None:
            return None
        return importlib.machinery.PathFinder.find_spec(name, [folder], target)

    def find_distributions(self, context: Any = None) -> Iterable[Any]:  # as `importlib.metadata` has it
        """Return the metadata of granted packages: many ask for their own version when they are imported."""
        import importlib.metadata as metadata  # noqa: PLC0415 - few want it, and it is slow to import

        name = getattr(context, "name", None)
        query = metadata.DistributionFinder.Context(name=name, path=list(self._listed))
        return metadata.MetadataPathFinder.find_distributions(query)


def install(folders: Mapping[str, str], listed: Sequence[str] = ()) -> None:
    """Make the names importable. Their metadata is found in the folders that may be listed."""
    finder = PackageFinder(folders, listed)
    sys.meta_path.append(finder)
    for name in folders:
        finder.find_spec(name)  # the folder's listing is kept: a worker may read the packages, not list the rest
