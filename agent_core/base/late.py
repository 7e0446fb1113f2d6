"""Names and modules that are imported when they are first asked for (ADR 0006): a small use does not wait for all."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def late_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:  # Any: its `.pyi` says which
    """Return the `__getattr__` of a package; `modules` has the names that each of its modules gives, with blanks."""
    places = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{places[name]}"), name)

    return load


class LateModule:
    """A module that is imported with the first use of it. Type checkers are given the module itself."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:  # Any: as the module has it
        return getattr(import_module(self._name), name)
