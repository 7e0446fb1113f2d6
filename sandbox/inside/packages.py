"""Which packages beside the standard library function code may import: the listed names, no others."""

import importlib.machinery
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType


class PackageFinder:
    """Finds the listed top-level names in their folders; all else is not there."""

    def __init__(self, folders: Mapping[str, str]) -> None:
        self._folders = folders

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The specification of a listed top-level name; what is below it is found by its own path."""
        folder = self._folders.get(name)
        if folder is None or path is not None:
            return None
        return importlib.machinery.PathFinder.find_spec(name, [folder], target)


def install(folders: Mapping[str, str]) -> None:
    """Let the names be imported."""
    finder = PackageFinder(folders)
    sys.meta_path.append(finder)
    for name in folders:
        finder.find_spec(name)  # the folder's listing is kept: a worker may read the packages, not list what is beside
